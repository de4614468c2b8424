"""The web page of the server in a real browser."""

import contextlib
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from selenium.webdriver.support.wait import WebDriverWait

from benchmarks.browser import BrowserMissingError, open_browser
from tests.serving.conftest import GOOD, SECONDS, TOKEN, Server, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    with contextlib.ExitStack() as stack:
        try:
            browser = stack.enter_context(open_browser())
        except BrowserMissingError as error:
            pytest.skip(str(error))
        yield browser


def shown(browser: Chrome, selector: str, text: str) -> None:
    """Wait until an element has this text."""
    WebDriverWait(browser, SECONDS, poll_frequency=0.05).until(
        lambda _: [e.text for e in browser.find_elements(By.CSS_SELECTOR, selector)][:1] == [text]
    )


def test_a_person_asks_each_model_and_sees_its_attention(server: Server, chromium: Chrome) -> None:
    chromium.get(server.address)
    shown(chromium, ".panel .name", "transduction")
    field = chromium.find_element(By.ID, "input")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("abc")
    shown(chromium, "output.text", "ABC")
    assert len(chromium.find_elements(By.CSS_SELECTOR, ".map tbody td")) >= 9
    Select(chromium.find_element(By.ID, "model")).select_by_visible_text("tagging")
    shown(chromium, ".panel .name", "tagging")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("the old ship")
    shown(chromium, "output.text", "DET ADJ NOUN")
    assert [entry["message"] for entry in chromium.get_log("browser")] == []


def test_a_token_is_asked_for(tmp_path_factory: pytest.TempPathFactory, chromium: Chrome) -> None:
    folder = tmp_path_factory.mktemp("page")
    (folder / "tokens").write_text(TOKEN)
    with serving(folder, GOOD, "--tokens", folder / "tokens") as server:
        chromium.get(server.address)
        token = chromium.find_element(By.ID, "token")
        WebDriverWait(chromium, SECONDS).until(lambda _: token.is_displayed())
        token.send_keys(TOKEN, Keys.ENTER)
        shown(chromium, ".panel .name", "transduction")
        assert not token.is_displayed()
