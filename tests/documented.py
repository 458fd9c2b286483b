"""The documentation of the rules as files, made of their docstrings: ``python3 -m tests.documented``.

Needs gclint installed. Each file is named like its rule's module, and findings lead there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from gclint.report.rules import documentation
from gclint.rule import all_rules
from tests.environment import PROJECT

FOLDER = PROJECT / "docs" / "rules"


def documents() -> Mapping[Path, str]:
    """Return the texts of all files."""
    modules = ((rule, type(rule).__module__.rpartition(".")[2]) for rule in all_rules())
    return {FOLDER / f"{module}.md": documentation(rule) for rule, module in modules}


def main() -> int:
    """Write the files, and remove those of rules that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = documents()
    for path in {*FOLDER.iterdir()} - {*written}:
        path.unlink()
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
