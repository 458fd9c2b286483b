"""What is counted for people: findings and fixes in the last lines, rules, and folders without models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.decisions import reports
from tests.decisions.reports import Folder

_PAIR = {"modeling_otter.py": reports.SAFE, "modeling_seal.py": reports.UNSAFE.replace("Otter", "Seal")}


@pytest.mark.parametrize(
    ("files", "options", "summary"),
    [
        ({"modeling_a.py": reports.GOOD, "modeling_b.py": reports.GOOD}, (), "No findings in 2 files."),
        ({"modeling_otter.py": reports.SAFE}, (), "Found 1 finding: 1 warning (1 fixable with --fix)."),
        (
            {"modeling_otter.py": reports.two(reports.SAFE, reports.CACHE)},
            (),
            "Found 2 findings: 1 error, 1 warning (2 fixable with --fix).",
        ),
        (_PAIR, ("--unsafe-fixes",), "Found 2 findings: 2 warnings (2 fixable with --fix --unsafe-fixes)."),
        (
            {"modeling_otter.py": reports.UNSAFE},
            (),
            "Found 1 finding: 1 warning (1 fixable with --fix --unsafe-fixes).",
        ),
        (
            {"modeling_otter.py": f"{reports.GOOD}# gclint: skip\n"},
            (),
            "Found 1 finding: 1 note (none fixable).",
        ),
        ({"modeling_otter.py": reports.SAFE}, ("--fix",), "Fixed 1 finding; none left in 1 file."),
        ({"modeling_otter.py": reports.BROKEN}, (), "Nothing was checked."),
        (
            {"modeling_otter.py": reports.BROKEN, "modeling_good.py": reports.GOOD},
            (),
            "No findings in 1 file.",
        ),
    ],
)
def test_the_summary_counts(
    folder: Folder, files: dict[str, str], options: tuple[str, ...], summary: str
) -> None:
    folder.write(files)
    assert folder.run(*options).out.splitlines()[-1] == summary
    folder.write(files)
    assert summary not in folder.run(*options, "--quiet").out


def test_statistics_begin_with_the_most_frequent_rule_and_then_go_by_code(folder: Folder) -> None:
    folder.write({"modeling_otter.py": reports.two(reports.CACHE, reports.CACHE)})
    folder.write({"modeling_whale.py": reports.SAFE.replace("Otter", "Whale")})
    lines = folder.run("--statistics").out.splitlines()
    assert [each.split()[:2] for each in lines[:-2]] == [["2", "GC002"], ["1", "GC001"]]
    folder.write({"modeling_otter.py": reports.CACHE})
    lines = folder.run("--statistics").out.splitlines()
    assert [each.split()[:2] for each in lines[:-2]] == [["1", "GC001"], ["1", "GC002"]]


def test_statistics_in_json_have_the_problems_too(folder: Folder) -> None:
    folder.write({**_PAIR, "modeling_x.py": reports.BROKEN})
    first, problem = folder.run("--statistics", "--output-format", "json").data
    assert first == {"code": "GC001", "name": "missing-checkpointing-layer", "count": 2, "fixable": 1}
    assert (problem["code"], problem["filename"]) == (None, "modeling_x.py")
    first, _ = folder.run("--statistics", "--unsafe-fixes", "--output-format", "json").data
    assert first["fixable"] == 2


def test_what_goes_with_another_fix_is_counted_as_fixed(folder: Folder) -> None:
    text = Path(__file__).parents[2].joinpath("fixtures/GC302/dropped_kwargs.py").read_text(encoding="utf-8")
    folder.write({"modeling_otter.py": text})
    found = folder.run("--unsafe-fixes").out.splitlines()[-1]
    assert found == "Found 2 findings: 1 error, 1 note (1 fixable with --fix --unsafe-fixes)."
    diff = folder.run("--diff", "--unsafe-fixes").err.splitlines()[-1]
    assert diff == "Would fix 2 findings in 1 file; 0 left."
    done = folder.run("--fix", "--unsafe-fixes", "--show-fixes")
    assert done.out.splitlines()[-1] == "Fixed 2 findings; none left in 1 file."
    assert done.out.count(": fixed GC") == 1


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_folder_without_models_is_a_note(folder: Folder, quiet: tuple[str, ...]) -> None:
    folder.write({"src/configuration_otter.py": "x = 1\n", "models/modeling_otter.py": reports.GOOD})
    note = "src: note: there is no file named modeling_*.py or modular_*.py in this folder\n"
    done = folder.run("src", *quiet)
    assert (done.status, done.err) == (0, "" if quiet else note)
    assert done.out == ("" if quiet else "Nothing was checked.\n")
    done = folder.run("src", "models", *quiet)
    assert (done.status, done.err) == (0, "" if quiet else note)
    strict = folder.run("src", "models", "--error-on-empty", *quiet)
    assert (strict.status, strict.err) == (2, note.replace("note", "error"))
    assert folder.run("models", "--error-on-empty", *quiet).status == 0
    assert folder.run("nowhere", *quiet).status == 2
    assert folder.run("src", "--output-format", "json", *quiet).data == []
