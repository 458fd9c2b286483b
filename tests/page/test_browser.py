"""The page in a browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from gclint.report.page.building import rendered
from gclint.report.report import Report
from tests.chromium import NoChromium, chromium
from tests.page.sample import HOSTILE, page_of, passing, report_of_repairs, report_of_runs, results_of

pytestmark = pytest.mark.browser

_PHONE = {"width": 390, "height": 844}
Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        with chromium() as browser:
            yield browser
    except NoChromium as error:
        pytest.skip(str(error))


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens reports; whatever a page complains about, or asks of the network, fails the test."""
    complaints: list[str] = []
    contexts = []

    def only_files(route: Route) -> None:
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            complaints.append(f"asks for {route.request.url}")
            route.abort()

    def open_(report: Report, *, width: int = 1280, height: int = 900) -> Page:
        file = tmp_path / "report.html"
        file.write_text(rendered(page_of(report)), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        page = context.new_page()
        page.route("**/*", only_files)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(file.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def _names(page: Page) -> list[str]:
    return page.locator(".matrix tbody tr:visible th a").all_inner_texts()


def test_it_filters(opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_runs(tmp_path))
    shown = page.get_by_role("status")
    expect(shown).to_have_text("3 of 3 classes shown")
    page.get_by_label("Search").fill("pass")
    assert _names(page) == ["Passes"]
    expect(shown).to_have_text("1 of 3 classes shown")
    page.get_by_role("button", name="Reset").click()
    expect(shown).to_have_text("3 of 3 classes shown")
    page.get_by_label("Outcome", exact=True).select_option("failed")
    assert _names(page) == ["Fails"]
    # With a scenario, the outcome is what came of that one.
    page.get_by_label("Scenario", exact=True).select_option(label="dropout")
    assert _names(page) == []
    page.get_by_label("Scenario", exact=True).select_option(label="use_reentrant=True, text")
    assert _names(page) == ["Fails"]
    page.get_by_label("Outcome", exact=True).select_option("")
    page.get_by_label("Scenario", exact=True).select_option("")
    page.get_by_label("Kind").select_option("not run: inputs")
    assert _names(page) == ["NotRun"]


def test_it_shows_the_columns_of_one_group(opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_runs(tmp_path))
    heads = page.locator(".matrix .up:visible")
    expect(heads).to_have_count(5)
    page.get_by_label("Columns").select_option("ddp")
    assert heads.all_inner_texts() == [
        "use_reentrant=False text",
        "use_reentrant=True text",
        "use_reentrant=True images",
    ]
    cells = page.locator(".matrix tbody tr").first.locator("td:visible")
    assert cells.all_inner_texts()[3:] == ["✓", "✗", "\N{EN DASH}"]
    # A scenario that is asked for is shown, whatever its group.
    page.get_by_label("Scenario", exact=True).select_option(label="dropout")
    expect(heads).to_have_count(5)


def test_it_sorts(opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_runs(tmp_path))
    assert _names(page) == ["Fails", "NotRun", "Passes"]
    page.get_by_role("button", name="Class").click()
    page.get_by_role("button", name="Class").click()
    assert _names(page) == ["Passes", "NotRun", "Fails"]
    assert page.get_by_role("columnheader", name="Class").get_attribute("aria-sort") == "descending"


def test_it_opens_a_class(opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_runs(tmp_path))
    page.get_by_role("link", name="Fails").click()
    details = page.get_by_role("dialog", name="Fails")
    expect(details).to_contain_text("The call passes context by keyword.")
    expect(details.locator(".meant")).to_have_text(re.compile(r"x = layer\(x, context=x\)"))
    expect(details).to_contain_text("marked as ready twice")
    expect(details).to_contain_text("A setting that works: use_reentrant=False.")
    details.get_by_role("button", name="Next").click()
    expect(page.get_by_role("dialog", name="NotRun")).to_contain_text("no inputs were found")
    assert page.evaluate("document.activeElement.id") == "next"
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Passes")).to_be_visible()
    # There is no next one, so the focus is on what can be read.
    assert page.evaluate("document.activeElement.id") == "details-title"
    page.go_back()
    page.go_back()
    expect(page.get_by_role("dialog", name="Fails")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("obstacles", [(), ("a gradient is lost",)], ids=["proven", "refused"])
def test_it_shows_the_diff_of_a_repair(obstacles: tuple[str, ...], opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_repairs(tmp_path, *obstacles))
    page.get_by_role("link", name="Model", exact=True).click()
    repair = page.get_by_role("dialog").locator(".repair")
    expect(repair.locator(".added").last).to_have_text(re.compile(r"^\+ +x = layer\(x, x\)"))
    expect(repair.locator(".pill")).to_have_text("refused" if obstacles else "proven")
    colours = [
        repair.locator(kind).last.evaluate("line => getComputedStyle(line).backgroundColor")
        for kind in (".added", ".removed", ".same")
    ]
    assert len(set(colours)) == 3


def test_what_a_model_raises_is_text(opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_runs(tmp_path, HOSTILE))
    page.get_by_role("link", name="Fails").click()
    expect(page.get_by_role("dialog")).to_contain_text("</script><img src=x onerror=")
    assert page.title() != "owned"
    assert page.locator("img").count() == 0


def test_the_keyboard_alone_leads_to_the_details_of_a_class_and_back(opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_runs(tmp_path))
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Fails":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Fails")).to_be_visible()
    assert page.evaluate("document.activeElement.id") == "details-title"
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("document.activeElement.textContent") == "Fails"


def test_a_phone_needs_no_scrolling_to_the_side(opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_runs(tmp_path), **_PHONE)
    width = "[document.documentElement.scrollWidth, document.querySelector('#matrix').scrollWidth]"
    assert all(each <= _PHONE["width"] for each in page.evaluate(width))
    # The column that is asked for is shown beside the outcome.
    assert page.locator(".matrix tbody td:visible").count() == 3
    page.get_by_label("Scenario", exact=True).select_option(label="default")
    assert page.locator(".matrix tbody td:visible").all_inner_texts() == ["failed", "R", "passed", "✓"]
    assert all(each <= _PHONE["width"] for each in page.evaluate(width))
    page.get_by_role("link", name="Fails").click()
    assert page.evaluate("document.querySelector('#details').scrollWidth") <= _PHONE["width"]


def test_of_many_classes_the_first_are_shown(opened: Opened, tmp_path: Path) -> None:
    source = tmp_path / "modeling_many.py"
    source.write_text("")
    many = results_of(*(passing(source, f"Model{number:04}") for number in range(400)))
    page = opened(replace(report_of_runs(tmp_path), runs=many, weighed=None, findings=()))
    assert len(_names(page)) == 150
    expect(page.get_by_role("status")).to_have_text("400 of 400 classes shown")
    page.get_by_role("button", name="Show 150 more").click()
    assert len(_names(page)) == 300
    page.get_by_role("button", name="Show all 400").click()
    assert len(_names(page)) == 400
    page.get_by_label("Search").fill("model0399")
    assert _names(page) == ["Model0399"]


def test_it_has_landmarks_and_tables_with_headers(opened: Opened, tmp_path: Path) -> None:
    page = opened(report_of_runs(tmp_path))
    for role in ("banner", "main", "search", "status"):
        expect(page.get_by_role(role)).to_have_count(1)
    table = page.locator(".matrix")
    expect(table.locator("tbody th[scope=row]")).to_have_count(3)
    expect(table.locator("thead th[scope=colgroup]")).to_have_count(2)
