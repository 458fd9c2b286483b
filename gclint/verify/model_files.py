"""Finds out from their text which files define models.

Only these are imported, since an import executes the file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.naming import MODEL_BASE, names_model
from gclint.code.outline import Definition, ImportedName, base_name
from gclint.code.packages import LIBRARY
from gclint.code.remembered import remembered
from gclint.facts import read_bytes


class ModelFiles:
    """Tells which files define models; remembers what it has read."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._files: dict[Path, SourceFile | None] = {}
        self._stars: dict[Path, list[SourceFile]] = {}

    def defines_model(self, path: Path) -> bool:
        """Return whether a file has a class that derives from ``PreTrainedModel``, judging by the text.

        Bases are followed through the file and the files that it imports from; classes of the library that
        are not available are judged by name. A file that cannot be read defines nothing, but one that the
        running Python cannot parse may: another one imports it, and says what is wrong if it cannot either.
        """
        file = self._file(path)
        if file is None or "class" not in file.text:
            return False
        if file.tree is None:
            return MODEL_BASE in file.text
        seen: set[tuple[Path, str]] = set()
        return any(
            self._derives(file, base, seen)
            for definition in file.outline.definitions
            if definition.is_class and (not definition.is_local or _is_made(definition, file))
            for base in definition.bases
        )

    def _file(self, path: Path) -> SourceFile | None:
        if path not in self._files:
            self._files[path] = _read(path)
        return self._files[path]

    def _derives(self, file: SourceFile, name: str, seen: set[tuple[Path, str]]) -> bool:
        """Return whether a name, maybe with dots, is ``PreTrainedModel`` in a file, or derives from it.

        Each name is followed once, however many ways lead to it: those in ``seen`` have been, to no avail.
        """
        waiting = [(file, name)]
        while waiting:
            at, called = waiting.pop()
            if (at.path, called) in seen:
                continue
            seen.add((at.path, called))
            found = self._step(at, called)
            if found is True:
                return True
            waiting += found or ()
        return False

    def _step(self, file: SourceFile, name: str) -> bool | list[tuple[SourceFile, str]]:
        """Return whether a name is that of a model, or the names that it stands for or derives from."""
        if name == MODEL_BASE:
            return True
        first, _, rest = name.partition(".")
        if rest:
            return names_model(
                rest.rpartition(".")[2], is_librarys=_is_of_library(file.outline.imported(first))
            )
        own = file.outline.classes.get(name)
        if own is not None:
            return [(file, base) for base in own.bases]
        imported = file.outline.imported(name)
        if imported is not None:
            original = imported.name or name
            source = self._imported_file(file, imported.module, imported.level)
            if source is not None and original != MODEL_BASE:
                return [(source, original)]
            return names_model(original, is_librarys=_is_of_library(imported))
        alias = _aliases(file).get(name)
        if alias is not None:
            return [(file, alias)]
        found = [(source, name) for source in self._starred(file)]
        return found if not names_model(name, is_librarys=False) else True

    def _starred(self, file: SourceFile) -> list[SourceFile]:
        """Return the files of which a file imports all names."""
        if file.path not in self._stars:
            modules = [each.module for each in file.outline.imports if any(i.path == "*" for i in each.items)]
            bare = [(each, each.lstrip(".")) for each in dict.fromkeys(modules) if each is not None]
            found = (self._imported_file(file, rest, len(each) - len(rest)) for each, rest in bare)
            self._stars[file.path] = [each for each in found if each is not None]
        return self._stars[file.path]

    def _imported_file(self, file: SourceFile, module: str, level: int) -> SourceFile | None:
        """Return the file of a module: of the same package, or of a package above the file."""
        parts = [part for part in module.split(".") if part]
        folders = [file.path.absolute().parent, *file.path.absolute().parent.parents]
        starts = folders[level - 1 : level] if level else folders
        for folder in starts:
            place = folder.joinpath(*parts)
            for path in (*([place.with_suffix(".py")] if parts else []), place / "__init__.py"):
                found = self._file(path)
                if found is not None and found.path != file.path and found.tree is not None:
                    return found
        return None


def _read(path: Path) -> SourceFile | None:
    try:
        return SourceFile(path, read_bytes(path))
    except (OSError, UnreadableFile):
        return None


@remembered
def _aliases(file: SourceFile) -> dict[str, str]:
    """Return the names that a module gives to others, with the first name that each stands for."""
    found: dict[str, str] = {}
    for name, value in _assigned(file):
        original = None if isinstance(value, ast.Subscript) else base_name(value)
        if original is not None:
            found.setdefault(name, original)
    return found


@remembered
def _makers(file: SourceFile) -> frozenset[str]:
    """Return the functions whose results have names in the module."""
    calls = (value.func for _, value in _assigned(file) if isinstance(value, ast.Call))
    return frozenset(function.id for function in calls if isinstance(function, ast.Name))


def _assigned(file: SourceFile) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a module gives values in its own statements, with these."""
    for statement in () if file.tree is None else file.tree.module.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value


def _is_made(definition: Definition, file: SourceFile) -> bool:
    """Return whether the function that contains a local class gives a module-level name its value."""
    outer = definition
    while outer.parent is not None:
        outer = outer.parent
    return outer.name in _makers(file)


def _is_of_library(imported: ImportedName | None) -> bool:
    return imported is not None and imported.level == 0 and imported.module.split(".")[0] == LIBRARY
