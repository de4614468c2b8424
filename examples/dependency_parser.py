"""Find the head of every word: a distribution over trees on biaffine scores (Dozat & Manning 2017).

    p(tree | words) = SpanningTree(arcs),    arcs[h, d] = head_h . (W word_d + b)
    loss = -log p(gold tree, labels),    answer = the most probable tree

The loss is the negative log-likelihood of the whole tree, by the matrix-tree theorem (Koo et al. 2007), instead of a
separate loss for each head. Arcs may cross, as in the treebank, and exactly one word depends on the root.

Data: Universal Dependencies, English Web Treebank (CC BY-SA 4.0). The parser sees the words of the
treebank's own segmentation and their spelling: no parts of speech, no pretrained vectors. The
program prints the fraction of all words of the test file, punctuation among them, with the right
head (UAS), and with the right head and label (LAS). `foveal data get ud_english_ewt` gets the files.

Run: python examples/dependency_parser.py [--cut 500] [--epochs 10] [--seed 0]
"""

from itertools import islice

from support import find, parse_options, train

from foveal.data import treebank
from foveal.models import ParserSpec
from foveal.tasks import ParsingSpec

FILE = "ud_english_ewt/en_ewt-ud-{part}.conllu.gz"
SPEC = ParsingSpec(
    model=ParserSpec(num_layers=2, arc_size=200, dropout=0.2),
    num_characters=0,  # the model reads prefixes, suffixes and word shapes, but no characters
    tag_weight=0.0,
)


def main() -> None:
    """Train, then parse the test sentences."""
    options = parse_options(epochs=10)
    known, unseen = (
        list(islice(treebank(find(FILE.format(part=part))), options.cut))
        for part in ("train", "test")
    )
    parser = train(SPEC, known, options, learning_rate=1e-2)
    found = parser.evaluate(unseen)
    assert found.baseline is not None
    print(f"LAS of {found.baseline.rule}: {found.baseline.value:.2f} %")
    print(f"test UAS: {found.metrics['uas'].value:.2f} %")
    print(f"test LAS: {found.metrics['las'].value:.2f} %")
    assert found.warning is None, "the parser should beat the baseline"
    print(parser.predict("They read the book that she wrote .").output)


if __name__ == "__main__":
    main()
