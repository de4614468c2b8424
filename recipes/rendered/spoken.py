"""Strings of spoken digits: recordings of single digits by one speaker, joined with pauses and noise.

OUT/test/0.flac ...    recordings
OUT/test.tsv           test/0.flac <tab> seven one one <tab> 0.213-0.671 0.904-1.318 1.402-1.880

The third column has the time span of each digit in seconds, for scoring alignments.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
from jaxtyping import Float

RATE = 8_000
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LONGEST = 9  # digits
PAUSES = 0.03, 0.4  # seconds, before each digit and at the end
NOISE = 15.0, 35.0  # decibels below the power of the speech

Speakers = Mapping[str, Sequence[Path]]  # recordings of each speaker, named DIGIT_... .flac


class Spoken(NamedTuple):
    """A string of digits: its samples, its words, and the first and last second of each."""

    samples: Float[np.ndarray, " n"]
    words: tuple[str, ...]
    spans: tuple[tuple[float, float], ...]


def audiomnist(folder: Path, first: int, last: int) -> Speakers:
    """Return the recordings of some speakers of AudioMNIST, by number."""
    numbers = (f"{number:02}" for number in range(first, last + 1))
    return {number: sorted((folder / number).glob("*.flac")) for number in numbers}


def free_spoken(folder: Path) -> Speakers:
    """Return the recordings of all speakers of the free spoken digit dataset."""
    speakers: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.flac")):
        speakers.setdefault(path.stem.split("_")[1], []).append(path)
    return speakers


def join_digits(speakers: Speakers, seed: int, longest: int = LONGEST) -> Iterator[Spoken]:
    """Yield endless strings of one to `longest` digits, each by one speaker."""
    generator = np.random.default_rng(seed)
    names = sorted(speakers)
    while True:
        files = speakers[names[generator.integers(len(names))]]
        size = generator.integers(1, longest + 1)
        chosen = [files[n] for n in generator.integers(len(files), size=size)]
        parts, words, spans, at = list[np.ndarray](), list[str](), list[tuple[float, float]](), 0
        for file in chosen:
            samples, rate = soundfile.read(file, dtype="float32")
            assert rate == RATE, file
            pause = np.zeros(int(RATE * generator.uniform(*PAUSES)), dtype=np.float32)
            parts += [pause, samples]
            at += len(pause)
            spans.append((at / RATE, (at + len(samples)) / RATE))
            at += len(samples)
            words.append(WORDS[int(file.name[0])])
        parts.append(np.zeros(int(RATE * generator.uniform(*PAUSES)), dtype=np.float32))
        joined = np.concatenate(parts)
        loud = np.sqrt(np.mean(joined**2)) * 10 ** (-generator.uniform(*NOISE) / 20)
        noisy = joined + loud * generator.standard_normal(len(joined))
        yield Spoken(0.5 * noisy / np.abs(noisy).max(), tuple(words), tuple(spans))


def write_spoken(
    out: Path, name: str, speakers: Speakers, number: int, longest: int = LONGEST
) -> None:
    """Write the recordings and the list of one part; the name is the seed."""
    (out / name).mkdir(parents=True, exist_ok=True)
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    lines = []
    for index, spoken in zip(range(number), join_digits(speakers, seed, longest), strict=False):
        file = f"{name}/{index}.flac"
        soundfile.write(out / file, spoken.samples, RATE, subtype="PCM_16")
        spans = " ".join(f"{start:.3f}-{end:.3f}" for start, end in spoken.spans)
        lines.append(f"{file}\t{' '.join(spoken.words)}\t{spans}\n")
    partial = out / f"{name}.tsv.partial"
    partial.write_text("".join(lines), encoding="utf-8")
    partial.replace(out / f"{name}.tsv")  # a list that exists is complete
