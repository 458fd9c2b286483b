"""Imports modeling files under their names, with other texts instead of those on the disk."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from gclint.verify.worker.protocol import Place, Source

executed: set[Place] = set()
"""The watched places that this process, or the one that it was forked from, has executed."""
_MARK = "__gclint_executed__"


def import_source(source: Source) -> ModuleType:
    """Import a modeling file, and all that it imports; raise ImportError if its name leads elsewhere."""
    # Bytecode stays valid for a text of the same size within a second, so it could hide an edit.
    sys.dont_write_bytecode = True
    if source.package_folder is not None:
        _make_package(source.module.partition(".")[0], source.package_folder)
    folder, name = os.path.split(source.path)
    sys.meta_path.insert(0, _SiblingFinder(folder, source.module.rpartition(".")[0]))
    is_name = "." not in os.path.splitext(name)[0]  # noqa: PTH122 (as in the rest of this module)
    module = importlib.import_module(source.module) if is_name else _load(source)
    found = getattr(module, "__file__", None)
    if found is None or os.path.realpath(found) != os.path.realpath(source.path):
        raise ImportError(f"the name {source.module} leads to {found}")
    return module


def extend_search_path(folders: Sequence[str]) -> None:
    """Look for modules in ``folders`` first."""
    # A folder that is on the path already could hide the standard library if it came first.
    known = {os.path.realpath(each) for each in sys.path}
    sys.path[:0] = [folder for folder in folders if os.path.realpath(folder) not in known]


def _make_package(name: str, folder: str) -> None:
    """Make a package of a folder, for the relative imports of the files in it."""
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [folder]
    sys.modules[name] = importlib.util.module_from_spec(spec)


def _load(source: Source) -> ModuleType:
    """Import a file that cannot be imported by name, since its name has dots."""
    overlays = [each for each in sys.meta_path if isinstance(each, _OverlayFinder)]
    loaders = [each.loader(source.module, source.path) for each in overlays]
    loader = next(filter(None, loaders), None) or SourceFileLoader(source.module, source.path)
    spec = importlib.util.spec_from_loader(source.module, loader)
    assert spec
    module = sys.modules[source.module] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class _SiblingFinder:
    """Finds the files of a folder as top-level modules, if nothing else has their name.

    Code that was written to be loaded by its path has such imports. Such an import and a relative one give
    the same module.
    """

    def __init__(self, folder: str, package: str) -> None:
        self._folder = folder
        self._package = package
        self._known: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of the folder; None leaves it to the other finders."""
        first, _, rest = fullname.partition(".")
        if first not in self._known and (rest or not self._has(first)):
            return None
        self._known.add(first)
        name = f"{self._package}.{fullname}"
        if importlib.util.find_spec(name) is None:
            return None
        return ModuleSpec(fullname, _Alias(name))

    def _has(self, name: str) -> bool:
        place = os.path.join(self._folder, name)  # noqa: PTH118
        if not (os.path.isfile(f"{place}.py") or os.path.isdir(place)):  # noqa: PTH112, PTH113
            return False
        return name not in sys.builtin_module_names and PathFinder.find_spec(name) is None


class _Alias(Loader):
    """Loads a module under a second name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module, after importing it under its own name."""
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Keep the module's own name."""
        module.__spec__ = self._spec


def lay_over(overlay: Mapping[str, str], watched: Sequence[Place] = ()) -> None:
    """From now on, import texts instead of the files at these paths.

    Those of the watched statements in them that are executed are recorded in :data:`executed`.
    """
    if overlay:
        texts = {os.path.realpath(path): text for path, text in overlay.items()}
        sys.meta_path.insert(0, _OverlayFinder(texts, watched))


class _OverlayFinder:
    """Finds modules on the path, and loads some of them from other texts."""

    def __init__(self, texts: Mapping[str, str], watched: Sequence[Place]) -> None:
        self._texts = texts
        self._watched = {os.path.realpath(each.path): list[Place]() for each in watched}
        for each in watched:
            self._watched[os.path.realpath(each.path)].append(each)

    def loader(self, name: str, path: str) -> SourceFileLoader | None:
        """Return a loader for the text that replaces a file, if there is one."""
        real = os.path.realpath(path)
        text = self._texts.get(real)
        return None if text is None else _OverlayLoader(name, path, text, self._watched.get(real, ()))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose file has another text; None leaves it to the other finders."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not spec.has_location:
            return None
        loader = self.loader(fullname, spec.origin)
        if loader is None:
            return None
        spec.loader = loader
        return spec


class _OverlayLoader(SourceFileLoader):
    """Loads a module from a text; no bytecode is read or written."""

    def __init__(self, fullname: str, path: str, text: str, watched: Sequence[Place]) -> None:
        super().__init__(fullname, path)
        self._text = text
        self._watched = watched

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        return self._text

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text, and make it available to tracebacks and ``inspect``."""
        lines = self._text.splitlines(keepends=True)
        # An entry without a time is never compared with the disk.
        linecache.cache[self.path] = (len(self._text), None, lines, self.path)
        if not self._watched:
            return compile(self._text, self.path, "exec", dont_inherit=True)
        places = {(each.line, each.end_line): number for number, each in enumerate(self._watched)}
        tree: Any = _Marking(places).visit(ast.parse(self._text, self.path))
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run the code, which records the watched places by number."""
        vars(module)[_MARK] = lambda number: executed.add(self._watched[number])
        super().exec_module(module)


class _Marking(ast.NodeTransformer):
    """Inserts before each watched statement a statement that records it, without moving lines."""

    def __init__(self, places: Mapping[tuple[int, int], int]) -> None:
        self._places = places
        self._depth = 0

    def visit(self, node: ast.AST) -> ast.AST:
        """Mark the statements inside of a node."""
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self._depth += is_function
        self.generic_visit(node)
        if self._depth:
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list) and not isinstance(node, ast.ClassDef):
                    setattr(node, name, [new for each in statements for new in self._marked(each)])
        self._depth -= is_function
        return node

    def _marked(self, statement: ast.stmt) -> list[ast.stmt]:
        number = self._places.get((statement.lineno, statement.end_lineno or statement.lineno))
        if number is None:
            return [statement]
        name = ast.Name(_MARK, ast.Load())
        mark = ast.Expr(ast.Call(name, [ast.Constant(number)], []))
        ast.copy_location(mark, statement)
        return [ast.fix_missing_locations(mark), statement]
