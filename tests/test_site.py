"""The site: built strictly, whole, and fit to be looked at."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from tests.chromium import NoChromium, chromium
from tests.documented import DOCS, FOLDER, TABLE, pages
from tests.environment import PROJECT
from tests.site import build

_PAGES = [path.relative_to(PROJECT) for path in (*pages(), TABLE, *sorted(FOLDER.iterdir()))]


def test_the_navigation_has_every_page_once() -> None:
    """Without a build: a page that is missing there is an orphan."""
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    assert spec is not None and spec.loader is not None
    settings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(settings)
    named = [f"{path}.md" for entries in settings.NAVIGATION.values() for path in entries]
    first = f"{settings.root_doc}.md"
    written = {path.relative_to(PROJECT).as_posix() for path in (*pages(), TABLE)}
    assert sorted(named) == sorted(written - {first}), "NAVIGATION in docs/conf.py has each page once"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built site; that nothing was wrong is a test of its own."""
    folder = tmp_path_factory.mktemp("documentation") / "site"
    built = build(folder)
    assert (built.returncode, built.stdout) == (0, "")
    return folder


class _Resources(HTMLParser):
    """Collects what a browser loads with a page, and where the sidebar leads."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in {"script", "img", "iframe", "source"}:
            self.loaded.add(values.get("src") or "")
        elif tag == "link" and values.get("rel") in {"stylesheet", "preload", "preconnect", "icon"}:
            self.loaded.add(values.get("href") or "")
        elif tag == "a":
            self.links.add(values.get("href") or "")


def _resources(path: Path) -> _Resources:
    found = _Resources()
    found.feed(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
def test_every_page_is_reached_from_the_first_one(site: Path) -> None:
    linked = {link.partition("#")[0] for link in _resources(site / "index.html").links}
    missing = [each for each in _PAGES if f"{each.with_suffix('').as_posix()}.html" not in linked]
    assert [each.as_posix() for each in missing if each.name != "README.md"] == []


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert [each for each in _resources(path).loaded if re.match(r"(https?:)?//", each)] == [], path.name
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\([\"']?(https?:)?//", text), path.name


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        with chromium() as browser:
            yield browser
    except NoChromium as error:
        pytest.skip(str(error))


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_and_complain_of_nothing(site: Path, browser: Browser, width: int) -> None:
    complaints: list[str] = []

    def only_files(route: Route) -> None:
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            complaints.append(f"asks for {route.request.url}")
            route.abort()

    page = browser.new_page(viewport={"width": width, "height": 844})
    page.route("**/*", only_files)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for each in _PAGES:
        page.goto((site / each.with_suffix(".html")).as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            complaints.append(f"{each} is {wide} pixels too wide")
    page.close()
    assert complaints == []
