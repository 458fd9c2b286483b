"""Whether a module imports from another one."""

from __future__ import annotations

from collections.abc import Iterator, Set

from gclint.code.file import SourceFile
from gclint.code.likely import likely_imported
from gclint.model.spaces import Spaces
from gclint.model.values import Class, External, Function, Imported, Thing

_PACKAGE = "__init__"


def names_any(spaces: Spaces, user: SourceFile, files: Set[SourceFile], words: Set[str]) -> bool:
    """Tell whether a file imports one of some files, or something of them by one of these names.

    What is called so and is found elsewhere, or is of another package, is something else.
    """
    stems = {each.path.parent.name if each.path.stem == _PACKAGE else each.path.stem for each in files}
    if likely_imported(user).isdisjoint(stems | words):
        return False  # Without parsing it.
    folders = stems.union(*(each.path.parts for each in files))
    for name, module, level in _imports(user):
        if name in words:  # Only now, since its tree stays.
            space = spaces.of(user)
            things = space.resolve(Imported(module, level, name, space)).things
            if any(_may_be_of(each, files, folders) for each in things):
                return True
        for full in (module, ".".join(filter(None, (module, name)))):
            if full.rpartition(".")[2] in stems:
                found = spaces.project.module(user, full, level)
                if found in files or (found is None and full.partition(".")[0] in folders):
                    return True
    return False


def _may_be_of(thing: Thing, files: Set[SourceFile], folders: Set[str]) -> bool:
    if isinstance(thing, (Class, Function)):
        return thing.space.file in files
    return not isinstance(thing, External) or thing.name.partition(".")[0] in folders


def _imports(file: SourceFile) -> Iterator[tuple[str | None, str, int]]:
    """Yield what a file imports anywhere: a name, unless it is a module itself, the module and its level."""
    for statement in file.outline.imports:
        module = statement.module
        for item in statement.items:
            if module is None:
                yield None, item.path, 0
            else:
                bare = module.lstrip(".")
                yield item.path, bare, len(module) - len(bare)
