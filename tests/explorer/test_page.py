"""The page in a real browser: typing, hovering, dragging, forcing, undoing and comparing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import explain
from foveal.views._theme import DARK, LIGHT, channels
from tests.explorer.conftest import GOOD, Served
from tests.explorer.page import Page

pytestmark = pytest.mark.slow

NARROW = 320


@pytest.fixture
def page(chromium: Chrome, served: Served) -> Iterator[Page]:
    opened = Page(chromium, served.address)
    opened.type("abc")
    yield opened
    # The browser refused nothing: there is no script, style or address that the policy forbids.
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    origins = chromium.execute_script(
        "return performance.getEntriesByType('resource').map((e) => new URL(e.name).origin)"
    )
    assert {f"{origin}/" for origin in origins} == {served.address.partition("?")[0]}


def test_typing_shows_the_answer_and_what_else_might_have_been(page: Page) -> None:
    expected = explain(load_bundle(GOOD), Example("abc"))
    panel = page.first
    assert panel.output == expected.output == "ABC"
    assert panel.texts(".outputs .token") == ["A", "B", "C", "end"]
    assert panel.texts(".outputs .figure:not(.reads)") == [
        f"{step.probability:.2f}" for step in expected.steps
    ]
    assert f"confidence {expected.confidence:.3f}" in panel.one(".figures").text
    assert panel.texts(".nbest tbody th") == [one.output for one in expected.nbest]
    first = [one.token or "end" for one in expected.steps[0].alternatives]
    assert panel.texts(".alternatives .token") == first
    assert "answered in" in page.at("latency").text
    page.until(lambda: "ABC, confidence" in str(page.at("announced").get_property("textContent")))


def test_every_key_asks_and_the_last_one_counts(page: Page) -> None:
    page.type("decade")
    wanted = explain(load_bundle(GOOD), Example("decade")).output
    page.until(lambda: page.first.output == wanted)
    page.at("input").send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE)
    page.until(lambda: page.first.one(".body").get_property("hidden"))
    page.type("bad")
    assert page.first.output == "BAD"


def test_an_answer_that_comes_late_is_dropped(page: Page) -> None:
    # The server answers the first of the next two requests last, and it cannot be canceled.
    page.browser.execute_script("""
        const fetched = window.fetch;
        let count = 0;
        window.late = [];
        window.fetch = async (address, options) => {
            const isFirst = JSON.parse(options.body).input === "a";
            const response = await fetched(address, {...options, signal: undefined});
            if (!isFirst) return response;
            await new Promise((resolve) => setTimeout(resolve, 700));
            window.late.push(count++);
            return response;
        };
    """)
    page.at("input").send_keys(Keys.CONTROL, "a")
    page.at("input").send_keys("a")
    page.at("input").send_keys("b")
    page.until(lambda: page.first.output == "AB")
    page.until(lambda: page.browser.execute_script("return window.late.length") == 2)
    page.settled("ab")
    assert page.first.output == "AB"


def test_pointing_lights_what_is_read_and_what_reads(page: Page) -> None:
    weights = [step.weights for step in explain(load_bundle(GOOD), Example("abc")).steps]
    panel = page.first
    panel.point_at(panel.all(".outputs .chip")[1])
    row = weights[1]
    assert row is not None
    assert panel.numbered(".inputs .chip", "--share") == pytest.approx(row, abs=1e-3)
    assert panel.texts(".inputs .reads") == [f"{w:.2f}" if w >= 0.005 else "<.01" for w in row]
    assert panel.one(".readout").text.replace("\u2068", "").startswith("B")
    panel.point_at(panel.all(".inputs .chip")[2])
    column = [row[2] for row in weights if row is not None]
    assert panel.numbered(".outputs .chip", "--share") == pytest.approx(column, abs=1e-3)
    lit = [n for n, chip in enumerate(panel.all(".outputs .chip")) if "lit" in _classes(chip)]
    assert lit == [n for n, weight in enumerate(column) if weight >= 0.05]
    assert "read by" in panel.one(".readout").text


def test_the_keyboard_lights_and_opens(page: Page) -> None:
    panel = page.first
    page.browser.execute_script("arguments[0].focus()", panel.all(".outputs .chip")[0])
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    chips = panel.all(".outputs .chip")
    assert page.browser.switch_to.active_element == chips[2]
    assert [chip.get_attribute("tabindex") for chip in chips] == ["-1", "-1", "0", "-1"]
    assert "C reads" in panel.one(".readout").text.replace("\u2068", "").replace("\u2069", "")
    page.press(Keys.ENTER)
    assert "Step 3" in panel.one(".step-title").text
    assert "reads" in str(chips[2].get_attribute("aria-label"))


def test_dragging_a_bar_changes_the_output_and_reset_brings_it_back(page: Page) -> None:
    panel = page.first
    panel.open_step(1)
    panel.drag(2, 1.1)  # what if it had looked at c?
    page.until(lambda: panel.output == "ACB")
    page.settled()
    assert panel.numbered(".bars .bar", "aria-valuenow") == [0, 0, 1]
    assert "forced" in _classes(panel.all(".outputs .chip")[1])
    assert [n for n, c in enumerate(panel.all(".outputs .chip")) if "differs" in _classes(c)] != []
    assert "ABC" in panel.one(".what-if .own").text
    assert page.second.one(".what-if").get_property("hidden")
    panel.one(".reset").click()
    assert panel.output == "ABC"
    assert panel.one(".what-if").get_property("hidden")
    assert page.browser.switch_to.active_element.tag_name == "button"


def test_keys_force_a_weight_and_keep_the_focus(page: Page) -> None:
    panel = page.first
    panel.open_step(1)
    slider = panel.all(".bars .bar")[0]
    before = float(str(slider.get_attribute("aria-valuenow")))
    page.browser.execute_script("arguments[0].focus()", slider)
    page.press(Keys.ARROW_UP)
    page.settled()
    assert float(str(slider.get_attribute("aria-valuenow"))) == pytest.approx(
        before + 0.05, abs=1e-3
    )
    assert sum(panel.numbered(".bars .bar", "aria-valuenow")) == pytest.approx(1, abs=1e-3)
    page.press(Keys.ENTER)
    page.until(lambda: panel.output == "AAC")
    assert page.browser.switch_to.active_element == slider


def test_a_cell_of_the_map_makes_a_step_look_there(page: Page) -> None:
    panel = page.first
    cells = panel.all(".map tbody td")
    assert len(cells) == 4 * 3
    cells[1 * 3 + 0].click()
    page.until(lambda: panel.output == "AAC")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)  # the next ones, by keyboard
    page.until(lambda: panel.output == "ACB")
    assert "Step 2" in panel.one(".step-title").text


def test_another_symbol_can_be_written(page: Page) -> None:
    panel = page.first
    panel.all(".alternatives button")[1].click()
    chosen = panel.texts(".alternatives .token")[1]
    page.until(lambda: panel.output.startswith(chosen))
    assert "written" in _classes(panel.all(".outputs .chip")[0])
    panel.one(".undo").click()
    assert panel.output == "ABC"
    panel.one(".symbol").send_keys("D", Keys.ENTER)
    page.until(lambda: panel.output == "DBC")
    panel.open_step(2)
    panel.one(".symbol").send_keys("?", Keys.ENTER)
    page.until(lambda: not panel.one(".error").get_property("hidden"))
    assert "'?'" in panel.one(".error").text
    assert panel.output == "DBC"
    (entry,) = page.browser.get_log("browser")  # the browser also logs the refused request
    assert "status of 400" in entry["message"]
    page.type("cab")  # the forced token belonged to the other input
    assert panel.output == "CAB"
    assert panel.one(".what-if").get_property("hidden")
    assert panel.one(".error").get_property("hidden")


def test_two_runs_are_compared(page: Page, other_run: Path) -> None:
    expected = explain(load_bundle(other_run), Example("abc"))
    assert expected.output != "ABC", "the hasty run is meant to be wrong"
    assert page.second.output == expected.output
    verdict = page.at("verdict").text
    assert verdict.startswith("They differ")
    assert all(name in verdict for name in ("transduction", "hasty", "ABC"))
    outputs = [["A", "B", "C", ""], [step.token for step in expected.steps]]
    common = _common(*map(tuple, outputs))
    for panel, tokens in zip((page.first, page.second), outputs, strict=True):
        marked = [chip for chip in panel.all(".outputs .chip") if "differs" in _classes(chip)]
        assert len(marked) == len(tokens) - common
        assert ("other run" in panel.one(".legend").text) == bool(marked)


def test_a_server_that_is_gone_is_said(page: Page) -> None:
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    page.browser.execute_cdp_cmd("Network.enable", {})
    page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    try:
        page.at("input").send_keys("d")
        page.until(lambda: "does not answer" in page.first.one(".error").text)
    finally:
        online = offline | {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
        page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", online)
        page.browser.get_log("browser")  # the browser also logs that it is offline
    page.type("bad")
    assert page.first.output == "BAD"


def test_it_is_light_or_dark_narrow_or_wide(page: Page, tmp_path: Path) -> None:
    page.first.open_step(1)
    for scheme, theme in (("light", LIGHT), ("dark", DARK)):
        page.browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        for width in (1280, NARROW):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            color = "return getComputedStyle(document.body).backgroundColor"
            assert page.browser.execute_script(color) == "rgb({}, {}, {})".format(
                *channels(theme.paper)
            )
            wide = "return document.documentElement.scrollWidth"
            assert page.browser.execute_script(wide) <= width
            assert page.browser.save_screenshot(str(tmp_path / f"{scheme}_{width}.png"))
    page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_everything_that_can_be_used_has_a_name(page: Page) -> None:
    page.first.drag(1, 0.5)
    page.settled()
    tree = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})
    used = ("button", "slider", "textbox", "gridcell", "combobox", "columnheader", "rowheader")
    nodes = [
        node
        for node in tree["nodes"]
        if not node["ignored"] and node.get("role", {}).get("value") in used
    ]
    assert {"button", "slider", "gridcell"} <= {node["role"]["value"] for node in nodes}
    nameless = [node["role"]["value"] for node in nodes if not node.get("name", {}).get("value")]
    assert nameless == []


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """Return the length of a longest common subsequence."""
    if not first or not second:
        return 0
    if first[0] == second[0]:
        return 1 + _common(first[1:], second[1:])
    return max(_common(first[1:], second), _common(first, second[1:]))


def _classes(element: WebElement) -> list[str]:
    return str(element.get_attribute("class")).split()
