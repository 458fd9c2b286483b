"""Finds out from their text which files define models.

Only these are imported, since an import executes the file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.naming import MODEL_BASE, names_model
from gclint.code.outline import Definition
from gclint.code.packages import LIBRARY
from gclint.code.project import Project, reachable
from gclint.code.remembered import remembered
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.settings import Settings

_OTHER_BASE = "PreTrainedAudioTokenizerBase"
"""A class of the library that derives from the base class of models, in a file that is not followed."""
_OTHER_LIBRARIES = ("TF", "Flax")
"""What the names of models for other libraries begin with."""


class ModelFiles:
    """Tells which files define models; remembers what it has read."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._project = Project(Settings(), ())

    def defines_model(self, path: Path) -> bool:
        """Return whether a file has a class that derives from ``PreTrainedModel``, judging by the text.

        Bases are followed through the file and the files that it imports from; classes that are not available
        are judged by name. A file that cannot be read defines nothing, but one that the running Python cannot
        parse may: another one imports it, and says what is wrong if it cannot either.
        """
        try:
            file = self._project.file(path)
        except (OSError, UnreadableFile):
            return False
        if "class" not in file.text:
            return False
        if file.tree is None:
            return MODEL_BASE in file.text
        module = library_of(self._project).module(file)
        classes = [
            module.info(each)
            for each in file.outline.definitions
            if each.is_class and (not each.is_local or _is_made(each, file))
        ]
        return any(map(_names_model, reachable(classes, _bases_of)))


def _bases_of(info: ClassInfo) -> Iterator[ClassInfo]:
    """Yield the bases of a class that are available."""
    yield from (each for each in info.bases if isinstance(each, ClassInfo))


def _names_model(info: ClassInfo) -> bool:
    """Return whether a class has a base with the name of a model that is not followed further."""
    for written, base in zip(info.base_names, info.bases, strict=True):
        if isinstance(base, ClassInfo):
            found = base.name == MODEL_BASE
        else:
            path = written if base is None else base.name
            name, package = path.rpartition(".")[2], None if base is None else path.partition(".")[0]
            found = name == _OTHER_BASE or names_model(name, is_librarys=package == LIBRARY)
            found = found and not name.startswith(_OTHER_LIBRARIES)
        if found:
            return True
    return False


@remembered
def _makers(file: SourceFile) -> frozenset[str]:
    """Return the functions whose results have names in the module."""
    body = file.tree.module.body if file.tree is not None else []
    values = (each.value for each in body if isinstance(each, ast.Assign))
    calls = (each.func for each in values if isinstance(each, ast.Call))
    return frozenset(function.id for function in calls if isinstance(function, ast.Name))


def _is_made(definition: Definition, file: SourceFile) -> bool:
    """Return whether the function that contains a local class gives a module-level name its value."""
    outer = definition
    while outer.parent is not None:
        outer = outer.parent
    return outer.name in _makers(file)
