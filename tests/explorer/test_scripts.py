"""The arithmetic of the page's scripts, run in a real browser."""

from typing import Any

import pytest
from selenium.webdriver import Chrome

from foveal.views._text import number, shown
from tests.explorer.conftest import Served

pytestmark = pytest.mark.slow


@pytest.fixture
def loaded(chromium: Chrome, served: Served) -> Chrome:
    chromium.get(served.address)
    return chromium


def call(browser: Chrome, file: str, function: str, *arguments: Any) -> Any:
    """Return the result of a function from one of the page's modules."""
    script = (
        "const [file, name, values, done] = arguments;"
        "import(`/assets/${file}`).then((module) => done(module[name](...values)))"
    )
    return browser.execute_async_script(script, file, function, list(arguments))


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.3, 1.0, 1.7])
@pytest.mark.parametrize("weights", [[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [1.0]])
def test_shared_weights_stay_a_whole(loaded: Chrome, weights: list[float], value: float) -> None:
    found = call(loaded, "what_if.js", "reweighted", weights, 0, value, True)
    assert sum(found) == pytest.approx(1)
    assert min(found) >= 0
    if len(weights) > 1:
        assert found[0] == pytest.approx(min(1, max(0, value)))
    apart = call(loaded, "what_if.js", "reweighted", weights, 0, value, False)
    assert apart == pytest.approx([min(1, max(0, value)), *weights[1:]])


def test_others_keep_their_proportions(loaded: Chrome) -> None:
    found = call(loaded, "what_if.js", "reweighted", [0.2, 0.6, 0.2], 0, 0.6, True)
    assert found == pytest.approx([0.6, 0.3, 0.1])
    assert call(loaded, "what_if.js", "alone", [0.2, 0.6, 0.2], 1) == [0, 1, 0]


def test_a_change_undoes_later_ones_and_holds_what_came_before(loaded: Chrome) -> None:
    changes = call(loaded, "what_if.js", "look", [], 1, ["A"], [0, 1], 1)
    changes = call(loaded, "what_if.js", "write", changes, 3, ["A", "B", "C"], "D")
    assert call(loaded, "what_if.js", "asked", changes) == {
        "prefix": ["A", "B", "C", "D"],
        "forced": {"1": [0, 1]},
    }
    changes = call(loaded, "what_if.js", "write", changes, 1, ["A"], "X")  # the look stays
    assert call(loaded, "what_if.js", "asked", changes) == {
        "prefix": ["A", "X"],
        "forced": {"1": [0, 1]},
    }
    changes = call(loaded, "what_if.js", "look", changes, 0, [], [1, 0], 0)
    assert call(loaded, "what_if.js", "asked", changes) == {"prefix": [], "forced": {"0": [1, 0]}}
    assert call(loaded, "what_if.js", "asked", []) == {"prefix": [], "forced": {}}


@pytest.mark.parametrize(
    ("tokens", "other", "differs"),
    [
        ("abc", "abc", []),
        ("abc", "axc", [1]),
        ("abbc", "abc", [2]),
        ("abc", "", [0, 1, 2]),
        ("", "abc", []),
        ("kitten", "sitting", [0, 4]),
    ],
)
def test_differences_are_what_no_common_subsequence_has(
    loaded: Chrome, tokens: str, other: str, differs: list[int]
) -> None:
    found = call(loaded, "differing.js", "differing", list(tokens), list(other))
    assert [n for n, one in enumerate(found) if one] == differs


def test_symbols_and_numbers_are_shown_as_in_the_drawings(loaded: Chrome) -> None:
    tokens = [" ", "a\n", "\u0301", "<b>", " x ", "\u202e", "a\u202eb", "\u00a0", "語", "\t"]
    assert [call(loaded, "text.js", "shown", token) for token in tokens] == list(map(shown, tokens))
    assert call(loaded, "text.js", "shown", "") == "end"
    values = [1.0, 0.25, 0.00123, 0.00001, 0.0, 0.0999, 0.01]
    assert [call(loaded, "text.js", "number", value) for value in values] == list(
        map(number, values)
    )
    assert call(loaded, "text.js", "direction", ["ש", "ל", "a"]) == "rtl"
    assert call(loaded, "text.js", "direction", ["a", "1"]) == "ltr"
