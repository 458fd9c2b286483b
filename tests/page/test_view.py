"""What stands on the page, before it is HTML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gclint.report.page import matrix
from gclint.report.page.building import Page, rendered
from gclint.report.page.classes import Row, commands, shares
from gclint.report.page.excerpts import Excerpt
from gclint.report.verification import by_group, fates
from gclint.verify.worker.protocol import ClassResult
from tests.page.sample import (
    ENVIRONMENT,
    failing,
    page_of,
    passing,
    report_of_repairs,
    report_of_runs,
    results_of,
    verdict,
)


def _row(page: Page, name: str) -> Row:
    return next(row for row in page.rows if row.result.name == name)


def _first_site(ran: Row) -> Excerpt:
    """Return the place of the only failure."""
    (story,) = ran.stories
    (place,) = story.first.places
    return ran.sources.excerpt(place)


def test_rows_begin_with_what_fails(tmp_path: Path) -> None:
    page = page_of(report_of_runs(tmp_path))
    assert [(row.result.name, row.outcome) for row in page.rows] == [
        ("Fails", "failed"),
        ("NotRun", "not run"),
        ("Passes", "passed"),
    ]
    assert page.outcomes == (("failed", 1), ("not run", 1), ("passed", 1))


def test_what_to_do_comes_first_and_is_counted(tmp_path: Path) -> None:
    page = page_of(report_of_runs(tmp_path))
    assert page.answers == [
        ("one process", "Use `use_reentrant=False`", "partly", ("Fails",)),
        ("one process", "Not known: it was not run", "not run", ("NotRun",)),
        ("one process", "Nothing: it works", "works", ("Passes",)),
        ("ddp", "Use `use_reentrant=False`", "partly", ("Fails",)),
    ]
    text = rendered(page)
    assert text.index("What to do") < text.index("Models</h2>") < text.index("What was run, and where</h2>")
    assert '<span class="pill settled">failed</span>' in text
    # Nothing is red that has a setting which works.
    assert 'class="fails"' not in text.partition("<tbody>")[2].partition('<p class="legend">')[0]


def test_scenarios_and_set_ups_are_columns(tmp_path: Path) -> None:
    page = page_of(report_of_runs(tmp_path))
    assert [(each.group, each.title, each.detail) for each in page.columns] == [
        ("scenarios", "default", ""),
        ("scenarios", "dropout", ""),
        ("ddp", "use_reentrant=False", "text"),
        ("ddp", "use_reentrant=True", "text"),
        ("ddp", "use_reentrant=True", "images"),
    ]
    assert page.groups == (("scenarios", 2), ("ddp", 3))
    failed, unknown, passed = (
        [(each.state, each.text) for each in matrix.cells(row.result, page.columns)] for row in page.rows
    )
    assert failed == [
        ("partly", "R"),
        ("works", "✓N"),
        ("works", "✓"),
        # Another setting works, so that it is not as bad.
        ("partly", "✗"),
        ("not run", "\N{EN DASH}"),
    ]
    assert unknown == [("none", "")] * 5
    assert passed == [("works", "✓"), *[("none", "")] * 4]


def test_a_cell_says_in_words_what_it_shows_in_a_letter(tmp_path: Path) -> None:
    page = page_of(report_of_runs(tmp_path))
    labels = [cell.label for cell in matrix.cells(page.rows[0].result, page.columns)]
    assert labels == [
        "fails reentrant: a gradient is lost",
        "works non-reentrant; the other mode was not run",
        "works",
        "fails: marked as ready twice: it raises",
        "not run: no images: it takes none",
    ]


def _cells(result: ClassResult) -> list[tuple[str, str]]:
    return [(each.state, each.text) for each in matrix.cells(result, matrix.columns([result]))]


def test_what_fails_in_both_modes_is_left_with_none() -> None:
    wrong = (verdict("default", "non-reentrant", "x"), verdict("default", "reentrant", "x"))
    assert _cells(ClassResult("m.py", "M", "failed", scenarios=("default",), verdicts=wrong)) == [
        ("fails", "N R")
    ]


def test_what_fails_without_checkpointing_fails_whatever_the_modes_do() -> None:
    failure = replace(failing(Path("m.py"), "M").failures[0], mode="plain", scenario="frozen base")
    runs = (verdict("frozen base", "non-reentrant"), verdict("frozen base", "reentrant"))
    result = ClassResult(
        "m.py", "M", "failed", scenarios=("frozen base",), failures=(failure,), verdicts=runs
    )
    assert _cells(result) == [("fails", "P")]


def test_the_options_of_configurations_share_a_column() -> None:
    names = ("option legacy=False", "option legacy=False, cache object", "default")
    runs = (verdict(names[0], "non-reentrant"), verdict(names[1], "non-reentrant", "x"))
    result = ClassResult("m.py", "M", "failed", scenarios=names, verdicts=runs)
    assert [each.title for each in matrix.columns([result])] == ["default", "options"]
    assert _cells(result) == [("not run", "\N{EN DASH}"), ("fails", "N")]


def test_a_class_shows_the_lines_of_its_failing_calls(tmp_path: Path) -> None:
    (story,) = _row(page_of(report_of_runs(tmp_path)), "Fails").stories
    site = _first_site(_row(page_of(report_of_runs(tmp_path)), "Fails"))
    assert [(number, is_meant) for number, _, is_meant in site.lines] == [
        (5, False),
        (6, False),
        (7, True),
        (8, False),
    ]
    assert site.lines[2][1] == "        x = layer(x, context=x)"
    assert [*story.conditions] == ["reentrant default"]
    assert story.first.parameters == ("a.weight", "b.weight")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda path: path.unlink(), "the file cannot be read here"),
        (lambda path: path.write_text("new"), "the file has changed since it was run"),
    ],
)
def test_a_source_that_is_gone_or_another_is_not_shown(spoil: object, why: str, tmp_path: Path) -> None:
    report = report_of_runs(tmp_path)
    assert callable(spoil)
    spoil(tmp_path / "modeling_toy.py")
    report = replace(report, findings=(), weighed=None)
    site = _first_site(_row(page_of(report), "Fails"))
    assert (site.lines, site.missing) == ((), why)
    assert site.place.endswith("modeling_toy.py:7")


def test_a_class_says_what_to_use_and_how_to_repeat_it(tmp_path: Path) -> None:
    page = page_of(report_of_runs(tmp_path))
    result = _row(page, "Fails").result
    text = rendered(page)
    assert "<strong>A setting that works:</strong> use_reentrant=False." in text
    assert '<h3>Training with ddp</h3>\n<p class="box good">Under DDP, use <code>use_reentrant=False' in text
    ((_, setups),) = by_group(result.setups).items()
    assert [(each[0].outcome, [matrix.spelled(setup) for setup in each]) for each in fates(setups)] == [
        ("works", ["use_reentrant=False, text"]),
        ("fails", ["use_reentrant=True, text"]),
        ("not run", ["use_reentrant=True, images"]),
    ]
    assert "<h4>fails: marked as ready twice</h4>" in text
    (_, command), *_ = commands(result, page.repeat)
    assert command.startswith("gclint verify --scenario ddp ")
    assert command.endswith("modeling_toy.py")
    assert [(each.mode, share) for each, share in shares(result)] == [("plain", 1.0), ("non-reentrant", 0.25)]
    assert '<th scope="row">without checkpointing</th>' in text
    assert "2 KiB <small>25%</small>" in text


def test_what_would_repair_a_failure_is_shown_with_its_command(tmp_path: Path) -> None:
    (repair,) = _row(page_of(report_of_runs(tmp_path)), "Fails").repairs
    assert repair.outcome == "suggested"
    assert "gclint --fix --select GC003" in repair.command
    assert [text for kind, text in repair.diff if kind in ("added", "removed")] == [
        "-        x = layer(x, context=x)",
        "+        x = layer(x, x)",
    ]


def test_a_proven_repair_is_shown_with_its_diff_and_proof(tmp_path: Path) -> None:
    page = page_of(report_of_repairs(tmp_path))
    (row,), (repair,) = page.rows, page.repairs
    assert (row.outcome, repair.outcome) == ("repaired", "proven")
    assert row.repairs == (repair,)
    assert repair.runs[0][0].startswith("Model: failed before, passed after")
    assert repair.runs[0][1].startswith("before, reentrant, default: a gradient is lost")
    assert [text for kind, text in repair.diff if kind == "added"] == ["+        x = layer(x, x)"]
    # The file holds the repaired text by now; the call is shown as it was.
    assert row.before
    assert _first_site(row.before).lines[2][1] == "        x = layer(x, context=x)"
    assert not row.stories
    assert {"torch", "transformers", "Device"} <= {name for name, _ in page.facts}


def test_a_refused_repair_says_why_and_leaves_the_class_as_it_was(tmp_path: Path) -> None:
    page = page_of(report_of_repairs(tmp_path, "a gradient is lost"))
    assert (page.rows[0].outcome, page.repairs[0].outcome) == ("failed", "refused")
    assert page.repairs[0].reasons[0] == "not proven: a gradient is lost"
    assert any(kind == "added" for kind, _ in page.repairs[0].diff)


def test_what_is_left_after_a_repair_is_shown_in_the_repaired_text(tmp_path: Path) -> None:
    (row,) = page_of(report_of_repairs(tmp_path, is_whole=False)).rows
    assert row.outcome == "failed"
    assert row.before
    assert _first_site(row).lines[2][1] == "        x = layer(x, x)"
    assert _first_site(row.before).lines[2][1] == "        x = layer(x, context=x)"


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    sources = [tmp_path / name / "modeling_toy.py" for name in "ab"]
    for source in sources:
        source.parent.mkdir()
        source.write_text("")
    results = results_of(*(passing(source, "Model") for source in sources))
    page = page_of(replace(report_of_runs(tmp_path), runs=results, weighed=None, findings=()))
    assert len({row.key for row in page.rows}) == 2


def test_what_was_run_and_where_is_said(tmp_path: Path) -> None:
    facts = dict(page_of(report_of_runs(tmp_path)).facts)
    assert facts["Command"] == "gclint verify ."
    assert facts["Made"] == "2026-01-02 03:04 UTC"
    assert (facts["torch"], facts["Device"]) == (ENVIRONMENT.torch, ENVIRONMENT.device)
    assert facts["Isolation"] == "no network"


def test_what_could_not_be_run_says_why(tmp_path: Path) -> None:
    row = _row(page_of(report_of_runs(tmp_path)), "NotRun")
    assert (row.result.reason, row.kinds) == ("no inputs were found", ("not run: inputs",))
