"""The task and the tokenization are inferred from typical lines of users."""

import random
from collections.abc import Sequence

import pytest

from foveal.data import CharacterSpec, Example, FeaturesSpec, SentencePieceSpec, WhitespaceSpec
from foveal.errors import DataError
from foveal.planning import infer_task
from foveal.planning._inferring import infer_tokenizer

G2P = [
    ("af", "a: v"),
    ("afar", "a: v a r"),
    ("afgreiða", "a v k r e i: ð a"),
    ("bað", "p a: ð"),
    ("bróðir", "p r ou ð I r"),
]
KATAKANA = [
    ("bessarion", "ヴ ィ ッ サ リ オ ン"),
    ("ken", "ケ ン"),
    ("erispoe", "エ リ ス ポ エ"),
]
ARABIC = [("آبادي", "abadie"), ("آبي", "abe"), ("آا", "aa")]
TANAKA = [
    (
        "誰 が 一番 に 着 く か 私 に は 分か り ま せ ん 。",
        "i can 't tell who will arrive first .",
    ),
    (
        "多く の 動物 が 人間 に よ っ て 滅ぼ さ れ た 。",
        "many animals have been destroyed by men .",
    ),
    ("自分 の 事 を しろ 。", "show your own business ."),
]


def examples(pairs: Sequence[tuple[str, str]]) -> list[Example]:
    return [Example(source, target) for source, target in pairs]


def test_pronunciations() -> None:
    found = infer_task(examples(G2P))
    assert (found.task, found.source, found.target) == (
        "transduction",
        CharacterSpec(),
        WhitespaceSpec(),
    )
    assert found.reasons[1] == "source: characters, because 100 % of the texts have no space"
    assert found.reasons[2] == "target: tokens separated by whitespace, 11 different tokens"


@pytest.mark.parametrize(
    ("pairs", "source", "target"),
    [
        (KATAKANA, CharacterSpec(), WhitespaceSpec()),
        (ARABIC, CharacterSpec(), CharacterSpec()),
        (TANAKA, CharacterSpec(spaces="drop"), WhitespaceSpec()),
        ([(b, a) for a, b in TANAKA], WhitespaceSpec(), CharacterSpec()),
        ([(a.replace(" ", ""), b) for a, b in TANAKA], CharacterSpec(), WhitespaceSpec()),
    ],
)
def test_the_sides_of_a_transduction(
    pairs: list[tuple[str, str]],
    source: CharacterSpec | WhitespaceSpec,
    target: CharacterSpec | WhitespaceSpec,
) -> None:
    found = infer_task(examples(pairs))
    assert (found.task, found.source, found.target) == ("transduction", source, target)
    assert len(found.reasons) == 3


def test_inflection() -> None:
    rows = [
        ("Aa machen", "macht Aa", "V;IMP"),
        ("gehen", "ging", "V;PST"),
        ("Tür", "Türen", "N;PL"),
    ]
    found = infer_task(Example(a, b, features) for a, b, features in rows)
    assert (found.source, found.target, found.features) == (
        CharacterSpec(),
        CharacterSpec(),
        FeaturesSpec(),
    )


def test_labels_are_classes() -> None:
    draw = random.Random(0)
    rows = [
        (" ".join(draw.choices(["a", "film", "one", "may", "see"], k=6)), n % 3) for n in range(60)
    ]
    found = infer_task(Example(text, ["bad", "good", "very good"][label]) for text, label in rows)
    assert (found.task, found.source, found.target) == ("classification", WhitespaceSpec(), None)
    assert found.reasons[0] == "classification: only 3 different targets in 60 examples"


def test_tags_are_as_many_as_words() -> None:
    tagged = [("the cat sat .", "DET NOUN VERB ."), ("the dog saw it .", "DET NOUN VERB PRON .")]
    found = infer_task(examples(tagged * 2))
    assert (found.task, found.target) == ("tagging", WhitespaceSpec())
    turned = [("a b c", "c b a"), ("a b", "b a"), ("c a", "a c")]
    assert infer_task(examples(turned)).task == "transduction"


def test_text_alone_is_for_a_language_model() -> None:
    found = infer_task([Example("to be or not to be"), Example("that is the question")])
    assert (found.task, found.target) == ("language_modeling", None)


def test_words_that_are_too_many_are_cut() -> None:
    draw = random.Random(0)
    made = ["".join(draw.choices("bdgklmnprst aeiou", k=9)).strip() for _ in range(2000)]
    texts = [" ".join(draw.choices(made, k=6)) for _ in range(300)]
    found = infer_tokenizer(texts)
    assert isinstance(found.spec, SentencePieceSpec)
    assert found.spec.decode(found.spec.encode(texts[0])) == texts[0]
    assert "% of the words of a new text would be unknown" in found.reason
    assert isinstance(infer_tokenizer(["a few words", "a few more"] * 200).spec, WhitespaceSpec)


def test_parts_of_characters_where_whole_ones_are_rare() -> None:
    draw = random.Random(0)
    syllables = [chr(0xAC00 + draw.randrange(11172)) for _ in range(600)]
    korean = ["".join(draw.choices(syllables, k=3)) for _ in range(300)]
    found = infer_tokenizer(korean)
    assert found.spec == CharacterSpec(unit="code_point", normalization="NFD")
    assert "decomposed code points" in found.reason
    assert infer_tokenizer(korean, side="target").spec == CharacterSpec()  # keeps the written form
    letters, marks = "កខគឃងចឆជញដ", "ាិីឹឺុូួើឿេែៃោៅ"
    khmer = [
        "".join(draw.choice(letters) + draw.choice(marks) * draw.randrange(3) for _ in range(4))
        for _ in range(60)
    ]
    assert infer_tokenizer(khmer, side="target").spec == CharacterSpec(unit="code_point")


def test_nothing_to_infer_from() -> None:
    with pytest.raises(DataError, match="expected at least one example"):
        infer_task([])
    assert infer_tokenizer([]).spec == CharacterSpec()
    assert infer_tokenizer(["", " "]).spec == CharacterSpec()
