"""Which classes of a run's files inherit from which, found in one pass over their headers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.outline import Definition
from gclint.source.project import Project
from gclint.source.questions import Topic

_Index = Mapping[str, list[ClassInfo]]


def subclasses(project: Project, info: ClassInfo) -> Iterator[ClassInfo]:
    """Yield the classes of the given files that inherit from a class, at any depth and from any file."""
    index = project.derived.get(subclasses)
    if not isinstance(index, dict):
        with project.read_for(None):
            index = project.derived[subclasses] = _by_base(project)
    seen = {info}
    waiting = [info]
    while waiting:
        base = waiting.pop()
        candidates = index.get(base.name, ())
        project.questions.ask(info.file.path, BASES, base.name, (each.file.path for each in candidates))
        for candidate in candidates:
            project.consult(info.file, candidate.file.path)
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
            for name in _base_names(module.file, info.definition):
                found[name].append(info)
    return dict(found)


def _base_names(file: SourceFile, definition: Definition) -> Iterator[str]:
    """Yield the names of a class's bases, as they are called where they are defined."""
    for name in definition.bases:
        first, _, rest = name.partition(".")
        imported = None if rest else file.outline.imported(first)
        known = imported.name if imported is not None and imported.name is not None else name
        yield known.rpartition(".")[2]


def _has_base(file: SourceFile, name: str) -> bool:
    return any(name in _base_names(file, each) for each in file.outline.classes.values())


BASES = Topic("bases", _has_base)
"""Which given files have a class with a base of this name."""
