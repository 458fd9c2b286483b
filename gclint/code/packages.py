"""Resolves imported modules as Python would, and finds the folder of transformers, also in environments."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from gclint.facts import exists, is_dir, is_file, matching, package_locations, read_text, real_path, variable
from gclint.releases import Releases, releases

LIBRARY = "transformers"
INSTALLED = frozenset(("site-packages", "dist-packages"))
"""The names of folders with the packages of an environment."""

_BASE_CLASS = re.compile(r"^class PreTrainedModel\b([^:]{0,400}):", re.MULTILINE)
_VERSION = re.compile(r"^__version__[ \t]*=[ \t]*[\"']([^\"'\n]+)[\"']", re.MULTILINE)
_INIT = "__init__.py"


@dataclass(frozen=True)
class LibraryTree:
    """A folder that is transformers, judged by its content, whatever its name."""

    folder: Path
    is_context: bool
    """Whether it is outside of the user's tree: it is read, but never changed or reported."""

    @cached_property
    def releases(self) -> Releases | None:
        """The release that it claims to be."""
        found = _VERSION.search(text_or_nothing(self.folder / _INIT))
        if found is not None:
            with suppress(ValueError):
                return releases(found[1])
        return None

    @classmethod
    def at(cls, folder: Path, *, is_context: bool) -> LibraryTree | None:
        """Return the library in a folder; None if there is something else, or nothing."""
        found = _BASE_CLASS.search(text_or_nothing(folder / "modeling_utils.py"))
        # In another package, a class of that name derives from the one of transformers.
        is_library = found is not None and "PreTrainedModel" not in found[1]
        return cls(folder, is_context) if is_library else None


def text_or_nothing(path: Path) -> str:
    """Return the text of a UTF-8 file, with invalid bytes replaced; an empty one if it cannot be read."""
    try:
        return read_text(path, "replace")
    except OSError:
        return ""


class Packages:
    """The packages that the files of a run may import."""

    def __init__(
        self, given: Callable[[], Iterable[Path]], library: Path | None, environments: Iterable[Path]
    ) -> None:
        """Look at nothing yet; ``given`` returns the folders of the given files."""
        self._given = given
        self._library = library
        self._environments = environments
        self._above: dict[Path, Sequence[Path]] = {}
        self._roots: dict[Path, Path] = {}
        self._around: dict[Path, LibraryTree | None] = {}
        self._in_tree: dict[Path, LibraryTree | None] = {}
        self._found: dict[tuple[Path, str], tuple[Path | None, tuple[Path, ...]]] = {}

    def base(self, folder: Path, name: str, level: int) -> Path | None:
        """Return the path, without suffix, of a module that a file in the resolved ``folder`` imports.

        The ``level`` is the number of dots before its name.
        """
        parts = [part for part in name.split(".") if part]
        if level:
            above = self.within_repository(folder)[level - 1 :]
            return above[0].joinpath(*parts) if above else None
        if not parts:
            return None
        if parts[0] == LIBRARY:
            tree = self.library(folder)
            return None if tree is None else tree.folder.joinpath(*parts[1:])
        regular, namespaces = self._top(self.root(folder), parts[0])
        for parent in namespaces:
            base = parent.joinpath(*parts)
            if is_file(base.with_name(base.name + ".py")) or is_file(base / _INIT):
                return base
        parent_of_regular = (
            regular or self._given_packages.get(parts[0]) or self._parent_inside(folder, parts[0])
        )
        return None if parent_of_regular is None else parent_of_regular.joinpath(*parts)

    def _parent_inside(self, folder: Path, name: str) -> Path | None:
        """Return what holds the package of a name that a folder lies in, within another one by mistake.

        A stray ``__init__.py`` in the folder of a project makes it a package that nobody imports.
        """
        root = self.root(folder)
        inside = [each for each in (folder, *folder.parents) if root in each.parents and each.name == name]
        return inside[-1].parent if inside else None

    def within_repository(self, folder: Path) -> Sequence[Path]:
        """Return a folder and those above it, up to the root of its repository, or else of everything."""
        if folder not in self._above:
            folders = [folder, *folder.parents]
            tops = (number for number, each in enumerate(folders, 1) if exists(each / ".git"))
            self._above[folder] = folders[: next(tops, None)]
        return self._above[folder]

    def root(self, folder: Path) -> Path:
        """Return the folder that contains the package of the files in ``folder``."""
        met = []
        while folder not in self._roots:
            met.append(folder)
            if folder == folder.parent or not is_file(folder / _INIT):
                self._roots[folder] = folder
            else:
                folder = folder.parent
        root = self._roots[folder]
        self._roots.update(dict.fromkeys(met, root))
        return root

    def library_around(self, folder: Path) -> LibraryTree | None:
        """Return the library that the files in ``folder`` belong to."""
        met = []
        while folder not in self._around:
            met.append(folder)
            found = LibraryTree.at(folder, is_context=False)
            if found is not None or folder == folder.parent:
                self._around[folder] = found
            else:
                folder = folder.parent
        tree = self._around[folder]
        self._around.update(dict.fromkeys(met, tree))
        return tree

    def library_in_tree(self, folder: Path) -> LibraryTree | None:
        """Return the library that the files in ``folder`` belong to, or that is beside their package."""
        around = self.library_around(folder)
        if around is not None:
            return around
        root = self.root(folder)
        if root not in self._in_tree:
            candidates = (LibraryTree.at(each / LIBRARY, is_context=False) for each in _importable(root))
            self._in_tree[root] = next((each for each in candidates if each is not None), None)
        return self._in_tree[root]

    def library(self, folder: Path) -> LibraryTree | None:
        """Return the library that files in ``folder`` import; None if it is not available."""
        return (
            self.library_around(folder)
            or (self.installed if self._library is not None else None)
            or self.library_in_tree(folder)
            or self.installed
        )

    @cached_property
    def installed(self) -> LibraryTree | None:
        """The library that the user names, or the installed one."""
        if self._library is not None:
            return named_library(self._library)
        for environment in self._environments:
            for folder in package_folders(environment, LIBRARY):
                tree = LibraryTree.at(real_path(folder), is_context=True)
                if tree is not None:
                    return tree
        return None

    def is_context(self, path: Path) -> bool:
        """Return whether a file belongs to a known library that is only read."""
        installed = self.__dict__.get("installed")
        return installed is not None and path.is_relative_to(installed.folder)

    def _top(self, root: Path, name: str) -> tuple[Path | None, tuple[Path, ...]]:
        """Return the folder with a package or module of that name, and the namespace folders before it."""
        key = (root, name)
        if key not in self._found:
            namespaces: list[Path] = []
            regular = None
            # What is installed beside a given package is as foreign to it as to the package's repository.
            is_foreign = root.name in INSTALLED and name not in self._given_packages
            for folder in () if is_foreign else _importable(root):
                if is_file(folder / name / _INIT) or is_file(folder / f"{name}.py"):
                    regular = folder
                    break
                if is_dir(folder / name):
                    namespaces.append(folder)
            self._found[key] = regular, tuple(namespaces)
        return self._found[key]

    @cached_property
    def _given_packages(self) -> dict[str, Path]:
        """The packages that contain given files, by name, with the folders that contain the packages."""
        folders = {self.root(folder): folder for folder in self._given()}
        tops = {folder.relative_to(root).parts[0]: root for root, folder in folders.items() if folder != root}
        return dict(sorted(tops.items()))


