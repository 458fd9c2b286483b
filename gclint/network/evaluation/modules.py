"""The modules of a project, and the values of their module-level names."""

from __future__ import annotations

import ast
import re
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.naming import MODEL_BASE
from gclint.code.outline import Definition, ImportedName
from gclint.code.packages import LIBRARY
from gclint.code.project import Project
from gclint.code.walk import COMPREHENSIONS
from gclint.facts import entries, matching, read_bytes
from gclint.network.evaluation.body import Body
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.signature import Parameters
from gclint.network.evaluation.values import (
    NOTHING,
    ClassValue,
    EvaluatedExternal,
    EvaluatedFunction,
    ModuleValue,
    Value,
    Values,
)

_TABLES = (ast.Dict, ast.List, ast.Set, ast.Tuple, *COMPREHENSIONS)
_KEPT_SCOPES = 256
_OF_MODELS = ("modeling_", "modular_", "from .")
_HELPERS = ("modeling_utils", "modeling_outputs", "modeling_layers")
_NO_MODELS = ("configuration_", "tokenization_", "processing_")
_INIT = "__init__.py"
_BUILTINS = {"dict", "iter", "list", "next", "object", "reversed", "sorted", "tuple"}


class Library:
    """The modules of a project, each analyzed once."""

    def __init__(self, project: Project) -> None:
        """Describe the current files of ``project``."""
        self.project = project
        self._modules: dict[Path, ModuleInfo] = {}
        self._scopes: OrderedDict[tuple[ClassInfo, Definition], Scope] = OrderedDict()
        self._exports: dict[Path, Exports] = {}

    def module(self, file: SourceFile) -> ModuleInfo:
        """Return the module of a file."""
        known = self._modules.get(file.path)
        if known is None or known.file is not file:
            known = self._modules[file.path] = ModuleInfo(self, file)
        return known

    def exports(self, folder: Path) -> Exports:
        """Return the model classes that the transformers package in ``folder`` exports."""
        return self._exports.setdefault(folder, Exports(folder))

    def scope(self, owner: ClassInfo, method: Definition, module: ModuleInfo) -> Scope:
        """Return the scope of a method that ``owner`` defines or inherits.

        Only the most recent scopes are cached, since syntax trees are large.
        """
        key = (owner, method)
        if key in self._scopes:
            self._scopes.move_to_end(key)
            return self._scopes[key]
        body = Body.of_definition(method)
        scope = Scope(
            module,
            body,
            owner=owner,
            self_name=method.first_parameter,
            parameters=Parameters(method.function.args),
            tree=method.outline.file.tree,
        )
        self._scopes[key] = scope
        if len(self._scopes) > _KEPT_SCOPES:
            _, oldest = self._scopes.popitem(last=False)
            oldest.forget()
        return scope


def library_of(project: Project) -> Library:
    """Return the modules of a project; they are discarded when one of its files changes."""
    library = project.derived.get(Library)
    if not isinstance(library, Library):
        library = project.derived[Library] = Library(project)
    return library


