"""Whole releases repaired: copies stay copies, and generated files what the generator would make."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import pytest

from tests.ecosystem.conftest import each_release
from tests.ecosystem.copies import identical_copies
from tests.ecosystem.repaired import Repaired, repair
from tests.ecosystem.reported import reported

pytestmark = [pytest.mark.releases, each_release]

_GENERATED = re.compile(r"automatically generated from \S+/(modular_\w+\.py)")
_PARENT = re.compile(r"^from [.\w]*?(\w+)\.(modeling_\w+) import", re.MULTILINE)
_CLASS = re.compile(r"\b(?!GradientCheckpointingLayer\b)[A-Z]\w*")
_OF_IMPORTS = re.compile(r"(?:from|import)\b|\w+,?$|\)$")

_Change = tuple[tuple[str, ...], tuple[str, ...]]


@pytest.fixture(scope="session")
def repaired_safely(
    release: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Repaired]:
    """Return a function that makes the safe fixes in a copy of a release, once."""

    @cache
    def made(version: str) -> Repaired:
        return repair(version, release(version), tmp_path_factory.mktemp(f"{version}-safe"))

    return made


@cache
def _copies(models: Path) -> dict[str, bool]:
    return identical_copies(models)


def test_copies_stay_identical(repaired: Callable[[str], Repaired], version: str) -> None:
    _verify_copies(repaired(version))


def test_copies_stay_identical_where_only_safe_fixes_are_made(
    repaired_safely: Callable[[str], Repaired], version: str
) -> None:
    _verify_copies(repaired_safely(version))


def _verify_copies(result: Repaired) -> None:
    before, after = _copies(result.before), _copies(result.after)
    assert before.keys() == after.keys()
    # Most are, or the check does not see what it is meant to see.
    assert sum(before.values()) > 0.9 * len(before) > 900
    assert [key for key, same in before.items() if same and not after[key]] == []


def test_generated_files_change_as_their_source_does(
    repaired: Callable[[str], Repaired], version: str
) -> None:
    _verify_generated(repaired(version))


def test_generated_files_change_as_their_source_does_where_only_safe_fixes_are_made(
    repaired_safely: Callable[[str], Repaired], version: str
) -> None:
    _verify_generated(repaired_safely(version))


def _verify_generated(result: Repaired) -> None:
    generated = [name for name in result.changed if _modular(result.before, name)]
    assert len(generated) > 10
    for name in generated:
        known = {
            change for source in _sources(result.before, name, set()) for change in _changes(result, source)
        }
        assert [change for change in _changes(result, name) if change not in known] == [], name


def test_nothing_is_reported_twice(release: Callable[[str], Path], version: str) -> None:
    found = reported(release(version))
    # One line of a file can hold two findings, but no two of the same rule about the same.
    keys = Counter((each.code, key, each.parameters) for each in found for key in set(each.keys))
    several = {key for key, count in keys.items() if count > 1}
    # A file may hold several calls of the same block.
    once = {
        (each.code, key, each.parameters)
        for each in found
        for key in each.keys
        if each.code in ("GC001", "GC302")
    }
    assert several & once == set()
    models = release(version) / "transformers/models"
    own = {(each.code, Path(each.file).parent, each.symbol) for each in found if "/modular_" in each.file}
    assert [
        each.line
        for each in found
        if _modular(models, each.file) and (each.code, Path(each.file).parent, each.symbol) in own
    ] == []


def _modular(models: Path, name: str) -> str | None:
    match = _GENERATED.search((models / name).read_text(encoding="utf-8"), 0, 3000)
    return None if match is None else Path(name).with_name(match[1]).as_posix()


def _sources(models: Path, name: str, seen: set[str]) -> Iterator[str]:
    """Yield the files that the generator reads for a file: its modular one, and those of parent models."""
    modular = _modular(models, name)
    if modular is None or name in seen:
        return
    seen.add(name)
    yield modular
    for folder, module in _PARENT.findall((models / modular).read_text(encoding="utf-8")):
        parent = f"{folder}/{module}.py"
        if (models / parent).exists():
            yield parent
            yield from _sources(models, parent, seen)


def _changes(result: Repaired, name: str) -> list[_Change]:
    """Return the lines that a repair replaced and those it wrote, imports and the names of classes aside."""
    before, after = (
        (models / name).read_text(encoding="utf-8").splitlines() for models in (result.before, result.after)
    )
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    changes = [
        (_masked(before[first:last]), _masked(after[start:stop]))
        for kind, first, last, start, stop in matcher.get_opcodes()
        if kind != "equal"
    ]
    return [change for change in changes if not all(map(_OF_IMPORTS.match, (*change[0], *change[1])))]


def _masked(lines: list[str]) -> tuple[str, ...]:
    return tuple(_CLASS.sub("_", line.strip().rstrip(",")) for line in lines if line.strip())
