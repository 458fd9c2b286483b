"""Files run with some texts in place of what is written: what a repair is proven with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gclint.verify.models import ModelFiles
from gclint.verify.run import Heard, verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import target_of
from gclint.verify.worker.protocol import ClassResult

Runner = Callable[[Sequence[Path], Mapping[Path, str]], Mapping[Path, "FileRun"]]
"""Runs the classes of files, with some texts in place of what is written; returns a run for each."""


class NothingRuns(Exception):
    """No file at all can be run; the message says why."""


@dataclass(frozen=True)
class FileRun:
    """What the classes of one file did."""

    results: tuple[ClassResult, ...] = ()
    problem: str | None = None
    """Why the file could not be run at all."""
    device: str = "cpu"
    """``cpu``, or the name of the GPU."""


def runner(settings: RunSettings, listen: Callable[[Heard], None] = lambda _heard: None) -> Runner:
    """Return what runs files.

    Args:
        settings: how to run them.
        listen: called with everything that happens, when it happens.

    A file that defines no model is not imported; its run has no results. What is returned raises
    ``NothingRuns`` if nothing can be run, and ``OSError`` if a file cannot be read.
    """

    def run(paths: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, FileRun]:
        models = ModelFiles()
        targets = [target_of(path) for path in paths if models.defines_model(path)]
        results = verify(targets, settings, listen, texts=texts)
        if results.problem:
            raise NothingRuns(results.problem)
        runs = {path: FileRun() for path in paths}
        for target in targets:
            source = target.source.path
            unusable = results.unusable.get(source)
            runs[target.path] = FileRun(
                tuple(result for (path, _), result in results.classes.items() if path == source),
                unusable.message if unusable else None,
                results.environments[target.tree].device,
            )
        return runs

    return run
