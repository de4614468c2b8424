"""Captions and alternative texts of drawings (docs_pictures.py, docs_curves.py, docs_dynamics.py): name -> text.

The views of the gallery have theirs in scripts/docs_views.py, since their figures come from results/gallery.
"""

from typing import NamedTuple


class Caption(NamedTuple):
    """The text below a picture, and the text in place of a picture that a reader cannot see."""

    text: str
    alt: str


# Pictures are dark on a light page and light on a dark page.
_CELLS = "A stronger color means a higher probability."
_WEIGHTS = "Weights of three queries on seven words; a stronger color means a higher weight."


def _weights(kind: str, text: str = "") -> Caption:
    """The caption of an attention with three queries, which all kinds share."""
    return Caption(f"{_WEIGHTS} {text}".strip(), f"Heat map of {kind} attention: queries by words")


DRAWN: dict[str, Caption] = {
    "unrolled": Caption(
        "A recurrent network, and the same network unrolled over one, two and three steps. All steps share W, U and V.",
        "A node with a loop; then chains of one, two and three states, each with an input below and an output above",
    ),
    "growth": Caption(
        "CPU time of a training step or a search by length, vocabulary, batch and beam, both axes logarithmic. Bands go from the "
        "lowest to the highest round. The dotted lines have the slopes 1 and 2.",
        "Four plots of rising lines, most of them flat for small sizes and parallel to the dotted line of slope 1 for large ones",
    ),
    "self_attention_lm": Caption(
        "Bits per character on the test plays: by the number of weights, on the whole training set (left), and by the size of "
        "the training set, for models of half the width (right). Every model reads the same number of characters in training. "
        "Bands go from the lowest to the highest seed.",
        "Two plots with logarithmic horizontal axes, each with a line for the Transformer and one for the LSTM",
    ),
    "gradient_by_cell": Caption(
        "Gradient norms by distance for cells with 64 units and fresh weights, on random inputs. Orthogonal and identity "
        "matrices keep the gradient; the forget gates of the LSTM start open.",
        "Five falling lines: torch's default and the GRU fall fastest, orthogonal and identity slowest",
    ),
    "iterated_map": Caption(
        "The map 3.5 x (1 - x), applied 1, 2, 3 and 6 times.",
        "Four plots with one, two, four and many hills",
    ),
    "attractors": Caption(
        "The flow of a network with two units. Circles are attractors; a stronger color means a larger gradient over ten "
        "steps. It is largest on the border between the two basins.",
        "Arrows that lead to two circles in opposite corners, with a dark band between them",
    ),
    "cliff": Caption(
        "The loss of one recurrent unit after 15 steps, over its weight and bias, and 60 steps of gradient descent from one "
        "start. Without clipping, one step from the wall ends on the high plain, where the gradient is almost 0.",
        "Contour plot with a wall, one path that jumps far away and one that follows the wall down",
    ),
    "loss_jumps": Caption(
        "The loss of a character language model (64 Elman units, 40 steps of backpropagation) by update of plain gradient "
        "descent with rate 2, from one start and with the same batches. Without clipping, one long gradient throws the "
        "weights away, and the loss does not come back.",
        "Two falling lines; the dashed one suddenly jumps to a loss that is ten times higher and stays there",
    ),
    "categorical": Caption(
        f"A distribution over seven words. {_CELLS} The frame is one sample.",
        "Row of seven cells, one of them framed",
    ),
    "subset": Caption(
        f"Marginals of seven words. {_CELLS} The frames are one sample, a subset of any size.",
        "Row of seven cells, some of them framed",
    ),
    "k_subset": Caption(
        f"Marginals of seven words, which sum to 3. {_CELLS} The frames are one sample of three words.",
        "Row of seven cells, three of them framed",
    ),
    "sparse": Caption(
        f"Softmax and sparsemax of the same scores. {_CELLS} A 0 marks words with probability exactly 0.",
        "Two rows of cells: no zeros with softmax, several zeros with sparsemax",
    ),
    "linear_chain": Caption(
        f"Marginals of three states at seven positions. {_CELLS} The line is one sampled labeling.",
        "Heat map of states by words, with a line through one state of each word",
    ),
    "semi_markov": Caption(
        f"The probability that a segment with this label covers the word. {_CELLS} The frames are one sampled segmentation.",
        "Heat map of labels by words, with frames around whole segments",
    ),
    "projective_tree": Caption(
        "Arcs from heads to words; thicker arcs have a higher probability. The red arcs are one sampled tree, in which no "
        "two arcs cross.",
        "Arcs above the words of a sentence, none of the red ones crossing",
    ),
    "spanning_tree": Caption(
        "Arcs from heads to words; thicker arcs have a higher probability. The red arcs are one sampled tree; here, arcs "
        "may cross.",
        "Arcs above the words of a sentence, some of them crossing",
    ),
    "span_tree": Caption(
        f"Spans of the sentence by their number of words. {_CELLS} The red frames are one sampled binary tree.",
        "Triangle of cells, one for each span, with the spans of one tree framed",
    ),
    "alignment": Caption(
        f"Marginals of matches of five source items with seven target items. {_CELLS} The frames are one sampled alignment.",
        "Heat map of source by target items, with a path of frames from one corner to the other",
    ),
    "softmax_attention": _weights("softmax", "Each row sums to 1."),
    "sigmoid_attention": _weights("sigmoid", "Each weight is independent of the others."),
    "segment_attention": _weights("segment", "Neighboring words have similar weights."),
    "k_step_attention": _weights("k-step", "Each query is a step of one chain."),
    "local_attention": _weights("local", "Each query reads around one position."),
    "hard_attention": _weights("hard", "Each query reads one sampled word."),
    "monotone_attention": _weights("monotone", "Later queries never read earlier words."),
    "sparsemax_attention": _weights("sparsemax", "Empty cells have weight 0."),
    "syntactic_attention": Caption(
        "Weights of each word (row) on its possible heads (columns); a stronger color means a higher weight. The rest of each row "
        "is the probability of the root.",
        "Heat map of syntactic attention: words by heads",
    ),
    "hierarchical_attention": Caption(
        "Weights of one query on the words of three sentences; a stronger color means a higher weight. All cells together sum to 1.",
        "Heat map of hierarchical attention: sentences by words",
    ),
    "spatial_attention": Caption(
        "Weights of one query on the cells of an image; a stronger color means a higher weight.",
        "Heat map of spatial attention: rows by columns of an image",
    ),
    "multi_head_attention": Caption(
        "Weights of two heads with three queries each; a stronger color means a higher weight.",
        "Heat map of multi-head attention: heads and queries by words",
    ),
    "copy_and_reverse": Caption(
        "Outputs without a mistake by the length of the sequence: means over seeds, and the range of the seeds. The models were "
        "not trained on lengths in the shaded part.",
        "Two charts, copy and reverse: accuracy by length, with and without attention",
    ),
    "prefix_to_infix": Caption(
        "Outputs without a mistake by the depth of the formula: means over seeds, and the range of the seeds. The models were "
        "not trained on depths in the shaded part.",
        "Chart of accuracy by depth, with and without attention",
    ),
}
