"""Spoken phrases of digits: recordings joined to phrases, a recognizer of their words, and a distance between recordings."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import soundfile
import torch
from jaxtyping import Float
from torch import Tensor

from foveal.bundles import load_bundle
from foveal.data import AudioSpec, Example, audio_list, read_audio
from foveal.distributions import Alignment
from foveal.models import DecoderSpec, PyramidalEncoderSpec, TranscriberSpec
from foveal.tasks import AbstractTask, PredictionSpec, TranscriptionSpec
from foveal.training import Run, TrainingSpec

from . import find

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
AUDIO = AudioSpec(rate=8_000, num_mels=64, window_seconds=0.05, hop_seconds=0.0125)
TAKES = ("00", "10", "20", "30", "40")  # recordings of each word by a speaker
PAUSE = 0.1  # seconds, before each word and at the end
LOUDEST = 0.5

Recordings = dict[str, list[Tensor]]  # of each word
Phrase = tuple[str, ...]


class Recording(NamedTuple):
    """A phrase and its samples."""

    phrase: Phrase
    samples: Float[Tensor, " N"]


def file_names(speaker: str) -> list[str]:
    """Return the recordings of a speaker of AudioMNIST below the data folder, by word and take."""
    folder = f"audio_digits/audiomnist/{speaker}"
    return [f"{folder}/{digit}_{take}.flac" for digit in range(len(WORDS)) for take in TAKES]


def read_recordings(speaker: str) -> Recordings:
    """Read the recordings of a speaker, each as loud as the others."""
    samples = [read_audio(find(name), AUDIO) for name in file_names(speaker)]
    samples = [LOUDEST * each / each.abs().max() for each in samples]
    size = len(TAKES)
    return {word: samples[n * size : (n + 1) * size] for n, word in enumerate(WORDS)}


def draw_phrase(chance: Random, shortest: int, longest: int) -> Phrase:
    """Draw a phrase of `shortest` to `longest` words."""
    return tuple(chance.choices(WORDS, k=chance.randint(shortest, longest)))


def record(phrase: Phrase, recordings: Recordings, takes: slice, chance: Random) -> Recording:
    """Join one of the chosen takes of each word, with pauses."""
    pause = torch.zeros(round(PAUSE * AUDIO.rate))
    parts = [pause]
    for word in phrase:
        parts += [chance.choice(recordings[word][takes]), pause]
    return Recording(phrase, torch.cat(parts))


def write_recordings(folder: Path, recordings: Sequence[Recording]) -> Path:
    """Write the recordings and a list of them, and return the path of the list."""
    folder.mkdir(parents=True)
    lines = list[str]()
    for number, (phrase, samples) in enumerate(recordings):
        soundfile.write(folder / f"{number}.wav", samples.numpy(), AUDIO.rate)
        lines.append(f"{number}.wav\t{' '.join(phrase)}\n")
    (folder / "list.tsv").write_text("".join(lines), encoding="utf-8")
    return folder / "list.tsv"


def train_recognizer(
    folder: Path, recordings: Sequence[Recording], steps: int, seed: int
) -> AbstractTask:
    """Train a small network with CTC to write the words of recordings.

    Args:
        folder: An empty folder for the recordings and the training run.
        recordings: Training recordings.
        steps: Number of training steps.
        seed: Random seed.

    Returns:
        The trained task.
    """
    task = TranscriptionSpec(
        audio=AUDIO,
        model=TranscriberSpec(
            encoder=PyramidalEncoderSpec(hidden_size=48, factors=(4, 2)),
            decoder=DecoderSpec(embedding_size=8, hidden_size=16),
        ),
        ctc=1.0,
        prediction=PredictionSpec(beam_size=4),
    )
    training = TrainingSpec(
        steps=steps, batch_size=24, learning_rate=5e-3, warmup_steps=steps // 10, seed=seed
    )
    train = audio_list(write_recordings(folder / "train", recordings))
    Run(task=task, train=train, training=training).fit(folder / "run")
    return load_bundle(folder / "run")


def word_error_rate(task: AbstractTask, folder: Path, recordings: Sequence[Recording]) -> float:
    """Return the percentage of word errors of a recognizer, reading the recordings from files in a new folder."""
    examples = list[Example](audio_list(write_recordings(folder, recordings)))
    return task.evaluate(examples).value


def warped_distance(first: Float[Tensor, "T M"], second: Float[Tensor, "U M"]) -> float:
    """Return the mean absolute difference of two spectrograms along the best monotone alignment (dynamic time warping).

    Every frame of both is in the alignment, so one frame can be aligned with several of the other.
    """
    costs = torch.cdist(first, second, p=1) / first.shape[-1]
    moves = torch.full((len(first) + 1, len(second) + 1, 3), -torch.inf)
    moves[1:, 1:] = -costs.unsqueeze(-1)
    path = Alignment(moves).argmax()[1:, 1:].any(-1)
    return costs[path].mean().item()
