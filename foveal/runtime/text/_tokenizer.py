"""The tokenizers of an exported model, from the settings in `model.json`."""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._errors import ExportedModelError
from ._text import characters, features, normalized, pieces


class Tokenizer(NamedTuple):
    """Splits a text into tokens, and joins tokens to a text."""

    encode: Callable[[str], list[str]]
    decode: Callable[[Sequence[str]], str]


def tokenizer_of(settings: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer with these settings.

    Args:
        settings: Settings with their `kind`, as in a spec.

    Returns:
        The tokenizer.

    Raises:
        ExportedModelError: The kind is unknown, or its package is not installed.
    """
    match settings.get("kind"):
        case "characters":
            given = {name: settings[name] for name in ("unit", "spaces", "normalization")}
            return Tokenizer(lambda text: characters(text, **given), "".join)
        case "whitespace":
            form = settings["normalization"]
            return Tokenizer(lambda text: pieces(normalized(text, form)), " ".join)
        case "features":
            separator = settings["separator"]
            return Tokenizer(lambda text: features(text, separator), separator.join)
        case "sentencepiece":
            return _subwords(settings["model"])
        case "latex":
            return Tokenizer(_refuse_latex, " ".join)
        case kind:
            raise ExportedModelError(
                f"the tokenizer {str(kind)[:40]!r} is unknown, expected characters, whitespace, features, "
                f"sentencepiece or latex. Install a newer foveal-runtime."
            )


def _subwords(model: str) -> Tokenizer:
    try:
        # Only models with subwords need it.
        import sentencepiece  # noqa: PLC0415
    except ImportError as error:
        raise ExportedModelError(
            "the model splits texts into subwords and needs the package sentencepiece, which is not installed. "
            "Install it: pip install sentencepiece."
        ) from error
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(model))
    except (RuntimeError, ValueError) as error:
        raise ExportedModelError(
            f"the subword model cannot be read: {str(error)[:200]}. Export the model again."
        ) from None
    return Tokenizer(
        lambda text: processor.encode(text, out_type=str),
        lambda tokens: processor.decode(list(tokens)),
    )


def _refuse_latex(text: str) -> list[str]:
    raise ExportedModelError(f"a formula can only be an output, got the input {text[:40]!r}.")
