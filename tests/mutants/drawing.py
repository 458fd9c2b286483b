"""Which mutants are tried: the same ones each time, however much of the code around them has changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tests.mutants.kinds import Place, changes, places
from tests.nodes import Text

WORKER = "gclint/verify/worker"
"""The room whose tests run models."""
_FOLDERS = ("gclint", "gclint/rules")
"""Where the code is; in a copy of the project, the rules are a link."""


@dataclass(frozen=True)
class Key:
    """What a mutant is known by: no number of a line, so that it outlives changes elsewhere."""

    file: str
    function: str
    line: str
    """The line on which the changed code starts."""
    before: str
    after: str
    again: int = 0
    """How many others before it in the function are just the same."""


@dataclass(frozen=True)
class Mutant:
    """A module of gclint with one change."""

    key: Key
    text: str = field(repr=False)
    lines: range
    """Those that the changed code stands on."""
    body: range
    """Those of the function that it stands in, or of the whole module."""
    is_run_on_import: bool


def draw(project: Path, number: int, seed: int) -> list[Mutant]:
    """Return ``number`` mutants, ordered by their files and lines.

    A mutant is drawn by the digest of what it is known by, so that a change in one function leaves those
    of all others.
    """
    modules = {path for folder in _FOLDERS for path in (project / folder).rglob("*.py")}
    everything = [each for path in sorted(modules) for each in _of(path, project)]
    everything.sort(key=lambda each: sha256(f"{seed} {each.key}".encode()).digest())
    drawn: list[Mutant] = []
    for mutant in everything:
        if len(drawn) == number:
            break
        if _is_python(mutant):
            drawn.append(mutant)
    return sorted(drawn, key=lambda each: (each.key.file, each.lines.start))


def room(file: str) -> str:
    """Return the room that a module lies in, as its mutants are counted."""
    if file.startswith(f"{WORKER}/"):
        return WORKER
    return "/".join(file.split("/")[:-1][:2])


def _of(path: Path, project: Path) -> Iterator[Mutant]:
    text = Text(path.read_text(encoding="utf-8"))
    tree = ast.parse(text.text)
    functions = dict(_functions(tree.body, ""))
    whole = range(1, len(text.lines) + 1)
    seen: dict[Key, int] = {}
    for place in places(tree):
        for node, after in changes(place):
            line = text.lines[node.lineno - 1].strip()
            name = path.relative_to(project).as_posix()
            key = Key(name, place.owner, line, text.source(node), after)
            seen[key] = seen.get(key, -1) + 1
            key = Key(name, place.owner, line, key.before, after, seen[key])
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            function = functions.get(place.owner)
            body = whole if function is None else range(function.lineno, (function.end_lineno or 0) + 1)
            yield Mutant(key, text.replaced(node, after), lines, body, _is_run_on_import(place, function))


def _functions(body: list[ast.stmt], owner: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            name = f"{owner}.{statement.name}".lstrip(".")
            if isinstance(statement, ast.FunctionDef):
                yield name, statement
            yield from _functions(statement.body, name)


def _is_run_on_import(place: Place, function: ast.FunctionDef | None) -> bool:
    """Tell whether this runs only when the module is imported, such as a default of an argument."""
    return function is None or place.node.lineno < function.body[0].lineno


def _is_python(mutant: Mutant) -> bool:
    try:
        compile(mutant.text, mutant.key.file, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
