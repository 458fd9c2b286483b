"""gclint's main job on a real release: ``python3 -m tests.ecosystem.demo``.

Needs Python, pip and PyPI. Makes a virtual environment in ``.cache/demo``, fetches a release of
transformers, and there finds what breaks gradient checkpointing, shows how a model would be
repaired, repairs a copy of the release, and says what is left.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.ecosystem.releases import copy_of_release
from tests.ecosystem.wheels import WheelUnavailable
from tests.environment import CACHE, EnvironmentUnavailable, announce, fresh_environment

_RELEASE = "4.57.6"
_FOLDER = CACHE / "demo"


def main() -> int:
    """Run the demonstration; return 0 if every step did what it should."""
    try:
        announce("installing gclint into .cache/demo")
        python = fresh_environment(_FOLDER / "environment", ".")
        announce(f"fetching transformers {_RELEASE}, and copying it")
        shutil.rmtree(_FOLDER / "transformers", ignore_errors=True)
        copy_of_release(_RELEASE, _FOLDER)
    except (EnvironmentUnavailable, WheelUnavailable) as error:
        announce(str(error))
        return 1

    models = "transformers/models"
    as_expected = [
        _gclint(python, "--select", "GC001", models) == 1,
        _gclint(python, "--diff", "--unsafe-fixes", f"{models}/gpt_bigcode") == 1,
        _gclint(python, "--statistics", models) == 1,
        _gclint(python, "--fix", "--unsafe-fixes", "--statistics", models) < 2,
        _gclint(python, "--select", "GC001", f"{models}/gpt_bigcode") == 0,
    ]
    announce("done" if all(as_expected) else "gclint did not do what it should have done")
    return int(not all(as_expected))


def _gclint(python: Path, *arguments: str) -> int:
    announce(f"gclint {' '.join(arguments)}")
    return subprocess.run([python, "-m", "gclint", *arguments], cwd=_FOLDER).returncode


if __name__ == "__main__":
    raise SystemExit(main())
