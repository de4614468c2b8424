r"""Dialog: a response to the last utterance, to all turns in a row, or to turns of words, with and without attention.

    foveal fit --recipe recipes/dialog.py --out runs/dialog
    python -m benchmarks.lectures fit dialog --runs runs                 all cases, three seeds
    python -m benchmarks.lectures score dialog --runs runs

A case is a corpus and a system:

    last              the encoder reads only the last utterance
    flat              the encoder reads all turns as one text
    flat_attention    the same, and the decoder attends to all words
    levels            an encoder of words, and one of turns (hierarchical recurrent encoder-decoder)
    levels_attention  the same, and the decoder attends to the turns and to the words of each turn

`sgd` contains all dialogs of the Schema-Guided Dialog data, and `film` those about films and series (services Movies and
Media). Each turn of the system is a response, and models read at most six turns before it. Texts are in lower case, and
punctuation is separated. The data folder must have `sgd_dialogues/train.jsonl.gz`, `dev.jsonl.gz` and `test.jsonl.gz`, made from
github.com/google-research-datasets/dstc8-schema-guided-dialogue (CC BY-SA 4.0): one dialog on each line, with its
`service` and its `turns`, pairs of speaker and text.

`facts` are generated dialogs: the user states five facts, one in each exchange, and then asks for one of them. The
fact is k exchanges back, for k from 1 to 5. The right answer is one of ten values.

The recipe writes the dialogs once, into `.cache/dialog` of the checkout.

References: Sordoni et al. 2015; Serban et al. 2016 (hierarchical recurrent encoder-decoder); Rastogi et al. 2020 (data).
"""

