"""Specs: JSON round trips, single settings from text, and errors that name path and remedy."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, assert_type

import pytest
from hypothesis import given, settings as run_settings, strategies as st

from foveal.errors import SpecError, ValueRangeError
from foveal.models import DecoderSpec, Seq2SeqSpec
from foveal.specs import check, from_json, setting, settings, to_data, to_json, with_setting
from foveal.specs._reading import from_data
from foveal.specs._settings import Setting

pytestmark = pytest.mark.slow


@dataclass(frozen=True, kw_only=True, slots=True)
class DotSpec:
    kind: Literal["dot"] = "dot"
    scaled: bool = setting(True, "divide by the square root of the width")


@dataclass(frozen=True, kw_only=True, slots=True)
class AdditiveSpec:
    kind: Literal["additive"] = "additive"
    hidden_size: int = setting(128, "width of the hidden layer", at_least=1)


ScorerSpec = DotSpec | AdditiveSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class SoftmaxSpec:
    kind: Literal["softmax"] = "softmax"
    scorer: ScorerSpec = setting(AdditiveSpec(), "how a place is scored")
    temperature: float = setting(1.0, "what scores are divided by", above=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSpec:
    kind: Literal["local"] = "local"
    inner: SoftmaxSpec = setting(SoftmaxSpec(), "what is narrowed")
    window: float | None = setting(None, "places to each side")


AttentionSpec = SoftmaxSpec | LocalSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSpec:
    size: int = setting(about="channels", at_least=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    kind: Literal["model"] = "model"
    vocabulary: int = setting(about="number of tokens", at_least=1)
    cell: Literal["lstm", "gru"] = setting("lstm", "kind of recurrent cell")
    name: str = setting("", "shown to the user")
    rates: tuple[float, ...] = setting((), "one for each layer", at_least=0, at_most=1)
    pair: tuple[int, str] = setting((0, ""), "a number and a word")
    limit: int | float | str | None = setting(None, "anything")
    attention: AttentionSpec | None = setting(SoftmaxSpec(), "how it reads the source")
    stages: tuple[StageSpec, ...] = setting((), "of the image encoder")


finite = st.floats(allow_nan=False, allow_infinity=False)
scorers = st.one_of(
    st.builds(DotSpec, scaled=st.booleans()),
    st.builds(AdditiveSpec, hidden_size=st.integers(1, 9)),
)
softmaxes = st.builds(SoftmaxSpec, scorer=scorers, temperature=st.floats(0.5, 2))
attentions = st.one_of(softmaxes, st.builds(LocalSpec, inner=softmaxes, window=st.none() | finite))
models = st.builds(
    ModelSpec,
    vocabulary=st.integers(min_value=1),
    cell=st.sampled_from(["lstm", "gru"]),
    name=st.text(),
    rates=st.lists(st.floats(0, 1)).map(tuple),
    pair=st.tuples(st.integers(), st.text()),
    limit=st.one_of(st.none(), st.integers(), finite, st.text()),
    attention=st.none() | attentions,
    stages=st.lists(st.builds(StageSpec, size=st.integers(1, 9)), max_size=3).map(tuple),
)


def same(found: Any, expected: Any) -> bool:
    """Return whether values and all nested types are equal: 1 is not 1.0 here."""
    return found == expected and repr(found) == repr(expected)


@run_settings(deadline=None)  # a busy machine may be slow
@given(model=models)
def test_json_is_exact_both_ways(model: ModelSpec) -> None:
    assert same(from_json(ModelSpec, to_json(model)), model)
    assert same(from_json(ModelSpec | AdditiveSpec | None, to_json(model)), model)
    assert same(from_data(ModelSpec, to_data(model)), model)
    assert json.loads(to_json(model)) == to_data(model)


@run_settings(deadline=None)  # a busy machine may be slow
@given(model=models)
def test_every_setting_can_be_set_to_what_it_is(model: ModelSpec) -> None:
    for one in settings(model):
        if one.path == "limit" and isinstance(one.value, str):
            continue  # the text of a union may parse as a number or as none
        assert same(with_setting(model, one.path, one.text), model), one


@run_settings(deadline=None)
@given(model=models, other=models)
def test_settings_are_the_whole_spec(model: ModelSpec, other: ModelSpec) -> None:
    """Two specs with the same settings are equal; every different value is visible."""
    told = [(s.path, repr(s.value)) for s in settings(model)]
    assert (told == [(s.path, repr(s.value)) for s in settings(other)]) == same(model, other)
    assert len({path for path, _ in told}) == len(told)


def test_settings_say_what_they_are() -> None:
    model = ModelSpec(vocabulary=5, stages=(StageSpec(size=3),))
    found = {s.path: s for s in settings(model)}
    assert list(found) == [
        "vocabulary",
        "cell",
        "name",
        "rates",
        "pair",
        "limit",
        "attention",
        "attention.scorer",
        "attention.scorer.hidden_size",
        "attention.temperature",
        "stages.0.size",
    ]
    assert found["attention"] == Setting(
        "attention", "softmax", "how it reads the source", "softmax or local, or none"
    )
    assert found["vocabulary"].expected == "a whole number of at least 1"
    assert found["rates"].expected == "a list, each a number from 0 to 1"
    assert found["stages.0.size"].value == 3


def test_a_setting_is_read_by_its_annotation() -> None:
    model = ModelSpec(vocabulary=5)
    assert with_setting(model, "vocabulary", "7").vocabulary == 7
    assert with_setting(model, "cell", "gru").cell == "gru"
    assert with_setting(model, "name", "none").name == "none"
    assert with_setting(model, "rates", "0.1, 1").rates == (0.1, 1.0)
    assert with_setting(model, "rates", "").rates == ()
    assert with_setting(model, "pair", "3,x").pair == (3, "x")
    assert with_setting(model, "limit", "None").limit is None
    assert same(with_setting(model, "limit", "3").limit, 3)
    assert same(with_setting(model, "limit", "3.0").limit, 3.0)
    assert with_setting(model, "limit", "three").limit == "three"
    assert with_setting(model, "attention", "none").attention is None
    assert with_setting(model, "attention", "local").attention == LocalSpec()
    dotted = with_setting(model, "attention.scorer", "dot")
    assert dotted.attention == SoftmaxSpec(scorer=DotSpec())
    assert with_setting(dotted, "attention", "softmax") == dotted  # already chosen: unchanged
    assert not with_setting(dotted, "attention.scorer.scaled", "False").attention.scorer.scaled
    given_as_json = with_setting(model, "attention", '{"kind": "local", "window": 2}')
    assert given_as_json.attention == LocalSpec(window=2.0)
    assert with_setting(model, "stages", '[{"size": 4}]').stages == (StageSpec(size=4),)
    staged = ModelSpec(vocabulary=5, stages=(StageSpec(size=3), StageSpec(size=4)))
    assert with_setting(staged, "stages.1.size", "9").stages[1] == StageSpec(size=9)
    assert model == ModelSpec(vocabulary=5)  # never changed in place


def test_a_missing_field_takes_its_default() -> None:
    assert from_json(ModelSpec, '{"vocabulary": 3}') == ModelSpec(vocabulary=3)


def test_a_whole_number_may_stand_for_any() -> None:
    read = from_data(SoftmaxSpec, {"temperature": 2})
    assert same(read, SoftmaxSpec(temperature=2.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusingSpec:
    low: int = 0
    high: int = 1

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueRangeError(f"low must not be above high, got {self.low} and {self.high}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class OuterSpec:
    inner: RefusingSpec = RefusingSpec()


@dataclass(frozen=True, kw_only=True, slots=True)
class NamelessSpec:
    either: StageSpec | RefusingSpec | None = None


BASE = {"vocabulary": 3}
BAD_DATA: list[tuple[Any, Any, str]] = [
    (ModelSpec, {}, r"^vocabulary: missing, and ModelSpec has no default.*whole number.*add it"),
    (ModelSpec, [], r"^the spec: expected model, got \[\]. Replace it"),
    (ModelSpec, BASE | {"cel": "gru"}, r"^cel: unknown field of ModelSpec. Did you mean cell\?"),
    (ModelSpec, BASE | {"zzz": 1}, r"^zzz: unknown field of ModelSpec. Its fields: kind, vocab"),
    (ModelSpec, {"vocabulary": True}, r"^vocabulary: expected a whole number.*, got True"),
    (ModelSpec, {"vocabulary": 3.0}, r"^vocabulary: expected a whole number.*, got 3\.0"),
    (ModelSpec, {"vocabulary": 0}, r"^vocabulary: expected a whole number of at least 1, got 0"),
    (ModelSpec, BASE | {"cell": "gur"}, r"^cell: expected lstm or gru, got 'gur'. Did you mean gr"),
    (ModelSpec, BASE | {"rates": [0.5, 1.5]}, r"^rates\.1: .*from 0 to 1, got 1\.5"),
    (ModelSpec, BASE | {"rates": 0.5}, r"^rates: expected a list, each a number.*got 0\.5"),
    (
        ModelSpec,
        BASE | {"pair": [1]},
        r"^pair: expected a list of 2: a whole number, text, got \[1",
    ),
    (ModelSpec, BASE | {"attention": {}}, r"^attention\.kind: expected one of softmax, local, got"),
    (
        ModelSpec,
        BASE | {"attention": {"kind": "sofmax"}},
        r"^attention\.kind: .*got 'sofmax'. Did you mean softmax\?",
    ),
    (
        ModelSpec,
        BASE | {"attention": {"kind": "local", "inner": {"scorer": {"kind": "dot", "scaled": 1}}}},
        r"^attention\.inner\.scorer\.scaled: expected true or false, got 1",
    ),
    (ModelSpec, BASE | {"kind": "other"}, r"^kind: expected model, got 'other'"),
    (ModelSpec, BASE | {"stages": [{}]}, r"^stages\.0\.size: missing"),
    (SoftmaxSpec, {"temperature": 0.0}, r"^temperature: expected a number above 0, got 0\.0"),
    (SoftmaxSpec, {"temperature": math.inf}, r"^temperature: expected a number above 0, got inf"),
    (OuterSpec, {"inner": {"low": 5}}, r"^inner: low must not be above high, got 5 and 1"),
    (NamelessSpec, {"either": {}}, r"^StageSpec: a member of a union of specs needs a kind"),
]


@pytest.mark.parametrize(("annotation", "data", "text"), BAD_DATA)
def test_bad_data_is_refused_with_its_path(annotation: Any, data: Any, text: str) -> None:
    with pytest.raises(SpecError, match=text):
        from_data(annotation, data)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", r"^the spec: invalid JSON: .*line 1 column 2.*Correct the text at"),
        ("", r"^the spec: invalid JSON"),
        ('{"vocabulary": 1e999}', r"^vocabulary: expected a whole number.*got inf"),
        ('{"vocabulary": 3, "limit": NaN}', r"^limit: .*got nan"),
        ('{"vocabulary": 3, "vocabulary": 4}', r"^vocabulary: given twice.*Remove one"),
        ("[" * 100_000, r"^the spec: invalid JSON"),
        ("9" * 10_000, r"^the spec: invalid JSON"),
    ],
)
def test_bad_json_is_refused(text: str, error: str) -> None:
    with pytest.raises(SpecError, match=error):
        from_json(ModelSpec, text)


BAD_TEXT = [
    ("cel", "gru", r"^cel: unknown setting. Did you mean cell\?"),
    ("hidden_size", "3", r"Did you mean attention\.scorer\.hidden_size\?"),
    ("attention.scorer.hiden_size", "3", r"Did you mean attention\.scorer\.hidden_size"),
    ("zzzzzz", "3", r"^zzzzzz: unknown setting. Settings: vocabulary, cell, "),
    ("kind", "other", r"^kind: unknown setting"),
    ("", "3", r"unknown setting"),
    ("vocabulary", "many", r"^vocabulary: expected a whole number of at least 1, got 'many'"),
    ("vocabulary", "0", r"^vocabulary: expected a whole number of at least 1, got 0"),
    ("cell", "grru", r"^cell: expected lstm or gru, got 'grru'. Did you mean gru\?"),
    ("attention", "locl", r"softmax or local, or none, got 'locl'. Did you mean local\?"),
    ("attention.scorer", "none", r"^attention\.scorer: expected dot or additive, got 'none'"),
    ("attention.temperature", "inf", r"^attention\.temperature: .*got inf"),
    ("attention", "{", r"^attention: invalid JSON"),
    ("rates", "0.1,x", r"^rates\.1: expected a number.*got 'x'"),
    ("pair", "1,2,3", r"^pair: expected a list of 2"),
    ("limit.size", "1", r"^limit\.size: unknown setting, because limit is none"),
]


@pytest.mark.parametrize(("path", "text", "error"), BAD_TEXT)
def test_bad_settings_are_refused(path: str, text: str, error: str) -> None:
    with pytest.raises(SpecError, match=error):
        with_setting(ModelSpec(vocabulary=5), path, text)


def test_a_setting_of_a_member_not_chosen_says_what_to_set_first() -> None:
    model = ModelSpec(vocabulary=5, attention=None)
    with pytest.raises(
        SpecError, match=r"because attention is none; expected softmax or local.*First set"
    ):
        with_setting(model, "attention.scorer", "dot")
    with pytest.raises(SpecError, match=r"attention\.window: unknown setting"):
        with_setting(ModelSpec(vocabulary=5), "attention.window", "3")


def test_a_group_is_set_one_by_one_or_as_json() -> None:
    model = ModelSpec(vocabulary=5, attention=LocalSpec())
    with pytest.raises(SpecError, match=r"attention\.inner: expected a group.*got 'softmax'.*Set"):
        with_setting(model, "attention.inner", "softmax")
    changed = with_setting(model, "attention.inner", '{"temperature": 2}')
    assert changed.attention.inner.temperature == 2
    with pytest.raises(SpecError, match=r"^inner: low must not be above high"):
        with_setting(OuterSpec(), "inner.low", "9")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: AdditiveSpec(hidden_size=0), "^hidden_size: expected .* at least 1, got 0"),
        (lambda: SoftmaxSpec(scorer=AdditiveSpec(hidden_size=-1)), r"^scorer\.hidden_size"),
        (lambda: SoftmaxSpec(temperature=math.nan), "^temperature: .*got nan"),
    ],
)
def test_check_finds_what_a_dataclass_takes(made: Callable[[], Any], text: str) -> None:
    with pytest.raises(SpecError, match=text):
        check(made())
    with pytest.raises(SpecError, match=text):
        to_json(made())


def test_a_setting_has_the_type_of_its_default() -> None:
    """pyright, which reads this file, rejects the first two lines if `setting` returns Any."""
    assert_type(setting(1, "a number"), int)
    assert_type(setting("a", "a text"), str)
    assert_type(setting(about="without a default"), Any)


def test_none_is_no_text_where_it_is_none() -> None:
    @dataclass(frozen=True, kw_only=True, slots=True)
    class ColumnSpec:
        name: str | None = setting("a", "name of a column")
        column: int | str | None = setting(0, "number or name of a column")

    assert with_setting(ColumnSpec(), "name", "none").name is None
    assert with_setting(ColumnSpec(), "column", "none").column is None
    assert with_setting(ColumnSpec(), "column", "2").column == 2
    assert with_setting(ColumnSpec(), "column", "word").column == "word"


def test_a_decoder_without_a_kind_is_recurrent() -> None:
    """Earlier versions wrote no kind for decoders, which were all recurrent."""
    assert from_json(Seq2SeqSpec, '{"decoder": {"hidden_size": 7}}') == Seq2SeqSpec(
        decoder=DecoderSpec(hidden_size=7)
    )
    with pytest.raises(SpecError, match=r"decoder\.model_size: unknown field of DecoderSpec"):
        from_json(Seq2SeqSpec, '{"decoder": {"model_size": 7}}')
