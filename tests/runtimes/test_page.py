"""The page of one model: one HTML file that answers from a disk, without a network."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from benchmarks.browser import BrowserMissingError, open_browser
from foveal.cli._export import command
from foveal.errors import ExportError
from foveal.export import write_page
from foveal.views._theme import DARK, LIGHT, channels
from tests.runtimes.exports import Exported, export_inflection, export_variant

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

SECONDS = 30
TITLE = "Words & <b>sounds</b>"
SIZES = {"wide": (1280, 900), "narrow": (400, 800)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    """A browser without a network."""
    try:
        with open_browser() as opened:
            opened.execute_cdp_cmd("Network.enable", {})
            conditions = {
                "offline": True,
                "latency": 0,
                "downloadThroughput": 0,
                "uploadThroughput": 0,
            }
            opened.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)
            yield opened
    except BrowserMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=["latent hard", "segment", "inflection"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A model with a page."""
    folder = tmp_path_factory.mktemp("page") / "export"
    if request.param == "inflection":
        return export_inflection(folder)
    return export_variant(request.param, folder, plain=True)


@pytest.fixture
def page(exported: Exported, browser: Chrome, tmp_path: Path) -> Chrome:
    """The page, ready to answer."""
    write_page(exported.folder, tmp_path / "page.html", TITLE)
    return opened(browser, tmp_path / "page.html")


def opened(browser: Chrome, file: Path) -> Chrome:
    browser.get_log("browser")  # of the page before
    browser.get(file.as_uri())
    wait(browser, lambda: attribute(browser, "answer", "aria-busy") == "false")
    return browser


def wait(browser: Chrome, condition: Callable[[], Any]) -> None:
    WebDriverWait(browser, SECONDS, poll_frequency=0.02).until(lambda _: condition())


def text(browser: Chrome, name: str) -> str:
    return browser.execute_script("return document.getElementById(arguments[0]).textContent", name)


def attribute(browser: Chrome, element: str, name: str) -> str | None:
    return browser.find_element(By.ID, element).get_attribute(name)


def enter(browser: Chrome, source: str, features: str = "") -> None:
    """Fill the form; the answer to the last input is removed first."""
    script = """
        document.getElementById("output").textContent = "\\0";
        document.getElementById("failure").hidden = true;
        document.getElementById("features").value = arguments[1];
        document.getElementById("input").value = arguments[0];
        document.getElementById("input").dispatchEvent(new Event("input"));
    """
    browser.execute_script(script, source, features)
    failed = browser.find_element(By.ID, "failure")
    wait(browser, lambda: text(browser, "output") != "\0" or failed.is_displayed())


def rows(browser: Chrome, selector: str) -> list[list[str]]:
    script = (
        "return Array.from(document.querySelectorAll(arguments[0]), (row) =>"
        " Array.from(row.children, (cell) => cell.textContent))"
    )
    return browser.execute_script(script, selector)


def test_the_page_answers_like_python(exported: Exported, page: Chrome) -> None:
    assert text(page, "failure") == ""
    for source, answer in zip(exported.sources, exported.answers(), strict=True):
        if not source.text:
            continue  # the page waits for an input
        enter(page, source.text, source.features)
        assert text(page, "output") == (answer.output or "(empty)")
        assert text(page, "confidence") == f"{100 * answer.confidence:.1f} % confident"
        assert [row[0] for row in rows(page, "#nbest tr")] == [
            each.output or "(empty)" for each in answer.nbest[:5]
        ]
        for row, each in zip(rows(page, "#nbest tr"), answer.nbest, strict=False):
            assert float(row[1].removesuffix(" %")) == pytest.approx(
                100 * each.confidence, abs=0.06
            )
            assert float(row[2]) == pytest.approx(each.score, abs=6e-4)
        assert answer.attention is not None
        if not answer.attention.targets:
            continue
        weights = page.execute_script(
            "return Array.from(document.querySelectorAll('#map tbody tr'), (row) =>"
            " Array.from(row.querySelectorAll('td'), (cell) => Number(cell.style.getPropertyValue('--share'))))"
        )
        assert len(weights) == len(answer.attention.targets)
        for shown, right in zip(weights, answer.attention.weights, strict=True):
            assert shown == pytest.approx(list(right), abs=2e-4)


