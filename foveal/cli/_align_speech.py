"""`foveal align --ctc`: the time span of each token of recordings with known texts (forced alignment).

    speech/1.flac <TAB> seven <TAB> 0.240 <TAB> 0.560 <TAB> 0.972                               --format tsv
    {"recording": "speech/1.flac", "spans": [{"token": "seven", "start": 0.24, ...}, ...]}      --format jsonl

Times are in seconds. A recording that cannot be aligned is reported on the standard error and skipped.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ..bundles import load_bundle
from ..data import Example
from ..data.tokenizers._words import words_of
from ..errors import AudioError, ValueRangeError
from ..planning._files import open_for
from ..tasks import Transcription
from ..tasks.speech._ctc_alignment import Span, word_spans
from ..tasks.speech._transcription import as_transcription
from ._bars import answering_bar
from ._speech import explaining, note


def align_speech(
    bundle: Path,
    files: Sequence[str],
    *,
    units: Literal["words", "symbols"] | None,
    output: Literal["tsv", "pharaoh", "jsonl"],
    also: Sequence[type] = (),
) -> None:
    """Print the spans of all recordings of some lists.

    Args:
        bundle: Folder of a transcription model with CTC.
        files: Lists of recordings and texts.
        units: Spans of words or of tokens; tokens by default.
        output: Lines of one token each, or JSON objects of one recording each.
        also: Specs that are not from foveal.

    Raises:
        ValueRangeError: The model has no CTC, the format has no times, or no recording could be aligned.
    """
    if output == "pharaoh":
        raise ValueRangeError(
            "align: --ctc gives times, got --format pharaoh, which has none. Use tsv or jsonl."
        )
    why = "align: --ctc expected a model that transcribes recordings"
    task = as_transcription(load_bundle(bundle, also=also), why)
    if not task.spec.ctc:
        raise ValueRangeError(
            f"align: --ctc expected a model that was trained with CTC, got ctc=0 in {bundle}. Train one with foveal fit "
            f"--set task.ctc=0.5."
        )
    opened = open_for(bundle, files, also)
    num_aligned = num_skipped = 0
    with answering_bar(None) as answered:
        for example in opened.source:
            try:
                spans = _spans(task, example, units)
            except (AudioError, ValueRangeError) as error:
                note(str(error))
                num_skipped += 1
            else:
                sys.stdout.write(_lines(str(example.source), spans, output))
                num_aligned += 1
            answered(1)
    skipped = f", {num_skipped:,} skipped" if num_skipped else ""
    text = f"{opened.reason}; {num_aligned:,} recordings aligned by CTC{skipped}"
    explaining(stderr=True).print(text, markup=False, soft_wrap=True)
    if not num_aligned:
        raise ValueRangeError(
            f"align: expected at least one recording that can be aligned, got {num_skipped:,} that cannot. See the notes."
        )


def _spans(
    task: Transcription, example: Example, units: Literal["words", "symbols"] | None
) -> list[Span]:
    spans = task.spans(example)
    if units != "words":
        return spans
    words = words_of(task.spec.target, example.target or "")
    return word_spans(spans, words.words, words.of_symbol)


def _lines(name: str, spans: Sequence[Span], output: str) -> str:
    if output == "tsv":
        return "".join(
            f"{name}\t{span.token}\t{span.start:.3f}\t{span.end:.3f}\t{span.confidence:.3f}\n"
            for span in spans
        )
    rows = [
        {
            "token": span.token,
            "start": round(span.start, 3),
            "end": round(span.end, 3),
            "confidence": round(span.confidence, 4),
        }
        for span in spans
    ]
    return json.dumps({"recording": name, "spans": rows}, ensure_ascii=False) + "\n"
