"""Environments in which a release of transformers can be run, made once and kept."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.environment import CACHE, PROJECT, fresh_environment, python_of

_OPTIONAL = ("scipy",)
"""What some models need beside torch, as far as it can be had everywhere."""


def release_environment(version: str) -> Path:
    """Return the Python of an environment with that release of transformers and the pinned torch.

    Raises:
        EnvironmentUnavailable: it cannot be installed.
    """
    folder = CACHE / "environments" / version
    requirements = [_pinned("torch"), f"transformers=={version}", *_OPTIONAL]
    # Written last, so that an environment that was not finished is made anew.
    stamp = folder / "complete"
    with _alone(folder):
        if not stamp.is_file() or stamp.read_text(encoding="utf-8").split() != requirements:
            fresh_environment(folder, *requirements)
            stamp.write_text("\n".join(requirements), encoding="utf-8")
    return python_of(folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait for whoever makes that folder, such as another process of the tests."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(f"{folder.suffix}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _pinned(package: str) -> str:
    lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"{package}=="))
