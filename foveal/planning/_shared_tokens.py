"""Recognize corpora whose targets repeat tokens of their sources, for which a decoder could copy.

The measure is the mean over the different target tokens: in COGS, brackets and variables are four of five target
tokens, but the many names and nouns, which a model must copy, occur in the sentence.
"""

from collections.abc import Sequence
from statistics import fmean

from ..data import Example, TokenizerSpec, WhitespaceSpec
from ..models import AttentionSpec, SoftmaxSpec

_MOST_READ = 1_000  # examples
# 0.97 for German inflection, 0.70 for logical forms (COGS), 0.47 for summaries of abstracts (SciTLDR), 0.21 for
# responses in dialogs, 0.05 for German to English.
_MANY_SHARED = 0.4


def copy_changes(attention: AttentionSpec, *, trains_slots: bool) -> list[str]:
    """Return the options with which copying was measured.

    Args:
        attention: The recommended attention.
        trains_slots: Whether rare tokens are unknown in training, or a model needs no slots for unseen tokens.

    Returns:
        Options of `foveal fit`.

    Examples:
        >>> copy_changes(SoftmaxSpec(), trains_slots=True)
        ['--set decoder.copy=true', '--set task.label_smoothing=0']
    """
    options = [] if isinstance(attention, SoftmaxSpec) else ["--attention softmax"]
    options += ["--set decoder.copy=true", "--set task.label_smoothing=0"]
    return options if trains_slots else [*options, "--set task.min_count=2"]


def copy_reason(
    source: TokenizerSpec,
    target: TokenizerSpec,
    examples: Sequence[Example],
    changes: Sequence[str],
) -> str | None:
    """Return why copying is worth a try, if source and target share their alphabet.

    Args:
        source: Tokenizer of the source.
        target: Tokenizer of the target.
        examples: Examples with texts and targets.
        changes: Options of `foveal fit` that turn copying on for this corpus.

    Returns:
        A sentence with the measured fraction, what is known about such corpora, and the options to add. None if the
        tokenizers differ, or if few target tokens occur in their own source.

    Examples:
        >>> from foveal.data import CharacterSpec
        >>> copy_reason(CharacterSpec(), CharacterSpec(), [Example("sing", "sang")], ())[:49]
        '75 % of the target tokens (mean over the differen'
        >>> copy_reason(CharacterSpec(), CharacterSpec(), [Example("cat", "кот")], ())
    """
    if not repeats_its_source(source, target, examples):
        return None
    share = shared_tokens(source, target, examples[:_MOST_READ])
    if isinstance(target, WhitespaceSpec):
        known = (
            "with copying, models of words made fewer errors in logical forms (COGS) and wrote better summaries of "
            "abstracts (SciTLDR), and trained for about twice as long"
        )
    else:
        known = "copying is measured for words, but not for characters or subwords"
    return (
        f"{100 * share:.0f} % of the target tokens (mean over the different tokens) occur in their source, so the "
        f"decoder could copy them; {known}. To try it, add {' '.join(changes)}"
    )


def repeats_its_source(
    source: TokenizerSpec, target: TokenizerSpec, examples: Sequence[Example]
) -> bool:
    """Return True if targets have the tokens of their sources, so that a decoder could copy them.

    Args:
        source: Tokenizer of the source.
        target: Tokenizer of the target.
        examples: Examples with texts and targets.

    Returns:
        False if the tokenizers differ, or if few target tokens occur in their own source.

    Examples:
        >>> from foveal.data import CharacterSpec
        >>> repeats_its_source(CharacterSpec(), CharacterSpec(), [Example("sing", "sang")])
        True
    """
    some = examples[:_MOST_READ]
    return source == target and shared_tokens(source, target, some) >= _MANY_SHARED


def shared_tokens(
    source: TokenizerSpec, target: TokenizerSpec, examples: Sequence[Example]
) -> float:
    """Return the fraction of the occurrences of a target token that its own source contains, mean over the tokens.

    Args:
        source: Tokenizer of the source.
        target: Tokenizer of the target.
        examples: Examples with texts and targets.

    Returns:
        A number from 0 to 1; 0 without target tokens.
    """
    occurrences = dict[str, list[bool]]()
    for example in examples:
        known = set(source.encode(str(example.source)))  # a dialog becomes the text of its turns
        for token in target.encode(example.target or ""):
            occurrences.setdefault(token, []).append(token in known)
    return fmean([fmean(found) for found in occurrences.values()] or [0.0])
