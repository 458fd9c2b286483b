"""Two versions of gclint, each run from a checkout of its own, over the same code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.environment import PROJECT

WORKING_TREE = "working tree"
"""What stands for the files as they are, committed or not."""
_LIMIT = 3600.0
"""How many seconds a run may take; what takes longer is run again in parts."""
_ONE_FILE = 300.0
_WANTED = ("--no-cache", "--isolated")
"""Options that a version gets if it has them: what it says must not hang on runs before it."""


class VersionUnavailable(Exception):
    """There is no such version, or it cannot be checked out; the message says why."""


@dataclass(frozen=True)
class Failure:
    """Files that a version could not judge."""

    paths: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Output:
    """What a version says about some files."""

    findings: tuple[dict[str, Any], ...] = ()
    problems: tuple[dict[str, Any], ...] = ()
    """What it reports instead of a verdict on a file."""
    failures: tuple[Failure, ...] = ()
    """Where it said nothing that can be read: it crashed, or did not come to an end."""

    def joined(self, other: Output) -> Output:
        """Return what both say."""
        return Output(
            (*self.findings, *other.findings),
            (*self.problems, *other.problems),
            (*self.failures, *other.failures),
        )


@dataclass(frozen=True)
class Version:
    """A version of gclint."""

    name: str
    folder: Path
    limits: tuple[float, float] = field(default=(_LIMIT, _ONE_FILE))
    """The seconds that a run may take, and one of a single file."""

    @cached_property
    def _options(self) -> list[str]:
        """What every run of it gets."""
        run = self._run(["check", "--help"], self.folder, _ONE_FILE)
        return [each for each in _WANTED if each in run.stdout]

    def check(self, tree: Path, paths: Sequence[str], *options: str) -> Output:
        """Run it over paths in a tree; where it fails, over parts of them, to know which fail.

        Args:
            tree: the working directory.
            paths: files and folders in it.
            options: what it is given besides.
        """
        limit = self.limits[0] if len(paths) > 1 or (tree / paths[0]).is_dir() else self.limits[1]
        arguments = [*options, *self._options, "--output-format", "json", "--exit-zero", "--", *paths]
        try:
            run = self._run(arguments, tree, limit)
            entries = json.loads(run.stdout)
            reason = None if run.returncode in (0, 1, 2) else f"exit status {run.returncode}"
        except subprocess.TimeoutExpired:
            reason = f"no end after {limit:.0f} s"
        except ValueError:
            said = run.stderr.strip().splitlines() or ["it printed no JSON"]
            reason = f"exit status {run.returncode}: {said[-1]}"
        if reason is None:
            return Output(
                tuple(each for each in entries if each["code"] is not None),
                tuple(each for each in entries if each["code"] is None),
            )
        parts = list(_halves(tree, paths))
        if len(parts) < 2:
            return Output(failures=(Failure(tuple(parts[0] if parts else paths), reason),))
        found = Output()
        for part in parts:
            found = found.joined(self.check(tree, part, *options))
        return found

    def _run(self, arguments: Sequence[str], folder: Path, limit: float) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, "-m", "gclint", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=limit,
        )


def _halves(tree: Path, paths: Sequence[str]) -> Iterator[list[str]]:
    """Yield paths in two parts, or what is in a folder in two parts, or nothing for a file."""
    while len(paths) == 1 and (tree / paths[0]).is_dir():
        folder = tree / paths[0]
        inside = [each for each in sorted(folder.iterdir()) if each.is_dir() or each.suffix == ".py"]
        paths = [each.relative_to(tree).as_posix() for each in inside if each.is_file() or _has_code(each)]
    middle = (len(paths) + 1) // 2
    yield from (list(part) for part in (paths[:middle], paths[middle:]) if part)


def _has_code(folder: Path) -> bool:
    return next(folder.rglob("mod*_*.py"), None) is not None


@contextmanager
def checked_out(name: str) -> Iterator[Version]:
    """Yield a version: a commit, branch or tag of the project, its files as they are, or another checkout.

    Raises:
        VersionUnavailable: git does not know it.
    """
    if name == WORKING_TREE:
        yield Version(name, PROJECT)
        return
    if (Path(name) / "gclint" / "__main__.py").is_file():
        yield Version(name, Path(name).resolve())
        return
    commit = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not commit:
        raise VersionUnavailable(f"{name!r} is not a commit, branch or tag of this repository")
    archive = subprocess.run(
        ["git", "archive", "--format=zip", commit, "gclint", "rules"], cwd=PROJECT, capture_output=True
    )
    if archive.returncode:
        raise VersionUnavailable(f"git cannot read {name}: {archive.stderr.decode(errors='replace').strip()}")
    with TemporaryDirectory(prefix="gclint-version-") as folder:
        with zipfile.ZipFile(io.BytesIO(archive.stdout)) as files:
            files.extractall(folder)
        yield Version(name, Path(folder))


def usual_before() -> str:
    """Return what the working tree is compared with: the last tag, or else the merge base with main.

    Raises:
        VersionUnavailable: there is neither.
    """
    tag = _git("describe", "--tags", "--abbrev=0")
    found = tag or _git("merge-base", "HEAD", "origin/main") or _git("merge-base", "HEAD", "main")
    if not found:
        raise VersionUnavailable("there is no tag and no branch main to compare with; name a commit")
    return found


def _git(*arguments: str) -> str:
    """Return what git prints; nothing where it fails."""
    try:
        run = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, encoding="utf-8")
    except FileNotFoundError:
        raise VersionUnavailable("git is not installed") from None
    return run.stdout.strip() if run.returncode == 0 else ""


def union(outputs: Iterable[Output]) -> Output:
    """Return what all outputs say."""
    found = Output()
    for each in outputs:
        found = found.joined(each)
    return found
