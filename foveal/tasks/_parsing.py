"""Dependency parsing: the head of every word of a sentence, and the label of the arc between them.

    loss = - log p(tree, labels | words)  +  tag_weight * ( - sum over words of log p(tag | words) )

    source   They buy books
    target   2:nsubj 0:root 2:obj         heads count from 1, and 0 is the root
    features PRON|PRP VERB|VBP NOUN|NNS   optional training targets, never an input

Axes: B sentences, n words, P ids for the spelling of a word: features, then characters.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot
from torch.nn.utils.rnn import pad_sequence
from typing_extensions import override

from ..attention import AttentionTrace
from ..batch_invariant import LEAST_ROWS
from ..data import (
    Encoded,
    Example,
    SpellingSpec,
    Symbols,
    Tally,
    Vocabularies,
    WhitespaceSpec,
    fill_trees,
    located,
    read_arc,
    required_target,
)
from ..distributions import ProjectiveTree, SpanningTree
from ..errors import DataError
from ..masking import mask_from_lengths
from ..metrics import AbstractMetricSpec, Calibration, Statistics, attachment_score, exact_match
from ..models import Parser, ParserSizes, ParserSpec, Parses
from ..networks import initialize_embeddings
from ..specs import setting
from ._parse_batch import ParseBatch
from ._parse_steps import parse_steps
from ._tree_check import check_tree
from .base._answering import AbstractAnsweringTask, Answers
from .base._evaluation import MainMetric
from .base._losses import word_dropout
from .base._prediction import Loss, Prediction, PredictionSpec
from .base._size_classes import size_class
from .base._text_spec import AbstractTextSpec
from .explaining._explanation import ExplainedStep

_NO_TAG = -1


@final
class Parsing(AbstractAnsweringTask[Parser]):
    """Dependency parsing of sentences.

    Args:
        spec: Settings of the task.
        vocabularies: Vocabularies of words, labels, characters and parts of speech.
        model: Parser over these vocabularies.
    """

    is_complete = False
    least_rows = LEAST_ROWS

    def __init__(self, spec: "ParsingSpec", vocabularies: Vocabularies, model: Parser) -> None:
        self._spec, self.vocabularies, self.model = spec, vocabularies, model
        self._labels = vocabularies.labels_of("Parsing")
        self.prediction, self.calibration = spec.prediction, Calibration()

    @property
    @override
    def spec(self) -> "ParsingSpec":
        return self._spec

    @property
    @override
    def main_metric(self) -> MainMetric:
        return MainMetric("las", True)

    @override
    def encode(self, example: Example) -> Encoded:
        words, arcs = self.symbols(example), self._arcs(example)
        with located(example):
            pairs = [read_arc(arc) for arc in arcs]
            heads = [head for head, _ in pairs]
            check_tree(heads, single_root=self.spec.model.single_root)
            labels = [self._labels.number(label) for _, label in pairs]
        return self._encoded(words, heads, labels, self._tags(example))

    def encode_source(self, example: Example) -> Encoded:
        """Encode an example whose tree is not known.

        Args:
            example: Example; its target and features are ignored.

        Returns:
            The ids of the words and their spelling. All heads and labels are 0, and no part of speech is known.
        """
        words = self.symbols(example)
        nothing = [0] * len(words)
        return self._encoded(words, nothing, nothing, [_NO_TAG] * len(words))

    def _encoded(
        self, words: Sequence[str], heads: Sequence[int], labels: Sequence[int], tags: Sequence[int]
    ) -> Encoded:
        return Encoded(
            self.vocabularies.source.encode([word.lower() for word in words]),
            heads=heads,
            labels=labels,
            tags=[tag + 1 for tag in tags],  # padding is 0
            spelling=[number for word in words for number in self._spelling(word)],
        )

    def _spelling(self, word: str) -> list[int]:
        """Return the spelling features of a word and its first characters, padded with 0."""
        spec, found = self.spec, list[int]()
        if spec.spelling is not None:
            found += spec.spelling.encode([word])
        if spec.num_characters:
            assert self.vocabularies.features is not None
            numbers = self.vocabularies.features.encode(list(word[: spec.num_characters]))
            found += [*numbers, *[0] * (spec.num_characters - len(numbers))]
        return found

    @override
    def collate(self, examples: Sequence[Encoded]) -> ParseBatch:
        return self._collate(examples, None)

    def _collate(self, examples: Sequence[Encoded], size: int | None) -> ParseBatch:
        """Return a batch padded to the longest sentence, or to `size` words."""
        lengths = torch.tensor([len(example.source) for example in examples])
        size = max(1, int(lengths.max())) if size is None else size
        width = self.spec.spelling_size

        def padded(name: str, each: int = 1) -> Int[Tensor, "B n each"]:
            rows = [torch.tensor([*example[name]], dtype=torch.long) for example in examples]
            blank = torch.zeros(size, each, dtype=torch.long)
            flat = [row.view(-1, each) for row in rows]
            return pad_sequence([*flat, blank], batch_first=True)[:-1]

        return ParseBatch(
            tokens=padded("source").squeeze(-1),
            mask=mask_from_lengths(lengths, size),
            spelling=padded("spelling", width) if width else None,
            heads=padded("heads").squeeze(-1),
            labels=padded("labels").squeeze(-1),
            tags=padded("tags").squeeze(-1) - 1,
            indices=torch.tensor([example.index for example in examples]),
        )

    @override
    def loss(self, batch: ParseBatch, state: Any = None) -> Loss:
        """Compute the loss of whole sentences, counted by words."""
        batch = batch.to(self.device)
        if self.model.training:
            batch = replace(
                batch, tokens=word_dropout(batch.tokens, batch.mask, self.spec.word_dropout)
            )
        parses = self.parses(batch)
        trees = -parses.log_prob(batch.heads, batch.labels).sum()
        if parses.tags is None:
            return Loss(trees, batch.mask.sum())
        wanted = batch.tags.masked_fill(~batch.mask, _NO_TAG).flatten()
        scores = parses.tags.flatten(0, -2)
        tags = cross_entropy(scores, wanted, ignore_index=_NO_TAG, reduction="sum")
        parts = {"trees": trees.detach(), "tags": tags.detach()}
        return Loss(trees + self.spec.tag_weight * tags, batch.mask.sum(), parts)

    def parses(self, batch: ParseBatch) -> Parses:
        """Return the distribution over the labeled trees of each sentence.

        Args:
            batch: Batch of sentences, on any device.

        Returns:
            One distribution per sentence.
        """
        batch = batch.to(self.device)
        return self.model(batch.tokens, batch.mask, batch.spelling)

    @property
    @override
    def output_kind(self) -> Literal["labels"]:
        return "labels"

    @override
    def explained_steps(
        self, example: Example, found: Prediction, alternatives: int
    ) -> Sequence[ExplainedStep]:
        """Return one step for each word, with the candidate heads."""
        arcs = found.output.split()
        if not arcs:
            return ()
        with self.answering():
            parses = self.parses(self.collate([self.encode_source(example)]))
            return parse_steps(parses, arcs, self._labels.names, alternatives)

    @override
    def symbols(self, example: Example) -> list[str]:
        return self.spec.source.encode(example.text)

    @property
    @override
    def known(self) -> Container[str]:
        return _InAnyCase(self.vocabularies.source)

    @override
    def reference(self, example: Example) -> str:
        return " ".join(self._arcs(example))

    @override
    def trivial_answers(self, example: Example) -> Mapping[str, str]:
        label = self.vocabularies.majority.get("")
        if label is None:
            return {}
        size = len(self.symbols(example))
        heads = [*range(2, size + 1), 0][:size]
        return {"every word attached to the next": " ".join(f"{head}:{label}" for head in heads)}

    @override
    def fill(self, lines: Iterable[str], file: str = "input") -> Iterator[str]:
        """Parse the sentences of CoNLL-U lines: yield the lines with heads and labels filled in.

        Comments, tokens of several words, empty nodes and all other columns stay as they are.

        Args:
            lines: Lines without line breaks.
            file: Name of the file for error messages.

        Returns:
            An iterator over the lines, in order.
        """
        return fill_trees(
            lines, lambda texts: [found.output for found in self.predict(texts)], file
        )

    def _arcs(self, example: Example) -> list[str]:
        arcs = WhitespaceSpec().encode(required_target(example))
        words = self.symbols(example)
        if len(arcs) != len(words):
            with located(example):
                raise DataError(
                    f"{len(words)} words and {len(arcs)} arcs, expected equal numbers. Write an arc "
                    f"such as 2:nsubj for each word, and separate words and arcs by spaces."
                )
        return arcs

    def _tags(self, example: Example) -> list[int]:
        """Return the part-of-speech ids, if they are known."""
        size, known = len(self.symbols(example)), self.vocabularies.target
        tags = WhitespaceSpec().encode(example.features)
        if known is None or len(tags) != size:
            return [_NO_TAG] * size
        return known.encode(tags)

    @override
    def searcher(self) -> Callable[..., list[Answers]]:
        return self._search

    def _search(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        encoded = [self.encode_source(example) for example in examples]
        longest = max(len(example.source) for example in encoded)
        parses = self.parses(self._collate(encoded, size_class(longest)))
        marginals = parses.tree.marginals()
        best = self._ranked(parses, marginals).topk(settings.beam_size)
        exists = (best.log_probs > -torch.inf).T.tolist()
        candidates = [self._labeled(parses, heads) for heads in best.values]
        found = []
        for number, example in enumerate(examples):
            size = len(encoded[number].source)
            real = [one for one, is_real in zip(candidates, exists[number], strict=True) if is_real]
            scores = [one.log_probs[number] for one in real]
            heads = best.values[0, number, :size]
            weights = marginals[number, : size + 1, 1 : size + 1].T  # (n, m): p(head | word)
            found.append(
                Answers(
                    [" ".join(one.arcs[number][:size]) for one in real],
                    scores,
                    scores,
                    tuple(weights.gather(1, heads.unsqueeze(1)).squeeze(1).tolist()),
                    self._trace(example, weights, heads) if settings.trace else None,
                )
            )
        return found

    def _ranked(
        self, parses: Parses, marginals: Float[Tensor, "B m m"]
    ) -> SpanningTree | ProjectiveTree:
        """Return the distribution whose best trees are the answers.

        Minimum-risk decoding chooses the tree with the largest expected number of right heads, which is the best
        tree if the marginals are the scores (Smith and Smith 2007).
        """
        if self.spec.decoding == "argmax":
            return parses.tree
        return replace(parses.tree, arcs=marginals)

    def _labeled(self, parses: Parses, heads: Int[Tensor, "B n"]) -> "_Candidate":
        """Return the most probable arc labels of one tree for each sentence."""
        if parses.tree.mask is not None:  # a sentence with fewer trees repeats its best one
            is_tree = (heads >= 0).any(-1, keepdim=True)
            heads = torch.where(is_tree, heads, parses.tree.argmax())
        labels = parses.label_log_probs(heads).argmax(-1)
        names = self._labels.names
        rows = zip(heads.tolist(), labels.tolist(), strict=True)
        return _Candidate(
            [[f"{h}:{names[k]}" for h, k in zip(*row, strict=True)] for row in rows],
            parses.log_prob(heads, labels).tolist(),
        )

    def _trace(
        self, example: Example, weights: Float[Tensor, "n m"], heads: Int[Tensor, " n"]
    ) -> AttentionTrace:
        """Return the probability of each head of each word, and the predicted tree."""
        words = tuple(self.symbols(example))
        chosen = one_hot(heads, weights.shape[-1])[:, 1:].bool()
        return AttentionTrace(
            kind="syntactic",
            sources=words,
            targets=words,
            weights=tuple(map(tuple, weights[:, 1:].tolist())),
            best=tuple(map(tuple, chosen.tolist())),
        )

    @override
    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        split = WhitespaceSpec().encode
        rows = [split(text) for text in references], [split(text) for text in outputs]
        return [
            attachment_score(*rows, labeled=True),
            attachment_score(*rows, labeled=False),
            exact_match(references, outputs),
        ]


@final
class _InAnyCase(Container[str]):
    """The known words: a word is known if its lowercase form is in the vocabulary."""

    def __init__(self, vocabulary: Container[object]) -> None:
        self._vocabulary = vocabulary

    @override
    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and word.lower() in self._vocabulary


class _Candidate(NamedTuple):
    """A labeled tree for each sentence of a batch, and its log-probability."""

    arcs: list[list[str]]
    log_probs: list[float]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ParsingSpec(AbstractTextSpec[Parsing]):
    """Dependency parsing: one head and one label for each word."""

    kind: Literal["parsing"] = "parsing"
    source: WhitespaceSpec = setting(WhitespaceSpec(), "tokenizer of the sentence")
    min_count: int = setting(
        2, "words that are rarer in the training set, ignoring case, become unknown", at_least=1
    )
    max_vocab_size: int | None = setting(
        None, "maximum vocabulary size, most frequent words first; none: no maximum", at_least=5
    )
    model: ParserSpec = setting(
        ParserSpec(), "the network that reads the sentence and scores its arcs"
    )
    spelling: SpellingSpec | None = setting(
        SpellingSpec(), "spelling features of each word; none: no spelling features"
    )
    num_characters: int = setting(
        18, "maximum number of characters read per word; 0: no characters", at_least=0, at_most=1000
    )
    tag_weight: float = setting(
        0.3,
        "weight of the loss of predicted parts of speech, if the data has some; 0: do not predict them",
        at_least=0,
    )
    word_dropout: float = setting(
        0.2, "fraction of words replaced by the unknown token in training", at_least=0, at_most=1
    )
    decoding: Literal["argmax", "minimum_risk"] = setting(
        "argmax",
        "argmax: the most probable tree; minimum_risk: the tree with the highest expected number of "
        "correct heads",
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(beam_size=1), "settings of prediction")

    @property
    def spelling_size(self) -> int:
        """The number of ids that encode the spelling of a word."""
        num_features = 0 if self.spelling is None else self.spelling.num_features
        return num_features + self.num_characters

    @override
    def build(self, vocabularies: Vocabularies) -> Parsing:
        """Build the task with fresh weights."""
        spelling, tags, characters = self.spelling, vocabularies.target, vocabularies.features
        model = self.model.build(
            ParserSizes(
                vocabulary=len(vocabularies.source),
                num_labels=len(vocabularies.labels_of("Parsing")),
                num_tags=0 if tags is None else len(tags),
                num_features=0 if spelling is None else spelling.num_features,
                num_buckets=0 if spelling is None else spelling.num_buckets,
                characters=0 if characters is None else len(characters),
                num_characters=self.num_characters,
            )
        )
        task = Parsing(self, vocabularies, model)
        initialize_embeddings(task.model)
        return task

    @override
    def counted(self, example: Example) -> Symbols:
        words = self.source.encode(example.text)
        arcs = WhitespaceSpec().encode(required_target(example))
        with located(example):
            labels = [read_arc(arc)[1] for arc in arcs]
        tags = WhitespaceSpec().encode(example.features) if self.tag_weight else []
        return Symbols(
            [word.lower() for word in words],
            target=tags or None,
            features=[character for word in words for character in word[: self.num_characters]],
            labels=labels,
        )

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count, max_size=self.max_vocab_size)
