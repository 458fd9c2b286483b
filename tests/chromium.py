"""Debian's Chromium, driven by Playwright, which brings none of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright


class NoChromium(Exception):
    """The message says how to get it."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a browser without a window.

    Raises:
        NoChromium: it is not installed.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise NoChromium("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
