"""Which classes can run the code that a repair changes, as far as names can be followed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from gclint.engine.imports import Imports

_Names = Mapping[str, frozenset[str]]


class Reach:
    """Follows names from a class through files to what has changed."""

    def __init__(self, imports: Imports, texts: Mapping[Path, tuple[str, str]]) -> None:
        """Find out which definitions have changed.

        Args:
            imports: which files import from which.
            texts: the changed files, with their texts before and after.
        """
        self._imports = imports
        self._texts = texts
        self._changed = {path: frozenset(_differing(*both)) for path, both in texts.items()}
        self._names: dict[Path, _Names] = {}
        self._nowhere: set[tuple[Path, str]] = set()
        """The names that are known not to lead to a change."""

    def has(self, path: Path, name: str, text: str) -> bool:
        """Return whether the class ``name`` in the file at ``path``, with this ``text``, leads to an edit."""
        seen: set[tuple[Path, str]] = set()
        waiting = [(path, name)]
        self._names.setdefault(path, _used(text))
        while waiting:
            place = waiting.pop()
            if place in seen or place in self._nowhere:
                continue
            seen.add(place)
            if place[1] in self._changed.get(place[0], ()):
                return True
            for origin, inner in self._next(*place):
                if inner is not None:
                    waiting.append((origin, inner))
                elif self._changed.get(origin):
                    return True
                else:
                    waiting.extend((origin, each) for each in self._names_of(origin))
        self._nowhere |= seen
        return False

    def blocks_in(self, path: Path, text: str) -> list[str]:
        """Return the classes with a ``forward`` in a file, which holds ``text``, that lead to a change."""
        names = [
            name
            for name, nodes in _definitions(text).items()
            for node in nodes
            if isinstance(node, ast.ClassDef)
            and any(isinstance(each, ast.FunctionDef) and each.name == "forward" for each in node.body)
        ]
        return [name for name in dict.fromkeys(names) if self.has(path, name, text)]

    def _next(self, path: Path, name: str) -> Iterator[tuple[Path, str | None]]:
        names = self._names_of(path)
        bound = self._imports.bound(path)
        if name not in names:
            yield from bound.get(name, bound.get("*", ()))
            return
        for used in names[name]:
            if used in names:
                yield path, used
            elif used in bound:
                yield from bound[used]

    def _names_of(self, path: Path) -> _Names:
        if path not in self._names:
            both = self._texts.get(path)
            try:
                text = both[1] if both else path.read_text(encoding="utf-8")
            except (OSError, ValueError):
                text = ""
            self._names[path] = _used(text)
        return self._names[path]


@lru_cache(maxsize=512)
def _used(text: str) -> _Names:
    """Return the names that each top-level definition of a text uses; repairs often give the same texts."""
    found: dict[str, frozenset[str]] = {}
    for name, nodes in _definitions(text).items():
        found[name] = frozenset(
            each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)
        )
    return found


def _differing(before: str, after: str) -> Iterator[str]:
    """Yield the names of the top-level definitions whose code differs."""
    earlier, later = _definitions(before), _definitions(after)
    for name in {**earlier, **later}:
        if _dump(earlier.get(name, ())) != _dump(later.get(name, ())):
            yield name


def _dump(nodes: Iterable[ast.AST]) -> list[str]:
    return [ast.dump(node) for node in nodes]


def _definitions(text: str) -> dict[str, list[ast.stmt]]:
    """Return the top-level statements of a text by the names that they bind, without imports."""
    try:
        waiting = list(ast.parse(text).body)
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, list[ast.stmt]] = {}
    while waiting:
        statement = waiting.pop(0)
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            waiting[:0] = [
                each for field in ("body", "orelse", "finalbody") for each in getattr(statement, field, ())
            ] + [each for handler in getattr(statement, "handlers", ()) for each in handler.body]
        else:
            for each in ast.walk(statement):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    found.setdefault(each.id, []).append(statement)
    return found
