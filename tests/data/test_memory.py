"""Memory does not grow with the corpus: a process reads files of 20,000 and of 200,000 lines."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import json, resource, sys
from foveal.data import *
from foveal.planning import check_data

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

characters, whitespace = CharacterSpec(), WhitespaceSpec()
peaks, counts = [], []
for file in sys.argv[1:]:
    source = tsv(file)
    ours = Vocabulary.count(characters.encode(example.source) for example in source)
    theirs = Vocabulary.count(whitespace.encode(example.target) for example in source)

    def encode(example):
        return Encoded(
            ours.encode(characters.encode(example.source)),
            theirs.encode(whitespace.encode(example.target)),
        )

    stream = BatchStream(source, encode, collate_seq2seq, budget=2000, pool_size=1 << 19)
    counts.append(sum(len(batch.indices) for batch in stream))
    assert stream.num_examples is None
    check_data(source, max_held=10_000)
    peaks.append(peak())
print(json.dumps({"peaks": peaks, "counts": counts}))
"""
MAX_GROWTH = 12  # MB; measured: 4, and 32 if the larger file is held at once


def write(path: Path, num_lines: int) -> None:
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(num_lines):
            word = "".join(draw.choices("abcdefghijklmnop", k=draw.randrange(4, 14)))
            file.write(f"{word}\t{' '.join(word)}\n")


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    sizes = {"small.tsv": 20_000, "large.tsv": 200_000}
    for name, num_lines in sizes.items():
        write(tmp_path / name, num_lines)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(str(tmp_path / name) for name in sizes)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counts"] == list(sizes.values())
    assert found["peaks"][1] - found["peaks"][0] < MAX_GROWTH, found
