"""Environments in which a release of transformers can be run, made once and kept."""

from __future__ import annotations

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
    if not stamp.is_file() or stamp.read_text(encoding="utf-8").split() != requirements:
        fresh_environment(folder, *requirements)
        stamp.write_text("\n".join(requirements), encoding="utf-8")
    return python_of(folder)


def _pinned(package: str) -> str:
    lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"{package}=="))
