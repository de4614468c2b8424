"""A whole plain model file: texts and settings, the network, the self-test.

Everything up to the self-test is known before the export answers its test, so a model without a plain form is refused before
anything is written.
"""

import hashlib
import struct
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from ... import __version__
from ...data import CharacterSpec, FeaturesSpec, WhitespaceSpec
from ...data.tokenizers._base import AbstractTokenizerSpec
from ...errors import ExportError
from ...tasks import AbstractTask, Transduction
from .._self_test import Answered
from .._settings import MAX_SOURCE
from .._storage import Storage
from ..graphs._weights import Weights
from ._decoder import write_decoder
from ._encoder import write_encoder
from ._refusal import plain_refusal, setting_refusal
from ._writer import Writer

PLAIN = "model.plain"
_MAGIC = b"\x89FVL\r\n\x1a\n"
_VERSION = 1
_NO_LIMIT = (1 << 32) - 1
_MOST_BYTES = (1 << 31) - 1
_NO_TOKENIZER, _GRAPHEMES, _CODE_POINTS, _WHITESPACE, _FEATURES = range(5)


@singledispatch
def plain_body(
    task: AbstractTask[Any],
    weights: Weights,
    storage: Storage,
    license: str | None,  # noqa: A002 - the field's name
    data: Sequence[str],
) -> bytes:
    """Return everything of a plain model file that precedes its self-test.

    Args:
        task: Task to export.
        weights: Its weights.
        storage: How to store matrices.
        license: License of the weights.
        data: Lines about the training data.

    Returns:
        The sections of the file without its first bytes.

    Raises:
        ExportError: A part of the model has no form in a plain model file.
    """
    del weights, storage, license, data
    raise plain_refusal("task", task.spec)


@plain_body.register
def _(
    task: Transduction,
    weights: Weights,
    storage: Storage,
    license: str | None,  # noqa: A002 - the field's name
    data: Sequence[str],
) -> bytes:
    spec, writer = task.spec, Writer(storage)
    writer.string(__version__)
    writer.string(license or "")
    writer.strings(data)
    write_tokenizer(spec.source, "source", writer)
    write_tokenizer(spec.target, "target", writer)
    if spec.features is None:
        _write_kind(writer, _NO_TOKENIZER)
    else:
        write_tokenizer(spec.features, "features", writer)
    found = task.vocabularies
    features = () if found.features is None else found.features.tokens
    for tokens in (found.source.tokens, found.target_of("plain_body").tokens, features):
        writer.strings(tokens)
    _write_settings(task, writer)
    write_encoder(spec.model.encoder, weights.at("encoder"), writer)
    write_decoder(spec.model.decoder, weights.at("decoder"), writer)
    return writer.content()


def plain_file(body: bytes, tested: Sequence[Answered]) -> bytes:
    """Return a whole plain model file.

    Args:
        body: What `plain_body` returned.
        tested: Inputs with their answers, for the self-test.

    Returns:
        The content of the file.

    Raises:
        ExportError: The file would be too large.
    """
    writer = Writer("float32")
    writer.u32(len(tested))
    for each in tested:
        for text in (each.text, each.features or "", each.outputs[0]):
            writer.string(text)
        writer.f64(each.scores[0])
    rest = body + writer.content()
    if len(rest) > _MOST_BYTES:
        raise ExportError(
            f"a plain model file may have at most {_MOST_BYTES} bytes, got {len(rest)}. Export the model without --plain, "
            f"or with --int8."
        )
    return _MAGIC + struct.pack("<I", _VERSION) + hashlib.sha256(rest).digest() + rest


@singledispatch
def write_tokenizer(spec: AbstractTokenizerSpec, owner: str, writer: Writer) -> None:
    """Write the settings of a tokenizer; raise `ExportError` for a kind that plain model files do not have."""
    del owner, writer
    raise plain_refusal("tokenizer", spec)


@write_tokenizer.register
def _(spec: CharacterSpec, owner: str, writer: Writer) -> None:
    _check_form(owner, spec.normalization)
    kind = _GRAPHEMES if spec.unit == "grapheme" else _CODE_POINTS
    _write_kind(writer, kind, drop=spec.spaces == "drop")


@write_tokenizer.register
def _(spec: WhitespaceSpec, owner: str, writer: Writer) -> None:
    _check_form(owner, spec.normalization)
    _write_kind(writer, _WHITESPACE)


@write_tokenizer.register
def _(spec: FeaturesSpec, owner: str, writer: Writer) -> None:
    del owner
    _write_kind(writer, _FEATURES, separator=spec.separator)


def _write_kind(writer: Writer, kind: int, *, drop: bool = False, separator: str = "") -> None:
    writer.u8(kind, drop)
    writer.string(separator)


def _check_form(owner: str, normalization: str) -> None:
    if normalization != "none":
        raise setting_refusal(f"{owner}.normalization", "none")


def _write_settings(task: Transduction, writer: Writer) -> None:
    """Write the settings of the search, the limit of lengths and the calibration."""
    search, lengths = task.prediction, task.vocabularies.lengths
    writer.u32(task.spec.num_slots, MAX_SOURCE)
    writer.f64(lengths.ratio, lengths.slack)
    writer.u32(search.beam_size, min(search.nbest, search.beam_size))
    writer.f64(search.length_penalty)
    writer.u32(_NO_LIMIT if search.max_length is None else search.max_length)
    scalings = task.calibration.scalings
    writer.u32(len(scalings))
    for scaling in scalings:
        writer.f64(scaling.temperature)
        writer.u8(scaling.others is not None)
        writer.f64(scaling.others or 0.0)
