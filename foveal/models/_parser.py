"""Dependency parser: one head and one label for each word.

    word vector    x_t = [ E[word_t]; S[f_1]; ...; S[f_F]; characters(word_t) ]
    states         h = BiLSTM( x ),   after its first layer: tags_t = softmax( W h_t )
    tree           p(tree)         ~ exp( sum over words d of arcs[head of d, d] )
    labels         p(label | arc)  = softmax over k of labels[d, k]

    p(tree, labels | words) = p(tree) * product over words of p(label | arc)

Arcs and labels have biaffine scores of vectors that MLPs compute from the states, one MLP for heads and one
for words. If the training set has parts of speech, the lowest layer predicts them, and the layers above read
the mean embedding of the predicted tags; the trained parser needs no tags as input.

References: Dozat and Manning 2017 (biaffine scores); Koo et al. 2007 (likelihood of whole trees); Nguyen and
Verspoor 2018 (tags as a second task); Gal and Ghahramani 2016 (shared dropout).

Axes: B sentences, n words, m = n + 1 words and the root, P = F + C: spelling features and characters of a
word, K labels, G tags.
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from ..attention import BiaffineLabeler, BiaffineScorer
from ..batch_invariant import LEAST_ROWS, Linear
from ..distributions import ProjectiveTree, SpanningTree, without_checks
from ..networks import (
    RecurrentStack,
    SharedDropout,
    TextEncoder,
    initialize_orthogonal,
    recurrent_stack,
)
from ..specs import check, setting
from ._checks import checked_tokens

_SLOPE = 0.1  # negative slope of the leaky ReLUs, as in the parser of the paper


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ParserSizes:
    """The sizes of the vocabularies of a treebank."""

    vocabulary: int = setting(about="number of words", at_least=1)
    num_labels: int = setting(about="number of labels of arcs", at_least=1)
    num_tags: int = setting(0, "number of tags to predict; 0: none", at_least=0)
    num_features: int = setting(0, "number of spelling features of each word", at_least=0)
    num_buckets: int = setting(0, "number of rows in the table of these features", at_least=0)
    characters: int = setting(0, "number of different characters", at_least=0)
    num_characters: int = setting(0, "number of characters read of each word", at_least=0)


@final
@dataclass(frozen=True, eq=False)
class Parses:
    """The distribution over labeled trees of sentences: p(tree) times p(label | arc) of each word.

    `tree` is the distribution over trees, with `marginals()`, `argmax()`, `topk(5)`.
    """

    tree: SpanningTree | ProjectiveTree
    words: Float[Tensor, "B n D"]
    heads: Float[Tensor, "B m V"]  # the keys of the labeler
    labeler: BiaffineLabeler
    tags: Float[Tensor, "B n G"] | None = None  # scores

    def label_log_probs(self, heads: Int[Tensor, "B n"]) -> Float[Tensor, "B n K"]:
        """Compute log p(label | arc) for the arc from each word's head.

        Args:
            heads: Head of each word, from 1 to n; 0 for the root.

        Returns:
            Log-probabilities of the labels of each word.
        """
        return self.labeler(self.words, self.heads, heads).log_softmax(-1)

    def log_prob(
        self, heads: Int[Tensor, "B n"], labels: Int[Tensor, "B n"]
    ) -> Float[Tensor, " B"]:
        """Compute log p(tree, labels) of each sentence.

        A tree with crossing arcs has probability 0 under a `ProjectiveTree`. The `SpanningTree` with the same
        arc scores scores such sentences instead, so a projective parser can be trained on every sentence of a
        treebank.

        Args:
            heads: Head of each word, from 1 to n; 0 for the root.
            labels: Label of the arc from each word's head; padding may hold -1.

        Returns:
            Log-probabilities of the labeled trees.

        Raises:
            ValueRangeError: The heads of a sentence are not a tree.
        """
        of_trees = self._tree_log_prob(heads)  # first, because it checks the heads
        labels = labels.clamp(min=0).unsqueeze(-1)
        chosen = self.label_log_probs(heads).gather(-1, labels).squeeze(-1)
        if self.tree.mask is not None:
            chosen = torch.where(self.tree.mask, chosen, 0.0)
        return of_trees + chosen.sum(-1)

    def _tree_log_prob(self, heads: Int[Tensor, "B n"]) -> Float[Tensor, " B"]:
        any_tree = SpanningTree(
            self.tree.arcs, single_root=self.tree.single_root, mask=self.tree.mask
        )
        allowed, are_trees = self.tree.allows(heads), any_tree.allows(heads)
        # Both answers are read at once, because the host waits for a GPU at each read.
        all_allowed, all_trees = torch.stack([allowed.all(), are_trees.all()]).tolist()
        if not all_trees:
            return any_tree.log_prob(heads)  # raises an error with the first heads that are no tree
        with without_checks():
            if all_allowed:
                return self.tree.log_prob(heads)
            # A placeholder that is a tree of either kind: the head of each word is the previous word.
            chain = torch.arange(heads.shape[-1], device=heads.device).expand_as(heads)
            own = self.tree.log_prob(torch.where(allowed.unsqueeze(-1), heads, chain))
            return torch.where(allowed, own, any_tree.log_prob(heads))


@final
class Parser(nn.Module):
    """Computes a distribution over labeled dependency trees from words.

    Args:
        spec: Settings of the model.
        sizes: Sizes of the vocabularies.

    Examples:
        >>> sizes = ParserSizes(vocabulary=30, num_labels=4)
        >>> parser = ParserSpec(hidden_size=8).build(sizes)
        >>> parses = parser(torch.randint(30, (2, 7)))
        >>> parses.tree.argmax().shape
        torch.Size([2, 7])
    """

    def __init__(self, spec: "ParserSpec", sizes: ParserSizes) -> None:
        super().__init__()
        self.spec, self.sizes = spec, sizes
        self.embedding = nn.Embedding(sizes.vocabulary, spec.embedding_size)
        width = spec.embedding_size
        self.features = None
        if sizes.num_features:
            self.features = nn.Embedding(sizes.num_buckets, spec.feature_size)
            width += sizes.num_features * spec.feature_size
        self.characters = _character_encoder(spec, sizes)
        if self.characters is not None:
            width += self.characters.summary_size
        self.dropout = SharedDropout(spec.dropout)
        self.layers = nn.ModuleList()
        self.tags: Linear | None = None
        self.tag_vectors: Linear | None = None
        for number in range(spec.num_layers):
            self.layers.append(recurrent_stack(width, spec.hidden_size, bidirectional=True))
            width = 2 * spec.hidden_size
            if number == 0 and sizes.num_tags:
                self.tags = Linear(width, sizes.num_tags)
                self.tag_vectors = Linear(sizes.num_tags, spec.tag_size, bias=False)
                width += spec.tag_size
        self.arc_head, self.arc_word = Linear(width, spec.arc_size), Linear(width, spec.arc_size)
        self.label_head = Linear(width, spec.label_size)
        self.label_word = Linear(width, spec.label_size)
        self.arcs = BiaffineScorer(spec.arc_size, spec.arc_size)
        self.labels = BiaffineLabeler(spec.label_size, spec.label_size, sizes.num_labels)

    @override
    def forward(
        self,
        tokens: Int[Tensor, "B n"],
        mask: Bool[Tensor, "B n"] | None = None,
        spelling: Int[Tensor, "B n P"] | None = None,
    ) -> Parses:
        """Compute the distribution over labeled trees of each sentence.

        Args:
            tokens: Ids of the words.
            mask: True on real words; None if all are real.
            spelling: For each word its spelling features, then its characters, padded with 0;
                None for a model that uses only words.

        Returns:
            The distribution over trees, their labels and, if the model predicts them, the tags.
        """
        with checked_tokens("Parser", self.sizes.vocabulary, mask, tokens=tokens):
            if mask is not None:  # padding may hold ids outside the vocabulary
                tokens = torch.where(mask, tokens, 0)
                if spelling is not None:
                    spelling = torch.where(mask.unsqueeze(-1), spelling, 0)
            words = self.dropout(self._words(tokens, spelling))
        states, tags = self._states(words, mask)
        head, word, label_head, label_word = (
            self.dropout(nn.functional.leaky_relu(mlp(states), _SLOPE))
            for mlp in (self.arc_head, self.arc_word, self.label_head, self.label_word)
        )
        kind = ProjectiveTree if self.spec.tree == "projective" else SpanningTree
        arcs = self.arcs(word, self.arcs.remember(head))
        tree = kind(arcs, single_root=self.spec.single_root, mask=mask)
        return Parses(tree, label_word, self.labels.remember(label_head), self.labels, tags)

    def _words(
        self, tokens: Int[Tensor, "B n"], spelling: Int[Tensor, "B n P"] | None
    ) -> Float[Tensor, "B n D"]:
        parts = [self.embedding(tokens)]
        if spelling is not None and self.features is not None:
            vectors = self.features(spelling[..., : self.sizes.num_features])
            if self.training and self.spec.feature_dropout:
                kept = torch.rand_like(vectors[..., :1]) >= self.spec.feature_dropout
                vectors = vectors * kept / (1 - self.spec.feature_dropout)
            parts.append(vectors.flatten(-2))
        if spelling is not None and self.characters is not None:
            parts.append(self._spelled(spelling[..., self.sizes.num_features :]))
        return torch.cat(parts, -1)

    def _spelled(self, characters: Int[Tensor, "B n C"]) -> Float[Tensor, "B n D"]:
        """Compute a vector from the characters of each word. On a CPU, a repeated word is encoded once."""
        rows = characters.flatten(0, -2)
        # A GPU encodes all words faster than it sends them to the host and back.
        if not rows.is_cpu:
            return self._encoded(rows).unflatten(0, characters.shape[:-1])
        different, which = np.unique(rows.numpy(), axis=0, return_inverse=True)
        # Kernels for fewer rows round differently: see foveal.batch_invariant.
        read = torch.from_numpy(different)
        read = pad(read, (0, 0, 0, max(0, LEAST_ROWS - len(read))))
        index = torch.from_numpy(which.reshape(-1))
        return self._encoded(read)[index].unflatten(0, characters.shape[:-1])

    def _encoded(self, read: Int[Tensor, "N C"]) -> Float[Tensor, "N D"]:
        encoder = self.characters
        assert encoder is not None
        mask = read != 0
        mask[:, 0] = True  # padding counts as a word of one character
        summary = encoder(read, mask).summary
        assert summary is not None
        return summary

    def _states(
        self, values: Float[Tensor, "B n D"], mask: Bool[Tensor, "B n"] | None
    ) -> tuple[Float[Tensor, "B n H"], Float[Tensor, "B n G"] | None]:
        tags, tagger, vectors = None, self.tags, self.tag_vectors
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, RecurrentStack)
            values = self.dropout(layer(values, mask).outputs)
            if number == 0 and tagger is not None and vectors is not None:
                tags = tagger(values)
                values = torch.cat([values, vectors(tags.softmax(-1))], -1)
        return values, tags


def _character_encoder(spec: "ParserSpec", sizes: ParserSizes) -> TextEncoder | None:
    if not sizes.num_characters:
        return None
    size = spec.character_size
    stack = recurrent_stack(size, spec.character_hidden_size, bidirectional=True)
    return TextEncoder(nn.Embedding(sizes.characters, size), stack, spec.feature_dropout)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ParserSpec:
    """A model that predicts one head and one label for each word."""

    kind: Literal["parser"] = "parser"
    embedding_size: int = setting(100, "width of a word's vector", at_least=1)
    feature_size: int = setting(24, "width of a spelling feature's vector", at_least=1)
    character_size: int = setting(32, "width of a character's vector", at_least=1)
    character_hidden_size: int = setting(
        50, "width of the LSTM that reads the characters of a word, in each direction", at_least=1
    )
    hidden_size: int = setting(
        200, "width of the LSTM that reads the words, in each direction", at_least=1
    )
    num_layers: int = setting(3, "number of its layers", at_least=1)
    tag_size: int = setting(
        50, "width of the vector of a predicted part of speech, if some are learned", at_least=1
    )
    arc_size: int = setting(300, "width of the vectors that arcs are scored with", at_least=1)
    label_size: int = setting(72, "width of the vectors that labels are scored with", at_least=1)
    dropout: float = setting(
        0.33,
        "fraction of features of a sentence, the same for all words, set to 0 in training before "
        "and after each layer",
        at_least=0,
        at_most=1,
    )
    feature_dropout: float = setting(
        0.1,
        "dropout of spelling features and of character vectors",
        at_least=0,
        at_most=0.9,
    )
    tree: Literal["spanning", "projective"] = setting(
        "spanning", "whether arcs may cross; a projective parser finds no crossing arcs"
    )
    single_root: bool = setting(True, "exactly one word hangs from the root, as in UD")

    def build(self, sizes: ParserSizes) -> Parser:
        """Build the model with new weights, orthogonal in the recurrent matrices.

        Args:
            sizes: Sizes of the vocabularies.

        Returns:
            The model, in training mode.
        """
        check(self)
        check(sizes)
        parser = Parser(self, sizes)
        initialize_orthogonal(parser)
        return parser
