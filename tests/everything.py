"""Sets up and runs all checks: ``python3 -m tests.everything``.

Needs Python, pip and PyPI. Makes a virtual environment in ``.cache/tests``, installs gclint with
what its tests need, and runs the formatter, the linter, the type checker and every test.
"""

from __future__ import annotations

import shlex
import subprocess

from tests.environment import CACHE, PROJECT, EnvironmentUnavailable, announce, fresh_environment

_CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    # Files stay whole, as their tests share what they have made.
    ("pytest", "-m", "", "-n", "auto", "--dist", "loadfile"),
)


def main() -> int:
    """Run all checks, also those after one that failed; return the exit status."""
    announce("installing gclint and what its tests need into .cache/tests")
    try:
        python = fresh_environment(CACHE / "tests", "-c", "constraints.txt", "-e", ".[test,verify]")
    except EnvironmentUnavailable as error:
        announce(str(error))
        return 1
    failed = []
    for check in _CHECKS:
        announce(shlex.join(check))
        if subprocess.run([python, "-m", *check], cwd=PROJECT).returncode:
            failed.append(shlex.join(check))
    announce(f"failed: {', '.join(failed)}" if failed else "everything passed")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
