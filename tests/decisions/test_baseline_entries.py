"""What keeps a finding known to a baseline, and what makes it new or an entry stale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.decisions import reports
from tests.decisions.reports import Folder

_CALL = "layer(hidden_states, past_key_values)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


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
        # The flagged code is the argument, and it is another one.
        (reports.CACHE.replace(_CALL, "layer(hidden_states, past_key_values or None)"), 1, ["GC002"], True),
        # The block is another one.
        (reports.CACHE.replace("Otter", "Seal"), 1, ["GC002"], True),
        # It is repaired.
        (reports.GOOD, 1, [], True),
        # It occurs once more.
        (reports.CACHE.replace(_CALL, f"layer({_CALL}, past_key_values)"), 1, ["GC002"], False),
        # Another one is there as well.
        (reports.two(reports.CACHE, reports.SAFE), 1, ["GC001"], False),
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
    ("moved", "codes"),
    [("modeling_otter.py", []), ("modeling_seal.py", ["GC001"]), ("deeper/modeling_otter.py", ["GC001"])],
)
def test_a_finding_is_known_by_its_file(folder: Folder, moved: str, codes: list[str]) -> None:
    _known(folder, reports.SAFE)
    (folder.path / "modeling_otter.py").unlink()
    folder.write({moved: reports.SAFE})
    assert _against(folder) == (int(bool(codes)), codes, bool(codes))


def test_files_are_named_from_the_folder_of_the_baseline(folder: Folder) -> None:
    folder.write({"src/modeling_otter.py": reports.SAFE, "ci/here": ""})
    folder.run("--write-baseline", "ci/known.json", "src")
    (entry,) = json.loads(folder.read("ci/known.json"))["findings"]
    assert (entry["file"], entry["rule"], entry["symbol"], entry["count"]) == (
        "../src/modeling_otter.py", "GC001", "OtterLayer", 1,
    )  # fmt: skip
    assert folder.run("--baseline", "ci/known.json", "src").status == 0
    (folder.path / "known.json").write_text(folder.read("ci/known.json"))
    assert folder.run("--baseline", "known.json", "src").status == 1


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


@pytest.mark.parametrize(("options", "is_fixed"), [(("--baseline", "known.json"), False), ((), True)])
def test_what_is_known_is_not_repaired(folder: Folder, options: tuple[str, ...], is_fixed: bool) -> None:
    _known(folder, reports.SAFE)
    assert folder.run("--fix", *options).status == 0
    assert (folder.read() == reports.REPAIRED) is is_fixed


def test_what_is_known_gets_no_comment(folder: Folder) -> None:
    _known(folder, reports.SAFE)
    both = reports.two(reports.SAFE, reports.UNSAFE)
    folder.write({"modeling_otter.py": both})
    assert folder.run("--add-ignores", "--baseline", "known.json").status == 0
    assert folder.read().count("# gclint: ignore[GC001]") == 1
    assert "class OtterLayer(nn.Module):\n" in folder.read()


def test_with_fixes_only_what_remains_is_written(folder: Folder) -> None:
    _known(folder, reports.two(reports.SAFE, reports.UNSAFE), "--fix")
    assert [each["symbol"] for each in json.loads(folder.read("known.json"))["findings"]] == ["SealLayer"]


@pytest.mark.parametrize(("number", "words"), [(1, "1 known finding not reported"), (2, "2 known findings")])
def test_how_many_are_known_is_said_unless_it_is_to_be_quiet(folder: Folder, number: int, words: str) -> None:
    _known(folder, reports.SAFE if number == 1 else reports.two(reports.SAFE, reports.CACHE))
    assert f"known.json: {words}" in folder.run("--baseline", "known.json").err
    assert folder.run("--baseline", "known.json", "--quiet").err == ""


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
