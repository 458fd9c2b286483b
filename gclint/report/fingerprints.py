"""Fingerprints by which services recognize a finding in later runs."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from gclint.source.identity import code_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gclint.finding import Finding
    from gclint.report.places import Places
    from gclint.report.report import Files


def fingerprints(project: Files, places: Places, findings: Iterable[Finding]) -> list[str]:
    """Return a unique fingerprint for each finding.

    It is a digest of the rule, the file, the symbol and the flagged code, as in a baseline, and of a counter
    for findings that share all of these. Line numbers and surrounding code make no difference.
    """
    met: Counter[str] = Counter()
    hashes: dict[str, str] = {}
    found = []
    for finding in findings:
        code = project.file(finding.path).text[finding.start : finding.end]
        if code not in hashes:
            hashes[code] = code_hash(code)
        identity = "\0".join((finding.code, places.name(finding.path), finding.symbol, hashes[code]))
        met[identity] += 1
        numbered = f"{identity}\0{met[identity]}"
        found.append(hashlib.sha256(numbered.encode(errors="backslashreplace")).hexdigest()[:32])
    return found
