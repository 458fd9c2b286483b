"""The state of an editor's session: its folders and open documents, and their diagnostics.

A session is independent of how messages are sent: it is notified of events, works in small steps, and yields
the diagnostics that have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lsprotocol import types

from gclint.code.candidates import is_test
from gclint.code.packages import INSTALLED
from gclint.code.requirements import METADATA
from gclint.rule import Rule
from gclint.server.area import Area
from gclint.server.documents import Document, Documents, path_of, untitled_name
from gclint.server.messages import diagnostics
from gclint.settings import FILES, Settings


class UnusableSettings(Exception):
    """The settings for a path are invalid; the message is meant for the user."""


Load = Callable[[Path], "tuple[Settings, Sequence[Rule]]"]
"""Returns the settings and the rules for a path, or raises ``UnusableSettings``."""


class Session:
    """The folders, documents and diagnostics of one editor."""

    def __init__(self, load: Load, encoding: str, folders: Iterable[Path] = ()) -> None:
        """Begin with the folders of a workspace; ``encoding`` is the unit of columns in the protocol."""
        self.documents = Documents(encoding)
        self.notices: list[str] = []
        """Messages for the user; the server removes them when it shows them."""
        self._unusable: dict[Path, str] = {}
        """Why the settings of an area are invalid, shown once until they are valid again."""
        self._obstacle = ""
        """Why no code may be changed, shown once until it may."""
        self._load = load
        self._areas: dict[Path, Area] = {}
        self._single_files: dict[Path, Area] = {}
        """Areas of single files, which belong to none of the folders."""
        self._shown: dict[Path, tuple[object, list[types.Diagnostic]]] = {}
        """The diagnostics of files that are not open, each with the value of ``Area.basis`` for them."""
        self._published: dict[str, tuple[int | None, list[types.Diagnostic]]] = {}
        self.change_folders(folders, ())

    # -- events

    def change_folders(self, added: Iterable[Path], removed: Iterable[Path]) -> None:
        """Add folders to the workspace, and remove others."""
        for folder in removed:
            self._areas.pop(folder, None)
        for folder in added:
            if folder not in self._areas:
                self._areas[folder] = self._area(folder, is_folder=True)
        for document in self.documents:
            self._find_home(document)

    def open(self, uri: str, language: str, version: int, text: str) -> None:
        """Add an opened document; it is ignored if it is not Python."""
        path = self._path(uri)
        if path is None or (language and language != "python"):
            return
        document = self.documents.open(uri, path, version, text)
        for area in self._all():
            area.put(path, text)
        self._find_home(document)

    def change(self, uri: str, version: int, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """Apply changes to a document."""
        document = self.documents.get(uri)
        if document is None:
            return
        document.change(version, changes)
        for area in self._all():
            area.put(document.path, document.text)

    def close(self, uri: str) -> None:
        """Remove a document: from now on, the file on disk is checked."""
        document = self.documents.close(uri)
        if document is None:
            return
        self._single_files.pop(document.path, None)
        for area in self._all():
            area.drop(document.path)
            area.is_stale |= area.has(document.path) and not document.path.exists()

    def watched(self, changes: Iterable[tuple[Path, bool]]) -> None:
        """Note changes of files on disk, each with whether the file was created or deleted."""
        opened = {document.path for document in self.documents}
        for path, was_created_or_deleted in changes:
            for area in self._all():
                if decides_for_others(path):
                    # Files in a folder "requirements" belong to the folder above it.
                    folder = path.parent.parent if path.parent.name == "requirements" else path.parent
                    area.is_stale |= _is_about(folder, area.root)
                elif was_created_or_deleted and _is_about(area.root, path):
                    area.is_stale |= area.has(path) != _would_be_found(area, path)
                if path not in opened:
                    area.drop(path)

    def reload(self) -> None:
        """Read all settings again."""
        for area in self._all():
            area.is_stale = True

    # -- the work

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do."""
        return any(area.is_stale or area.waiting for area in self._all())

    def work(self) -> bool:
        """Do one step, for open documents first; return whether new diagnostics are to be published."""
        opened = [document.path for document in self.documents]
        area = next((each for each in self._all() if each.is_stale), None)
        if area is not None:
            self._renew(area)
            return False
        by_urgency = sorted(self._all(), key=lambda each: all(map(each.is_judged, opened)))
        area = next((each for each in by_urgency if each.waiting), None)
        if area is None:
            return True
        urgent = [area.identify(path) for path in opened]
        was_urgent = not area.waiting.isdisjoint(urgent)
        area.judge_next(urgent)
        is_done = all(each.is_judged(path) for each in self._all() for path in opened)
        return not self.is_busy or (was_urgent and is_done)

    def is_ready(self, uri: str) -> bool:
        """Return whether the current text of a document has been checked."""
        document = self.documents.get(uri)
        area = None if document is None else self.home(document.path)
        if document is None or area is None:
            return True
        return not area.is_stale and area.is_judged(document.path)

    def news(self) -> Iterator[types.PublishDiagnosticsParams]:
        """Yield the diagnostics of each document for which they have changed."""
        current = dict(self._open_reports())
        if not self.is_busy:
            current.update(self._other_reports())
            gone = [uri for uri, (_, shown) in self._published.items() if shown and uri not in current]
            current.update({uri: (None, []) for uri in gone})
        for uri, report in current.items():
            if self._published.get(uri, (None, [])) != report:
                self._published[uri] = report
                yield types.PublishDiagnosticsParams(uri, report[1], report[0])

    def _open_reports(self) -> Iterator[tuple[str, tuple[int | None, list[types.Diagnostic]]]]:
        for document in self.documents:
            area = self.home(document.path)
            if area is None:
                yield document.uri, (document.version, [])
            elif area.is_judged(document.path):
                yield document.uri, (document.version, diagnostics(self.documents, area, document.path))

    def _other_reports(self) -> Iterator[tuple[str, tuple[int | None, list[types.Diagnostic]]]]:
        opened = {document.path for document in self.documents}
        for area in self._areas.values():
            known = {area.identify(path) for path in opened}
            for path in area.reported_files() - known:
                if self.home(path) is area:
                    yield self.documents.uri_of(path), (None, self._diagnostics(area, path))

    def _diagnostics(self, area: Area, path: Path) -> list[types.Diagnostic]:
        """Return the diagnostics of a file that is not open, computed only if they may have changed."""
        known = self._shown.get(path)
        basis = area.basis(path, self.documents)
        if known is None or known[0] != basis:
            known = self._shown[path] = basis, diagnostics(self.documents, area, path)
        return known[1]

    def may_change(self, area: Area) -> bool:
        """Return whether code in an area may be changed: not while a write of files is unfinished.

        That is a write in the area, or in the workspace. An edit would mix with what is finished or undone.
        """
        from gclint.write.journal import Unfinished
        from gclint.write.recovery import refuse_unfinished

        try:
            refuse_unfinished([area.root, *self._areas])
        except Unfinished as error:
            message = f"gclint offers no fixes: {error}"
            if self._obstacle != message:
                self.notices.append(message)
            self._obstacle = message
            return False
        self._obstacle = ""
        return True

    # -- areas

    def home(self, path: Path) -> Area | None:
        """Return the area that checks the file at ``path``: that of the innermost folder."""
        areas = [area for area in self._areas.values() if area.has(path)]
        return max(areas, key=lambda each: len(each.root.parts), default=self._single_files.get(path))

    def _all(self) -> list[Area]:
        return [*self._areas.values(), *self._single_files.values()]

    def _path(self, uri: str) -> Path | None:
        path = path_of(uri)
        name = untitled_name(uri) if path is None else None
        if name is not None:
            return next(iter(self._areas), Path.cwd()) / name
        return path

    def _find_home(self, document: Document) -> None:
        """Create an area for an open document that is in none, unless it is excluded or third-party code."""
        path = document.path
        if self.home(path) is not None or is_test(path.name) or not INSTALLED.isdisjoint(path.parts):
            return
        if path.suffix not in (".py", "") or path.is_dir():
            return
        area = self._area(path, is_folder=False)
        if not area.settings.excludes(path):
            self._single_files[path] = area

    def _area(self, root: Path, *, is_folder: bool) -> Area:
        known = self._areas.get(root) or self._single_files.get(root)
        try:
            settings, rules = self._load(root)
            area = Area(root, settings, rules, self.documents, is_folder=is_folder)
        except UnusableSettings as error:
            self._complain(root, str(error))
            if known is None:
                from gclint.rule import selected_rules
                from gclint.settings import Settings

                settings = Settings(root=root)
                rules = selected_rules(settings)
            else:
                settings, rules = known.settings, known.rules
            settings = replace(settings, read=None)
            return Area(root, settings, rules, self.documents, is_folder=is_folder)
        self._unusable.pop(root, None)
        return area

    def _complain(self, root: Path, message: str) -> None:
        roots = (*self._areas, *self._single_files)
        known = {message for root, message in self._unusable.items() if root in roots}
        if message not in known:
            self.notices.append(message)
        self._unusable[root] = message

    def _renew(self, area: Area) -> None:
        areas = self._areas if self._areas.get(area.root) is area else self._single_files
        areas[area.root] = self._area(area.root, is_folder=areas is self._areas)
        for document in self.documents:
            if self.home(document.path) is not self._single_files.get(document.path):
                self._single_files.pop(document.path, None)
            self._find_home(document)


def decides_for_others(path: Path) -> bool:
    """Return whether a file may have settings or requirements that affect the files around it."""
    return any(path.match(pattern) for pattern in (*METADATA, *FILES))


def _is_about(folder: Path, path: Path) -> bool:
    """Return whether one of two paths is in the other."""
    return path.is_relative_to(folder) or folder.is_relative_to(path)


def _would_be_found(area: Area, path: Path) -> bool:
    from gclint.code.discovery import discover

    return path.exists() and path in discover([area.root], area.settings)[0]