import json
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from foveal.data import LineReader, SourceSpec, WhitespaceSpec, dialogs
from foveal.datasets import data_folder
from foveal.models import (
    AttentionSpec,
    DecoderSpec,
    DocumentEncoderSpec,
    EncoderSpec,
    HierarchicalSpec,
    RecurrentSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec
from recipes.whole_files import write_whole

ROOT = Path(__file__).resolve().parents[1]
DATA = data_folder()
FOLDER = ROOT / ".cache/dialog"
CORPORA = ("film", "sgd", "facts")
SYSTEMS = ("last", "flat", "flat_attention", "levels", "levels_attention")
CASES = tuple(f"{corpus}_{system}" for corpus in CORPORA for system in SYSTEMS)
SERVICES = {"film": ("Movies_", "Media_"), "sgd": ("",)}  # how their names begin
SIZE = {"film": 64, "sgd": 128, "facts": 64}
STEPS = {"film": 500, "sgd": 900, "facts": 800}
MAX_TURNS = {"film": 6, "sgd": 6, "facts": None}  # turns before a response; none: all
EXCHANGES = 5  # facts that a user states

TOPICS: dict[str, tuple[str, ...]] = {
    "name": ("anna", "ben", "carla", "david", "emma", "felix", "greta", "hugo", "ida", "jonas"),
    "city": (
        "rome",
        "oslo",
        "paris",
        "lima",
        "cairo",
        "tokyo",
        "delhi",
        "quito",
        "berlin",
        "porto",
    ),
    "food": (
        "soup",
        "rice",
        "pasta",
        "fish",
        "bread",
        "salad",
        "cheese",
        "curry",
        "pizza",
        "beans",
    ),
    "color": (
        "red",
        "blue",
        "green",
        "black",
        "white",
        "yellow",
        "brown",
        "gray",
        "pink",
        "orange",
    ),
    "pet": ("cat", "dog", "bird", "horse", "rabbit", "mouse", "snake", "frog", "goat", "duck"),
    "sport": (
        "tennis",
        "chess",
        "golf",
        "rugby",
        "judo",
        "rowing",
        "skiing",
        "boxing",
        "hockey",
        "diving",
    ),
    "job": (
        "nurse",
        "baker",
        "pilot",
        "farmer",
        "judge",
        "singer",
        "painter",
        "lawyer",
        "cook",
        "driver",
    ),
    "drink": (
        "tea",
        "coffee",
        "water",
        "milk",
        "juice",
        "wine",
        "beer",
        "cocoa",
        "cider",
        "lemonade",
    ),
}
REPLIES = ("i see .", "good to know .", "okay .", "that is nice .")
NUM_FACTS = {"train": 6_000, "dev": 300, "test": 1_500}
_WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")


def recipe(case: str = "film_levels_attention") -> Run:
    """Return the run of a dialog model."""
    corpus, _, system = case.partition("_")
    return Run(
        task=task(system, SIZE[corpus]),
        train=part(corpus, "train", system),
        dev=part(corpus, "dev", system),
        test=part(corpus, "test", system),
        training=TrainingSpec(
            steps=STEPS[corpus],
            batch_size=32,
            learning_rate=3e-3,
            # The answer becomes right late and suddenly: a rate that falls may come too late for it.
            schedule="constant" if corpus == "facts" else "linear",
            evaluate_every=STEPS[corpus] // 4,
            validation_size=100,
            seed=1,
        ),
    )


def task(system: str, size: int) -> TransductionSpec:
    """Return the encoder of the turns and the attention of the decoder."""
    words = TextEncoderSpec(embedding_size=size, hidden_size=size // 2, dropout=0.2)
    turns = RecurrentSpec(hidden_size=size, bidirectional=False, dropout=0.2)
    encoder: EncoderSpec | DocumentEncoderSpec = words
    attention: AttentionSpec | None = None
    if system.startswith("levels"):
        encoder = DocumentEncoderSpec(words=words, pooling=None, sentences=turns)
    if system.endswith("attention"):
        attention = HierarchicalSpec() if system.startswith("levels") else SoftmaxSpec()
    decoder = DecoderSpec(
        embedding_size=size, hidden_size=size, dropout=0.2, attention=attention, bridge="both"
    )
    return TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        outputs="texts",
        min_count=2,
        label_smoothing=0.0,
        model=Seq2SeqSpec(encoder=encoder, decoder=decoder),
        prediction=PredictionSpec(beam_size=1),
    )


def part(corpus: str, name: str, system: str) -> SourceSpec:
    """Return the training, validation or test set of a corpus, with the turns that a system reads."""
    path = FOLDER / f"{corpus}_{name}.jsonl"
    if not path.exists():
        made = facts(name) if corpus == "facts" else conversations(name, SERVICES[corpus])
        write_whole(path, (f"{json.dumps(record)}\n" for record in made))
    speaker = None if corpus == "facts" else "system"
    return dialogs(path, speaker=speaker, max_turns=1 if system == "last" else MAX_TURNS[corpus])


def conversations(name: str, services: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the dialogs of the training, dev or test set whose services have names that begin like one of these."""
    for line in LineReader(str(DATA / f"sgd_dialogues/{name}.jsonl.gz")):
        record = json.loads(line)
        if record["service"].startswith(services):
            yield {
                "service": record["service"],
                "turns": [[speaker, _words(text)] for speaker, text in record["turns"]],
            }


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def facts(name: str) -> Iterator[dict[str, Any]]:
    """Yield generated dialogs, each with the distance k of the fact that its question asks for."""
    generator = random.Random(f"dialog facts {name}")
    for number in range(NUM_FACTS[name]):
        topics = generator.sample(tuple(TOPICS), EXCHANGES)
        values = [generator.choice(TOPICS[topic]) for topic in topics]
        distance = 1 + number % EXCHANGES
        turns = list[list[str]]()
        for topic, value in zip(topics, values, strict=True):
            turns.append(["user", f"my {topic} is {value} ."])
            turns.append(["system", generator.choice(REPLIES)])
        turns.append(["user", f"what is my {topics[-distance]} ?"])
        response = f"your {topics[-distance]} is {values[-distance]} ."
        yield {"distance": distance, "turns": turns, "response": response}


# fmt: off
film_last, film_flat, film_flat_attention, film_levels, film_levels_attention = (
    partial(recipe, f"film_{system}") for system in SYSTEMS)
sgd_last, sgd_flat, sgd_flat_attention, sgd_levels, sgd_levels_attention = (
    partial(recipe, f"sgd_{system}") for system in SYSTEMS)
facts_last, facts_flat, facts_flat_attention, facts_levels, facts_levels_attention = (
    partial(recipe, f"facts_{system}") for system in SYSTEMS)
# fmt: on
