"""Finds out from their text which files define models.

Only these are imported, since an import executes the file.
"""

from __future__ import annotations

import re
from pathlib import Path

from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.naming import MODEL_BASE, names_model
from gclint.source.outline import Definition, ImportedName
from gclint.source.packages import LIBRARY

_DEPTH = 40
"""Through how many classes and files a base is followed; a longer chain is taken for a circle."""


class ModelFiles:
    """Tells which files define models; remembers what it has read."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._files: dict[Path, SourceFile | None] = {}

    def defines_model(self, path: Path) -> bool:
        """Return whether a file has a class that derives from ``PreTrainedModel``, judging by the text.

        Bases are followed through the file and the files that it imports from; classes of the library that
        are not available are judged by name. A file that cannot be read defines nothing.
        """
        file = self._file(path)
        if file is None or "class" not in file.text:
            return False
        return any(
            self._derives(file, base, _DEPTH)
            for definition in file.outline.definitions
            if definition.is_class and (not definition.is_local or _is_made(definition, file.text))
            for base in definition.bases
        )

    def _file(self, path: Path) -> SourceFile | None:
        if path not in self._files:
            self._files[path] = _read(path)
        return self._files[path]

    def _derives(self, file: SourceFile, name: str, left: int) -> bool:
        """Return whether ``name`` in a file is ``PreTrainedModel`` or derives from it."""
        if left == 0 or name == MODEL_BASE:
            return name == MODEL_BASE
        first, _, rest = name.partition(".")
        if rest:
            return names_model(
                rest.rpartition(".")[2], is_librarys=_is_of_library(file.outline.imported(first))
            )
        own = file.outline.classes.get(name)
        if own is not None:
            return any(base != name and self._derives(file, base, left - 1) for base in own.bases)
        imported = file.outline.imported(name)
        if imported is None:
            return self._derives_otherwise(file, name, left)
        original = imported.name or name
        source = self._imported_file(file, imported.module, imported.level)
        if source is not None and original != MODEL_BASE:
            return self._derives(source, original, left - 1)
        return names_model(original, is_librarys=_is_of_library(imported))

    def _derives_otherwise(self, file: SourceFile, name: str, left: int) -> bool:
        """Tell the same for a name that is neither a class nor imported by itself."""
        alias = re.search(rf"^{re.escape(name)} *= *([\w.]+) *$", file.text, re.MULTILINE)
        if alias is not None:
            return alias[1] != name and self._derives(file, alias[1], left - 1)
        for statement in file.outline.imports:
            module = statement.module
            if module is not None and any(item.path == "*" for item in statement.items):
                bare = module.lstrip(".")
                source = self._imported_file(file, bare, len(module) - len(bare))
                if source is not None and self._derives(source, name, left - 1):
                    return True
        return names_model(name, is_librarys=False)

    def _imported_file(self, file: SourceFile, module: str, level: int) -> SourceFile | None:
        """Return the file of a module: of the same package, or of a package above the file."""
        parts = [part for part in module.split(".") if part]
        folders = [file.path.absolute().parent, *file.path.absolute().parent.parents]
        starts = folders[level - 1 : level] if level else folders
        for folder in starts:
            place = folder.joinpath(*parts)
            for path in (place.with_suffix(".py"), place / "__init__.py"):
                found = self._file(path) if parts or path.name == "__init__.py" else None
                if found is not None and found.path != file.path:
                    return found
        return None


def _read(path: Path) -> SourceFile | None:
    try:
        return SourceFile(path, path.read_bytes()) if path.is_file() else None
    except (OSError, UnreadableFile):
        return None


def _is_made(definition: Definition, text: str) -> bool:
    """Return whether the function that contains a local class gives a module-level name its value."""
    outer = definition
    while outer.parent is not None:
        outer = outer.parent
    name = outer.name
    return re.search(rf"^\w+ *= *{re.escape(name)}\(", text, re.MULTILINE) is not None


def _is_of_library(imported: ImportedName | None) -> bool:
    return imported is not None and imported.level == 0 and imported.module.split(".")[0] == LIBRARY
