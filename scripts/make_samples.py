"""Make the samples of `foveal.datasets` again, from public data and from generators.

    foveal data get g2p_cmudict translit_coling2018 scan tinyshakespeare
    python scripts/make_samples.py

Every run writes the same files. `foveal/datasets/samples/README.md` has the source and license of each sample.
"""

import gzip
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from examples.support.formulas import draw_examples  # noqa: E402 - after the path
from foveal.datasets import data_file  # noqa: E402
from recipes.rendered.scenes import draw_scenes  # noqa: E402
from recipes.rendered.writing import write_pictures  # noqa: E402
from scripts.generated_samples import inflections, pairs, questions, reviews, trees  # noqa: E402

OUT = ROOT / "foveal/datasets/samples"
SEED = 1
PARTS = ("train", "dev", "test")
NUM_WORDS = (2500, 250, 250)
NUM_NAMES = (4000, 500, 500)
NUM_COMMANDS = (1500, 150, 150)
NUM_FORMULAS = (600, 60, 60)  # for each depth from 2 to 4
NUM_STORIES = (200, 25, 25)  # stories with four questions each
NUM_SCENES = (300, 50, 50)
NUM_LINES = (4000, 400, 400)  # of plain text
NUM_GENERATED = (1000, 150, 150)  # inflected forms, and pairs of sentences
NUM_TREES = (500, 100, 100)
NUM_REVIEWS = (400, 100, 100)

_ROOMS = ("kitchen", "garden", "office", "hallway", "bathroom", "bedroom")
_PEOPLE = ("Ada", "Boris", "Chen", "Dalia")
_THINGS = ("apple", "book", "lamp", "football")


def main() -> None:
    """Write every sample."""
    write_lines("pronunciation", NUM_WORDS, pronunciations())
    write_lines("names", NUM_NAMES, names())
    write_lines("commands", NUM_COMMANDS, commands())
    write_formulas()
    write_stories()
    write_scenes()
    write_text()
    write_lines("inflection", NUM_GENERATED, inflections(Random(SEED), sum(NUM_GENERATED)))
    write_lines("pairs", NUM_GENERATED, pairs(Random(SEED), sum(NUM_GENERATED)))
    write_lines("trees", NUM_TREES, trees(Random(SEED), sum(NUM_TREES)), "conllu")
    write_lines("reviews", NUM_REVIEWS, reviews(Random(SEED), sum(NUM_REVIEWS)), "jsonl")
    for name, license_of in (
        ("pronunciation", "g2p_cmudict"),
        ("names", "translit_coling2018"),
        ("commands", "scan"),
    ):
        shutil.copyfile(data_file(f"{license_of}/LICENSE"), OUT / name / "LICENSE")
    size = sum(path.stat().st_size for path in OUT.rglob("*") if path.is_file())
    print(f"{size / 1e6:.2f} MB in {OUT}")


def write_lines(name: str, sizes: tuple[int, ...], lines: list[str], suffix: str = "tsv") -> None:
    """Shuffle lines and write the first of them as training, validation and test file."""
    Random(SEED).shuffle(lines)
    assert len(lines) >= sum(sizes), f"{name}: {len(lines)} lines are too few"
    (OUT / name).mkdir(parents=True, exist_ok=True)
    for part, size in zip(PARTS, sizes, strict=True):
        (OUT / name / f"{part}.{suffix}").write_text("".join(lines[:size]), encoding="utf-8")
        del lines[:size]


def read(name: str) -> Iterator[str]:
    """Lines of a compressed file of a data set."""
    with gzip.open(data_file(name), "rt", encoding="utf-8") as file:
        yield from (line.rstrip("\n") for line in file)


def pronunciations() -> list[str]:
    """The most frequent words of the plays of Shakespeare that CMUdict has, without stress marks."""
    words = re.findall(r"[a-z]+", " ".join(read("tinyshakespeare/input.txt.gz")).lower())
    known: dict[str, str] = {}
    for line in read("g2p_cmudict/cmudict.dict.gz"):
        word, _, phonemes = line.partition("#")[0].strip().partition(" ")
        known.setdefault(word, re.sub("[0-9]", "", phonemes))  # the first of several
    ranked = [word for word, _ in Counter(words).most_common() if len(word) > 2 and word in known]
    return [f"{word}\t{known[word]}\n" for word in ranked[: sum(NUM_WORDS)]]


