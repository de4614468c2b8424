"""Screenshots of pages, in light and in dark mode, taken by headless chromium and reduced to a palette."""

import base64
import io
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageOps
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from benchmarks.browser import open_browser
from benchmarks.started import started
from foveal.views._theme import DARK, LIGHT

SCHEMES = {"light": LIGHT, "dark": DARK}
SECONDS = 90  # that the server or an answer may take on a busy machine
SCALE = 1.5  # pixels of the picture for each pixel of the page, for sharp letters
EXPLORER_WIDTH = 1100
COLORS = 96


@contextmanager
def window(width: int) -> Iterator[Chrome]:
    """Open a browser whose pages have this width."""
    with open_browser() as browser:
        size = {"width": width, "height": 1000, "deviceScaleFactor": SCALE, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        yield browser


def take(browser: Chrome, width: int, before: str, name: str, out: Path) -> None:
    """Write NAME-light.png and NAME-dark.png: the page down to the element of a selector."""
    end = browser.find_element(By.CSS_SELECTOR, before)
    for scheme, theme in SCHEMES.items():
        preference = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})
        top = browser.execute_script(
            "return arguments[0].getBoundingClientRect().top + scrollY", end
        )
        clip = {"x": 0, "y": 0, "width": width, "height": int(top) - 1, "scale": 1}
        options = {"captureBeyondViewport": True, "clip": clip}
        taken = browser.execute_cdp_cmd("Page.captureScreenshot", options)
        with Image.open(io.BytesIO(base64.b64decode(taken["data"]))) as image:
            # This method keeps the accent color, which covers few pixels.
            method = Image.Quantize.MAXCOVERAGE
            framed = ImageOps.expand(image.convert("RGB"), border=2, fill=theme.edge)
            few = framed.quantize(COLORS, method, dither=Image.Dither.NONE)
        few.save(out / f"{name}-{scheme}.png", optimize=True)


def screenshot_page(html: str, width: int, before: str, name: str, out: Path) -> None:
    """Take a page that is one HTML file."""
    with tempfile.TemporaryDirectory() as folder, window(width) as browser:
        path = Path(folder) / "page.html"
        path.write_text(html, encoding="utf-8")
        browser.get(path.as_uri())
        take(browser, width, before, name, out)


def screenshot_explorer(run: Path, word: str, step: int, place: int, out: Path) -> None:
    """Take the explorer after a user typed a word, opened a step and forced it to attend to one position only."""
    with tempfile.TemporaryFile("w+") as errors, window(EXPLORER_WIDTH) as browser:
        words = ["explore", str(run), "--no-browser"]
        with started(words, errors, SECONDS) as (process, address):
            browser.get(address)
            wait = WebDriverWait(browser, SECONDS, poll_frequency=0.05)

            def wait_for(script: str) -> None:
                wait.until(lambda _: browser.execute_script(f"return {script}"))

            answered = "document.querySelector('.panel')?.getAttribute('aria-busy') === 'false'"
            wait_for(answered)
            browser.find_element(By.ID, "input").send_keys(Keys.CONTROL, "a")
            browser.find_element(By.ID, "input").send_keys(word)
            inputs = "[...document.querySelectorAll('.inputs .token')].map((e) => e.textContent)"
            wait_for(f"{inputs}.join('') === '{word}' && {answered}")
            browser.find_elements(By.CSS_SELECTOR, ".outputs .chip")[step].click()
            bar = browser.find_elements(By.CSS_SELECTOR, ".bars .bar")[place]
            browser.execute_script("arguments[0].focus()", bar)
            ActionChains(browser).send_keys(Keys.ENTER).perform()  # all of the weight
            wait_for(f"!document.querySelector('.what-if').hidden && {answered}")
            # Neither the focus nor the mouse highlights a part of the page.
            browser.execute_script("document.activeElement.blur()")
            title = browser.find_element(By.TAG_NAME, "h1")
            ActionChains(browser).move_to_element(title).perform()
            take(browser, EXPLORER_WIDTH, ".best-part", "explorer", out)
            process.send_signal(signal.SIGINT)
            process.wait(SECONDS)