class ModuleInfo:
    """A module: the values of a file's module-level names."""

    def __init__(self, library: Library, file: SourceFile) -> None:
        """Describe ``file``."""
        self.library = library
        self.file = file
        self.facts: dict[object, object] = {}
        self._names: dict[str, Values] = {}
        self._open: set[str] = set()
        self._infos: dict[Definition, ClassInfo] = {}

    @cached_property
    def classes(self) -> dict[str, ClassInfo]:
        """The classes that the file defines, by name."""
        return {name: self.info(definition) for name, definition in self.file.outline.classes.items()}

    def info(self, definition: Definition) -> ClassInfo:
        """Return the description of a class in this file."""
        known = self._infos.get(definition)
        if known is None:
            known = self._infos[definition] = ClassInfo(self, definition)
        return known

    @cached_property
    def part_names(self) -> tuple[str, ...]:
        """The names of torch modules, or of tables of them, that the file defines or imports anywhere."""
        imported = [
            name.bound
            for statement in self.file.outline.imports
            if not self.is_library or any(word in statement.text for word in _OF_MODELS)
            for name in statement.names
            if self._may_define_blocks(name)
        ]
        tables = [name for name, kind in self.file.outline.assigned.items() if issubclass(kind, _TABLES)]
        return tuple(dict.fromkeys([*self.classes, *imported, *tables]))

    def lookup(self, name: str) -> Values:
        """Return the possible values of a module-level name."""
        known = self._names.get(name)
        if known is not None:
            return known
        if name in self._open:
            return NOTHING
        self._open.add(name)
        try:
            values = self._names[name] = self._lookup(name)
        finally:
            self._open.discard(name)
        return values

    def _lookup(self, name: str) -> Values:
        outline = self.file.outline
        starred = self._starred(name)
        if starred:
            return starred
        if name in outline.classes:
            return frozenset((ClassValue(self.classes[name]),))
        if name in outline.functions:
            return frozenset((EvaluatedFunction(outline.functions[name].function, Scope(self, None)),))
        builtin = frozenset((EvaluatedExternal(name),)) if name in _BUILTINS else NOTHING
        return self._imported(name) or self._assigned(name) or builtin

    def resolve(self, dotted: str) -> Values:
        """Return the possible values of a dotted name."""
        first, *rest = dotted.split(".")
        values = self.lookup(first)
        for part in rest:
            found: set[Value] = set()
            for value in values:
                if isinstance(value, EvaluatedExternal):
                    found.add(EvaluatedExternal(f"{value.name}.{part}"))
                elif isinstance(value, ModuleValue):
                    found |= value.module.member(part, value.name)
            values = frozenset(found)
        return values

    def member(self, name: str, own_name: str) -> Values:
        """Return the values that another file gets if it imports ``name`` from this module, ``own_name``."""
        full = f"{own_name}.{name}" if own_name else name
        external: Values = frozenset((EvaluatedExternal(full),))
        if name in (MODEL_BASE, CHECKPOINTING_BASE):
            own = self.classes.get(name)
            return external if own is None or not own.is_namesake else frozenset((ClassValue(own),))
        return self._exported(name) or self.lookup(name) or self._submodule(name, full) or external

    @cached_property
    def is_library(self) -> bool:
        """Whether the file is a part of transformers itself."""
        return self.library.project.home(self.file) is not None

    def _exported(self, name: str) -> Values:
        """Return the model class that the package exports, if this is its `__init__.py`."""
        home = self.library.project.home(self.file)
        if home is None or self.library.project.location(self.file.path) != home.folder / _INIT:
            return NOTHING
        # Names imported from elsewhere are mostly not models, and a failing search would read all models.
        imported = self.file.outline.imported(name)
        is_elsewhere = imported is not None and not imported.module.startswith("models")
        if is_elsewhere or not name[:1].isupper():
            return NOTHING
        path = self.library.exports(home.folder).file_of(name)
        file = None if path is None else self.library.project.available(self.file, path)
        return NOTHING if file is None else self.library.module(file).lookup(name)

    def _submodule(self, name: str, full: str) -> Values:
        if self.file.path.name != _INIT:
            return NOTHING
        file = self.library.project.module(self.file, name, 1)
        if file is None:
            return NOTHING
        return frozenset((ModuleValue(self.library.module(file), full),))

    # -- imports

    def _imported(self, name: str) -> Values:
        imported = self.file.outline.imported(name)
        if imported is None:
            return NOTHING
        if imported.name is None:
            return self._imported_module(imported)
        full = f"{imported.module}.{imported.name}" if imported.module else imported.name
        external = frozenset((EvaluatedExternal(full),))
        # The two essential base classes are not looked up; other packages may have a `PreTrainedModel`.
        is_known = imported.name == CHECKPOINTING_BASE or (
            imported.name == MODEL_BASE and (self.is_library or imported.module.startswith("transformers"))
        )
        if is_known or not self._may_define_blocks(imported):
            return external
        file = self.library.project.module(self.file, imported.module, imported.level)
        if file is not None and file is not self.file:
            return self.library.module(file).member(imported.name, imported.module)
        # The name may be a submodule of a package.
        file = self.library.project.module(self.file, full, imported.level)
        if file is None or file is self.file:
            return external
        return frozenset((ModuleValue(self.library.module(file), full),))

    def _imported_module(self, imported: ImportedName) -> Values:
        file = None
        if not self.is_library:
            file = self.library.project.module(self.file, imported.module, 0)
        if file is None or file is self.file:
            return frozenset((EvaluatedExternal(imported.module),))
        return frozenset((ModuleValue(self.library.module(file), imported.module),))

    def _starred(self, name: str) -> Values:
        """Return the values of a name that comes from a star import, and is not bound again below it."""
        for start, imported in reversed(self.stars):
            file = self.library.project.module(self.file, imported.module, imported.level)
            if file is None or file is self.file or not self._may_bind(file, name):
                continue
            if file.outline.exports(name) is not False and not self._gives_back(file, name):
                found = self.library.module(file).lookup(name)
                if found:
                    return NOTHING if self._is_bound_below(name, start) else found
        return NOTHING

    def _may_bind(self, file: SourceFile, name: str) -> bool:
        """Return whether a file may have a name, be it from others; it only saves to read the file."""
        hands_on = "import *" in file.text and self.library.project.home(file) is None
        return hands_on or mentions(file.text, name)

    def _gives_back(self, file: SourceFile, name: str) -> bool:
        """Return whether a file has imported a name from this one."""
        imported = file.outline.imported(name)
        if imported is None:
            return False
        return self.library.project.module(file, imported.module, imported.level) is self.file

    def _is_bound_below(self, name: str, start: int) -> bool:
        """Return whether a statement of the module below a place binds a name."""
        outline, tree = self.file.outline, self.file.tree
        defined = (outline.classes.get(name), outline.functions.get(name))
        starts = [each.start for each in defined if each is not None]
        starts += [each.start for each in outline.imports if any(one.bound == name for one in each.names)]
        if tree is not None and name in tree.assignments:
            starts.append(self.file.places.start(tree.assignments[name]))
        return any(each > start for each in starts)

    @cached_property
    def stars(self) -> tuple[tuple[int, ImportedName], ...]:
        """The star imports, each with its place."""
        modules = (
            (each.start, each.module, each.module.lstrip("."))
            for each in self.file.outline.imports
            if each.module is not None and any(item.path == "*" for item in each.items)
        )
        stars = (
            (start, ImportedName("*", name, len(module) - len(name), "*")) for start, module, name in modules
        )
        return tuple(each for each in stars if self._may_define_blocks(each[1]))

    def _may_define_blocks(self, imported: ImportedName) -> bool:
        """Return whether a module may define blocks, so that it is read.

        In the library, only modeling files and modules in the same folder do; its large helper modules define
        no layers. Another package may define its layers anywhere.
        """
        first, last = imported.module.partition(".")[0], imported.module.rpartition(".")[2]
        if self.is_library or (first == LIBRARY and not imported.level):
            if last.startswith(("modeling_", "modular_")):
                return not last.endswith("_utils") and last not in _HELPERS
            is_of_models = imported.module.split(".")[:2] in ([LIBRARY], [LIBRARY, "models"])
            if imported.level > 1 or not (imported.level or is_of_models):
                return False
        return not last.startswith(_NO_MODELS)

    # -- assignments

    def _assigned(self, name: str) -> Values:
        tree = self.file.tree if name in self.file.outline.assigned else None
        if tree is None:
            return NOTHING
        return Scope(self, Body(self.file, [tree.assignments[name]])).name(name)


