"""Finds the files that import a class: given ones, and those around them that mention checkpointing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.likely import given_answer, given_by_word, likely_imported, words
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import ModuleInfo, library_of
from gclint.network.evaluation.values import ClassValue
from gclint.network.outside import FLAG


def importers(project: Project, info: ClassInfo) -> Iterator[ModuleInfo]:
    """Yield the modules that import a class by name."""
    for path in likely_importers(project, info.file, info.name):
        module = library_of(project).module(project.consult(info.file, path))
        names = [each for each in module.file.outline.all_imported() if each.name == info.name]
        if module.file is not info.file and any(
            ClassValue(info) in module.lookup(each.bound) for each in names
        ):
            yield module


def likely_importers(project: Project, file: SourceFile, name: str) -> Iterator[Path]:
    """Yield the files that import a name from a module named like a file, or its package."""
    key = "|".join((name, *sorted({file.path.stem, project.model(file.path), ""})))
    given = given_answer(project, IMPORTERS, key, likely_imported, file)
    yield from dict.fromkeys((*given, *_around(project, file, name)))


@remembered
def users(file: ModuleInfo) -> tuple[ModuleInfo, ...]:
    """Return the modules that import any class of a module by name."""
    project = file.library.project
    found = (module for info in file.classes.values() for module in importers(project, info))
    return tuple({module.file.path: module for module in found}.values())


def given_importing(project: Project, user: SourceFile, name: str) -> Sequence[Path]:
    """Return the given files that import a name from any module, for the verdict on ``user``."""
    return given_answer(project, IMPORTED, name, likely_imported, user)


def read_imports(project: Project) -> None:
    """Read what all given files may import, which is then remembered."""
    given_by_word(project, likely_imported)


def _around(project: Project, user: SourceFile, name: str) -> Iterator[Path]:
    """Yield the files around the given ones that mention checkpointing and a name."""
    yield from (file.path for file in project.chosen(_beside(project), BESIDE, name, user))


def _beside(project: Project) -> Sequence[Path]:
    """Return the files around the given ones that mention checkpointing."""
    known = project.derived.get(_beside)
    if not isinstance(known, tuple):
        found = (path for path in files_mentioning(project, FLAG) if path not in project.given)
        known = project.derived[_beside] = tuple(found)
    return known


@remembered
def words_in(file: SourceFile) -> frozenset[str]:
    """Return the words of a file around the given ones, in which the names of all classes are looked up."""
    return words((file.text,))


@remembered
def import_words(file: SourceFile) -> frozenset[str]:
    """Return the words in the imports of a file."""
    return frozenset(
        sys.intern(word)
        for statement in file.outline.imports
        for item in statement.items
        for path in (statement.module or "", item.path, item.alias or "")
        for word in path.split(".")
    )


@remembered
def _modules(file: SourceFile) -> frozenset[str]:
    """Return the last names of the modules that a file imports from."""
    modules = (each.module for each in file.outline.imports)
    return frozenset(module.rpartition(".")[2] for module in modules if module is not None)


def _imports_from(file: SourceFile, key: str) -> bool:
    name, *modules = key.split("|")
    return name in import_words(file) and not _modules(file).isdisjoint(modules)


def _imports(file: SourceFile, name: str) -> bool:
    return name in import_words(file) and file.outline.imported(name) is not None


def _is_beside(file: SourceFile, name: str) -> bool:
    return name in words_in(file) and FLAG in file.text


IMPORTERS = Topic("importers", _imports_from)
"""Asks which given files import a name, and something from one of these modules."""
IMPORTED = Topic("imported", _imports)
"""Asks which given files import something under this name."""
BESIDE = Topic("beside", _is_beside, is_about_given=False, is_about_others=True)
"""Asks which files around the given ones mention checkpointing and this name."""
