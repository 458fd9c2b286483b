"""Paths, positions and fingerprints for reports that are read elsewhere, such as in CI.

Paths are relative to the repository.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from urllib.parse import quote_from_bytes

from gclint.code.tokens import code_hash
from gclint.facts import is_there, real_path
from gclint.finding import Finding, Position
from gclint.report.report import Files


class Places:
    """Paths relative to the root of the repository that gclint runs in, and positions in files."""

    def __init__(self, project: Files) -> None:
        """Use the files of ``project`` with their current texts."""
        self._project = project
        self._names: dict[Path, str | None] = {}

    @cached_property
    def root(self) -> Path:
        """The root of the git repository around the working directory; without one, that directory."""
        try:
            here = Path.cwd()
        except OSError:  # The working directory has been deleted, so no file is in it.
            return Path(os.devnull)
        return next((each for each in (here, *here.parents) if is_there(each / ".git")), here)

    def inside(self, path: Path) -> str | None:
        """Return the path of a file relative to the root, with slashes; None if it is elsewhere."""
        if path not in self._names:
            self._names[path] = self._relative(path)
        return self._names[path]

    def name(self, path: Path) -> str:
        """Return the path relative to the root, or else the absolute path; it can always be encoded."""
        found = self.inside(path)
        name = Path(os.path.abspath(path)).as_posix() if found is None else found  # noqa: PTH100
        return os.fsencode(name).decode(errors="replace")

    def uri(self, path: Path) -> str:
        """Return the same as a URI reference: relative inside the root, absolute elsewhere."""
        found = self.inside(path)
        if found is None:
            return Path(os.path.abspath(path)).as_uri()  # noqa: PTH100
        # A colon before the first slash must be escaped, or what precedes it would be read as a scheme.
        return quote_from_bytes(os.fsencode(found))

    def position(self, path: Path, offset: int) -> Position:
        """Return the position of an offset in a file."""
        return self._project.file(path).position(offset)

    def last(self, path: Path, start: int, end: int) -> Position:
        """Return the position of the last character in ``[start, end)``, or of ``start`` if that is empty."""
        return self.position(path, max(start, end - 1))

    def _relative(self, path: Path) -> str | None:
        absolute = Path(os.path.abspath(path))  # noqa: PTH100
        if absolute.is_relative_to(self.root):
            return absolute.relative_to(self.root).as_posix()
        real, root = self._project.location(path), real_path(self.root)
        return real.relative_to(root).as_posix() if real.is_relative_to(root) else None


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
