"""The documentation as a site: ``python3 -m tests.site`` builds it into ``build/site``.

Needs gclint with the extra ``docs``, and no network. A warning is an error: a link that leads nowhere, an
anchor that is gone, a page that nothing leads to.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.environment import PROJECT

SITE = PROJECT / "build" / "site"


def build(site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site in place of what may be there; all that is wrong is in the result's output."""
    shutil.rmtree(site, ignore_errors=True)
    strict = ("--fail-on-warning", "--keep-going", "--nitpicky", "--quiet", "--fresh-env")
    doctrees = site.with_name(f"{site.name}.doctrees")
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *strict, "-c", "docs", "-d", doctrees, PROJECT, site],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1"},
        encoding="utf-8",
    )


def main() -> int:
    """Build the site; return 0 if nothing was wrong."""
    if importlib.util.find_spec("sphinx") is None:
        print('error: Sphinx is missing: pip install -e ".[docs]"', file=sys.stderr)
        return 1
    built = build(SITE)
    print(built.stdout, end="")
    if built.returncode == 0:
        print(f"the site is in {SITE / 'index.html'}")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
