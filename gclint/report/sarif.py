"""The format SARIF 2.1.0, which GitHub's code scanning and many editors show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from gclint import __version__

if TYPE_CHECKING:
    from gclint.report.report import Report

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"


def write(report: Report, stream: TextIO) -> None:
    """Write everything."""
    driver = {"name": "gclint", "version": __version__}
    run = {"tool": {"driver": driver}, "results": []}
    json.dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, stream, indent=2)
    stream.write("\n")
