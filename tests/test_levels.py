"""The levels of findings: the same in every format, given by the settings, and what they mean for a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from lsprotocol import types

from gclint.level import Level
from gclint.rule import Rule, selected_rules
from gclint.server.session import Session
from gclint.settings import Settings, load_settings
from tests.decisions import reports
from tests.decisions.reports import Folder

_NOTE = f"{reports.GOOD}# gclint: ignore\n"
_BY_LEVEL = {"error": reports.CACHE, "warning": reports.SAFE, "note": _NOTE}


@pytest.mark.parametrize(
    ("level", "github", "gitlab", "editor"),
    [
        ("error", "error", "major", types.DiagnosticSeverity.Error),
        ("warning", "warning", "minor", types.DiagnosticSeverity.Warning),
        ("note", "notice", "info", types.DiagnosticSeverity.Information),
    ],
)
@pytest.mark.parametrize("is_set", [False, True])
def test_every_format_shows_the_same_level(
    folder: Folder, level: str, github: str, gitlab: str, editor: types.DiagnosticSeverity, is_set: bool
) -> None:
    text = _BY_LEVEL["warning" if is_set and level != "warning" else level]
    table = f'[tool.gclint.levels]\nmissing-checkpointing-layer = "{level}"\n' if is_set else ""
    folder.write({"modeling_otter.py": text, "pyproject.toml": table})
    for form in ("full", "concise"):
        assert re.match(rf"modeling_otter\.py:\d+:\d+: {level}: GC", folder.run("--output-format", form).out)
    assert [each["level"] for each in folder.run("--output-format", "json").data] == [level]
    (result,) = folder.run("--output-format", "sarif").data["runs"][0]["results"]
    assert result["level"] == level
    assert folder.run("--output-format", "github").out.startswith(f"::{github} title=gclint (GC")
    assert [each["severity"] for each in folder.run("--output-format", "gitlab").data] == [gitlab]
    (case,) = ElementTree.fromstring(folder.run("--output-format", "junit").out).iter("testcase")
    (inside,) = case
    assert f": {level}: GC" in (inside.text or "")
    assert inside.tag == ("system-out" if level == "note" else "failure")
    session = Session(_settings_at, "utf-16", [Path.cwd()])
    while session.is_busy:
        session.work()
    (published,) = session.news()
    assert [each.severity for each in published.diagnostics] == [editor]


def _settings_at(path: Path) -> tuple[Settings, Sequence[Rule]]:
    from gclint.cli import vocabulary

    settings = load_settings(path, vocabulary())
    return settings, selected_rules(settings)


@pytest.mark.parametrize("level", ["error", "warning", "note"])
@pytest.mark.parametrize("fail_level", [None, "error", "warning", "note"])
@pytest.mark.parametrize("where", ["option", "setting"])
def test_a_run_fails_from_a_level_on(folder: Folder, level: str, fail_level: str | None, where: str) -> None:
    order = ["error", "warning", "note"]
    fails = order.index(level) <= order.index(fail_level or "warning")
    table = f'[tool.gclint]\nfail-level = "{fail_level}"\n' if fail_level and where == "setting" else ""
    options = ["--fail-level", fail_level] if fail_level and where == "option" else []
    folder.write({"modeling_otter.py": _BY_LEVEL[level], "pyproject.toml": table})
    assert folder.run(*options).status == int(fails)
    assert folder.run(*options, "--exit-zero").status == 0
    junit = ElementTree.fromstring(folder.run(*options, "--output-format", "junit").out)
    assert junit.get("failures") == str(int(fails))


def test_a_note_among_errors_does_not_hide_them(folder: Folder) -> None:
    folder.write({"modeling_a.py": _NOTE, "modeling_b.py": reports.CACHE})
    done = folder.run()
    assert done.status == 1
    assert done.out.splitlines()[-1] == "Found 2 findings: 1 error, 1 note (2 fixable with --fix)."


def test_known_findings_make_no_run_fail_whatever_their_level(folder: Folder) -> None:
    folder.write({"modeling_a.py": reports.CACHE, "modeling_b.py": reports.SAFE})
    assert folder.run("--write-baseline", "known.json", "--fail-level", "note").status == 0
    assert folder.run("--baseline", "known.json", "--fail-level", "note").status == 0
    # A level is no part of what identifies a finding.
    assert folder.run("--baseline", "known.json", "--levels", "ALL:error").status == 0
    folder.write({"modeling_b.py": reports.GOOD})
    assert folder.run("--baseline", "known.json", "--fail-level", "error").status == 1


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ("GC002:note", Level.NOTE),
        ("gc002: Warning", Level.WARNING),
        ("positional-cache:note", Level.NOTE),
        ("ALL:note,GC:warning", Level.WARNING),
        ("GC00:note,GC0:warning", Level.NOTE),
        ("GC002:note,GC00:warning", Level.NOTE),
        ("GC001:note", Level.ERROR),
    ],
)
def test_the_longest_selector_that_fits_counts(folder: Folder, levels: str, expected: Level) -> None:
    folder.write({"modeling_otter.py": reports.CACHE})
    (finding,) = folder.run("--levels", levels, "--output-format", "json").data
    assert finding["level"] == expected.value


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--levels", "GC999:note"), "--levels: there is no rule 'GC999'"),
        (("--levels", "positional-cash:note"), "did you mean 'positional-cache'?"),
        (("--levels", "GC001:fatal"), "there is no level 'fatal'; choose from error, warning, note"),
        (("--levels", "GC001"), "'GC001' is not of the form RULE:LEVEL, such as 'GC001:note'"),
        (("--levels", ":note"), "the name of a rule is empty"),
        (("--fail-level", "never"), "there is no level 'never'; choose from error, warning, note"),
    ],
)
def test_what_names_no_rule_or_no_level_is_refused(
    folder: Folder, options: tuple[str, ...], complaint: str
) -> None:
    folder.write({"modeling_otter.py": reports.CACHE})
    done = folder.run(*options)
    assert done.status == 2
    assert complaint in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("level", "colour"), [("error", "1;31"), ("warning", "1;33"), ("note", "1;36")], ids=str
)
def test_colours_tell_levels_apart(
    folder: Folder, level: str, colour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write({"modeling_otter.py": _BY_LEVEL[level]})
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert f"\x1b[{colour}m{level}: GC" in folder.run().out