def test_the_page_needs_nothing_else(page: Chrome) -> None:
    loaded = page.execute_script(
        "return performance.getEntriesByType('resource').map((e) => e.name)"
    )
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert page.get_log("browser") == []  # no violation of the policy, no error
    source = page.page_source
    assert "unsafe" not in source[: source.index("<body")]
    assert not re.search(r"https?://", source)
    (policy,) = page.find_elements(By.CSS_SELECTOR, 'meta[http-equiv="Content-Security-Policy"]')
    assert (policy.get_attribute("content") or "").startswith(
        "default-src 'none'; script-src 'sha256-"
    )


def test_texts_are_not_markup(page: Chrome) -> None:
    assert page.title == TITLE
    assert text(page, "failure") == ""
    enter(page, "<img src=x onerror=document.title='!'>")
    assert page.title == TITLE
    assert page.find_elements(By.CSS_SELECTOR, "main img, main script, h1 b") == []


def test_a_long_input_is_refused_and_a_short_one_answered_again(
    exported: Exported, page: Chrome
) -> None:
    enter(page, "a" * 500)
    assert "a source may have at most 200 tokens, got 50" in text(page, "failure")
    assert page.find_element(By.ID, "failure").is_displayed()
    assert attribute(page, "input", "aria-invalid") == "true"
    source = exported.sources[0]
    enter(page, source.text, source.features)
    assert not page.find_element(By.ID, "failure").is_displayed()
    assert text(page, "output") == (exported.answers()[0].output or "(empty)")


def test_parts_have_names_and_examples_can_be_chosen(exported: Exported, page: Chrome) -> None:
    script = "return Array.from(document.querySelectorAll('input, textarea'), (field) => field.labels.length)"
    assert page.execute_script(script) == [1, 1]
    regions = page.find_elements(By.CSS_SELECTOR, "[role=region], [role=group], section")
    assert regions
    assert all(each.accessible_name for each in regions if each.is_displayed())
    button = page.find_elements(By.CSS_SELECTOR, "#examples button")[1]
    button.click()
    chosen = exported.sources[1]
    wait(page, lambda: attribute(page, "input", "value") == chosen.text)
    right = exported.answers()[1].output or "(empty)"
    wait(page, lambda: text(page, "output") == right)
    assert text(page, "announced").startswith(right)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_follows_the_scheme(size: str, scheme: str, page: Chrome) -> None:
    width, height = SIZES[size]
    scale = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    preference = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", scale)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", preference)
    try:
        enter(page, "abcabcabcabcabcabcabcabcabcabc")
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        theme = DARK if scheme == "dark" else LIGHT
        color = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert color == "rgb({}, {}, {})".format(*channels(theme.paper))
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_damaged_page_shows_an_error(exported: Exported, browser: Chrome, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_page(exported.folder, file, TITLE)
    content = file.read_text(encoding="utf-8")
    place = content.index("</script>", content.index('id="model"')) - 200
    other = "A" if content[place] != "A" else "B"
    file.write_text(content[:place] + other + content[place + 1 :], encoding="utf-8")
    opened(browser, file)
    assert "wrong sha256 checksum" in text(browser, "failure")
    assert not browser.find_element(By.ID, "input").is_enabled()


def test_the_command_writes_a_page(exported: Exported, tmp_path: Path) -> None:
    bundle = exported.folder.with_name(exported.folder.name + ".run")
    words = tmp_path / "words.txt"
    words.write_text("bad\tV\ncafe\tV\n", encoding="utf-8")
    command(bundle, out=tmp_path / "export", page=tmp_path / "page.html", check=words)
    assert (tmp_path / "export/model.plain").is_file()
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<title>{bundle.name}</title>" in content
    (tmp_path / "export/model.plain").unlink()
    with pytest.raises(ExportError, match=r"a page needs model\.plain.*--plain"):
        write_page(tmp_path / "export", tmp_path / "page.html", TITLE)
