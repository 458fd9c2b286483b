"""Which files import a class from another one: those of a run, and those around them that checkpoint."""

from __future__ import annotations

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

# What most imports are, and never those of a given file's class.
_OTHERS = ("import", "from typing", "from torch", "from collections", "from dataclasses")


def importers(project: Project, info: ClassInfo) -> Iterator[Module]:
    """Yield the modules that import a class by its name."""
    index = project.derived.get(importers)
    if not isinstance(index, dict):
        index = project.derived[importers] = _by_name(project)
    for path in (*index.get(info.name, ()), *_around(project, info)):
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


def _by_name(project: Project) -> Mapping[str, list[Path]]:
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in project.paths:
        try:
            file = project.file(path)
        except (OSError, UnreadableFile):
            continue  # The run reports it; it imports nothing.
        for statement in file.outline.imports:
            if not statement.text.startswith(_OTHERS):
                for name in statement.names:
                    if name.name is not None and name.name[:1].isupper():
                        found[name.name].append(file.path)
    return {name: list(dict.fromkeys(paths)) for name, paths in found.items()}
