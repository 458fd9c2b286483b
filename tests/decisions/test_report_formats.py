"""What each format holds: which findings and fixes, where they are, how severe, and in which number."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from gclint.code.project import Project
from tests.decisions import reports
from tests.decisions.reports import Folder

_FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab", "junit")
_LOOP = "            hidden_states = layer"
_WIDE = reports.CACHE.replace(_LOOP, '            x = "\U0001f600"; hidden_states = layer')
"""The finding is behind a character that is two units of UTF-16."""


def _codes(folder: Folder, form: str, *options: str) -> list[str]:
    """Return the codes of the findings that a format names, whatever its structure."""
    done = folder.run("--output-format", form, *options)
    if form == "json":
        return [each["code"] for each in done.data if each["code"]]
    if form == "sarif":
        return [each["ruleId"] for each in done.data["runs"][0]["results"]]
    if form == "gitlab":
        return [each["check_name"].split()[0] for each in done.data if each["check_name"] != "gclint"]
    if form == "junit":
        return [each.get("type", "") for each in ElementTree.fromstring(done.out).iter("failure")]
    return re.findall(r"(?m)^(?:::\w+ [^\n]*::)?[\w./]+:\d+:\d+: (?:\w+: )?(GC\d+) ", done.out)


@pytest.mark.parametrize("form", _FORMATS)
@pytest.mark.parametrize(
    ("text", "options", "codes"),
    [
        (reports.GOOD, (), []),
        (reports.SAFE, (), ["GC001"]),
        (reports.two(reports.SAFE, reports.CACHE), (), ["GC001", "GC002"]),
        (reports.SAFE.replace("(nn.Module):", "(nn.Module):  # gclint: ignore", 1), (), []),
        (reports.two(reports.SAFE, reports.UNSAFE), ("--fix",), ["GC001"]),
        (reports.SAFE, ("--fix",), []),
        (reports.two(reports.SAFE, reports.CACHE), ("--quiet",), ["GC001", "GC002"]),
        (reports.BROKEN, (), []),
    ],
)
def test_each_format_has_the_findings_that_are_left(
    folder: Folder, form: str, text: str, options: tuple[str, ...], codes: list[str]
) -> None:
    folder.write({"modeling_otter.py": text})
    assert _codes(folder, form, *options) == codes


@pytest.mark.parametrize("form", ["json", "sarif", "github", "gitlab", "junit"])
@pytest.mark.parametrize(("text", "is_problem"), [(reports.BROKEN, True), (reports.SAFE, False)])
def test_each_format_for_programs_has_the_files_that_cannot_be_read(
    folder: Folder, form: str, text: str, is_problem: bool
) -> None:
    folder.write({"modeling_otter.py": text})
    assert ("syntax error" in folder.run("--output-format", form).out) is is_problem


@pytest.mark.parametrize(
    ("text", "found", "row", "columns", "utf16"),
    [
        (reports.SAFE, "GC001", 6, (1, 17), (1, 17)),
        (reports.CACHE, "GC002", 24, (50, 65), (50, 65)),
        (_WIDE, "GC002", 24, (59, 74), (60, 75)),
    ],
)
def test_columns_count_characters_and_in_sarif_units_of_utf_16(
    folder: Folder, text: str, found: str, row: int, columns: tuple[int, int], utf16: tuple[int, int]
) -> None:
    folder.write({"modeling_otter.py": text})
    (finding,) = folder.run("--output-format", "json").data
    assert finding["code"] == found
    assert (finding["location"], finding["end_location"]) == tuple(
        {"row": row, "column": each} for each in columns
    )
    (result,) = folder.run("--output-format", "sarif").data["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == (row, *utf16)
    # The last column is that of the last character.
    printed = folder.run("--output-format", "github").out
    assert f"line={row},endLine={row},col={columns[0]},endColumn={columns[1] - 1}::" in printed


def test_a_span_of_several_rows_has_no_columns_on_github(folder: Folder) -> None:
    call = "layer(hidden_states, past_key_values)"
    wrapped = "layer(\n hidden_states,\n past_key_values[\n 0\n ],\n )"
    folder.write({"modeling_otter.py": reports.CACHE.replace(call, wrapped)})
    (finding,) = folder.run("--output-format", "json").data
    rows = finding["location"]["row"], finding["end_location"]["row"]
    assert rows[1] == rows[0] + 2
    printed = folder.run("--output-format", "github").out
    assert f",line={rows[0]},endLine={rows[1]}::" in printed


@pytest.mark.parametrize(
    ("text", "applicability", "reason"),
    [(reports.SAFE, "safe", None), (reports.UNSAFE, "unsafe", "`OtterLayer` keeps running statistics")],
)
def test_a_fix_is_in_the_formats_that_can_hold_one(
    folder: Folder, text: str, applicability: str, reason: str | None
) -> None:
    folder.write({"modeling_otter.py": text})
    (finding,) = folder.run("--output-format", "json").data
    # The reason is that of the fix, and not one why there is none.
    assert (finding["fix"]["applicability"], finding["reason"]) == (applicability, None)
    assert (finding["fix"]["reason"] or "").startswith(reason or "")
    assert (finding["fix"]["reason"] is None) is (reason is None)
    (result,) = folder.run("--output-format", "sarif").data["runs"][0]["results"]
    (fix,) = result["fixes"]
    assert fix["properties"] == {"applicability": applicability}
    assert (reason is None) or reason in fix["description"]["text"]
    assert ("unsafe fix: " in result["message"]["text"]) is (reason is not None)


def test_without_a_fix_there_is_a_reason(folder: Folder) -> None:
    folder.write({"modeling_otter.py": f"{reports.GOOD}# gclint: skip\n"})
    (finding,) = folder.run("--output-format", "json").data
    assert (finding["code"], finding["fix"]) == ("GC000", None)
    assert finding["reason"]
    (result,) = folder.run("--output-format", "sarif").data["runs"][0]["results"]
    assert "fixes" not in result
    assert "; no fix: " in result["message"]["text"]


@pytest.mark.parametrize(
    ("text", "succeeded", "status"),
    [(reports.GOOD, True, 0), (reports.SAFE, True, 1), (reports.BROKEN, False, 2)],
)
def test_sarif_says_how_the_run_ended(folder: Folder, text: str, succeeded: bool, status: int) -> None:
    folder.write({"modeling_otter.py": text})
    (invocation,) = folder.run("--output-format", "sarif").data["runs"][0]["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (succeeded, status)
    assert bool(invocation["toolExecutionNotifications"]) is not succeeded


@pytest.mark.parametrize(("number", "is_said"), [(10, False), (11, True)])
def test_github_is_told_that_it_shows_only_ten(folder: Folder, number: int, is_said: bool) -> None:
    names = ("Cat", "Dog", "Cow", "Pig", "Hen", "Fox", "Bee", "Owl", "Elk", "Emu", "Yak")
    text = reports.SAFE.split("\n\n\nclass ")[0] + "\n" + "".join(map(reports.model, names[:number]))
    folder.write({"modeling_zoo.py": text})
    printed = folder.run("--output-format", "github").out
    assert printed.count("::warning ") == number
    said = f"::notice title=gclint::{number} annotations in all: GitHub shows 10"
    assert printed.startswith(said) is is_said


@pytest.mark.parametrize(("form", "is_said"), [("full", True), ("concise", True), ("json", False)])
def test_bases_that_nobody_knows_are_said_to_people(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, form: str, is_said: bool
) -> None:
    # Otherwise it would depend on what is installed.
    monkeypatch.setattr("gclint.network.unknown.unknown_bases", lambda _project: ("SealLayer",))
    folder.write({"modeling_otter.py": reports.GOOD})
    assert ("1 base class is unknown: SealLayer" in folder.run("--output-format", form).out) is is_said


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ((), 1),
        (("--output-format", "json"), 0),
        (("--diff",), 0),
        (("--write-baseline", "known.json"), 0),
    ],
)
def test_bases_are_only_looked_for_where_they_are_said(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], number: int
) -> None:
    asked: list[Project] = []

    def unknown_bases(project: Project) -> tuple[str, ...]:
        asked.append(project)
        return ()

    monkeypatch.setattr("gclint.network.unknown.unknown_bases", unknown_bases)
    folder.write({"modeling_otter.py": reports.GOOD})
    assert folder.run(*options).status == 0
    assert len(asked) == number


@pytest.mark.parametrize(
    ("name", "uri"), [("modeling_a b.py", "modeling_a%20b.py"), ("modeling_a#b.py", "modeling_a%23b.py")]
)
def test_paths_are_uris_in_sarif(folder: Folder, name: str, uri: str) -> None:
    folder.write({name: reports.SAFE})
    (result,) = folder.run("--output-format", "sarif").data["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_paths_are_as_given_in_lists_for_people(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write({".git/HEAD": "", "src/modeling_otter.py": reports.SAFE})
    monkeypatch.chdir(folder.path / "src")
    assert folder.run("--output-format", "concise").out.startswith("modeling_otter.py:6:1: ")


@pytest.mark.parametrize(
    ("other", "is_other"),
    [
        (reports.SAFE.replace("\n\n\nclass OtterLayer", "\n\n\nx = 1\n\n\nclass OtterLayer"), False),
        (reports.SAFE.replace("Otter", "Seal"), True),
    ],
)
def test_fingerprints_survive_moves_and_no_renaming(folder: Folder, other: str, is_other: bool) -> None:
    def marks() -> list[str]:
        return [each["fingerprint"] for each in folder.run("--output-format", "gitlab").data]

    folder.write({"modeling_otter.py": reports.SAFE})
    before = marks()
    folder.write({"modeling_otter.py": other})
    assert (marks() != before) is is_other


@pytest.mark.parametrize("form", ["full", "concise"])
@pytest.mark.parametrize(
    ("text", "options", "is_starred"),
    [
        (reports.SAFE, (), True),
        (reports.UNSAFE, (), False),
        (reports.UNSAFE, ("--unsafe-fixes",), True),
        (f"{reports.GOOD}# gclint: skip\n", ("--unsafe-fixes",), False),
    ],
)
def test_what_fix_would_repair_is_starred(
    folder: Folder, form: str, text: str, options: tuple[str, ...], is_starred: bool
) -> None:
    folder.write({"modeling_otter.py": text})
    line, *_ = folder.run("--output-format", form, *options).out.splitlines()
    assert line.endswith(" [*]") is is_starred


@pytest.mark.parametrize(
    ("files", "counts"),
    [
        ({"modeling_otter.py": reports.GOOD}, ("1", "0", "0")),
        ({"modeling_otter.py": reports.SAFE}, ("1", "1", "0")),
        ({"modeling_otter.py": reports.SAFE, "modeling_x.py": reports.BROKEN}, ("2", "1", "1")),
    ],
)
def test_junit_counts_tests_failures_and_errors(folder: Folder, files: Any, counts: Any) -> None:
    folder.write(files)
    suites = ElementTree.fromstring(folder.run("--output-format", "junit").out)
    assert tuple(suites.get(name) for name in ("tests", "failures", "errors")) == counts
