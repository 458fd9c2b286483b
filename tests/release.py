"""What a release has to keep to: ``python3 -m tests.release v0.3.0``, before anything is built.

Compares the tag with the version and with the newest section of the changelog, and prints that section, for
the page of the release. ``--readme`` also lets the links in the README lead to the repository as it is at
this tag: on PyPI it has no neighbours.
"""

from __future__ import annotations

import re
import sys

from gclint import __version__
from tests.changelog import CHANGELOG, MalformedChangelog, sections
from tests.environment import PROJECT

_REPOSITORY = "https://github.com/gclint/gclint"
_RAW = "https://raw.githubusercontent.com/gclint/gclint"
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https:|#)(?P<path>[^)]+)\)")


class NotReady(Exception):
    """The message says what keeps a release from being made."""


def notes(tag: str, version: str, changelog: str) -> str:
    """Return what the changelog says of the release.

    Raises:
        NotReady: tag, version and changelog do not name the same version.
    """
    if tag != f"v{version}":
        raise NotReady(f"the tag is {tag}, but gclint.__version__ is {version}: the tag has to be v{version}")
    try:
        newest = sections(changelog)[0]
    except MalformedChangelog as error:
        raise NotReady(f"CHANGELOG.md: {error}") from error
    if newest.name != version:
        raise NotReady(f"the newest version in CHANGELOG.md is {newest.name}, not {version}")
    return newest.text


def with_absolute_links(text: str, tag: str) -> str:
    """Return a page of the repository's root whose links lead to the repository."""

    def absolute(match: re.Match[str]) -> str:
        base = f"{_RAW}/{tag}" if match["image"] else f"{_REPOSITORY}/blob/{tag}"
        return f"{match['image']}[{match['text']}]({base}/{match['path']})"

    return _LINK.sub(absolute, text)


def main(arguments: list[str]) -> int:
    """Check a tag; return 0 if a release can be made of it."""
    tags = [each for each in arguments if each != "--readme"]
    if len(tags) != 1:
        print("usage: python3 -m tests.release TAG [--readme]", file=sys.stderr)
        return 2
    try:
        text = notes(tags[0], __version__, CHANGELOG.read_text(encoding="utf-8"))
    except NotReady as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(with_absolute_links(text, tags[0]))
    if "--readme" in arguments:
        readme = PROJECT / "README.md"
        text = with_absolute_links(readme.read_text(encoding="utf-8"), tags[0])
        readme.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
