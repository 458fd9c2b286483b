"""A folder of a workspace, or a single file, that is looked at as one: with its settings and its findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gclint.engine.check import CheckResult
from gclint.engine.live import Live
from gclint.finding import Edit, Finding, Problem
from gclint.source.discovery import survey
from gclint.source.file import UnreadableFile
from gclint.source.project import Project

if TYPE_CHECKING:
    from gclint.rule import Rule
    from gclint.server.documents import Document, Documents
    from gclint.settings import Settings


class Area:
    """What ``gclint ROOT`` would check, kept up to date."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        rules: Sequence[Rule],
        documents: Iterable[Document],
        *,
        is_folder: bool,
    ) -> None:
        """Look for files, and judge none yet.

        Args:
            root: the folder or the file.
            settings: those that hold there.
            rules: those that run.
            documents: what is open, and so is not as it lies on the disk.
            is_folder: whether the root is a folder, which may be gone; a file need not be there yet.
        """
        self.root = root
        self.settings = settings
        self.rules = rules
        self.is_stale = False
        """Whether files may have come or gone, or settings changed, so that it has to be made anew."""
        self.repairs: dict[Path, tuple[CheckResult, tuple[Edit, ...]]] = {}
        """What makes all safe fixes of a file, and what was found when that was worked out."""
        files = [] if is_folder else [root]
        if root.exists():
            files = survey([root], settings).files
        self.live = Live(Project(settings, files, within=[root]), rules)
        for document in documents:
            self.live.put(document.path, document.text)

    @property
    def result(self) -> CheckResult:
        """What is found in it."""
        return self.live.result

    def has(self, path: Path) -> bool:
        """Tell whether the area checks the file at ``path``."""
        return self.identify(path) in self.live.project.given

    def identify(self, path: Path) -> Path:
        """Return the path under which a file is known here."""
        return self.live.project.identify(path)

    def is_judged(self, path: Path) -> bool:
        """Tell whether it is known what is wrong with a file as it is now."""
        identity = self.identify(path)
        return identity in self.live.broken or identity not in self.live.waiting

    def findings_in(self, path: Path) -> list[Finding]:
        """Return what is found in a file; nothing while its text is broken, since its places are others."""
        identity = self.identify(path)
        if identity in self.live.broken:
            return []
        return [finding for finding in self.result.findings if finding.path == identity]

    def basis(self, path: Path, documents: Documents) -> object:
        """Return what is the same as long as there is the same to show about a file."""
        findings = self.findings_in(path)
        stories = [finding.story for finding in findings]
        paths = dict.fromkeys([path, *(step.path for story in stories for step in story)])
        texts = [self._text_of(each, documents) for each in paths]
        return self.root, findings, stories, self.problems_in(path), texts

    def _text_of(self, path: Path, documents: Documents) -> object:
        document = documents.at(path)
        if document is not None:
            return document.uri, document.text, path in self.live.broken
        try:
            return self.live.project.file(path)
        except (OSError, UnreadableFile):
            return None

    def problems_in(self, path: Path) -> list[Problem]:
        """Return what keeps a file from being checked."""
        identity = self.identify(path)
        if identity in self.live.broken:
            return [self.live.broken[identity]]
        return [problem for problem in self.result.problems if problem.path == identity]

    def reported_files(self) -> set[Path]:
        """Return the files about which there is something to report."""
        found = {finding.path for finding in self.result.findings}
        return found | {problem.path for problem in self.result.problems} | set(self.live.broken)
