"""The explorer's page as a user sees it: its visible contents, and mouse and keyboard actions."""

from typing import Any

from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

SECONDS = 60


class Panel:
    """One run on the page."""

    def __init__(self, browser: Chrome, number: int) -> None:
        self.browser, self._number = browser, number

    def all(self, selector: str) -> list[WebElement]:
        root = self.browser.find_elements(By.CSS_SELECTOR, ".panel")[self._number]
        return root.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        (found,) = self.all(selector)
        return found

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    @property
    def output(self) -> str:
        return self.one("output.text").text

    def numbered(self, selector: str, name: str) -> list[float]:
        """Return an attribute or a custom property of some elements, as numbers."""
        script = (
            "return arguments[0].map((e) => Number(arguments[1].startsWith('--')"
            " ? e.style.getPropertyValue(arguments[1]) : e.getAttribute(arguments[1])))"
        )
        return self.browser.execute_script(script, self.all(selector), name)

    def open_step(self, step: int) -> None:
        self.all(".outputs .chip")[step].click()

    def point_at(self, element: WebElement) -> None:
        ActionChains(self.browser).move_to_element(element).perform()

    def drag(self, bar: int, share: float) -> None:
        """Grab a bar near its bottom and drag it up to a fraction of its height."""
        track = self.all(".bars .track")[bar]
        height = track.size["height"]
        ActionChains(self.browser).move_to_element_with_offset(
            track, 0, int(0.45 * height)
        ).click_and_hold().move_by_offset(0, -int((share - 0.05) * height)).release().perform()


class Page:
    """A newly loaded page."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self.browser = browser
        browser.get(address)
        self.until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".panel")) == 2)
        self.first, self.second = Panel(browser, 0), Panel(browser, 1)

    def until(self, condition: Any) -> None:
        WebDriverWait(self.browser, SECONDS, poll_frequency=0.05).until(lambda _: condition())

    def at(self, name: str) -> WebElement:
        return self.browser.find_element(By.ID, name)

    def type(self, text: str) -> None:
        """Replace the input key by key, and wait until both runs have answered."""
        self.at("input").send_keys(Keys.CONTROL, "a")
        self.at("input").send_keys(text)
        self.settled(text)

    def settled(self, text: str | None = None) -> None:
        """Wait until no request is pending (and the input strip shows the text)."""
        script = "return document.querySelectorAll('.panel:not([aria-busy=false])').length"
        self.until(lambda: self.browser.execute_script(script) == 0)
        if text is not None:
            self.until(lambda: "".join(self.first.texts(".inputs .token")) == text)
            self.until(lambda: "".join(self.second.texts(".inputs .token")) == text)

    def press(self, *keys: str) -> None:
        """Press keys one after the other on the focused element."""
        chain = ActionChains(self.browser)
        for key in keys:
            chain.send_keys(key)
        chain.perform()
