"""Runs files with other texts instead of those of some of them, to prove repairs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from gclint.facts import read_bytes
from gclint.userfolder import UserFolder
from gclint.verify.model_files import ModelFiles
from gclint.verify.results import Results
from gclint.verify.results_file import ResultsFile, header
from gclint.verify.run import ReceivedMessage, verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import Target, overlay_of, target_of
from gclint.verify.worker.protocol import ClassResult, Environment

Runner = Callable[[Sequence[Path], Mapping[Path, str]], Mapping[Path, "FileRun"]]
"""Runs the classes of files, with other texts in place of some; returns a run for each file.

It remembers its runs, so a file with the same texts is run only once. The runs of the unchanged files, which
come first, are available for later comparisons.
"""


class NothingRuns(Exception):
    """No file at all can be run; the message says why."""


@dataclass(frozen=True)
class FileRun:
    """The results of the classes of one file."""

    results: tuple[ClassResult, ...] = ()
    problem: str | None = None
    """Why the file could not be run at all."""
    environment: Environment | None = None
    """The environment of the run; None for a file that was not run, since it defines no model."""

    @property
    def device(self) -> str:
        """``cpu``, or the name of the GPU."""
        return "cpu" if self.environment is None else self.environment.device


class Audience(Protocol):
    """Receives what happens, to show it."""

    def expect(self, sources: int) -> None:
        """Note that this many more files will be run."""

    def take(self, received: ReceivedMessage) -> None:
        """Receive a message."""

    def note(self, words: str) -> None:
        """Receive what is done between runs, in words; none if that is over."""


@dataclass(frozen=True)
class ResultsFiles:
    """Files for results as they arrive, one for each set of texts, so that a run can be resumed."""

    folder: UserFolder
    project: str
    """What tells the files of a project from those of others."""
    files: Sequence[Path] = ()
    """The files that may import one another: if one has changed, earlier results are void."""

    def clear(self) -> None:
        """Forget earlier runs; raise OSError if a file of them cannot be deleted."""
        for name in self.folder.names():
            if name.startswith(f"{self.project}-repairs-"):
                self.folder.remove(name)

    def open(self, texts: Mapping[Path, str], settings: RunSettings) -> ResultsFile:
        """Open the file for runs with these texts and settings, with the results that it already has.

        Raises:
            UnusableResults: it contains something else.
            OSError: it cannot be read or written.
        """
        known = header((), settings)
        key = self._key(texts, json.dumps(known.settings, sort_keys=True))
        name = f"{self.project}-repairs-{key}.jsonl"
        handle = self.folder.open(name, os.O_RDWR | os.O_CREAT)
        return ResultsFile(handle, self.folder.path / name, known, resume=True)

    def _key(self, texts: Mapping[Path, str], settings: str) -> str:
        content = hashlib.sha256(settings.encode())
        overlay = overlay_of(texts)
        for path in sorted({*map(os.path.abspath, self.files), *overlay}):
            text = overlay.get(path)
            content.update(f"{path}\0".encode(errors="surrogateescape"))
            content.update(read_bytes(Path(path)) if text is None else text.encode())
            content.update(b"\0")
        return content.hexdigest()[:16]


class FileRunner:
    """Runs files; results that files of results have already are not computed again.

    A file that defines no model is not imported; its run has no results. A call raises ``NothingRuns`` if
    nothing can be run, ``OSError`` if a file cannot be read or written, and ``UnusableResults`` if the
    files cannot be used.
    """

    def __init__(
        self,
        settings: RunSettings,
        audience: Audience | None = None,
        results_files: ResultsFiles | None = None,
        given: Sequence[Path] = (),
    ) -> None:
        self._settings = replace(settings, complete=True)
        self._audience = audience
        self._results_files = results_files
        self._given = given
        """The files whose branches are watched when others are run that import them."""
        self._models = ModelFiles()
        self._known: dict[tuple[Path, frozenset[tuple[str, str]]], FileRun] = {}

    def __call__(self, paths: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, FileRun]:
        """Run what has not been run yet."""
        key = frozenset(overlay_of(texts).items())
        new = [path for path in dict.fromkeys(paths) if (path, key) not in self._known]
        if new:
            self._known.update({(path, key): run for path, run in self._run(new, texts).items()})
        return {path: self._known[path, key] for path in paths}

    def _run(self, paths: Iterable[Path], texts: Mapping[Path, str]) -> dict[Path, FileRun]:
        runs = {path: FileRun() for path in paths}
        targets = [target_of(path) for path in runs if self._models.defines_model(path)]
        if not targets:
            return runs
        results = self._verified(targets, texts)
        for target in targets:
            source = target.source.path
            unusable = results.unusable.get(source)
            runs[target.path] = FileRun(
                tuple(result for (path, _), result in results.classes.items() if path == source),
                unusable.message if unusable else None,
                results.environments[target.tree],
            )
        return runs

    def _verified(self, targets: Sequence[Target], texts: Mapping[Path, str]) -> Results:
        if self._audience is not None:
            self._audience.expect(len(targets))
        opened: AbstractContextManager[ResultsFile | None] = (
            self._results_files.open(texts, self._settings) if self._results_files else nullcontext()
        )
        with opened as results_file:

            def listen(received: ReceivedMessage) -> None:
                if results_file is not None:
                    results_file.write(received)
                if self._audience is not None:
                    self._audience.take(received)

            earlier = results_file.earlier if results_file is not None else None
            results = verify(targets, self._settings, listen, earlier, texts, also_marked=self._given)
        if results.problem:
            raise NothingRuns(results.problem)
        return results
