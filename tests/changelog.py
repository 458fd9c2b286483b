"""The changelog, in the form of Keep a Changelog."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from tests.environment import PROJECT

CHANGELOG = PROJECT / "CHANGELOG.md"
UNRELEASED = "Unreleased"
_KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")

_SECTION = re.compile(r"^## (.*)\n", re.MULTILINE)
_KIND = re.compile(r"^### (.*)$", re.MULTILINE)
_VERSION = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\S+)")
_LINK = re.compile(r"^\[([^\]]+)\]: (\S+)$\n?", re.MULTILINE)


class MalformedChangelog(Exception):
    """The message says what is wrong, and where."""


@dataclass(frozen=True)
class Section:
    """What changed with a version."""

    version: tuple[int, int, int]
    day: date
    text: str

    @property
    def name(self) -> str:
        """The version as it is written."""
        return ".".join(map(str, self.version))


def sections(text: str) -> Sequence[Section]:
    """Return the sections of the versions in a changelog, newest first.

    Raises:
        MalformedChangelog: a heading, a date, a link or the order is not what it should be.
    """
    _, *parts = _SECTION.split(_LINK.sub("", text))
    if parts[:1] == [f"[{UNRELEASED}]"]:
        _check_kinds(*parts[:2])
        del parts[:2]
    found = [_section(heading, body) for heading, body in zip(parts[::2], parts[1::2], strict=True)]
    for newer, older in pairwise(found):
        if newer.version <= older.version or newer.day < older.day:
            raise MalformedChangelog(f"{newer.name} of {newer.day} stands above {older.name} of {older.day}")
    return found


def links(text: str) -> Mapping[str, str]:
    """Return where the headings of a changelog lead."""
    return dict(_LINK.findall(text))


def _section(heading: str, text: str) -> Section:
    match = _VERSION.fullmatch(heading)
    if match is None:
        raise MalformedChangelog(f"'## {heading}' is not of the form '## [1.2.3] - 2026-12-31'")
    try:
        day = date.fromisoformat(match[4])
    except ValueError as error:
        raise MalformedChangelog(f"'## {heading}' has no valid date: {error}") from None
    _check_kinds(heading, text)
    if not text.strip():
        raise MalformedChangelog(f"'## {heading}' says nothing")
    return Section((int(match[1]), int(match[2]), int(match[3])), day, text.strip())


def _check_kinds(heading: str, text: str) -> None:
    kinds = _KIND.findall(text)
    unknown = [kind for kind in kinds if kind not in _KINDS]
    if unknown:
        raise MalformedChangelog(f"'### {unknown[0]}' under '## {heading}': there are {', '.join(_KINDS)}")
    if len({*kinds}) < len(kinds):
        raise MalformedChangelog(f"'## {heading}' has a heading twice: {', '.join(kinds)}")


def with_entry(text: str, kind: str, entry: str) -> str:
    """Return a changelog with a further entry in its newest section, the last one of its kind.

    Args:
        text: the changelog.
        kind: under which heading, such as ``Added``.
        entry: what to say, in one line or more.

    Raises:
        MalformedChangelog: there is no section.
    """
    newest = _SECTION.search(text)
    if newest is None:
        raise MalformedChangelog("there is no section of a version")
    following = _SECTION.search(text, newest.end()) or _LINK.search(text, newest.end())
    end = following.start() if following else len(text)
    heading = next((each for each in _KIND.finditer(text, newest.end(), end) if each[1] == kind), None)
    if heading is None:
        return f"{text[: newest.end()]}\n### {kind}\n\n- {entry}\n{text[newest.end() :]}"
    later = _KIND.search(text, heading.end(), end)
    at = later.start() if later else end
    kept = text[:at].rstrip("\n")
    return f"{kept}\n- {entry}\n\n{text[at:]}"