# A search for a literal beginning is ten times as fast as one for the start of a line.
_CLASS = re.compile(rb"\nclass (\w+)")
_OTHER_FRAMEWORKS = ("modeling_tf_", "modeling_flax_")


class Exports:
    """The exported model classes of a library."""

    def __init__(self, library: Path) -> None:
        """Remember the folder of the package, without reading it."""
        self._models = library / "models"

    def file_of(self, name: str) -> Path | None:
        """Return the modeling file that defines the class ``name``.

        The name of a class usually begins with that of the model's folder. Only if it is not found there,
        all models are searched, once.
        """
        lowered = name.lower()
        for folder in self._folders:
            if lowered.startswith(folder.name.replace("_", "")):
                for path in _modeling_files(folder):
                    if name.encode() in _classes(path):
                        return path
        return self._all.get(name.encode())

    def may_have(self, name: str) -> bool:
        """Return whether a file of any model contains a name, and the package may export it."""
        lowered, wanted = name.lower(), name.encode()
        likely = [each for each in self._folders if lowered.startswith(each.name.replace("_", ""))]
        folders = dict.fromkeys((*likely, *self._folders))
        return any(wanted in _read(path) for folder in folders for path in matching(folder, "*.py"))

    @cached_property
    def _folders(self) -> list[Path]:
        """The folders of the models, those with the longest names first."""
        try:
            names = [each.name for each in entries(self._models) if not each.name.startswith((".", "_"))]
        except OSError:
            return []
        return [self._models / name for name in sorted(names, key=lambda name: (-len(name), name))]

    @cached_property
    def _all(self) -> dict[bytes, Path]:
        return {
            name: path
            for folder in self._folders
            for path in _modeling_files(folder)
            for name in _classes(path)
        }


def _modeling_files(folder: Path) -> Iterator[Path]:
    for path in matching(folder, "modeling_*.py"):
        if not path.name.startswith(_OTHER_FRAMEWORKS):
            yield path


def _classes(path: Path) -> list[bytes]:
    return _CLASS.findall(b"\n" + _read(path))


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError:
        return b""
