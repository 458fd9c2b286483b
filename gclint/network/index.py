"""An index of classes by their bases, made in one pass over all class headers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import cast

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import Module, library_of
from gclint.source.file import SourceFile, UnreadableFile, of_text
from gclint.source.project import Project
from gclint.source.questions import Topic

_Index = Mapping[str, list[tuple[Module, str]]]


def subclasses(project: Project, info: ClassInfo) -> Iterator[ClassInfo]:
    """Yield the classes of the given files that inherit from a class, at any depth and from any file."""
    seen = {info}
    waiting = [info]
    while waiting:
        base = waiting.pop()
        with project.read_for(None):
            candidates = _based_on(project, base.name)
        project.questions.ask(info.file.path, BASES, base.name, (each.file.path for each, _ in candidates))
        for module, name in candidates:
            project.consult(info.file, module.file.path)
            candidate = module.classes[name]
            if candidate not in seen and base in candidate.bases:
                seen.add(candidate)
                waiting.append(candidate)
                yield candidate


def _based_on(project: Project, name: str) -> list[tuple[Module, str]]:
    """Return the classes with a base of this name, each as its module and name."""
    known = project.questions.standing_answer(BASES, name)
    if known is not None:
        modules = [library_of(project).module(project.file(path)) for path in project.in_order(known)]
        return [(each, own) for each in modules for own, base in _bases(each.file) if base == name]
    index = project.derived.get(_by_base)
    if not isinstance(index, dict):
        index = project.derived[_by_base] = _by_base(project)
    return cast("_Index", index).get(name, [])


def _by_base(project: Project) -> _Index:
    """Return the classes by the names that their bases have where they are defined."""
    found: defaultdict[str, list[tuple[Module, str]]] = defaultdict(list)
    for path in project.paths:
        try:
            module = library_of(project).module(project.file(path))
        except (OSError, UnreadableFile):
            continue  # The run reports that it cannot be read.
        for name, base in _bases(module.file):
            found[base].append((module, name))
    return dict(found)


@of_text
def _bases(file: SourceFile) -> tuple[tuple[str, str], ...]:
    """Return pairs of the classes of a file and the names that their bases have where they are defined."""
    found = []
    for definition in file.outline.classes.values():
        for name in definition.bases:
            first, _, rest = name.partition(".")
            imported = None if rest else file.outline.imported(first)
            known = imported.name if imported is not None and imported.name is not None else name
            found.append((definition.name, known.rpartition(".")[2]))
    return tuple(found)


def _has_base(file: SourceFile, name: str) -> bool:
    return any(base == name for _, base in _bases(file))


BASES = Topic("bases", _has_base)
"""Asks which given files have a class with a base of this name."""
