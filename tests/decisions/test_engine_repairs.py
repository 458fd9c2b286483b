"""Which fixes are made, which are held back, what is written, and how a run exits."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.decisions import reports
from tests.decisions.reports import Folder
from tests.harness import ASSUMED

_PAIR = {"modeling_otter.py": reports.SAFE, "modeling_seal.py": reports.UNSAFE.replace("Otter", "Seal")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [
        (reports.SAFE, ("--fix",), 0),
        (reports.UNSAFE, ("--fix", "--exit-zero"), 0),
        (reports.GOOD, ("--fix",), 0),
        # A diff that is not empty is something left to do, even if no finding would remain.
        (reports.SAFE, ("--diff",), 1),
        (reports.SAFE, ("--diff", "--exit-zero"), 0),
        (reports.SAFE, ("--ignore", "GC001"), 0),
        (reports.SAFE, ("--select", "GC002"), 0),
    ],
)
def test_the_exit_status_says_whether_something_is_left(
    folder: Folder, text: str, options: tuple[str, ...], status: int
) -> None:
    folder.write({"modeling_otter.py": text})
    assert folder.run(*options).status == status


@pytest.mark.parametrize(
    ("options", "is_safe_made", "is_unsafe_made"),
    [
        ((), False, False),
        (("--unsafe-fixes",), False, False),
        (("--fix", "--no-unsafe-fixes"), True, False),
        (("--diff", "--unsafe-fixes"), False, False),
        (("--fix", "--ignore", "GC001"), False, False),
        (("--fix", "modeling_seal.py"), False, False),
        (("--fix", "--unsafe-fixes", "modeling_seal.py"), False, True),
        (("--fix", "--exclude", "modeling_otter.py"), False, False),
        (("--fix", "--per-file-ignores", "modeling_otter.py:GC001"), False, False),
    ],
)
def test_a_fix_is_made_if_it_is_asked_for_and_its_kind_too(
    folder: Folder, options: tuple[str, ...], is_safe_made: bool, is_unsafe_made: bool
) -> None:
    folder.write(_PAIR)
    folder.run(*options)
    assert (folder.read() != reports.SAFE) is is_safe_made
    assert (folder.read("modeling_seal.py") != _PAIR["modeling_seal.py"]) is is_unsafe_made


@pytest.mark.parametrize(
    ("options", "shows_safe", "shows_unsafe"),
    [(("--diff",), True, False), (("--diff", "--unsafe-fixes"), True, True)],
)
def test_a_diff_shows_the_fixes_that_would_be_made(
    folder: Folder, options: tuple[str, ...], shows_safe: bool, shows_unsafe: bool
) -> None:
    folder.write(_PAIR)
    printed = folder.run(*options).out
    assert ("+class OtterLayer(GradientCheckpointingLayer):" in printed) is shows_safe
    assert ("+class SealLayer(GradientCheckpointingLayer):" in printed) is shows_unsafe


def test_what_was_fixed_is_fixed_once_and_for_all(folder: Folder) -> None:
    folder.write({"modeling_otter.py": reports.two(reports.SAFE, reports.CACHE)})
    assert folder.run("--fix").out == f"{ASSUMED}\nFixed 2 findings; none left in 1 file.\n"
    after = folder.read()
    assert folder.run("--fix").out == "No findings in 1 file.\n"
    assert folder.read() == after


def test_what_a_fix_reveals_is_fixed_in_the_same_run(folder: Folder) -> None:
    text = reports.SAFE.replace("layer(hidden_states)", "layer(hidden_states=hidden_states)")
    folder.write({"modeling_otter.py": text})
    assert folder.run("--fix").status == 0
    after = folder.read()
    assert "class OtterLayer(GradientCheckpointingLayer)" in after
    assert "layer(hidden_states)" in after
    assert folder.run().status == 0


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_fix_keeps_line_ends_and_the_byte_order_mark(folder: Folder, newline: str, mark: str) -> None:
    def encoded(text: str) -> bytes:
        return (mark + text).replace("\n", newline).encode()

    path = folder.path / "modeling_otter.py"
    path.write_bytes(encoded(reports.SAFE))
    assert folder.run("--fix").status == 0
    assert path.read_bytes() == encoded(reports.REPAIRED)


def test_a_fix_keeps_the_mode_and_time_of_what_it_does_not_change(folder: Folder) -> None:
    folder.write({"modeling_otter.py": reports.SAFE, "modeling_good.py": reports.GOOD})
    fixed, other = folder.path / "modeling_otter.py", folder.path / "modeling_good.py"
    fixed.chmod(0o750)
    os.utime(other, ns=(10**18, 10**18))
    folder.run("--fix")
    assert stat.S_IMODE(fixed.stat().st_mode) == 0o750
    assert other.stat().st_mtime_ns == 10**18


@pytest.mark.parametrize(("broken", "status"), [(True, 2), (False, 0)])
def test_a_file_that_cannot_be_read_keeps_no_other_from_being_fixed(
    folder: Folder, broken: bool, status: int
) -> None:
    other = reports.BROKEN if broken else reports.GOOD
    folder.write({"modeling_otter.py": reports.SAFE, "modeling_zebra.py": other})
    done = folder.run("--fix")
    assert (done.status, folder.read()) == (status, reports.REPAIRED)
    assert ("modeling_zebra.py:11:42: error: syntax error" in done.err) is broken


_BASE = {"modeling_seal.py": reports.SAFE.replace("Otter", "Seal")}
_HEIR = {
    "modeling_otter.py": reports.SAFE.split("\n\n\nclass OtterLayer")[0]
    + "\nfrom modeling_seal import SealLayer\n\n\nclass OtterLayer(SealLayer):\n    pass\n"
    + reports.model().partition("\n\n\nclass OtterModel")[1]
    + reports.model().partition("\n\n\nclass OtterModel")[2]
}


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ((), ["modeling_seal.py"]),
        (("modeling_seal.py",), ["modeling_seal.py"]),
    ],
)
def test_a_layer_of_another_file_is_reported_where_it_has_to_be_changed(
    folder: Folder, given: tuple[str, ...], codes: list[str]
) -> None:
    folder.write({**_BASE, **_HEIR})
    found = folder.run("--output-format", "json", *given).data
    assert [each["filename"] for each in found if each["symbol"] == "SealLayer"] == codes
    folder.run("--fix", *given)
    assert "class SealLayer(GradientCheckpointingLayer)" in folder.read("modeling_seal.py")
    assert folder.read() == _HEIR["modeling_otter.py"]
    assert folder.run().status == 0


def test_a_file_that_was_not_given_is_not_changed_and_the_fix_says_so(folder: Folder) -> None:
    folder.write({**_BASE, **_HEIR})
    before = folder.read("modeling_seal.py")
    done = folder.run("--fix", "modeling_otter.py")
    assert (done.status, folder.read("modeling_seal.py")) == (1, before)
    assert "no fix: the fix also changes modeling_seal.py; pass it to gclint as well" in done.out
    assert folder.run("--fix", "modeling_otter.py", "modeling_seal.py").status == 0


@pytest.mark.parametrize(
    ("names", "checked"),
    [
        (["modeling_a.py"], 1),
        (["modeling_a.txt"], 0),
        (["test_modeling_a.py"], 0),
        (["tests/models/a/test_modeling_a.py"], 0),
    ],
)
def test_files_are_selected_by_their_names(folder: Folder, names: list[str], checked: int) -> None:
    folder.write({**dict.fromkeys(names, reports.SAFE), "modeling_good.py": reports.GOOD})
    assert folder.found() == ["GC001"] * checked


@pytest.mark.parametrize(
    ("arguments", "count"),
    [(("a.py",), 1), ((".",), 0), (("--include", "a.py"), 1), (("--include", "b.py"), 0)],
)
def test_a_file_with_another_name_is_checked_if_it_is_given_or_included(
    folder: Folder, arguments: tuple[str, ...], count: int
) -> None:
    folder.write({"a.py": reports.SAFE, "modeling_good.py": reports.GOOD})
    assert len(folder.found(*arguments)) == count


def test_standard_input_is_printed_repaired_and_no_file_is_written(folder: Folder) -> None:
    folder.write({"modeling_otter.py": reports.GOOD})
    done = folder.run("--fix", "-", "--stdin-filename", "modeling_otter.py", given=reports.SAFE)
    assert reports.REPAIRED in done.out
    assert folder.read() == reports.GOOD
    done = folder.run("-", "--stdin-filename", "modeling_otter.py", given=reports.SAFE)
    assert done.status == 1
    assert reports.REPAIRED not in done.out


@pytest.mark.parametrize(
    "options",
    [
        ("--statistics", "--output-format", "github"),
        ("--base-ref", "main"),
        ("--summary", "summary.md"),
        ("--verify",),
        ("--resume", "--fix"),
        ("--add-ignores", "--write-baseline", "known.json"),
        ("--write-baseline", "known.json", "--baseline", "known.json"),
        ("--write-baseline", "known.json", "--diff"),
        ("--write-baseline", "known.json", "--statistics"),
        ("--python", "python3"),
        ("--device", "cpu"),
    ],
)
def test_options_that_contradict_each_other_are_refused_and_nothing_is_written(
    folder: Folder, options: tuple[str, ...]
) -> None:
    folder.write({"modeling_otter.py": reports.SAFE})
    done = folder.run(*options)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Usage: ")
    assert [each.name for each in folder.path.iterdir()] == ["modeling_otter.py"]
    assert folder.read() == reports.SAFE


@pytest.mark.parametrize(
    ("options", "repaired", "left"),
    [(("--fix",), 1, 1), (("--diff",), 1, 1), (("--fix", "--unsafe-fixes", "--quiet"), 2, 0)],
)
def test_a_summary_is_written_with_the_repairs(
    folder: Folder, options: tuple[str, ...], repaired: int, left: int
) -> None:
    folder.write(_PAIR)
    folder.run(*options, "--summary", "summary.md")
    text = folder.read("summary.md")
    assert f"| GC001 missing-checkpointing-layer | {repaired} | {left} |" in text
    assert ("unsafe fix: `SealLayer` keeps running statistics" in text) is bool(left)
