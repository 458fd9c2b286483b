"""Which changed files belong together, and are written or judged together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gclint.engine.fix import FixResult
from gclint.source.generated import is_modular, modeling_path
from gclint.source.project import Project


def fixed_together(project: Project, repaired: FixResult) -> list[list[Path]]:
    """Return all changed files in groups: those of one fix, and a source with its generated file."""
    return _Units(repaired.changed).joined(_ties(project, repaired))


def written_together(project: Project, repaired: FixResult) -> list[list[Path]]:
    """Return all changed files in groups, with those together that were checked with each other's text.

    The repair of a file depends on the repairs of those that it imports from.
    """
    ties = [*_ties(project, repaired)]
    for path in repaired.changed:
        ties.append([path, *(project.dependents([path]) & repaired.changed.keys())])
    return _Units(repaired.changed).joined(ties)


def _ties(project: Project, repaired: FixResult) -> Iterable[Iterable[Path]]:
    yield from repaired.together
    for path in repaired.changed:
        if is_modular(path):
            yield [path, project.identify(modeling_path(path))]


class _Units:
    def __init__(self, paths: Iterable[Path]) -> None:
        self._units = {path: [path] for path in paths}

    def joined(self, ties: Iterable[Iterable[Path]]) -> list[list[Path]]:
        """Return the files in groups of those that are linked, directly or through others."""
        for tie in ties:
            known = [path for path in tie if path in self._units]
            for path in known[1:]:
                self._join(known[0], path)
        return list({id(unit): unit for unit in self._units.values()}.values())

    def _join(self, one: Path, other: Path) -> None:
        kept, dropped = self._units[one], self._units[other]
        if kept is not dropped:
            kept.extend(dropped)
            self._units.update(dict.fromkeys(dropped, kept))
