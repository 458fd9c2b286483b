"""Which files import a class from another one: those of a run, and those around them that checkpoint."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import Module, library_of
from gclint.network.evaluation.values import ClassValue
from gclint.network.outside import FLAG
from gclint.source.file import UnreadableFile
from gclint.source.project import Project
from gclint.source.surroundings import files_mentioning

_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import\b", re.MULTILINE)


def importers(project: Project, info: ClassInfo) -> Iterator[Module]:
    """Yield the modules that import a class by its name."""
    for path in (*_given(project, info), *_around(project, info)):
        module = library_of(project).module(project.file(path))
        names = [each for each in module.file.outline.all_imported() if each.name == info.name]
        if module.file is not info.file and any(
            ClassValue(info) in module.lookup(each.bound) for each in names
        ):
            yield module


def users(project: Project, file: Module) -> Iterator[Module]:
    """Yield the modules that import some class of a module by its name."""
    seen: set[Path] = set()
    for info in file.classes.values():
        for module in importers(project, info):
            if module.file.path not in seen:
                seen.add(module.file.path)
                yield module


def _around(project: Project, info: ClassInfo) -> Iterator[Path]:
    """Yield the files beside the given ones that have to do with checkpointing and name a class."""
    for path in files_mentioning(project, FLAG):
        if path not in project.given:
            try:
                named = info.name in project.file(path).text
            except (OSError, UnreadableFile):
                continue  # It is none of the run's.
            if named:
                yield path


def _given(project: Project, info: ClassInfo) -> Iterator[Path]:
    """Yield the given files that import from a module called like a class's own, or like its package."""
    index = project.derived.get(importers)
    if not isinstance(index, dict):
        index = project.derived[importers] = _by_module(project)
    names = (info.file.path.stem, project.model(info.file.path), "")
    found = dict.fromkeys(path for name in names for path in index.get(name, ()))
    yield from (path for path in found if info.name in project.file(path).text)


def _by_module(project: Project) -> Mapping[str, list[Path]]:
    """Return the given files by the last names of the modules that they import from."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in project.paths:
        try:
            text = project.file(path).text
        except (OSError, UnreadableFile):
            continue  # The run reports it; it imports nothing.
        for module in dict.fromkeys(_FROM.findall(text)):
            found[module.rpartition(".")[2]].append(path)
    return dict(found)
