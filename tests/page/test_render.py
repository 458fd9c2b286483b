"""The page as HTML, without a browser."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from gclint.report.page.building import rendered
from gclint.verify.results import Results
from tests.page.sample import HOSTILE, page_of, report_of_runs


class _Elements(HTMLParser):
    """Collects the names of elements and attributes; knows, as browsers do, that scripts hold text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_it_is_one_file_that_asks_for_nothing(tmp_path: Path) -> None:
    elements = _Elements(rendered(page_of(report_of_runs(tmp_path)))).found
    links = [attributes[name] for _, attributes in elements for name in ("src", "href") if name in attributes]
    assert links
    assert all(link is not None and link.startswith("#") for link in links)
    assert not {"link", "img", "iframe", "object", "base"} & {tag for tag, _ in elements}


def test_only_its_own_script_may_run(tmp_path: Path) -> None:
    text = rendered(page_of(report_of_runs(tmp_path, HOSTILE)))
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text


def test_what_comes_from_models_is_escaped(tmp_path: Path) -> None:
    calm, hostile = (
        _Elements(rendered(page_of(report_of_runs(tmp_path, message)))).found for message in ("x", HOSTILE)
    )
    assert [tag for tag, _ in calm] == [tag for tag, _ in hostile]
    assert not any(name.startswith("on") for _, attributes in hostile for name in attributes)


def test_words_in_backticks_are_code(tmp_path: Path) -> None:
    text = rendered(page_of(report_of_runs(tmp_path)))
    assert "The call passes <code>context</code> by keyword." in text


def test_a_run_of_nothing_has_a_page(tmp_path: Path) -> None:
    report = replace(
        report_of_runs(tmp_path), runs=Results(problem="nothing runs"), weighed=None, findings=()
    )
    text = rendered(page_of(report))
    assert "<strong>Error:</strong> nothing runs" in text
    assert "<table" not in text
