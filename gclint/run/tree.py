"""The tree around the given files: which files contain copies of which code, or are generated from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from gclint.facts import entries, matching, search
from gclint.finding import Edit
from gclint.network.evaluation.modules import library_of
from gclint.network.lineage import Lineage, Place, place_at
from gclint.source.copies import (
    MARKER,
    CopyComment,
    copy_comments,
    module_of,
    named_origins,
    origin_module,
    twin_of,
)
from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.project import Project
from gclint.source.questions import Topic
from gclint.source.twins import Twin

_MODELS = "models"


def _copies_from(file: SourceFile, module: str) -> bool:
    return any(origin_module(comment.path) == module for comment in copy_comments(file))


COPIES = Topic("copies", _copies_from)
"""Which given files call something a copy of code in a module."""


class Tree:
    """The twins of code in the files of a run."""

    def __init__(self, project: Project, paths: tuple[Path, ...] | None = None) -> None:
        """Look at the given files and, for a fix, at those beside them: all ``paths``, if they are known."""
        self._project = project
        self._known_paths = paths
        self.twin_files: set[Path] = set()
        """The files on both sides of the twins that edits were found to change."""
        self._twins: dict[Path, list[Twin]] = {}
        self._place_twins: dict[Place, list[Twin]] = {}

    def scan(self) -> None:
        """Ask all files at once: later, only some of them are read."""
        self.lineage.scan()
        _ = self._naming

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The given files, and all others below the same folders of models."""
        if self._known_paths is not None:
            return self._known_paths
        given = self._project.paths
        around = {self._project.location(path).parent.parent for path in given}
        beside = sorted(path for folder in around if folder.name == _MODELS for path in _models(folder))
        return tuple(dict.fromkeys((*given, *map(self._project.identify, beside))))

    @cached_property
    def lineage(self) -> Lineage:
        """Which files of the tree are generated from which."""
        return Lineage(library_of(self._project), self.paths)

    @cached_property
    def _naming(self) -> Mapping[str, Sequence[SourceFile]]:
        """The files that may call something a copy, by the modules of its origins."""
        found: defaultdict[str, list[SourceFile]] = defaultdict(list)
        for path in self.paths:
            try:
                if path not in self._project.given and MARKER.encode() not in search(path):
                    continue
                file = self._project.file(path)
            except (OSError, UnreadableFile):
                continue  # The run reports it if it is one of its files.
            for module in named_origins(file):
                found[module].append(file)
        return found

    def _copying(self, module: str) -> Iterator[Path]:
        """Yield the files that call something a copy of code in a module; hardly any other is parsed."""
        return (file.path for file in self._naming.get(module, ()) if _copies_from(file, module))

    def touched(self, path: Path, edits: list[Edit]) -> Iterator[Twin]:
        """Yield the twins that ``edits`` of the file at ``path`` change on one side."""
        file = self._project.file(path)
        for twin in [*self._copies(file), *self._generated(file, edits)]:
            for region in (twin.source, twin.derived):
                if region.file is file and any(region.touches(edit) for edit in edits):
                    self.twin_files |= {twin.source.file.path, twin.derived.file.path}
                    yield twin
                    break

    def _copies(self, file: SourceFile) -> list[Twin]:
        known = self._twins.get(file.path)
        if known is None:
            twins = (twin_of(self._project, copy, comment) for copy, comment in self._comments(file))
            known = self._twins[file.path] = [twin for twin in twins if twin is not None]
        return known

    def _comments(self, file: SourceFile) -> Iterator[tuple[SourceFile, CopyComment]]:
        """Yield the comments that call something in a file a copy, or something a copy of code in it."""
        module = module_of(self._project, file)
        if module is None:
            return
        others = self._project.asked(COPIES, module, lambda: self._copying(module))
        for path in self._in_order({*others, file.path}):
            copy = self._project.file(path)
            if module_of(self._project, copy) is not None:
                for comment in copy_comments(copy):
                    if copy is file or origin_module(comment.path) == module:
                        yield copy, comment

    def _in_order(self, paths: Set[Path]) -> list[Path]:
        """Return some files of the tree in the order of all of them."""
        if paths <= self._project.given:
            return [*self._project.in_order(paths)]
        return [path for path in self.paths if path in paths]

    def _generated(self, file: SourceFile, edits: list[Edit]) -> Iterator[Twin]:
        module = library_of(self._project).module(file)
        for place in dict.fromkeys(place_at(module, edit.start) for edit in edits):
            if place is not None:
                known = self._place_twins.get(place)
                if known is None:
                    places = [place, *self.lineage.heirs(place)]
                    twins = (self.lineage.twin(each) for each in places)
                    known = self._place_twins[place] = [twin for twin in twins if twin is not None]
                yield from known


def _models(folder: Path) -> Iterator[Path]:
    """Yield the modeling files in the folders of a folder of models."""
    with suppress(OSError):
        for each in entries(folder, "/"):
            if each.is_folder:
                yield from matching(folder / each.name, "mod*_*.py")
