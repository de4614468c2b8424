"""The pretrained models of the shelf: small networks, so that each takes at most 2 MB.

    foveal fit --recipe recipes/shelf.py:g2p_en --out runs/g2p-en      or :g2p_is, :names_ru, :tagger_en, ...
    python -m benchmarks.shelf fit --runs runs                         all models that are not trained yet
    python -m benchmarks.shelf add --runs runs                         score them, and write them into shelf/

The recipes take the settings of the other recipes with half the width. The test files of shared tasks stay out of
training. CMUdict and the files of WikiPron have no official split: words are divided by a hash, and the English test words
of SIGMORPHON 2021 are left out too. `foveal data get g2p_cmudict g2p_sigmorphon2021 g2p_wikipron_sel translit_coling2018
translit_ar2en ud_english_ewt scan` gets the data; the spoken digits are described in `recipes/spoken_digits.py`, and the
recipes draw scenes and formulas.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from foveal.data import (
    CharacterSpec,
    LineReader,
    SourceSpec,
    SpellingSpec,
    TokenizerSpec,
    WhitespaceSpec,
    conllu,
    tsv,
)
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, ParserSpec, Seq2SeqSpec, TaggerSpec, TextEncoderSpec
from foveal.tasks import CaptioningSpec, ParsingSpec, TaggingSpec, TransductionSpec
from foveal.training import Run, TrainingSpec
from recipes import (
    g2p_low,
    g2p_medium,
    image_to_latex,
    katakana,
    parsing,
    scan,
    scene_captions,
    spoken_digits,
)
from recipes.whole_files import write_whole

DATA = data_folder()
FOLDER = Path(__file__).resolve().parents[1] / ".cache/shelf"
# Codes of ISO 639-1, or of ISO 639-3 for Adyghe, and the name of the language in the files.
MEDIUM = {
    "bg": "bul",
    "fr": "fre",
    "hu": "hun",
    "hy": "arm",
    "ja": "jpn",
    "ka": "geo",
    "ko": "kor",
    "nl": "dut",
    "sh": "hbs",
    "vi": "vie",
}
LOW = {
    "ady": "ady",
    "cy": "wel",
    "el": "gre",
    "is": "ice",
    "it": "ita",
    "km": "khm",
    "lv": "lav",
    "mt": "mlt",
    "ro": "rum",
    "sl": "slv",
}
WIKIPRON = {"de": "deu_latn_broad_filtered", "hi": "hin_deva_broad_filtered"}
EPOCHS = {"de": 8.0, "hi": 12.0}
SCRIPTS = {
    "ar": "arabic",
    "he": "hebrew",
    "ja": "katakana",
    "ko": "korean",
    "ru": "russian",
    "zh": "chinese",
}
NARROWER = {"ko": 104, "zh": 88}  # the embeddings of many characters take the room
WORD = re.compile(r"[a-z]+('[a-z]+)?")
ALTERNATIVE = re.compile(r"\(\d+\)$")
NUM_TEST, NUM_DEV = 25, 8  # of each 1,000 words
EWT = "ud_english_ewt/en_ewt-ud"


def _model(dropout: float = 0.3, size: int = 128) -> Seq2SeqSpec:
    """Return a bidirectional LSTM, attention and an LSTM."""
    return Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=64, hidden_size=size, dropout=dropout),
        decoder=DecoderSpec(embedding_size=64, hidden_size=size, dropout=dropout),
    )


def english() -> Run:
    """Return a run from letters to the phones of CMUdict with stress, for words that the dictionary lacks."""
    return Run(
        task=TransductionSpec(
            source=CharacterSpec(), target=WhitespaceSpec(), model=_model(dropout=0.2, size=112)
        ),
        train=cmudict("train"),
        dev=cmudict("dev"),
        test=cmudict("test"),
        training=TrainingSpec(epochs=9.0, batch_tokens=2000, learning_rate=3e-3, bf16=True, seed=1),
    )


def medium(language: str) -> Run:
    """Return a run of `recipes/g2p_medium.py` with half the width."""
    run = g2p_medium.recipe(MEDIUM[language])
    assert isinstance(run.task, TransductionSpec)
    return replace(run, task=replace(run.task, model=_model()))


def low(language: str) -> Run:
    """Return a run of `recipes/g2p_low.py`, whose models are small already."""
    return g2p_low.recipe(LOW[language])


def more(language: str) -> Run:
    """Return a run like `medium` for a language of WikiPron that SIGMORPHON 2021 lacks."""
    run = medium("hu")
    train, dev, test = (wikipron(language, part) for part in ("train", "dev", "test"))
    training = replace(run.training, epochs=EPOCHS[language], batch_tokens=2000)
    return replace(run, train=train, dev=dev, test=test, training=training)


def names(script: str) -> Run:
    """Return a run of `recipes/katakana.py` with half the width."""
    run = katakana.recipe(SCRIPTS[script])
    assert isinstance(run.task, TransductionSpec)
    model = _model(dropout=0.2, size=NARROWER.get(script, 128))
    return replace(run, task=replace(run.task, model=model))


def arabic_names() -> Run:
    """Return a run from Arabic names to Latin letters (Rosca and Breuel 2016)."""
    letters: TokenizerSpec = CharacterSpec()
    train, dev, test = (
        tsv(DATA / f"translit_ar2en/ar2en-{part}.txt") for part in ("train", "eval", "test")
    )
    return Run(
        task=TransductionSpec(source=letters, target=letters, model=_model()),
        train=train,
        dev=dev,
        test=test,
        training=TrainingSpec(
            epochs=15.0, batch_tokens=1200, learning_rate=2e-3, bf16=True, seed=1
        ),
    )


def tagger() -> Run:
    """Return a run of a tagger of English words with universal parts of speech (UD English EWT)."""
    train, dev, test = (
        conllu(DATA / f"{EWT}-{part}.conllu.gz") for part in ("train", "dev", "test")
    )
    return Run(
        task=TaggingSpec(
            min_count=3,
            spelling=SpellingSpec(num_buckets=4000),
            model=TaggerSpec(
                encoder=TextEncoderSpec(embedding_size=32, hidden_size=96, dropout=0.3),
                feature_size=20,
            ),
        ),
        train=train,
        dev=dev,
        test=test,
        training=TrainingSpec(epochs=8.0, batch_tokens=1600, learning_rate=3e-3, seed=1),
    )


def parser() -> Run:
    """Return a run of `recipes/parsing.py` with about a third of the width."""
    run = parsing.recipe("ewt")
    assert isinstance(run.task, ParsingSpec)
    model = ParserSpec(
        embedding_size=32,
        feature_size=8,
        character_size=16,
        character_hidden_size=32,
        hidden_size=80,
        tag_size=24,
        arc_size=120,
        label_size=36,
        dropout=0.25,
    )
    spelling = SpellingSpec(num_buckets=4000)
    return replace(run, task=replace(run.task, min_count=3, spelling=spelling, model=model))


def scenes() -> Run:
    """Return a run from drawn scenes of shapes to their captions."""
    return scene_captions.recipe("brief")


def formulas() -> Run:
    """Return a run from drawn formulas to LaTeX, with a smaller decoder than `recipes/image_to_latex.py`."""
    run = image_to_latex.recipe("rendered_brief")
    assert isinstance(run.task, CaptioningSpec)
    model = run.task.model
    decoder = replace(model.decoder, embedding_size=48, hidden_size=144)
    return replace(run, task=replace(run.task, model=replace(model, decoder=decoder)))


def commands() -> Run:
    """Return a run from commands to actions: a translator that is small enough to look into."""
    return scan.recipe("simple")


def digits() -> Run:
    """Return a run from recordings to the words of their digits."""
    return spoken_digits.recipe("softmax")


g2p_bg, g2p_fr, g2p_hu, g2p_hy, g2p_ja, g2p_ka, g2p_ko, g2p_nl, g2p_sh, g2p_vi = (
    partial(medium, language) for language in MEDIUM
)
g2p_ady, g2p_cy, g2p_el, g2p_is, g2p_it, g2p_km, g2p_lv, g2p_mt, g2p_ro, g2p_sl = (
    partial(low, language) for language in LOW
)
g2p_de, g2p_hi = (partial(more, language) for language in WIKIPRON)
names_ar, names_he, names_ja, names_ko, names_ru, names_zh = (
    partial(names, script) for script in SCRIPTS
)
g2p_en, names_from_ar, tagger_en, digits_en = english, arabic_names, tagger, digits
parser_en, scenes_en, formulas_latex, commands_en = parser, scenes, formulas, commands


def cmudict(part: str) -> SourceSpec:
    """Return one of three parts of CMUdict."""
    return divided("cmudict", cmudict_pairs(), part)


def cmudict_pairs() -> Iterator[tuple[str, str]]:
    """Yield each word of letters in CMUdict with its first pronunciation, except the test words of SIGMORPHON 2021."""
    test_words = LineReader(str(DATA / "g2p_sigmorphon2021/high/eng_us_test.tsv"))
    left_out = {line.partition("\t")[0] for line in test_words}
    for line in LineReader(str(DATA / "g2p_cmudict/cmudict.dict.gz")):
        word, _, phones = line.partition("#")[0].strip().partition(" ")
        if WORD.fullmatch(word) and not ALTERNATIVE.search(word) and word not in left_out:
            yield word, phones


def wikipron(language: str, part: str) -> SourceSpec:
    """Return one of three parts of a WikiPron file, which has no official split."""
    return divided(f"wikipron_{language}", wikipron_pairs(language), part)


def wikipron_pairs(language: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a WikiPron file with its first pronunciation."""
    seen = set[str]()
    for line in LineReader(str(DATA / f"g2p_wikipron_sel/{WIKIPRON[language]}.tsv.gz")):
        word, _, phones = line.partition("\t")
        if word not in seen:
            seen.add(word)
            yield word, phones


def divided(name: str, pairs: Iterable[tuple[str, str]], part: str) -> SourceSpec:
    """Return one of three parts of the pairs, divided by a hash of the word; each line has a word, a tab, and its phones.

    The first call writes the files.
    """
    file = FOLDER / f"{name}_{part}.tsv"
    if not file.exists():
        parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
        for word, phones in pairs:
            parts[part_of(word)].append(f"{word}\t{phones}\n")
        for each, lines in parts.items():
            write_whole(FOLDER / f"{name}_{each}.tsv", lines)
    return tsv(file)


def part_of(word: str) -> str:
    """Return the part that a word belongs to, by a hash, so it never changes."""
    number = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % 1000
    if number < NUM_TEST:
        return "test"
    return "dev" if number < NUM_TEST + NUM_DEV else "train"
