"""gclint's main job on a real release: ``python3 -m tests.ecosystem.demo``.

Needs Python, pip and PyPI. Makes a virtual environment in ``.cache/demo``, fetches a release of
transformers, and there finds what breaks gradient checkpointing, shows how a model would be
repaired, repairs a copy of the release, and says what is left.
"""

from __future__ import annotations

import re
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
        _gclint(python, "--select", "GC001", models).returncode == 1,
        _gclint(python, "--diff", "--unsafe-fixes", f"{models}/gpt_bigcode").returncode == 1,
        (before := _gclint(python, "--statistics", models)).returncode == 1,
        (after := _gclint(python, "--fix", "--unsafe-fixes", "--statistics", models)).returncode < 2,
    ]
    announce(balance(before.stdout, after.stdout))
    as_expected.append(_gclint(python, "--select", "GC001", f"{models}/gpt_bigcode").returncode == 0)
    announce("done" if all(as_expected) else "gclint did not do what it should have done")
    return int(not all(as_expected))


def _gclint(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    announce(f"gclint {' '.join(arguments)}")
    command: list[str | Path] = [python, "-m", "gclint", *arguments]
    done = subprocess.run(command, cwd=_FOLDER, stdout=subprocess.PIPE, encoding="utf-8")
    print(done.stdout, end="", flush=True)
    return done


def balance(before: str, after: str) -> str:
    """Return what became of the findings, from the statistics before and after the repair."""
    found, fixed, left = (
        int(match[1].replace(",", "")) if match else 0
        for match in (
            re.search(r"^Found ([\d,]+) finding", before, re.MULTILINE),
            re.search(r"^Fixed ([\d,]+) finding", after, re.MULTILINE),
            re.search(r"; ([\d,]+) left", after),
        )
    )
    return f"of {found} findings {fixed} were fixed, and {left} are left"


if __name__ == "__main__":
    raise SystemExit(main())
