"""Lets workers run files, one tree after the other; knows nothing of command lines and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.facts import read_bytes
from gclint.verify.changed_statements import changed_places
from gclint.verify.process import EXECUTORS
from gclint.verify.results import Results, UnusableResults
from gclint.verify.settings import GIGABYTES, RunSettings
from gclint.verify.sources import Target, digest, overlay_of
from gclint.verify.worker.protocol import Environment, Message, Request, Source, SourcePlace


@dataclass(frozen=True)
class ReceivedMessage:
    """A message of a worker, and what it is about."""

    message: Message
    tree: str | None
    """The folder from which the worker imports packages."""
    digest: str = ""
    """The digest of the source that the message is about."""


def verify(
    targets: Sequence[Target],
    settings: RunSettings,
    listen: Callable[[ReceivedMessage], None] = lambda _received: None,
    earlier: Results | None = None,
    texts: Mapping[Path, str] | None = None,
    results: Results | None = None,
    also_marked: Iterable[Path] = (),
) -> Results:
    """Run the classes of ``targets``, those of one tree in one worker, and return the results.

    Args:
        targets: what to run.
        settings: how to run it.
        listen: called with everything that happens, when it happens. An exception in it ends the run.
        earlier: results of a run that was interrupted. Those of unchanged files are kept.
        texts: the texts to run instead of those of some files, either these or imported ones.
        also_marked: further files whose branches are watched, if they are imported.
        results: what to add the results to, for a caller that needs them even if the run is interrupted.

    Raises:
        UnusableResults: the earlier results are from another environment.
        OSError: a file cannot be read.
    """
    earlier = earlier or Results()
    results = Results() if results is None else results
    overlay = overlay_of(texts or {})
    digests = {target.source.path: digest(target.source, overlay) for target in targets}
    for tree, sources in _left_by_tree(targets, digests, earlier, results).items():
        # Also without any source, to check that the environment is still the same.
        request = _request(tree, sources, overlay, settings, also_marked)
        with closing(EXECUTORS[settings.executor](settings.python, request)) as messages:
            for message in messages:
                if isinstance(message, Environment):
                    _compare(earlier.environments.get(tree), message)
                about = getattr(message, "source", None)
                received = ReceivedMessage(message, tree, digests[about] if about else "")
                results.add(message, tree=tree, digest=received.digest)
                listen(received)
        if results.problem:
            break
    return results


def _left_by_tree(
    targets: Sequence[Target], digests: Mapping[str, str], earlier: Results, results: Results
) -> dict[str | None, list[Source]]:
    """Return what is left to run in each tree, possibly nothing; add known results to ``results``."""
    trees: dict[str | None, list[Source]] = {}
    for target in targets:
        sources = trees.setdefault(target.tree, [])
        source = _left(target.source, digests[target.source.path], earlier, results)
        if source:
            sources.append(source)
    return trees


def _left(source: Source, found: str, earlier: Results, results: Results) -> Source | None:
    """Return what is left to run of a source; add its known results to ``results``."""
    path = source.path
    missing = earlier.missing(path) if earlier.digests.get(path) == found else None
    if missing is None:
        return source
    results.copy(earlier, path)
    left = tuple(name for name in missing if not source.only or name in source.only)
    return replace(source, only=left) if left else None


def _request(
    tree: str | None,
    sources: list[Source],
    overlay: dict[str, str],
    settings: RunSettings,
    also_marked: Iterable[Path],
) -> Request:
    return Request(
        tuple(
            replace(source, only=source.only or settings.classes, complete=settings.complete)
            for source in sources
        ),
        () if tree is None else (tree,),
        overlay,
        settings.device,
        settings.jobs,
        settings.seconds,
        settings.gigabytes or GIGABYTES,
        _watched(overlay),
        tuple(str(each.absolute()) for each in also_marked),
        gpu_gigabytes=settings.gigabytes,
        known=settings.known,
        practices=settings.practices,
    )


def _watched(overlay: Mapping[str, str]) -> tuple[SourcePlace, ...]:
    """Return the statements that differ between texts and the files on the disk."""
    return tuple(
        SourcePlace(path, first, last)
        for path, text in overlay.items()
        for first, last in changed_places(SourceFile(Path(path), read_bytes(Path(path))).text, text)
    )


def _compare(earlier: Environment | None, now: Environment) -> None:
    if earlier and earlier != now:
        differences = ", ".join(
            f"{name} was {before}, and is {getattr(now, name)}"
            for name, before in asdict(earlier).items()
            if name != "isolation" and before != getattr(now, name)
        )
        raise UnusableResults(f"the results are from another environment: {differences}")
