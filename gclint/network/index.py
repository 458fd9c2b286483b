"""Which classes of a run's files inherit from which, found in one pass over their headers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.source.file import UnreadableFile
from gclint.source.project import Project

_Index = Mapping[str, list[ClassInfo]]


def subclasses(project: Project, info: ClassInfo) -> Iterator[ClassInfo]:
    """Yield the classes of the given files that inherit from a class, at any depth and from any file."""
    index = project.derived.get(subclasses)
    if not isinstance(index, dict):
        index = project.derived[subclasses] = _by_base(project)
    seen = {info}
    waiting = [info]
    while waiting:
        base = waiting.pop()
        for candidate in index.get(base.name, ()):
            if candidate not in seen and base in candidate.bases:
                seen.add(candidate)
                waiting.append(candidate)
                yield candidate


def _by_base(project: Project) -> _Index:
    """Return the classes by the names of their bases, as they are called where they are defined."""
    found: defaultdict[str, list[ClassInfo]] = defaultdict(list)
    for path in project.paths:
        try:
            module = library_of(project).module(project.file(path))
        except (OSError, UnreadableFile):
            continue  # The run reports it; it defines nothing.
        for info in module.classes.values():
            for name in info.base_names:
                first, _, rest = name.partition(".")
                imported = None if rest else module.file.outline.imported(first)
                known = imported.name if imported is not None and imported.name is not None else name
                found[known.rpartition(".")[2]].append(info)
    return dict(found)