def named_library(path: Path) -> LibraryTree | None:
    """Return the library at ``path``: its folder, the folder above, a checkout, or an environment."""
    inside = [path, path / LIBRARY, path / "src" / LIBRARY, *package_folders(path, LIBRARY)]
    trees = (LibraryTree.at(real_path(each), is_context=True) for each in inside)
    return next(filter(None, trees), None)


def _importable(root: Path) -> Iterator[Path]:
    """Yield the folders from which a file may import packages: its root, and those around it in the tree."""
    for folder in (root, *root.parents):
        yield folder
        if folder != root:
            yield folder / "src"
        if folder.name in INSTALLED or exists(folder / ".git"):
            return


_PACKAGES = (
    "lib/python3*/site-packages",
    "lib/python3*/dist-packages",
    "lib/python3/dist-packages",
    "Lib/site-packages",
)
_MOST_ADDED = 1_000
"""How many folders the files of an environment add at most; real ones add a few."""
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")


def active_environments() -> tuple[Path, ...]:
    """Return the environments that a run may belong to: the active ones, and gclint's own interpreter."""
    active = (variable(name) for name in _ACTIVE)
    return (*(Path(folder) for folder in active if folder), Path(sys.executable))


def package_folders(environment: Path, name: str) -> Iterator[Path]:
    """Yield the folders where a top-level package may be, which is not imported.

    The environment is given by its folder or its interpreter.
    """
    if environment == Path(sys.executable):
        yield from map(Path, package_locations(name))
    for prefix in _prefixes(environment):
        for pattern in _PACKAGES:
            for packages in _matching(prefix, pattern):
                yield packages / name
                for folder in islice(_added(packages), _MOST_ADDED):
                    yield folder / name


def _matching(prefix: Path, pattern: str) -> Iterator[Path]:
    """Yield the folders that match a pattern of several parts, the latest name first."""
    first, _, rest = pattern.partition("/")
    for folder in reversed(matching(prefix, first)):
        if rest:
            yield from _matching(folder, rest)
        elif is_dir(folder):
            yield folder


def _prefixes(environment: Path) -> Iterator[Path]:
    """Yield the folders of an environment, and of its base environment if it uses that one's packages."""
    if is_dir(environment):
        yield environment
        return
    folder = environment.parent.parent
    yield folder
    resolved = real_path(environment).parent.parent
    try:
        configuration = read_text(folder / "pyvenv.cfg", "replace")
    except OSError:
        sees_more = True  # This is not a virtual environment: the interpreter may be a link to one elsewhere.
    else:
        words = configuration.lower().replace(" ", "")
        sees_more = "include-system-site-packages=true" in words
    if sees_more and resolved != folder:
        yield resolved


def _added(packages: Path) -> Iterator[Path]:
    """Yield the folders that an editable installation adds to the path."""
    for pth in matching(packages, "*.pth"):
        with suppress(OSError):
            for line in read_text(pth, "replace").splitlines():
                if line.strip() and not line.startswith(("import ", "import\t", "#")):
                    yield packages / line.strip()
