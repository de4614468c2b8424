"""Words per second with torch, with ONNX Runtime, with the C library and with yoyodyne, on one core.

All answer the same words of the test set in turn, from the text to the output. yoyodyne has random weights of the same
sizes and gets padded token ids: it takes as many steps as the mean output has tokens, and splits no texts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import mean, median

import torch

from foveal.models import TextEncoderSpec
from foveal.tasks import Transduction
from foveal.tasks.base._answering import AbstractAnswering

from ..results import Row
from ..seq2seq_yoyodyne import ToolkitMissingError, Yoyodyne
from ..timing import Plan, Timing, compare
from ._c_library import CModel
from ._models import SEED, Case

TORCH, ONNX, C, PEER = "torch", "ONNX Runtime", "C", "yoyodyne"
WORDS = {1: 24, 32: 96}  # in a call, by batch size
BEAMS = (1, 5)
# Words per second relative to torch.
TARGETS = {(ONNX, 1): 4.0, (ONNX, 32): 1.5, (C, 1): 6.0}
_PLAN = Plan(rounds=11, least_rounds=5, budget=60.0, block=0.2)


def rows(case: Case) -> Iterator[Row]:
    """Measure both batch sizes with greedy and with beam search."""
    for batch_size, number in WORDS.items():
        for beam_size in BEAMS:
            calls = _calls(case, number, batch_size, beam_size)
            found = compare(calls, reference=TORCH, plan=_PLAN)
            for name, timing in found.items():
                yield from _rows(case, name, timing, number, batch_size, beam_size)


def _calls(
    case: Case, number: int, batch_size: int, beam_size: int
) -> dict[str, Callable[[], object]]:
    assert isinstance(case.task, AbstractAnswering)
    task, model = case.task, case.exported()
    examples, sources = case.examples[:number], case.sources[:number]
    starts = range(0, number, batch_size)
    settings = replace(task.prediction, beam_size=beam_size, batch_size=batch_size)
    predictor = task.answerer(settings)

    def with_torch() -> list[str]:
        parts = (predictor.predict(examples[start : start + batch_size]) for start in starts)
        return [each.output for part in parts for each in part]

    def with_onnx() -> list[str]:
        parts = (
            model.predict(sources[start : start + batch_size], beam_size=beam_size)
            for start in starts
        )
        return [each.output for part in parts for each in part]

    calls: dict[str, Callable[[], list[str]]] = {TORCH: with_torch, ONNX: with_onnx}
    if batch_size == 1:  # the library answers one text at a time
        library = CModel(case.export(), case.folder.with_name("library.so"))
        texts = [(source.text, source.features) for source in sources]
        calls[C] = lambda: library.predict(texts, beam_size)
    _check({name: call() for name, call in calls.items()})
    return {**calls, **_peer(case, [len(text.text) for text in sources], batch_size, beam_size)}


def _check(outputs: dict[str, list[str]]) -> None:
    """Raise an error unless all write the same outputs."""
    for name, each in outputs.items():
        if each != outputs[TORCH]:
            raise RuntimeError(f"{name} writes other outputs than {TORCH}.")


def _peer(
    case: Case, lengths: Sequence[int], batch_size: int, beam_size: int
) -> dict[str, Callable[[], object]]:
    """Return yoyodyne with the sizes of the model, if it is installed."""
    assert isinstance(case.task, Transduction)
    encoder, found = case.task.spec.model.encoder, case.task.vocabularies
    assert isinstance(encoder, TextEncoderSpec)
    assert found.target is not None
    targets = [len((example.target or "").split()) for example in case.examples]
    torch.manual_seed(0)
    try:
        peer = Yoyodyne(
            vocabulary=max(len(found.source), len(found.target)),
            embedding=encoder.embedding_size,
            hidden=encoder.hidden_size,
            max_length=round(mean(targets)) + 1,
        )
    except ToolkitMissingError:
        return {}
    batches = [
        torch.randint(6, len(found.source), (len(part), max(part)))
        for start in range(0, len(lengths), batch_size)
        for part in (lengths[start : start + batch_size],)
    ]
    return {PEER: lambda: [peer.search(batch, beam_size) for batch in batches]}


def _rows(
    case: Case, name: str, timing: Timing, number: int, batch_size: int, beam_size: int
) -> Iterator[Row]:
    search = "greedy" if beam_size == 1 else f"beam {beam_size}"
    cell = f"{case.name}, {search}, batch {batch_size}"
    speeds = [number / seconds for seconds in timing.seconds]
    yield Row(
        name=f"{cell}: {name}",
        value=median(speeds),
        unit="words/s",
        spread=(min(speeds), max(speeds)),
        seeds=(SEED,),
    )
    if name == TORCH:
        return
    ratios = [1 / ratio for ratio in timing.ratios]
    target = TARGETS.get((name, batch_size))
    yield Row(
        name=f"{cell}: {name} over {TORCH}",
        value=median(ratios),
        unit="times",
        spread=(min(ratios), max(ratios)),
        seeds=(SEED,),
        target=target,
        sense=None if target is None else ">=",
    )
