"""Runs and models for the doctor: healthy ones, trained until they work."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from foveal.data import Example, InMemory
from foveal.inspection import vital_signs
from foveal.inspection.doctor._finding import Finding
from foveal.inspection.doctor._watch import Watch
from foveal.models import (
    ClassifierSpec,
    DecoderSpec,
    DecomposableAttentionSpec,
    DocumentEncoderSpec,
    LanguageModelSpec,
    LocalSpec,
    MultiHeadSpec,
    RecurrentSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    SparsemaxSpec,
    TaggerSpec,
    TextEncoderSpec,
)
from foveal.tasks import (
    AbstractTask,
    ClassificationSpec,
    LanguageModelingSpec,
    PairClassificationSpec,
    PredictionSpec,
    TaggingSpec,
    TransductionSpec,
)
from foveal.training import Event, StepDone, TrainingSpec, fit
from foveal.training.events._events import Probed
from tests.tasks.tiny import pairs

WORDS = {"the": "DET", "a": "DET", "old": "ADJ", "good": "ADJ", "cat": "NOUN", "ship": "NOUN"}
ENCODER = TextEncoderSpec(embedding_size=16, hidden_size=16, dropout=0.1)
DECODER = DecoderSpec(embedding_size=16, hidden_size=24, dropout=0.1)
TRANSDUCTION = TransductionSpec(
    model=Seq2SeqSpec(encoder=ENCODER, decoder=DECODER), prediction=PredictionSpec(beam_size=1)
)


class Patient(NamedTuple):
    """The task, data and settings of a run."""

    task: Any  # a spec
    examples: tuple[Example, ...]
    training: TrainingSpec
    good: float  # minimum of the main metric for a successful run


def capitals(number: int, seed: int = 0) -> tuple[Example, ...]:
    """Return words and the same words in capitals."""
    draw = random.Random(seed)
    words = ("".join(draw.choices("abcde", k=draw.randint(3, 6))) for _ in range(number))
    return tuple(Example(word, word.upper()) for word in words)


def sentences(number: int, seed: int = 0) -> tuple[Example, ...]:
    """Return sentences of words and their parts of speech."""
    draw = random.Random(seed)
    texts = [draw.choices(list(WORDS), k=draw.randint(3, 9)) for _ in range(number)]
    return tuple(Example(" ".join(t), " ".join(WORDS[word] for word in t)) for t in texts)


def opinions(number: int, seed: int = 0) -> tuple[Example, ...]:
    """Return sentences, labeled by whether they contain "good"."""
    return tuple(
        Example(example.text, "yes" if "good" in example.text else "no")
        for example in sentences(number, seed)
    )


def counting(number: int, seed: int = 0) -> tuple[Example, ...]:
    """Return stretches of the alphabet: the next letter is predictable."""
    draw = random.Random(seed)
    starts = [draw.randint(0, 12) for _ in range(number)]
    return tuple(Example("".join(chr(97 + s + n) for n in range(12))) for s in starts)


def writing(attention: Any, **changes: Any) -> TransductionSpec:
    decoder = replace(DECODER, attention=attention, **changes)
    return replace(TRANSDUCTION, model=replace(TRANSDUCTION.model, decoder=decoder))


def steps(number: int, seed: int = 1, **changes: Any) -> TrainingSpec:
    settings = {"learning_rate": 2e-2, "batch_size": 16, "checkpoint_seconds": 1000.0, **changes}
    return TrainingSpec(steps=number, seed=seed, **settings)


LETTERS, WORD_TAGS, LABELS = capitals(400), sentences(200), opinions(240)
PAIRS = tuple(pairs(240))
DOCUMENTS = DocumentEncoderSpec(words=ENCODER, sentences=RecurrentSpec(hidden_size=16, dropout=0.1))
HEALTHY = {
    "softmax": Patient(writing(SoftmaxSpec()), LETTERS, steps(180), 30.0),
    "softmax, another seed, gru": Patient(
        writing(SoftmaxSpec(), cell="gru"), LETTERS, steps(180, seed=2), 30.0
    ),
    "input feeding": Patient(writing(SoftmaxSpec(), input_feeding=True), LETTERS, steps(160), 30.0),
    "before": Patient(writing(SoftmaxSpec(), attend="before"), LETTERS, steps(260), 30.0),
    "segment": Patient(writing(SegmentSpec(), bridge="none"), LETTERS, steps(300), 30.0),
    "sparsemax": Patient(writing(SparsemaxSpec()), LETTERS, steps(180), 30.0),
    "local": Patient(writing(LocalSpec()), LETTERS, steps(180), 30.0),
    "multi-head": Patient(writing(MultiHeadSpec(num_heads=2)), LETTERS, steps(320, seed=3), 30.0),
    "classification": Patient(
        ClassificationSpec(model=ClassifierSpec(encoder=ENCODER)), LABELS, steps(120), 95.0
    ),
    "documents": Patient(
        ClassificationSpec(model=ClassifierSpec(encoder=DOCUMENTS)), LABELS, steps(120), 95.0
    ),
    "pairs": Patient(
        PairClassificationSpec(model=DecomposableAttentionSpec(hidden_size=16)),
        PAIRS,
        steps(160),
        90.0,
    ),
    "tagging": Patient(TaggingSpec(model=TaggerSpec(encoder=ENCODER)), WORD_TAGS, steps(120), 95.0),
    "language model": Patient(
        LanguageModelingSpec(
            model=LanguageModelSpec(embedding_size=16, hidden_size=24, dropout=0.1), bptt_length=26
        ),
        counting(200),
        steps(120),
        2.0,
    ),
}


class Treated(NamedTuple):
    """The result of a run that the doctor watched."""

    task: AbstractTask[Any]
    said: list[Finding]  # alarms during training
    num_probes: int
    score: float


def treat(patient: Patient, out: Path, every: int = 60) -> Treated:
    """Train while the doctor watches and measures more often than its timer would allow."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(patient.training.seed)
        task = patient.task.build_from(patient.examples[40:])
    stream = task.batches(
        InMemory(patient.examples[40:]), batch_size=patient.training.batch_size, seed=1
    )
    batch, said, num_probes = next(iter(stream)), list[Finding](), 0
    watch = Watch(said.append, patient.task, patient.training)

    def listen(event: Event) -> None:
        nonlocal num_probes
        watch(event)
        if isinstance(event, StepDone) and event.step % every == 0:
            num_probes += 1
            watch(Probed(step=event.step, readings=vital_signs(task, batch), seconds=0.0))

    outcome = fit(task, stream, patient.examples[:40], patient.training, out, listeners=[listen])
    value = outcome.metrics[task.main_metric.name].value
    return Treated(task, said, num_probes, value)
