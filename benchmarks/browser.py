"""Debian's headless Chromium with a separate profile, controlled by its chromium-driver."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from selenium import webdriver

SECONDS = 90  # that a page or a script may take on a busy machine
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # which a container does not allow
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


class BrowserMissingError(RuntimeError):
    """There is no chromium, or no driver of it."""


@contextmanager
def open_browser() -> Iterator[webdriver.Chrome]:
    """A browser that ends, and whose profile goes, with the block."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        raise BrowserMissingError(
            "chromium and chromedriver are needed; on Debian: apt-get install chromium chromium-driver"
        )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        try:
            started.set_page_load_timeout(SECONDS)
            started.set_script_timeout(SECONDS)
            yield started
        finally:
            started.quit()
