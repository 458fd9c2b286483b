"""An area: a folder of a workspace, or a single file, with its own settings and findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gclint.code.discovery import survey
from gclint.code.project import Project
from gclint.finding import Edit, Finding, Problem
from gclint.rule import Rule, selected_rules
from gclint.run.check import LintResult
from gclint.run.edited_files import Live
from gclint.server.documents import Document, Documents
from gclint.settings import Settings


class Area(Live):
    """The files that ``gclint ROOT`` would check, with up-to-date findings."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        rules: Sequence[Rule],
        documents: Iterable[Document],
        *,
        is_folder: bool,
    ) -> None:
        """Find the files, without checking any yet; the texts of open documents replace those on disk.

        The root is a folder, which may have been deleted, or a file, which need not exist yet.
        """
        self.root = root
        self.settings = settings
        self.is_stale = False
        """Whether files may have come or gone, or settings changed, so that the area must be recreated."""
        self.repairs: dict[Path, tuple[LintResult, tuple[Edit, ...]]] = {}
        """The edits that make all safe fixes of a file, and the result that they were computed from."""
        files = [] if is_folder else [root]
        if root.exists():
            found = survey([root], settings)
            files, self.settings = found.files, found.settings
            if self.settings.inner:
                rules = selected_rules(self.settings)
        super().__init__(Project(self.settings, files, within=[root]), rules)
        for document in documents:
            self.put(document.path, document.text)

    def has(self, path: Path) -> bool:
        """Return whether the area checks the file at ``path``."""
        return self.identify(path) in self.project.given

    def identify(self, path: Path) -> Path:
        """Return the path that identifies a file here."""
        return self.project.identify(path)

    def is_judged(self, path: Path) -> bool:
        """Return whether the current text of a file has been checked."""
        identity = self.identify(path)
        return identity in self.broken or identity not in self.waiting

    def findings_in(self, path: Path) -> list[Finding]:
        """Return the findings in a file; none while it has a syntax error, as their places are outdated."""
        identity = self.identify(path)
        if identity in self.broken:
            return []
        return [finding for finding in self.result.findings if finding.path == identity]

    def basis(self, path: Path, documents: Documents) -> object:
        """Return a value that is equal as long as the diagnostics of a file are."""
        findings = self.findings_in(path)
        stories = [finding.story for finding in findings]
        paths = dict.fromkeys([path, *(step.path for story in stories for step in story)])
        texts = [self._text_of(each, documents) for each in paths]
        return self.root, findings, stories, self.problems_in(path), texts

    def _text_of(self, path: Path, documents: Documents) -> object:
        document = documents.at(path)
        if document is not None:
            return document.uri, document.text, path in self.broken
        return next(self.project.readable([path]), None)

    def problems_in(self, path: Path) -> list[Problem]:
        """Return the problems that keep a file from being checked."""
        identity = self.identify(path)
        if identity in self.broken:
            return [self.broken[identity]]
        return [problem for problem in self.result.problems if problem.path == identity]

    def reported_files(self) -> set[Path]:
        """Return the files with findings or problems."""
        found = {finding.path for finding in self.result.findings}
        return found | {problem.path for problem in self.result.problems} | set(self.broken)
