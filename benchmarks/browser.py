"""Debian's headless Chromium with a separate profile, controlled by its chromium-driver."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from selenium import webdriver

SECONDS = 90  # timeout of a page or a script on a busy machine
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the sandbox does not work in a container
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
    """Chromium or its driver is not installed."""


@contextmanager
def open_browser() -> Iterator[webdriver.Chrome]:
    """Open a browser; the end of the block closes it and deletes its profile."""
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
