"""Recordings of tones, whose names are their texts, and a small model that transcribes them."""

import random
from pathlib import Path

import numpy as np
import soundfile

from foveal.data import Audio, AudioSpec, Example
from foveal.models import DecoderSpec, PyramidalEncoderSpec, SoftmaxSpec, TranscriberSpec
from foveal.tasks import PredictionSpec, TranscriptionSpec

RATE = 4_000
HERTZ = {"low": 300.0, "high": 1_200.0}
TONES = TranscriptionSpec(
    audio=AudioSpec(rate=RATE, num_mels=10, window_seconds=0.04, hop_seconds=0.02),
    model=TranscriberSpec(
        encoder=PyramidalEncoderSpec(hidden_size=12, factors=(2, 2), dropout=0.0),
        decoder=DecoderSpec(embedding_size=8, hidden_size=16, dropout=0.0, attention=SoftmaxSpec()),
    ),
    ctc=0.5,
    label_smoothing=0.0,
    prediction=PredictionSpec(beam_size=2),
)


def tones(folder: Path, size: int, *, most: int = 3) -> list[tuple[Example, list[float]]]:
    """Write recordings of tones with pauses, and return them with the middle of each tone in seconds."""
    generator, found = random.Random(0), list[tuple[Example, list[float]]]()
    for number in range(size):
        names = [generator.choice(list(HERTZ)) for _ in range(generator.randint(1, most))]
        parts, middles, at = list[np.ndarray](), list[float](), 0
        for name in names:
            pause, length = generator.randint(400, 800), generator.randint(700, 1_000)
            tone = np.sin(np.arange(length) * (2 * np.pi * HERTZ[name] / RATE)) * 0.3
            parts += [np.zeros(pause), tone]
            middles.append((at + pause + length / 2) / RATE)
            at += pause + length
        path = folder / f"{number}.wav"
        soundfile.write(path, np.concatenate([*parts, np.zeros(400)]), RATE)
        found.append((Example(Audio(path), " ".join(names)), middles))
    return found