def names() -> list[str]:
    """Names of four to nine Latin letters, each with the characters of its first transcription."""
    found: dict[str, str] = {}
    for part in ("64", "16", "20"):
        for line in read(f"translit_coling2018/wd_katakana_{part}.gz"):
            name, characters, _ = line.split("\t")
            if re.fullmatch("[a-z]{4,9}", name):
                found.setdefault(name, characters)
    return [f"{name}\t{characters}\n" for name, characters in found.items()]


def commands() -> list[str]:
    """Commands of SCAN whose actions are at most 16."""
    lines = (
        line.removeprefix("IN: ").split(" OUT: ") for line in read("scan/tasks_train_simple.txt.gz")
    )
    return [f"{source}\t{target}\n" for source, target in lines if len(target.split()) <= 16]


def write_formulas() -> None:
    """Formulas of depth 2 to 4, no two alike."""
    chance, seen = Random(SEED), ()
    (OUT / "formulas").mkdir(parents=True, exist_ok=True)
    for part, size in zip(PARTS, NUM_FORMULAS, strict=True):
        drawn = draw_examples(range(2, 5), size, chance, unlike=seen)
        seen += drawn
        lines = (f"{each.source}\t{each.target}\n" for each in drawn)
        (OUT / "formulas" / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")


def write_stories() -> None:
    """Stories in the format of bAbI: where is a thing that someone carries? Two facts answer it."""
    (OUT / "stories").mkdir(parents=True, exist_ok=True)
    chance = Random(SEED)
    for part, size in zip(PARTS, NUM_STORIES, strict=True):
        lines = (line for _ in range(size) for line in story(chance))
        (OUT / "stories" / f"{part}.txt").write_text("".join(lines), encoding="utf-8")


def story(chance: Random) -> Iterable[str]:
    """Four questions, each after some facts; the facts that answer it are numbered."""
    carried: dict[str, tuple[str, int]] = {}  # by whom, and since which line
    rooms: dict[str, tuple[str, int]] = {}
    number = 0
    for _ in range(4):
        for _ in range(chance.randint(2, 4)):
            number += 1
            person = chance.choice(_PEOPLE)
            free = [thing for thing in _THINGS if thing not in carried]
            if person in rooms and free and chance.random() < 0.4:
                thing = chance.choice(free)
                carried[thing] = person, number
                yield f"{number} {person} took the {thing}.\n"
            else:
                room = chance.choice([r for r in _ROOMS if r != rooms.get(person, ("", 0))[0]])
                rooms[person] = room, number
                yield f"{number} {person} went to the {room}.\n"
        if not carried:
            person, thing = chance.choice(list(rooms)), chance.choice(_THINGS)
            number += 1
            carried[thing] = person, number
            yield f"{number} {person} took the {thing}.\n"
        thing = chance.choice(list(carried))
        person, since = carried[thing]
        room, last = rooms[person]
        number += 1
        yield f"{number} Where is the {thing}?\t{room}\t{since} {last}\n"


def write_scenes() -> None:
    """Images of shapes with captions, by `recipes.rendered`, and questions about them."""
    parts = {
        part: (draw_scenes(SEED, part), size) for part, size in zip(PARTS, NUM_SCENES, strict=True)
    }
    write_pictures(OUT / "scenes", parts, {"what": "scenes", "seed": SEED})
    for part in PARTS:
        (OUT / "scenes" / f"{part}.boxes.jsonl").unlink()
        captions = (OUT / "scenes" / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
        asked = "".join(questions(captions, Random(SEED)))
        (OUT / "scenes" / f"{part}_questions.tsv").write_text(asked, encoding="utf-8")
    (OUT / "scenes/manifest.json").unlink()


def write_text() -> None:
    """Lines of the plays of Shakespeare, from their beginning."""
    lines = list(read("tinyshakespeare/input.txt.gz"))
    (OUT / "text").mkdir(parents=True, exist_ok=True)
    for part, size in zip(PARTS, NUM_LINES, strict=True):
        (OUT / "text" / f"{part}.txt").write_text("\n".join(lines[:size]) + "\n", encoding="utf-8")
        del lines[:size]


if __name__ == "__main__":
    main()
