"""Workers that train models under releases of transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.contract.packages import Package
from tests.ecosystem.environments import release_environment
from tests.environment import PROJECT

RELEASES = ("4.57.6", "5.23.0")


class WorkerDied(Exception):
    """A worker has ended; the message says what it said last."""


def python_of_release(release: str) -> Path:
    """Return an interpreter that imports this release of transformers.

    Raises:
        EnvironmentUnavailable: there is none, and none can be made.
    """
    try:
        if version("transformers") == release:
            return Path(sys.executable)
    except ModuleNotFoundError:
        pass
    return release_environment(release)


class Worker:
    """A process of a release, which trains one model after the other."""

    def __init__(self, release: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [python_of_release(release), "-B", "-m", "tests.contract.worker"],
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        found = self._read()["transformers"]
        assert found == release, f"the worker of {release} has transformers {found}"

    def train(self, folder: Path, package: Package) -> dict[str, Any]:
        """Train the packages ``before`` and ``after`` in ``folder``; return the worker's answer."""
        request = {"folder": str(folder), "ways": package.ways, "scenarios": package.scenarios}
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._read()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkerDied(f"exit status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@cache
def worker(release: str) -> Worker:
    """Return this process's worker of a release, started once."""
    return Worker(release)
