"""What names of a module are if star imports may give them, each in the order of the text."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gclint.code.packages import LIBRARY
from gclint.code.remembered import remembered
from gclint.code.tree import DEFINITIONS, Tree
from gclint.code.walk import walk
from gclint.model import known
from gclint.model.values import External, Imported, Value, join, of, unknown

if TYPE_CHECKING:
    from gclint.model.spaces import Space

_RELIED_ON = frozenset((*sys.stdlib_module_names, "torch", LIBRARY))
"""The packages whose star imports give nothing but what is known of them."""


class NameGiven(NamedTuple):
    """What a name of a module may be."""

    value: Value | None
    is_certain: bool
    """Whether the module has the name whatever happens."""


NOTHING = NameGiven(None, is_certain=False)


@dataclass(frozen=True)
class _Star:
    start: int
    is_always_run: bool
    imported: Imported


class StarImports:
    """The star imports of a module."""

    def __init__(self, space: Space) -> None:
        """Describe those of ``space``."""
        self._space = space
        self._stars = tuple(
            _Star(each.start, each.is_always_run, Imported(name, len(each.module) - len(name), "*", space))
            for each in space.file.outline.imports
            if each.module is not None and any(item.path == "*" for item in each.items)
            for name in (each.module.lstrip("."),)
        )
        self._known: dict[tuple[str, NameGiven], NameGiven] = {}

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._stars)

    def forget(self) -> None:
        """Let go of what was found."""
        self._known.clear()

    def given(self, name: str, own: NameGiven) -> NameGiven:
        """Return what a name is that the module has itself, unless it is ``NOTHING``."""
        space, spaces = self._space, self._space.spaces
        if (name, own) in self._known:
            return self._known[name, own]
        asked = spaces.asked.setdefault(name, {})
        if space in asked:
            found = asked[space]
            if found is None:
                spaces.circular.add(name)
                found = NameGiven(join(filter(None, (own.value, unknown(f"`{name}`")))), is_certain=False)
            return found
        is_first, asked[space] = not asked, None
        found = asked[space] = self._of_last(name, own)
        if is_first:
            del spaces.asked[name]
            if name in spaces.circular:
                spaces.circular.remove(name)
                found = NameGiven(_of_any(space, name), is_certain=False)
            if space.is_complete:
                self._known[name, own] = found
        return found

    def _of_last(self, name: str, own: NameGiven) -> NameGiven:
        """Return what the last statement makes of a name that has it in any case, and those behind it."""
        found = [] if own.value is None else [own.value]
        for star in reversed(self._stars):
            if own.value is not None and self._is_replaced(name, star):
                return NameGiven(join(found), own.is_certain)
            given = self._given_by(star, name)
            found += [] if given.value is None else [given.value]
            if given.is_certain and star.is_always_run:
                return NameGiven(join(found), is_certain=True)
        return NameGiven(join(found), own.is_certain) if found else NOTHING

    def _is_replaced(self, name: str, star: _Star) -> bool:
        """Tell whether a star import has nothing to do with what the module has as a name."""
        bindings = self._space.bindings
        if self._space.is_complete:
            return bindings.last.get(name, -1) > self._space.file.places.row(star.start)
        return bindings.first.get(name, -1) > self._space.file.places.row(star.start)

    def _given_by(self, star: _Star, name: str) -> NameGiven:
        space = self._space.source(star.imported)
        if space is None:
            return self._given_by_package(star, name)
        exports = space.file.outline.exports(name)
        # Whoever only hands on names does not write them.
        may_rebind = space.usage.may_rebind(name)
        if exports is False or not (space.stars or may_rebind or name in space.file.text):
            return NOTHING
        found = space.given(name)
        if found.value is None and (may_rebind or space.file.outline.lists(name)):
            # It may come by a text, or from a function of the module that gives attributes.
            return NameGiven(unknown(f"`{name}`"), is_certain=False)
        return found if exports else NameGiven(found.value, is_certain=False)

    def _given_by_package(self, star: _Star, name: str) -> NameGiven:
        package = self._space.absolute(star.imported)
        full = f"{package}.{name}"
        # Which of torch's modules has an operation is not known.
        if full in known.ALL or (package in known.TORCH and name in known.OPERATIONS):
            return NameGiven(of(External(full)), is_certain=full in known.ALL)
        if full.partition(".")[0] in _RELIED_ON or name.startswith("_"):
            return NOTHING
        return NameGiven(unknown(f"`{name}`"), is_certain=False)

    def sources(self) -> Iterator[Space]:
        """Yield the modules of the project that are imported."""
        yield from filter(None, (self._space.source(each.imported) for each in self._stars))


def _of_any(space: Space, name: str) -> Value | None:
    """Return what any module gives for a name to which star imports lead, since no order is known."""
    waiting, met = [space], {space}
    found: list[Value] = []
    while waiting:
        each = waiting.pop()
        own = each.own(name)
        found += [] if own is None else [own]
        if not each.is_complete and each.bindings.times.get(name, 0) > (own is not None):
            found.append(unknown(f"`{name}`"))
        further = [one for one in each.stars.sources() if one not in met]
        met.update(further)
        waiting += further
    return join(found) if found else None


class Bindings:
    """Where a text binds names, by the row; each only roughly, and in functions too."""

    def __init__(self, module: ast.Module) -> None:
        self.first: dict[str, int] = {}
        """The first place, be it in another statement or in a function."""
        self.last: dict[str, int] = {}
        """The last statement of the module itself that binds the name."""
        self.times: dict[str, int] = {}
        for node in walk(module):
            for name in _bound_by(node):
                row = getattr(node, "lineno", 0)
                self.first[name] = min(row, self.first.get(name, row))
                self.times[name] = self.times.get(name, 0) + 1
        for statement in module.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else ()
            inner = (each for target in targets for each in walk(target))
            for name in (name for each in (statement, *inner) for name in _bound_by(each)):
                self.last[name] = statement.lineno
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self.last.update(dict.fromkeys(_bound_by(statement.target), statement.lineno))


@remembered
def bindings_of(tree: Tree) -> Bindings:
    """Return where a text binds names."""
    return Bindings(tree.module)


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds, or deletes."""
    if isinstance(node, ast.Name):
        yield from () if isinstance(node.ctx, ast.Load) else (node.id,)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (each.asname or each.name.partition(".")[0] for each in node.names)
    elif isinstance(node, ast.MatchMapping):
        yield from filter(None, (node.rest,))
    elif isinstance(node, (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        yield from filter(None, (node.name,))
