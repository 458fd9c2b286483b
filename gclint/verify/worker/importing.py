"""Modeling files imported under their names, with other texts in place of those on the disk."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from gclint.verify.worker.protocol import Source


def import_source(source: Source) -> ModuleType:
    """Import a modeling file, and whatever it imports.

    Raises:
        ImportError: its name leads to another file.
    """
    if source.package_folder is not None:
        _make_package(source.module.rpartition(".")[0], source.package_folder)
    module = importlib.import_module(source.module)
    found = getattr(module, "__file__", None)
    if found is None or os.path.realpath(found) != os.path.realpath(source.path):
        raise ImportError(f"the name {source.module} leads to {found}")
    return module


def extend_search_path(folders: Sequence[str]) -> None:
    """Look for modules in ``folders`` first."""
    # One that is there already would hide the standard library if it came first.
    known = {os.path.realpath(each) for each in sys.path}
    sys.path[:0] = [folder for folder in folders if os.path.realpath(folder) not in known]


def _make_package(name: str, folder: str) -> None:
    """Make a package of a folder without one, for the relative imports of the files in it."""
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [folder]
    sys.modules[name] = importlib.util.module_from_spec(spec)


def lay_over(overlay: Mapping[str, str]) -> None:
    """Import texts in place of what is in the files at these paths, from now on."""
    if overlay:
        texts = {os.path.realpath(path): text for path, text in overlay.items()}
        sys.meta_path.insert(0, _OverlayFinder(texts))


class _OverlayFinder:
    """Finds what the path leads to, and loads some files' modules from other texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose file has another text; None leaves it to the other finders."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not spec.has_location:
            return None
        text = self._texts.get(os.path.realpath(spec.origin))
        if text is None:
            return None
        spec.loader = _OverlayLoader(fullname, spec.origin, text)
        return spec


class _OverlayLoader(SourceFileLoader):
    """Loads a module from a text; no bytecode is read or written."""

    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        return self._text

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text, and let tracebacks and ``inspect`` find it."""
        lines = self._text.splitlines(keepends=True)
        # An entry without a time is never compared with the disk.
        linecache.cache[self.path] = (len(self._text), None, lines, self.path)
        return compile(self._text, self.path, "exec", dont_inherit=True)
