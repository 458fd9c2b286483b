"""An index of classes by their bases, made in one pass over all class headers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gclint.code.file import SourceFile
from gclint.code.likely import given_answer, likely_bases
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of


def subclasses(project: Project, info: ClassInfo) -> Iterator[ClassInfo]:
    """Yield the classes of the given files that inherit from a class, at any depth and from any file."""
    seen = {info}
    waiting = [info]
    while waiting:
        base = waiting.pop()
        for path in given_answer(project, BASES, base.name, likely_bases, info.file):
            module = library_of(project).module(project.consult(info.file, path))
            for candidate in map(module.classes.__getitem__, _by_base(module.file)[base.name]):
                if candidate not in seen and base in candidate.bases:
                    seen.add(candidate)
                    waiting.append(candidate)
                    yield candidate


@remembered
def _by_base(file: SourceFile) -> dict[str, list[str]]:
    """Return the classes of a file by the names that their bases have where they are defined."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for definition in file.outline.classes.values():
        for name in definition.bases:
            first, _, rest = name.partition(".")
            imported = None if rest else file.outline.imported(first)
            known = imported.name if imported is not None and imported.name is not None else name
            found[known.rpartition(".")[2]].append(definition.name)
    return dict(found)


BASES = Topic("bases", lambda file, name: name in _by_base(file))
"""Asks which given files have a class with a base of this name."""
