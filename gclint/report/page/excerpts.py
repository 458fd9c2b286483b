"""Places in sources with their lines, if the source is still the one that was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.packages import INSTALLED
from gclint.code.paths import shown
from gclint.facts import read_bytes, real_path
from gclint.verify.sources import digest, target_of
from gclint.verify.worker.protocol import SourcePlace

_AROUND = 2
"""Lines before and after."""
_MOST = 16
"""The most lines of one place, even if a call is longer."""


@dataclass(frozen=True)
class Line:
    """A line of source code."""

    number: int
    text: str
    is_meant: bool


@dataclass(frozen=True)
class Excerpt:
    """A place in a source, with its lines."""

    place: str
    lines: tuple[Line, ...] = ()
    missing: str = ""
    """Why there are no lines."""


def brief(path: Path | str) -> str:
    """Return a path for people: relative to the package folder if it is in an environment."""
    return shown(path).rpartition("/site-packages/")[2]


class Sources:
    """The texts that were run."""

    def __init__(self, digests: Mapping[str, str], texts: Mapping[Path, str]) -> None:
        """Remember the digests of sources when they were run, and texts that are not on the disk."""
        self._digests = digests
        targets = map(target_of, (*map(Path, digests), *texts))
        self._roots = {real_path(each.tree or Path(each.source.path).parent) for each in targets}
        self._texts = {str(path.absolute()): text for path, text in texts.items()}
        self._known: dict[str, list[str] | str] = {}

    def excerpt(self, place: SourcePlace) -> Excerpt:
        """Return a place with its lines and some around them, or with the reason why there are none."""
        written = f"{brief(place.path)}:{place.line}"
        lines = self._lines(place.path)
        if isinstance(lines, str):
            return Excerpt(written, missing=lines)
        if not 1 <= place.line <= len(lines):
            return Excerpt(written, missing="the file has fewer lines now")
        first = max(place.line - _AROUND, 1)
        last = min(place.end_line + _AROUND, len(lines), first + _MOST)
        return Excerpt(
            written,
            tuple(
                Line(number, lines[number - 1], place.line <= number <= place.end_line)
                for number in range(first, last + 1)
            ),
        )

    def _lines(self, path: str) -> list[str] | str:
        """Return the lines of a source, or why they cannot be shown."""
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path: str) -> list[str] | str:
        text = self._texts.get(path)
        if text is None:
            try:
                known = self._digests.get(path)
                if known is not None and digest(target_of(Path(path)).source, {}) != known:
                    return "the file has changed since it was run"
                if known is None and not self._is_among_the_code(path):
                    return "the file is not among those that were run"
                text = SourceFile(Path(path), read_bytes(Path(path))).text
            except (OSError, UnreadableFile):
                return "the file cannot be read here"
        return text.splitlines()

    def _is_among_the_code(self, path: str) -> bool:
        """Return whether lines of a file may be shown: a result, which a model made, may name any."""
        real = real_path(path)
        inside = not self._roots.isdisjoint(real.parents) or not INSTALLED.isdisjoint(real.parts)
        return real.suffix == ".py" and inside
