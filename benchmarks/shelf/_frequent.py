"""The most frequent English words: a list that the lexicon of g2p-en must contain completely.

    python -m benchmarks.shelf._frequent        writes tests/shelf/frequent_english.txt

A word counts with its mean relative frequency in three corpora that ship with free licenses: web text (UD English EWT),
film reviews (Pang and Lee), and dialogs (SGD). Only words that occur in all of them are in the list.
"""

import gzip
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from foveal.datasets import data_folder

OUT = Path(__file__).resolve().parents[2] / "tests/shelf/frequent_english.txt"
NUM_WORDS = 1000
WORD = re.compile(r"(?<![\w'])[a-z]+(?:'[a-z]+)?(?![\w'])")


def frequent_words() -> list[str]:
    """Return the words, the most frequent first."""
    corpora = [_shares(lines) for lines in (_web(), _reviews(), _dialogs())]
    common = set.intersection(*map(set, corpora))
    return sorted(common, key=lambda word: (-sum(each[word] for each in corpora), word))[:NUM_WORDS]


def _shares(lines: Iterable[str]) -> dict[str, float]:
    counts = Counter(
        word for line in lines for word in WORD.findall(line.lower().replace("\u2019", "'"))
    )
    total = counts.total()
    return {word: count / total for word, count in counts.items()}


def _web() -> Iterator[str]:
    beginning = "# text = "
    for line in _lines("ud_english_ewt/en_ewt-ud-train.conllu.gz"):
        if line.startswith(beginning):
            yield line.removeprefix(beginning)


def _reviews() -> Iterator[str]:
    with zipfile.ZipFile(data_folder() / "movie_reviews_pang_lee/movie_reviews.zip") as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".txt"):
                # The tokens of the corpus are separated: it 's
                yield archive.read(name).decode("latin-1").replace(" '", "'")


def _dialogs() -> Iterator[str]:
    for line in _lines("sgd_dialogues/train.jsonl.gz"):
        yield from (text for _, text in json.loads(line)["turns"])


def _lines(name: str) -> Iterator[str]:
    with gzip.open(data_folder() / name) as file:
        yield from io.TextIOWrapper(file, encoding="utf-8")


if __name__ == "__main__":
    OUT.write_text("".join(f"{word}\n" for word in frequent_words()), encoding="utf-8")
