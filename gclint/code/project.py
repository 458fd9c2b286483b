"""The files of a run, each read once, and the files that they import and depend on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.packages import LibraryTree, Packages
from gclint.code.paths import shown
from gclint.code.questions import Question, Questions, Topic
from gclint.facts import PathResolver, is_dir, read_bytes, search
from gclint.observations import Observations
from gclint.releases import NEWEST_KNOWN, Assumed, Releases
from gclint.settings import Settings
from gclint.trace import phase

OF_FILES = "files"
"""The phase of facts about the contents of files that verdicts depend on."""


_Thing = TypeVar("_Thing")


def reachable(starts: Iterable[_Thing], following: Callable[[_Thing], Iterable[_Thing]]) -> set[_Thing]:
    """Return some things, those that follow from them, and so on."""
    found: set[_Thing] = set()
    waiting = [*starts]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(following(each))
    return found


class Project:
    """All files of a run, given or consulted, with changes that are not written yet.

    A file is identified by one path: as it was given, or as it was consulted first, however else it
    can be spelled. That is its ``SourceFile.path``, so paths in findings can be compared directly.
    """

    def __init__(
        self, settings: Settings, paths: Iterable[Path], within: Iterable[Path] | None = None
    ) -> None:
        """Take the files at ``paths``, without reading one yet.

        Nothing may be changed outside of what is ``within`` the given files and folders, wherever links lead.
        """
        self.settings = settings
        self._within = within = None if within is None else tuple(within)
        self.folders = tuple(path for path in within or () if is_dir(path))
        """The given folders."""
        self.surroundings: dict[object, tuple[Path, ...]] = {}
        """Files that are not given but matter, found once per run."""
        self.derived: dict[object, object] = {}
        """What others have derived from the files; it is forgotten when one of them changes."""
        self.observations = Observations()
        """What runs have observed; empty unless the files were run."""
        self._places = PathResolver()
        self._identities: dict[Path, Path] = {}
        """The identifying paths, by every spelling that was asked for, and by location."""
        self._files: dict[Path, SourceFile] = {}
        self._asked: set[Path] | None = None
        self._held: dict[Path, bytes] = {}
        """Contents that replace those on the disk."""
        self._missing: set[Path] = set()
        self._unparsed: set[Path] = set()
        self._uses: defaultdict[Path, set[Path]] = defaultdict(set)
        self._new_uses: list[tuple[Path, Path]] = []
        self.questions = Questions()
        """The questions to all files."""
        self._reader: Path | None = None
        self.paths = tuple(dict.fromkeys(map(self._identified, paths)))
        """The files that the user gave: they are checked, and searched for callers."""
        self._order: dict[Path, int] | None = None
        self.given = frozenset(self.paths)
        """The same as a set."""
        self._packages = Packages(self._given_folders, settings.library, settings.environments)
        self._stated: dict[Path, Assumed | None] = {}
        self.fixable = self.given if within is None else self._files_in(within)
        """Those that may be changed."""

    def __reduce__(self) -> tuple[type[Project], tuple[object, ...]]:
        """Pickle only what another process needs to read the same files from the disk."""
        return type(self), (self.settings, self.paths, self._within)

    def identify(self, path: Path) -> Path:
        """Return the path that identifies the file at ``path``; an unknown path is returned as it is."""
        known = self._identities.get(path)
        if known is None:
            known = self._identities.get(self.location(path))
            if known is None:
                return path
            self._identities[path] = known
        return known

    @contextmanager
    def watched(self) -> Iterator[set[Path]]:
        """Yield a set to which the files that are read meanwhile are added."""
        before, self._asked = self._asked, set()
        try:
            yield self._asked
        finally:
            self._asked = before

    def file(self, path: Path) -> SourceFile:
        """Return the file at ``path``.

        Raises:
            OSError: it cannot be read.
            UnreadableFile: it is not Python text.
        """
        identity = self.identify(path)
        if self._asked is not None:
            self._asked.add(identity)
        known = self._files.get(identity)
        if known is None:
            known = SourceFile(identity, self.read_bytes(identity), self._unparsed)
            self._files[self._identified(identity)] = known
        if self._reader is not None:
            self._use(self._reader, known.path)
        return known

    def readable(self, paths: Iterable[Path]) -> Iterator[SourceFile]:
        """Yield the files at ``paths`` that can be read; a run reports those of its own that cannot."""
        for path in paths:
            try:
                file = self.file(path)
            except (OSError, UnreadableFile):
                continue
            yield file

    @contextmanager
    def read_for(self, path: Path | None) -> Iterator[None]:
        """Record all that is read inside as dependencies of the verdict on the file at ``path``, if any."""
        before, self._reader = self._reader, path
        try:
            yield
        finally:
            self._reader = before

    def asked(
        self, topic: Topic, key: str, found: Callable[[], Iterable[Path]], user: Path | None = None
    ) -> frozenset[Path]:
        """Return the answer to a question to all given files, on which the verdict on ``user`` depends.

        By default, that is the file that is read for. It is ``found`` only if that of an earlier run is not
        valid.
        """
        known = self.questions.still_valid.get(Question(topic.name, key))
        if known is None:
            with self.read_for(None):
                known = frozenset(found())
        user = user or self._reader
        if user is not None:
            self.questions.ask(user, topic, key, known)
        return known

    def chosen(self, paths: Iterable[Path], topic: Topic, key: str, user: SourceFile) -> list[SourceFile]:
        """Return the files among some for which a topic holds; the verdict on ``user`` depends on which."""
        with self.read_for(None):
            found = [file for file in self.readable(paths) if topic.holds(file, key)]
        self.questions.ask(user.path, topic, key, (file.path for file in found))
        return found

    def read_bytes(self, path: Path) -> bytes:
        """Return the content of the file at ``path``, or what replaces it.

        Raises:
            OSError: it cannot be read.
        """
        held = self._held.get(self.identify(path)) if self._held else None
        if held is not None:
            return held
        with phase(OF_FILES):
            return read_bytes(path)

    def search(self, path: Path) -> bytes:
        """Return the same for a file in which only words are searched.

        Raises:
            OSError: it cannot be read.
        """
        held = self._held.get(self.identify(path)) if self._held else None
        return search(path) if held is None else held

    def hold(self, path: Path, data: bytes | None) -> None:
        """Give the file at ``path``, which need not exist, the content ``data``, in memory only.

        With None, its bytes on the disk count again.
        """
        identity = self._identified(path)
        if data is None:
            self._held.pop(identity, None)
        else:
            self._held[identity] = data
        if self._files.pop(identity, None) or path in self._missing:
            self._missing.discard(path)
            self.forget_derived()

    def knows(self, path: Path) -> bool:
        """Return whether the file at ``path`` matters: it is given, or was asked for."""
        identity = self.identify(path)
        return identity in self.given or identity in self._files or path in self._missing

    def in_order(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """Return some of the given files in the order of all of them."""
        if self._order is None:
            self._order = {path: number for number, path in enumerate(self.paths)}
        return tuple(sorted(paths, key=self._order.__getitem__))

    @property
    def read(self) -> tuple[Path, ...]:
        """The files that have been read, given or consulted."""
        return tuple(self._files)

    def _identified(self, path: Path) -> Path:
        """Return the path that identifies a file; a new file is identified by ``path``."""
        identity = self.identify(path)
        self._identities[self.location(path)] = self._identities[path] = identity
        return identity

    def location(self, path: Path) -> Path:
        """Return the resolved location of the file at ``path``, which decides its place in a package."""
        return self._places.location(path)

    def _files_in(self, roots: Iterable[Path]) -> frozenset[Path]:
        real = {self.location(root) for root in roots}
        locations = ((path, self.location(path)) for path in self.paths)
        return frozenset(
            path for path, place in locations if place in real or not real.isdisjoint(place.parents)
        )

    def model(self, path: Path) -> str:
        """Return the model that the file at ``path`` belongs to: the name of its folder."""
        return self.location(path).parent.name

    def replace(self, path: Path, text: str) -> None:
        """Give the file at ``path`` the content ``text``, in memory only."""
        file = self.file(path)
        self._files[file.path] = SourceFile(file.path, file.encode(text))
        self.observations.follow(file.path, file.text, text)
        self.forget_derived()

    def forget_derived(self) -> None:
        """Forget what was derived from the files."""
        self.derived.clear()
        self.questions.still_valid.clear()

    def observe(self, observations: Observations) -> None:
        """Store what runs have observed of the files as they are now."""
        self.observations = observations
        self.derived.clear()

    def dependents(self, changed: Iterable[Path]) -> set[Path]:
        """Return the files whose verdict may depend on a ``changed`` one, however that is spelled.

        A changed file may have been deleted, or not exist yet: it is identified by its location.
        """
        users = defaultdict(set)
        for user, used in self._uses.items():
            for path in used:
                users[self._known_or_location(path)].add(user)
        return reachable(map(self._known_or_location, changed), users.__getitem__)

    def used_by(self, path: Path) -> set[Path]:
        """Return the file at ``path``, and those that the verdict on it may depend on."""
        return reachable([self.identify(path)], lambda user: map(self.identify, self._uses.get(user, ())))

    def _known_or_location(self, path: Path) -> Path:
        location = self.location(path)
        return self._identities.get(location, location)

    def module(self, user: SourceFile, name: str, level: int) -> SourceFile | None:
        """Return the file of the module that ``user`` imports, or None if it is not available.

        The ``level`` is the number of dots before its name; without any, it is looked up as Python does, from
        the root of the package that ``user`` belongs to, and among the given files.
        """
        base = self._packages.base(self._places.folder(user.path.parent), name, level)
        if base is None:
            return None
        package = base / "__init__.py"
        # Only dots: the package itself.
        for candidate in (base.with_name(base.name + ".py"), package) if name else (package,):
            if candidate not in self._missing and self._may_read(user, candidate):
                file = self.available(user, candidate)
                if file is not None:
                    return file
                self._missing.add(candidate)
            # A missing file is a dependency as well: it may have been deleted just now.
            self._use(user.path, candidate)
        return None

    def _may_read(self, user: SourceFile, module: Path) -> bool:
        """Return whether links lead from a module to the library, what is given, or the user's repository.

        They may also lead where the user lies itself, as in the caches of the hub.
        """
        real = self.location(module)
        is_beside = real.parent == self.location(user.path).parent
        if real == module or is_beside or self._packages.is_context(module):
            return True
        repository = self._packages.within_repository(self._places.folder(user.path.parent))[-1]
        roots = [self.location(path) for path in self._within or ()]
        # Without a repository, everything would be allowed.
        return any(map(real.is_relative_to, [*roots, *([repository] if repository.name else [])]))

    def available(self, user: SourceFile, path: Path) -> SourceFile | None:
        """Return the same as :meth:`consult`; None if the file cannot be read as Python text."""
        try:
            return self.consult(user, path)
        except (OSError, UnreadableFile):
            return None

    def consult(self, user: SourceFile, path: Path) -> SourceFile:
        """Return the file at ``path``, and record it as a dependency of the verdict on ``user``.

        Raises:
            OSError: it cannot be read.
            UnreadableFile: it is not Python text.
        """
        file = self.file(path)
        self._use(user.path, file.path)
        return file

    def _use(self, user: Path, used: Path) -> None:
        if used not in self._uses[user]:
            self._uses[user].add(used)
            self._new_uses.append((user, used))

    def new_uses(self) -> tuple[tuple[Path, Path], ...]:
        """Return the dependencies between files that were found since the last call."""
        found, self._new_uses = tuple(self._new_uses), []
        return found

    @property
    def uses(self) -> Mapping[Path, Set[Path]]:
        """The dependencies between files that have been found."""
        return self._uses

    @property
    def unparsed(self) -> tuple[Path, ...]:
        """The consulted files that the running Python cannot parse, so that what they define is unknown."""
        return tuple(sorted(self._unparsed - self.given))

    def learn_unparsed(self, paths: Iterable[Path]) -> None:
        """Add such files that another process or run has found."""
        self._unparsed.update(paths)

    def learn_uses(self, uses: Iterable[tuple[Path, Path]]) -> None:
        """Add dependencies between files that another process has found."""
        for user, used in uses:
            self._uses[user].add(used)

    def _given_folders(self) -> set[Path]:
        return {self._places.folder(path.parent) for path in self.paths}

    # -- the library

    def home(self, file: SourceFile) -> LibraryTree | None:
        """Return the library that a file belongs to."""
        return self._packages.library_around(self._places.folder(file.path.parent))

    def library(self, file: SourceFile) -> LibraryTree | None:
        """Return the library that a file imports; None if it is not available."""
        return self._packages.library(self._places.folder(file.path.parent))

    def is_context(self, path: Path) -> bool:
        """Return whether a file belongs to an installed library, which is never changed or reported."""
        return path not in self.given and self._packages.is_context(self.location(path))

    def releases(self, file: SourceFile) -> Releases:
        """Return the releases of transformers that a file may run with."""
        return self.assumed(file).releases

    def assumed(self, file: SourceFile) -> Assumed:
        """Return the releases of transformers that a file may run with, and what says so.

        These are the ones that the user names; else the release that the tree itself is; else those that the
        project's metadata allows; else a guess, as far as it has what the file imports: the one that saved
        the model beside the file, and later ones; else the installed one; else the newest known one.
        """
        given = self.settings.of(file.path).target_version
        if given is not None:
            return Assumed(given, "set by `target-version`")
        folder = self._places.folder(file.path.parent)
        tree = self._packages.library_in_tree(folder)
        if tree is not None and tree.releases is not None:
            place = shown(tree.folder / "__init__.py")
            return Assumed(tree.releases, f"the release of the tree around this file, from {place}")
        from gclint.code.requirements import stated_releases, within_imports

        if folder not in self._stated:
            self._stated[folder] = stated_releases(folder)
        said = self._stated[folder] or self._of_library()
        return within_imports(said, file) if said.guessed_from else said

    def _of_library(self) -> Assumed:
        """Return the installed release, or else the newest known one."""
        installed = self._packages.installed
        if installed is None or installed.releases is None:
            origin = "no release is specified, so the newest known one"
            return Assumed(NEWEST_KNOWN, origin, "the newest one that gclint knows")
        hint = "the installed one" if self.settings.library is None else ""
        return Assumed(installed.releases, f"installed in {shown(installed.folder)}", hint, is_installed=True)
