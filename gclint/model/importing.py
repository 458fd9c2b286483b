"""Whether a module imports from another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from gclint.model.spaces import Imported, Space
from gclint.model.values import Class, External, Function, Thing
from gclint.source.file import SourceFile

_PACKAGE = "__init__"


def names_any(space: Space, files: Set[SourceFile], words: Set[str]) -> bool:
    """Tell whether a module imports one of some files, or something of them by one of these names.

    What is called so and is found elsewhere, or is of another package, is something else.
    """
    stems = {each.path.parent.name if each.path.stem == _PACKAGE else each.path.stem for each in files}
    folders = stems.union(*(each.path.parts for each in files))
    for imported in _imports(space):
        things = space.resolve(imported).things if imported.name in words else ()
        if any(_may_be_of(each, files, folders) for each in things):
            return True
        for module in _modules(imported):
            if module.rpartition(".")[2] in stems:
                found = space.spaces.project.module(space.file, module, imported.level)
                if found in files or (found is None and module.partition(".")[0] in folders):
                    return True
    return False


def _may_be_of(thing: Thing, files: Set[SourceFile], folders: Set[str]) -> bool:
    if isinstance(thing, (Class, Function)):
        return thing.space.file in files
    return not isinstance(thing, External) or thing.name.partition(".")[0] in folders


def _modules(imported: Imported) -> Iterator[str]:
    """Yield the names of modules that an import may be about."""
    yield imported.module
    if imported.name is not None:
        yield ".".join(filter(None, (imported.module, imported.name)))


def _imports(space: Space) -> Iterator[Imported]:
    """Yield what a module imports anywhere."""
    for node in () if space.tree is None else ast.walk(space.tree):
        if isinstance(node, ast.Import):
            yield from (Imported(each.name, 0, None, space) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (Imported(node.module or "", node.level, each.name, space) for each in node.names)
