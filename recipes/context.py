r"""How far back a language model can use its context: recurrent networks, and memoryless networks with k characters.

    foveal fit --recipe recipes/context.py:distance_window_4 --out runs/window
    python -m benchmarks.lectures fit context --runs runs              all cases, three seeds
    python -m benchmarks.lectures score context --runs runs

A case is a text and a network. `window_4` reads the last 4 characters and nothing before them (Bengio et al. 2003); `lstm`,
`gru` and `elman` are recurrent.

    distance        generated lines such as `cyxx=C`: one of 8 keys, random letters, and `=`. The character after `=` is
                    the key in upper case. A network that sees the key knows it; the others guess, one in 8. The mark
                    is 1, 2, 4, 8, 16 or 32 characters after the key.
    shakespeare     plays, character by character; the last tenth is the test set

The recipe writes the lines once, into `.cache/context` of the checkout. `foveal data get tinyshakespeare` gets the plays.
"""

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from foveal.data import CharacterSpec, JsonLines, LineReader, json_lines
from foveal.datasets import data_folder
from foveal.models import LanguageModelSpec, WindowCellSpec
from foveal.tasks import LanguageModelingSpec
from foveal.training import Run, TrainingSpec
from recipes.whole_files import write_whole

DATA = data_folder()
PLAYS = DATA / "tinyshakespeare/input.txt.gz"
FOLDER = Path(__file__).resolve().parents[1] / ".cache/context"
PARTS = ("train", "dev", "test")
KEYS, LETTERS, MARK = "abcdefgh", "xy", "="
DISTANCES = (1, 2, 4, 8, 16, 32)  # characters from the key to the mark
SIZES = {"train": 24_000, "dev": 600, "test": 3_000}  # generated lines, as many of each distance
CONTEXTS = (2, 4, 8, 16)
RECURRENT: tuple[Literal["elman", "gru", "lstm"], ...] = ("elman", "gru", "lstm")
WINDOWS = tuple(f"window_{context}" for context in CONTEXTS)
CASES = (
    *(f"distance_{name}" for name in (*WINDOWS, *RECURRENT)),
    *(f"shakespeare_{name}" for name in (*WINDOWS, "lstm")),
)


def recipe(case: str = "distance_lstm") -> Run:
    """Return the run of a language model."""
    text, _, name = case.partition("_")
    train, dev, test = (part(text, each) for each in PARTS)
    is_small = text == "distance"
    return Run(
        task=LanguageModelingSpec(
            source=CharacterSpec(),
            model=LanguageModelSpec(
                cell=cell_of(name),
                embedding_size=16 if is_small else 32,
                hidden_size=64 if is_small else 128,
                dropout=0.0 if is_small else 0.1,
            ),
            bptt_length=50 if is_small else 100,
        ),
        train=train,
        dev=dev,
        test=test,
        training=TrainingSpec(
            epochs=16.0 if is_small else 5.0,
            batch_size=16 if is_small else 32,
            learning_rate=4e-3,
            seed=1,
        ),
    )


def cell_of(name: str) -> WindowCellSpec | Literal["elman", "gru", "lstm"]:
    """Return the cell of a case."""
    for cell in RECURRENT:
        if name == cell:
            return cell
    return WindowCellSpec(context=int(name.removeprefix("window_")))


distance_window_4, distance_lstm, shakespeare_window_4, shakespeare_lstm = (
    partial(recipe, case)
    for case in ("distance_window_4", "distance_lstm", "shakespeare_window_4", "shakespeare_lstm")
)


def part(text: str, name: str) -> JsonLines:
    """Return the lines of a part of a text."""
    path = FOLDER / f"{text}_{name}.jsonl"
    if not path.exists():
        lines = generated(name) if text == "distance" else plays(name)
        write_whole(path, (json.dumps({"source": line}) + "\n" for line in lines))
    return json_lines(path, target=None)


def generated(name: str) -> Iterator[str]:
    """Yield lines with random keys, letters and distances."""
    generator = random.Random(PARTS.index(name))
    distances = list(DISTANCES) * (SIZES[name] // len(DISTANCES))
    generator.shuffle(distances)
    for distance in distances:
        key = generator.choice(KEYS)
        yield f"{key}{''.join(generator.choices(LETTERS, k=distance - 1))}{MARK}{key.upper()}"


def plays(name: str) -> Iterator[str]:
    """Yield the lines of the plays: the last tenth is the test set, the twentieth before it the validation set."""
    lines = list(LineReader(str(PLAYS)))
    first, second = len(lines) * 17 // 20, len(lines) * 9 // 10
    yield from {"train": lines[:first], "dev": lines[first:second], "test": lines[second:]}[name]
