"""Imports modeling files under their names, with other texts instead of those on the disk.

What is executed of them is noted: their branches, and the statements that a repair changes.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from gclint.verify.worker.branches import ENTERED, EXECUTED, LEFT, Marked, marked
from gclint.verify.worker.protocol import Coverage, Source, SourcePlace

executed: set[int] = set()
"""The numbers of what this process, or the one that it was forked from, has executed lately."""
_earlier: set[int] = set()
"""Those of what it had executed before it last entered a block."""
_inside: set[int] = set()
"""Those of what it has executed inside of blocks."""
_open: list[int] = []
"""Those of the blocks that it is in."""
_blocks: set[int] = set()
"""Those of the methods that blocks run."""
_MOST = 1_000_000
"""How many numbers each file has, so that they are the same in all processes."""
_watchers: list[_Watcher] = []


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


def lay_over(
    overlay: Mapping[str, str], watched: Sequence[SourcePlace] = (), sources: Sequence[str] = ()
) -> None:
    """From now on, import texts instead of the files at these paths.

    What is executed of them, and of further ``sources``, is recorded in :data:`executed`: their branches, and
    the watched statements.
    """
    texts: dict[str, str | None] = dict.fromkeys(map(os.path.realpath, sources))
    texts |= {os.path.realpath(path): text for path, text in overlay.items()}
    _watchers[:] = [_Watcher(path, number * _MOST) for number, path in enumerate(texts)]
    for each in watched:
        next(one for one in _watchers if one.path == os.path.realpath(each.path)).places.append(each)
    if texts:
        sys.meta_path.insert(0, _OverlayFinder(texts))


def watch_blocks(kinds: Iterable[type]) -> None:
    """Tell what the methods of some classes of blocks execute from what is executed elsewhere."""
    for base in {base for kind in kinds for base in kind.__mro__}:
        file = getattr(sys.modules.get(base.__module__), "__file__", None)
        path = None if file is None else os.path.realpath(file)
        for each in _watchers:
            if each.path == path and each.marked is not None:
                _blocks.update(each.first + number for number in each.marked.methods.get(base.__name__, ()))


def _entered(number: int) -> None:
    if number in _blocks:
        if not _open:
            _earlier.update(executed)
            executed.clear()
        _open.append(number)


def _left(number: int) -> None:
    if number in _blocks and _open:
        _open.pop()
        if not _open:
            _inside.update(executed)


def all_executed() -> frozenset[int]:
    """Return the numbers of all that was executed, and the inverted ones of what was inside of blocks."""
    return frozenset((*executed, *_earlier, *(~each for each in _inside)))


def forget_executed() -> None:
    """Begin anew."""
    for each in (executed, _earlier, _inside, _blocks):
        each.clear()
    _open.clear()


def text_of(path: str) -> str:
    """Return the text of a watched file, as it was imported."""
    return next(each.text for each in _watchers if each.path == path)


def undecided(numbers: Set[int]) -> Iterator[str]:
    """Yield the words of the conditions that have branches which were not executed in functions that were."""
    for each in _watchers:
        if each.marked is not None:
            yield from each.marked.words({number - each.first for number in numbers})


def executed_places(numbers: Set[int]) -> Iterator[SourcePlace]:
    """Yield the watched statements among what was executed."""
    for each in _watchers:
        yield from (place for number, place in enumerate(each.places) if each.first - 1 - number in numbers)


def outer_branches(numbers: Set[int]) -> Iterator[tuple[SourcePlace, bool]]:
    """Yield where the branches are among what was executed, but for those within others of them.

    With each comes whether it consists of statements of its own, and is no function.
    """
    for each in _watchers:
        for number, branch in enumerate(each.marked.branches if each.marked is not None else ()):
            around = each.marked.around[number] if each.marked is not None else None
            if each.first + number in numbers and (around is None or each.first + around not in numbers):
                _, *own = each.marked.nodes[number] if each.marked is not None else ()
                is_own = branch.kind in ("body", "else") and any(isinstance(node, ast.stmt) for node in own)
                yield SourcePlace(each.path, branch.line, branch.last), is_own


def coverage(numbers: Set[int]) -> Iterator[Coverage]:
    """Yield what was executed of each file that was imported, and what was not."""
    for each in _watchers:
        if each.marked is not None:
            yield from _covered(each.path, each.first, each.marked, numbers)
        elif each.text:
            yield Coverage(each.path, False, (), (), is_marked=False)


def _covered(path: str, first: int, marked: Marked, numbers: Set[int]) -> Iterator[Coverage]:
    for is_inside in (False, True):
        own = {(~number if is_inside else number) - first for number in numbers}
        entered, missed = marked.entered(own), marked.missed(own)
        if entered:
            yield Coverage(path, is_inside, tuple(entered), tuple(missed))


class _Watcher:
    """Notes what is executed of a file."""

    def __init__(self, path: str, first: int) -> None:
        self.path = path
        self.first = first + _MOST // 2
        """The number of the first branch; those of watched statements go down from it."""
        self.places: list[SourcePlace] = []
        self.text = ""
        """What was imported; empty before."""
        self.marked: Marked | None = None
        """The branches, once it is imported, unless it is nested too deeply."""

    def code(self, text: str, path: str) -> CodeType:
        """Compile a text with marks, or without any if it is nested too deeply for them."""
        self.text = text
        try:
            watched = {
                (each.line, each.end_line): self.first - 1 - number for number, each in enumerate(self.places)
            }
            self.marked = marked(text, path, self.first, watched)
            code: CodeType = compile(self.marked.tree, path, "exec", dont_inherit=True)
        except (RecursionError, SyntaxError):
            self.marked = None
            code = compile(text, path, "exec", dont_inherit=True)
        return code


class _OverlayFinder:
    """Finds modules on the path, and loads some of them from other texts, or with marks."""

    def __init__(self, texts: Mapping[str, str | None]) -> None:
        self._texts = texts
        names = (os.path.splitext(os.path.split(path)[1])[0] for path in texts)  # noqa: PTH122
        self._names = {*names, *(os.path.split(os.path.split(path)[0])[1] for path in texts)}

    def loader(self, name: str, path: str) -> SourceFileLoader | None:
        """Return a loader for a file that is watched, if it is one."""
        real = os.path.realpath(path)
        watcher = next((each for each in _watchers if each.path == real), None)
        return None if watcher is None else _OverlayLoader(name, path, self._texts[real], watcher)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose file is watched; None leaves it to the other finders."""
        if fullname.rpartition(".")[2] not in self._names:
            return None  # All that is imported comes by here.
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not spec.has_location:
            return None
        loader = self.loader(fullname, spec.origin)
        if loader is None:
            return None
        spec.loader = loader
        return spec


class _OverlayLoader(SourceFileLoader):
    """Loads a module with marks, from its file or another text; no bytecode is read or written."""

    def __init__(self, fullname: str, path: str, text: str | None, watcher: _Watcher) -> None:
        super().__init__(fullname, path)
        self._text = text
        self._watcher = watcher

    def get_source(self, fullname: str) -> str | None:
        """Return the text."""
        return super().get_source(fullname) if self._text is None else self._text

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text, and make it available to tracebacks and ``inspect``."""
        text = self.get_source(fullname)
        assert text is not None
        if self._text is not None:
            # An entry without a time is never compared with the disk.
            linecache.cache[self.path] = (len(text), None, text.splitlines(keepends=True), self.path)
        return self._watcher.code(text, self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the code, which records what is executed by number."""
        vars(module).update({EXECUTED: executed.add, ENTERED: _entered, LEFT: _left})
        super().exec_module(module)
