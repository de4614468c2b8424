"""Strings of one to nine spoken digits, with attention, with CTC, and with both.

    foveal fit --recipe recipes/spoken_digits.py:softmax --out runs/digits        or :monotone, :segment, :ctc, :joint
    python -m benchmarks.lectures fit spoken_digits --runs runs                   all cases, three seeds
    python -m benchmarks.lectures score spoken_digits --runs runs

A recording is several digits by one speaker of AudioMNIST, joined with pauses and noise; the output has one word for each
digit. Speakers 1 to 48 are for training, 49 to 54 for development and 55 to 60 for the test, so the test speakers are new. A
second test set joins digits of the free spoken digit dataset, with other speakers and microphones. The first half of the
training has strings of one or two digits, which are easier to align.

    softmax      attention (listen, attend and spell)
    segment      attention to segments of the recording
    monotone     hard monotone attention, summed over exactly
    ctc          CTC only
    joint        softmax attention and CTC, in training and in decoding

The recipe reads `audio_digits/audiomnist` (soerenab/AudioMNIST, MIT, resampled to 8 kHz) and `audio_digits/fsdd`
(Jakobovski/free-spoken-digit-dataset, CC BY-SA 4.0) below the folder of data sets, and writes the strings once into
`.cache/spoken_digits` of the checkout.

References: Chan et al. 2016; Graves et al. 2006; Watanabe et al. 2017; Becker et al. 2018 (AudioMNIST).
"""

from functools import partial
from pathlib import Path
from typing import Any

from foveal.data import AudioList, AudioSpec, CurriculumSpec, audio_list
from foveal.datasets import data_folder
from foveal.models import (
    DecoderSpec,
    LatentMonotoneSpec,
    PyramidalEncoderSpec,
    SegmentSpec,
    SoftmaxSpec,
    TranscriberSpec,
)
from foveal.tasks import PredictionSpec, TranscriptionSpec
from foveal.training import Run, TrainingSpec
from recipes.rendered.spoken import LONGEST, RATE, audiomnist, free_spoken, write_spoken

FOLDER = Path(__file__).resolve().parents[1] / ".cache/spoken_digits"
NUM_STRINGS = {"short": 3000, "train": 3000, "dev": 300, "test": 500, "shift": 500}
SPEAKERS = {"short": (1, 48), "train": (1, 48), "dev": (49, 54), "test": (55, 60)}
SHORT = 2  # digits of the longest string of the first half of the training
NUM_TRAINED = 24_000  # strings
SYSTEMS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": SoftmaxSpec()},
    "segment": {"attention": SegmentSpec()},
    "monotone": {"attention": LatentMonotoneSpec()},
    "ctc": {"attention": SoftmaxSpec(), "ctc": 1.0},
    "joint": {"attention": SoftmaxSpec(), "ctc": 0.5},
}
CASES = tuple(SYSTEMS)


def recipe(case: str = "softmax") -> Run:
    """Return the run of one system."""
    system = SYSTEMS[case]
    task = TranscriptionSpec(
        audio=AudioSpec(rate=RATE, num_mels=40, max_seconds=15.0),
        model=TranscriberSpec(
            encoder=PyramidalEncoderSpec(hidden_size=64, factors=(4, 2)),
            decoder=DecoderSpec(
                embedding_size=16, hidden_size=96, dropout=0.1, attention=system["attention"]
            ),
        ),
        ctc=system.get("ctc", 0.0),
        label_smoothing=0.05,
        prediction=PredictionSpec(beam_size=4),
    )
    return Run(
        task=task,
        train=CurriculumSpec(
            stages=(part("short"), part("train")), strategy="naive", size=NUM_TRAINED
        ),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(
            epochs=1.0,
            batch_size=24,
            learning_rate=5e-3,
            warmup_steps=100,
            validation_size=200,
            seed=1,
        ),
    )


softmax, segment, monotone, ctc, joint = (partial(recipe, case) for case in CASES)


def part(name: str) -> AudioList:
    """Return the strings of a part; the first call writes them."""
    file = FOLDER / f"{name}.tsv"
    if not file.exists():
        folder = data_folder() / "audio_digits"
        if name == "shift":
            speakers = free_spoken(folder / "fsdd")
        else:
            speakers = audiomnist(folder / "audiomnist", *SPEAKERS[name])
        longest = SHORT if name == "short" else LONGEST
        write_spoken(FOLDER, name, speakers, NUM_STRINGS[name], longest)
    return audio_list(file)
