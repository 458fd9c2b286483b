"""Which changed files belong together: what is made of one of them, and what of the others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gclint.engine.fix import FixResult
from gclint.source.generated import is_modular, modeling_path
from gclint.source.project import Project


def fixed_together(project: Project, repaired: FixResult) -> list[list[Path]]:
    """Return all changed files: those of one fix side by side, and a source with its product."""
    return _Units(repaired.changed).joined(_ties(project, repaired))


def written_together(project: Project, repaired: FixResult) -> list[list[Path]]:
    """Return all changed files, also those side by side of which one was judged by the text of the other.

    What was repaired in a file hangs on what was repaired in those that it imports from.
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
        """Return the files, those that are tied directly or by others side by side."""
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
