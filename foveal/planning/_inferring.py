"""Infer the task and the tokenization of a corpus from examples, with a reason for each.

characters, words or subwords, for each side:

    most texts have no space                        characters: words, names, unspaced sentences
    most whitespace-separated tokens are single     whitespace: phones, separated letters
      characters
    a script that is written without spaces         characters; spaces of a source are dropped
    few words will be unknown                       whitespace: words
    otherwise                                       sentencepiece: subwords

Characters are graphemes. If too many graphemes will be unknown but few of their parts, characters are code points
(Khmer, Hindi), for a source after decomposition (Korean).

The fraction of unknown tokens in new text is estimated by the fraction of tokens that occur once
(Good 1953).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from ..data._example import Example
from ..data._inputs import Dialog, Facts, TextPair
from ..data.tokenizers._sentencepiece import SentencePieceSpec
from ..data.tokenizers._tokenizers import (
    CharacterSpec,
    FeaturesSpec,
    TokenizerSpec,
    WhitespaceSpec,
    graphemes,
    is_unspaced,
    pieces,
)
from ..errors import DataError

NUM_SAMPLED = 10_000  # examples
MAX_UNKNOWN_WORDS = 0.05  # fraction
MAX_UNKNOWN_CHARACTERS = 0.005
MAX_WORDS = 20_000
MAX_LABELS = 500
MIN_PER_LABEL = 5  # examples, on average


class InferredTokenizer(NamedTuple):
    """A tokenizer, and the reason for it."""

    spec: TokenizerSpec
    reason: str


class InferredTask(NamedTuple):
    """The task of a corpus and the tokenizers of its sides, with a reason for each."""

    task: Literal[
        "transduction",
        "classification",
        "pair_classification",
        "question_answering",
        "tagging",
        "language_modeling",
    ]
    source: TokenizerSpec
    target: TokenizerSpec | None  # None if there is no target, or if targets are labels
    features: FeaturesSpec | None
    reasons: tuple[str, ...]


def infer_task(examples: Iterable[Example]) -> InferredTask:
    """Infer the task and the tokenizers of a corpus from its first 10,000 examples.

    Args:
        examples: Training examples.

    Returns:
        The task, its tokenizers, and the reason for each choice.

    Raises:
        DataError: There are no examples.

    Examples:
        >>> words = ("cat", "K AE T"), ("act", "AE K T"), ("tack", "T AE K")
        >>> found = infer_task(Example(source, target) for source, target in words)
        >>> found.task, found.source.kind, found.target.kind
        ('transduction', 'characters', 'whitespace')
    """
    sample = list(islice(examples, NUM_SAMPLED))
    if not sample:
        raise DataError(
            "infer_task: expected at least one example, got none. Use a file that is not empty."
        )
    sources = [str(example.source) for example in sample]
    targets = [example.target for example in sample if example.target is not None]
    features = FeaturesSpec() if any(example.features for example in sample) else None
    pairs = [
        (source, example.target)
        for source, example in zip(sources, sample, strict=True)
        if example.target is not None
    ]
    if not targets:
        source = infer_tokenizer(sources)
        reasons = ("language modeling: the examples have no target", f"text: {source.reason}")
        return InferredTask("language_modeling", source.spec, None, features, reasons)
    num = len(set(targets))
    if all(isinstance(example.source, Facts) for example in sample):
        reasons = (f"question answering: facts and questions, {num} different answers",)
        return InferredTask("question_answering", WhitespaceSpec(), None, features, reasons)
    are_pairs = all(isinstance(example.source, TextPair) for example in sample)
    if are_pairs and num <= MAX_LABELS and 2 * num <= len(targets):
        source = infer_tokenizer(sources)
        reasons = (f"pair classification: two texts and a label, {num} different labels",)
        reasons += (f"source: {source.reason}",)
        return InferredTask("pair_classification", source.spec, None, features, reasons)
    are_dialogs = all(isinstance(example.source, Dialog) for example in sample)
    if not are_dialogs and _are_tags(pairs):
        num_tags = len({tag for target in targets for tag in pieces(target)})
        reasons = (f"tagging: one tag per word, {num_tags} different tags",)
        return InferredTask("tagging", WhitespaceSpec(), WhitespaceSpec(), features, reasons)
    source = infer_tokenizer(sources)
    labels = set(targets)
    are_few = len(labels) <= MAX_LABELS and len(labels) * MIN_PER_LABEL <= len(targets)
    if are_few and not are_dialogs:
        few = f"classification: only {len(labels)} different targets in {len(targets)} examples"
        reasons = (few, f"source: {source.reason}")
        return InferredTask("classification", source.spec, None, features, reasons)
    target = infer_tokenizer(targets, side="target")
    reasons = (
        f"transduction: {len(labels)} different {'responses' if are_dialogs else 'targets'} in "
        f"{len(targets)} examples",
        f"source: {source.reason}",
        f"target: {target.reason}",
    )
    return InferredTask("transduction", source.spec, target.spec, features, reasons)


def infer_tokenizer(
    texts: Iterable[str], *, side: Literal["source", "target"] = "source"
) -> InferredTokenizer:
    """Infer the tokenizer for texts from the first 10,000 of them. Subwords are trained on these texts.

    Args:
        texts: Sources or targets of the training set.
        side: Side that the texts are from.

    Returns:
        The tokenizer, trained if necessary, and the reason for it.

    Examples:
        >>> infer_tokenizer(["a few words", "a few more words"] * 20).reason
        'words separated by whitespace, 4 different words'
    """
    sample = [text for text in islice(texts, NUM_SAMPLED) if text.strip()]
    words = Counter(word for text in sample for word in pieces(text))
    spaced = sum(len(pieces(text)) > 1 for text in sample)
    if 2 * spaced <= len(sample):
        alone = 100 * (len(sample) - spaced) / max(1, len(sample))
        return _characters(
            sample, side, "keep", f"because {alone:.0f} % of the texts have no space"
        )
    if _share(words, lambda word: len(graphemes(word)) == 1) >= 0.98:
        reason = f"tokens separated by whitespace, {len(words)} different tokens"
        return InferredTokenizer(WhitespaceSpec(), reason)
    letters = Counter(letter for text in sample for letter in text if letter.isalpha())
    if _share(letters, is_unspaced) > 0.5:
        spaces = "drop" if side == "source" else "keep"
        without = "; spaces in the text are dropped" if spaces == "drop" else ""
        reason = f"because the script has no spaces between words{without}"
        return _characters(sample, side, spaces, reason)
    unknown = _unknown(words)
    if len(words) <= MAX_WORDS and (unknown <= MAX_UNKNOWN_WORDS or len(sample) < 100):
        what = "tokens" if _share(words, lambda word: len(graphemes(word)) <= 3) > 0.9 else "words"
        reason = f"{what} separated by whitespace, {len(words)} different {what}"
        return InferredTokenizer(WhitespaceSpec(), reason)
    num_pieces = min(8_000, max(500, len(words) // 2))
    return InferredTokenizer(
        SentencePieceSpec(num_pieces=num_pieces).trained_on(sample),
        f"subwords, because about {100 * unknown:.0f} % of the words of a new text would be unknown",
    )


def _characters(
    sample: Sequence[str],
    side: Literal["source", "target"],
    spaces: Literal["keep", "drop"],
    reason: str,
) -> InferredTokenizer:
    """Return a tokenizer for graphemes, or for their parts if far fewer of these are unknown."""
    usual = CharacterSpec(spaces=spaces)
    unknown = _unknown(Counter(symbol for text in sample for symbol in usual.encode(text)))
    others = [(CharacterSpec(unit="code_point", spaces=spaces), "code points")]
    if side == "source":  # decomposition would change the spelling of a target
        decomposed = CharacterSpec(unit="code_point", spaces=spaces, normalization="NFD")
        others.append((decomposed, "decomposed code points"))
    for spec, name in others if unknown > MAX_UNKNOWN_CHARACTERS else ():
        parts = _unknown(Counter(symbol for text in sample for symbol in spec.encode(text)))
        if 4 * parts < unknown:
            return InferredTokenizer(
                spec,
                f"{name}, {reason}, and {100 * unknown:.1f} % of the characters of a new text would be unknown",
            )
    return InferredTokenizer(usual, f"characters, {reason}")


def _unknown(counts: Counter[str]) -> float:
    """Estimate the fraction of unknown tokens in new text."""
    return sum(number == 1 for number in counts.values()) / max(1, counts.total())


def _are_tags(pairs: Sequence[tuple[str, str]]) -> bool:
    """Return True if targets look like tags: one for each source token, of few types, mostly unlike the words."""
    words: set[str] = set()
    tags: Counter[str] = Counter()
    num_longer = 0
    for source, target in pairs:
        of_source, of_target = pieces(source), pieces(target)
        if len(of_source) != len(of_target):
            return False
        words.update(of_source)
        tags.update(of_target)
        num_longer += len(of_source) > 1
    few = len(tags) <= MAX_LABELS and 2 * len(tags) <= tags.total()
    return few and 2 * num_longer > len(pairs) and 2 * len(words & tags.keys()) <= len(tags)


def _share(counts: Counter[str], holds: Callable[[str], bool]) -> float:
    """Return the fraction of counts for which a condition holds."""
    return sum(n for item, n in counts.items() if holds(item)) / max(1, counts.total())
