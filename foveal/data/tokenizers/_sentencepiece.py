"""Subwords by sentencepiece (Kudo and Richardson 2018), with the model inside the spec.

The model is stored as base64 text, so a spec in JSON is complete and needs no other file. Characters that do not occur
in the training texts are encoded as bytes, so any text can be represented.
"""

import base64
import functools
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import sentencepiece
from typing_extensions import override

from ...errors import DataError
from ...specs import setting
from ._base import AbstractTokenizerSpec

MAX_TRAINING_TEXTS = 200_000  # more texts change little and cost memory
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # the character that sentencepiece writes for a space


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SentencePieceSpec(AbstractTokenizerSpec):
    """Tokens are frequent pieces of words; train the tokenizer with `trained_on`.

    Leading, trailing and repeated spaces are preserved. The only character that is not preserved is U+2581, which
    represents a space inside sentencepiece.
    """

    kind: Literal["sentencepiece"] = "sentencepiece"
    num_pieces: int = setting(8_000, "maximum number of subwords", at_least=300)
    algorithm: Literal["unigram", "bpe"] = setting("unigram", "training algorithm of the subwords")
    model: str = setting("", "the trained model in base64; empty before training")

    @property
    @override
    def is_trained(self) -> bool:
        return bool(self.model)

    @override
    def trained_on(self, texts: Iterable[str]) -> "SentencePieceSpec":
        """Return the spec with a model trained on these texts (on the first 200,000 of them)."""
        writer = io.BytesIO()
        limited = (text for text, _ in zip(texts, range(MAX_TRAINING_TEXTS), strict=False))
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(limited),
                model_writer=writer,
                vocab_size=self.num_pieces,
                hard_vocab_limit=False,
                model_type=self.algorithm,
                byte_fallback=True,
                character_coverage=1.0,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                add_dummy_prefix=False,
                num_threads=1,  # makes training deterministic
                bos_id=-1,
                eos_id=-1,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise DataError(
                f"SentencePieceSpec: cannot train {self.num_pieces} subwords on these texts: {_short(error)}. Use "
                f"more text, set num_pieces to the number that the message allows, or use characters."
            ) from None
        return replace(self, model=base64.b64encode(writer.getvalue()).decode("ascii"))

    @override
    def encode(self, text: str) -> list[str]:
        """Convert a text to tokens."""
        return _processor(self.model).encode(text, out_type=str)

    @override
    def decode(self, tokens: Sequence[str]) -> str:
        """Convert tokens to a text."""
        return _processor(self.model).decode(list(tokens))


@functools.lru_cache(maxsize=8)
def _processor(model: str) -> sentencepiece.SentencePieceProcessor:
    if not model:
        raise DataError(
            "SentencePieceSpec: the tokenizer is not trained. Use the result of spec.trained_on(texts)."
        )
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(model))
    except (RuntimeError, ValueError) as error:
        raise DataError(
            f"SentencePieceSpec: invalid sentencepiece model: {_short(error)}. Use a model that "
            f"trained_on returned."
        ) from None


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
