"""The rooms of the synthesis import one another one way only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment import PROJECT

_PACKAGE = "gclint.verify.worker.synthesis"
_FOLDER = PROJECT / Path(*_PACKAGE.split("."))
_ROOMS = ["attempts", "hints", "inputs", "configurations"]
"""Each imports only those after it."""


def _imported(room: str) -> Iterator[tuple[str, str]]:
    """Yield each module of ``room`` with what it imports of the synthesis."""
    for path in sorted((_FOLDER / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            for name in names:
                if name.startswith(_PACKAGE):
                    yield path.name, name.removeprefix(_PACKAGE).lstrip(".").partition(".")[0]


def test_there_are_no_other_rooms_and_no_module_outside_them() -> None:
    found = {path.relative_to(_FOLDER).parts[0] for path in _FOLDER.rglob("*.py")}
    assert found == {*_ROOMS, "__init__.py"}


@pytest.mark.parametrize("room", _ROOMS)
def test_a_room_imports_only_itself_and_those_after_it(room: str) -> None:
    imported = list(_imported(room))
    assert imported
    allowed = _ROOMS[_ROOMS.index(room) :]
    assert [each for each in imported if each[1] not in allowed] == []
