"""Recognize corpora whose targets repeat tokens of their sources, for which a decoder could copy."""

from collections.abc import Sequence

from ..data import Example, TokenizerSpec

_MOST_READ = 1_000  # examples
# Of the target tokens: 0.57 to 0.97 for inflection in eight languages, 0.55 and 0.65 for summaries of emails and
# abstracts, 0.13 for German to English.
_MANY_SHARED = 0.5


def copy_reason(
    source: TokenizerSpec, target: TokenizerSpec, examples: Sequence[Example]
) -> str | None:
    """Return why copying is worth a try, if source and target share their alphabet.

    Args:
        source: Tokenizer of the source.
        target: Tokenizer of the target.
        examples: Examples with texts and targets.

    Returns:
        A sentence with the measured fraction; None if the tokenizers differ, or if few target tokens occur in
        their own source.

    Examples:
        >>> from foveal.data import CharacterSpec
        >>> copy_reason(CharacterSpec(), CharacterSpec(), [Example("sing", "sang")])[:49]
        '75 % of the target tokens occur in their source, '
        >>> copy_reason(CharacterSpec(), CharacterSpec(), [Example("cat", "кот")])
    """
    if source != target:
        return None
    shared, total = 0, 0
    for example in examples[:_MOST_READ]:
        known = set(source.encode(str(example.source)))  # a dialog becomes the text of its turns
        written = target.encode(example.target or "")
        shared += sum(token in known for token in written)
        total += len(written)
    if not total or shared / total < _MANY_SHARED:
        return None
    return (
        f"{100 * shared / total:.0f} % of the target tokens occur in their source, so the decoder could copy them: "
        f"--attention softmax --set decoder.copy=true; it is not the default, because its "
        f"effect is measured only for summaries"
    )
