"""What keeps a finding known to a baseline, and what makes it new or an entry stale."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.decisions import reports
from tests.decisions.reports import Folder


def _known(folder: Folder, text: str, *options: str) -> None:
    """Write a baseline of one file."""
    folder.write({"modeling_otter.py": text})
    assert folder.run("--write-baseline", "known.json", *options).status == 0


def _against(folder: Folder, text: str | None = None, *options: str) -> tuple[int, list[str], bool]:
    """Return the status, what is found, and whether an entry is stale."""
    if text is not None:
        folder.write({"modeling_otter.py": text})
    done = folder.run("--baseline", "known.json", "--output-format", "json", *options)
    return done.status, done.codes, "no longer occurs" in done.err


@pytest.mark.parametrize(
    ("text", "status", "codes", "is_stale"),
    [
        (reports.CACHE, 0, [], False),
        ("x = 1\n\n\n" + reports.CACHE, 0, [], False),
        # The block is another one.
        (reports.CACHE.replace("Otter", "Seal"), 1, ["GC002"], True),
        # It is repaired.
        (reports.GOOD, 1, [], True),
        # What is no Python shows nothing about the entry.
        (reports.BROKEN, 2, [None], False),
    ],
)
def test_a_finding_is_known_by_its_rule_symbol_and_code(
    folder: Folder, text: str, status: int, codes: list[str], is_stale: bool
) -> None:
    _known(folder, reports.CACHE)
    assert _against(folder, text) == (status, codes, is_stale)


@pytest.mark.parametrize(
    ("arguments", "is_stale"), [((".",), True), (("modeling_good.py",), False), (("deeper",), False)]
)
def test_an_entry_of_a_file_that_is_gone_is_stale_if_its_folder_was_searched(
    folder: Folder, arguments: tuple[str, ...], is_stale: bool
) -> None:
    folder.write({"modeling_good.py": reports.GOOD, "deeper/modeling_good.py": reports.GOOD})
    _known(folder, reports.SAFE)
    (folder.path / "modeling_otter.py").unlink()
    assert _against(folder, None, *arguments) == (int(is_stale), [], is_stale)


@pytest.mark.parametrize(
    ("moved", "codes"),
    [("modeling_otter.py", []), ("modeling_seal.py", ["GC001"]), ("deeper/modeling_otter.py", ["GC001"])],
)
def test_a_finding_is_known_by_its_file(folder: Folder, moved: str, codes: list[str]) -> None:
    _known(folder, reports.SAFE)
    (folder.path / "modeling_otter.py").unlink()
    folder.write({moved: reports.SAFE})
    assert _against(folder) == (int(bool(codes)), codes, bool(codes))


@pytest.mark.parametrize(
    ("options", "is_stale"),
    [
        ((), True),
        (("--select", "GC002"), True),
        # A rule that did not run, or a file that was not checked, cannot show that an entry is stale.
        (("--select", "GC001"), False),
        (("--ignore", "GC002"), False),
        (("modeling_good.py",), False),
        (("--exclude", "modeling_otter.py"), False),
        (("--per-file-ignores", "modeling_otter.py:GC002"), False),
    ],
)
def test_an_entry_is_stale_only_if_its_rule_ran_on_its_file(
    folder: Folder, options: tuple[str, ...], is_stale: bool
) -> None:
    folder.write({"modeling_good.py": reports.GOOD})
    _known(folder, reports.CACHE)
    assert _against(folder, reports.GOOD, *options) == (int(is_stale), [], is_stale)


def test_an_entry_about_a_comment_is_stale_only_if_all_rules_ran(folder: Folder) -> None:
    _known(folder, reports.GOOD + "# gclint: ignore[GC002]\n")
    assert _against(folder, reports.GOOD, "--select", "GC000,GC001") == (0, [], False)
    assert _against(folder, reports.GOOD) == (1, [], True)


def test_what_is_known_gets_no_comment(folder: Folder) -> None:
    _known(folder, reports.SAFE)
    both = reports.two(reports.SAFE, reports.UNSAFE)
    folder.write({"modeling_otter.py": both})
    assert folder.run("--add-ignores", "--baseline", "known.json").status == 0
    assert folder.read().count("# gclint: ignore[GC001]") == 1
    assert "class OtterLayer(nn.Module):\n" in folder.read()


_ENTRY = {"file": "a", "rule": "b", "symbol": "c", "hash": "d", "count": 1}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "this baseline does not exist"),
        ({}, "it has no version"),
        ({"version": 2, "findings": []}, "its version is 2"),
        ({"version": True, "findings": []}, "its version is not a number"),
        ({"version": "1", "findings": []}, "its version is not a number"),
        ({"version": 1}, "it has no list of findings"),
        ({"version": 1, "findings": [{}]}, "entry 1 lacks one of"),
        ({"version": 1, "findings": [{**_ENTRY, "count": 0}]}, "entry 1"),
        ({"version": 1, "findings": [{**_ENTRY, "count": True}]}, "entry 1"),
        ({"version": 1, "findings": [{**_ENTRY, "hash": 4}]}, "entry 1"),
        ({"version": 1, "findings": [_ENTRY]}, None),
        ({"version": 1, "findings": [], "more": 1}, None),
    ],
)
def test_a_baseline_that_is_none_is_an_error(folder: Folder, document: Any, words: str | None) -> None:
    folder.write({"modeling_otter.py": reports.SAFE})
    if document is not None:
        folder.write({"known.json": document if isinstance(document, str) else json.dumps(document)})
    done = folder.run("--baseline", "known.json")
    assert done.status == (1 if words is None else 2)
    if words is not None:
        assert words in done.err
