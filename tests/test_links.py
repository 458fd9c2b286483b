"""Links, anchors and names of code in the documentation; nothing is asked of the network."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gclint.cli.main import gclint
from gclint.cli.options import LazyCommand
from gclint.rule import all_rules
from tests.documented import FOLDER, TABLE, pages
from tests.environment import PROJECT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BY_HAND = tuple(pages())
_PAGES = (*_BY_HAND, TABLE, *sorted(FOLDER.iterdir()))
_OF_TODAY = tuple(path for path in _BY_HAND if path.name not in {"CHANGELOG.md", "FINDINGS.md"})
"""The others say what was, and what is in transformers."""

_REPOSITORY = re.compile(r"https://github\.com/gclint/gclint/(?:blob|tree|raw)/main/([^#]+)")
_PATH = re.compile(r"(?:\.ci|\.github|docs|fixtures|gclint|rules|tests)/[\w./-]*")
_MODULE = re.compile(r"python3? -m (tests(?:\.\w+)*)")
_CODE = re.compile(r"\bGC\d{3}\b")

_NOT_A_RULE = "GC999"
"""What the recipe for a new rule adds."""

_every_page = pytest.mark.parametrize("page", _PAGES, ids=lambda path: path.name)
_pages_of_today = pytest.mark.parametrize("page", _OF_TODAY, ids=lambda path: path.name)


@cache
def _tokens(page: Path) -> tuple[Token, ...]:
    return tuple(_parsed(page.read_text(encoding="utf-8")))


def _parsed(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or ()


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Return the names that GitHub, and the site, give to a page's headings."""
    found: set[str] = set()
    tokens = _tokens(page)
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in following.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            number = sum(1 for each in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each))
            found.add(f"{slug}-{number}" if number else slug)
    return frozenset(found)


def _links(page: Path) -> Iterator[str]:
    for token in _tokens(page):
        target = token.attrGet("href") or token.attrGet("src")
        if target is not None:
            yield str(target)


@_every_page
def test_links_lead_somewhere(page: Path) -> None:
    assert [
        link for link in _links(page) if (problem := _problem(page, link)) and print(problem) is None
    ] == []


def _problem(page: Path, link: str) -> str | None:
    """Return what is wrong with a link, or None."""
    parts = urlsplit(link)
    if parts.scheme:
        return _problem_outside(link)
    if parts.path.startswith("/"):
        return f"{link}: paths are relative to the page"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return f"{link}: there is no such file (a folder has its address on GitHub)"
    if not target.is_relative_to(PROJECT):
        return f"{link}: it leads out of the repository"
    if parts.fragment and (target.suffix != ".md" or parts.fragment not in _anchors(target)):
        return f"{link}: {target.name} has no such heading"
    return None


def _problem_outside(link: str) -> str | None:
    parts = urlsplit(link)
    if parts.scheme != "https" or not re.fullmatch(r"(?:[\w-]+\.)+\w{2,}", parts.hostname or ""):
        return f"{link}: it is not an address"
    own = _REPOSITORY.fullmatch(link.partition("#")[0])
    if own is not None and not (PROJECT / own[1]).exists():
        return f"{link}: the repository has no {own[1]}"
    return None


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("docs/nothing.md", "no such file"),
        ("docs/rules", "no such file"),
        ("/docs/rules.md", "relative"),
        ("docs/use.md#nothing", "no such heading"),
        ("#nothing", "no such heading"),
        ("http://example.com", "not an address"),
        ("https://localhost/x", "not an address"),
        ("https://github.com/gclint/gclint/blob/main/nothing.py", "no nothing.py"),
    ],
)
def test_a_link_that_leads_nowhere_is_seen(link: str, words: str) -> None:
    assert words in str(_problem(PROJECT / "README.md", link))


@_pages_of_today
def test_named_files_are_there(page: Path) -> None:
    found = {path for text in _code_of(page) for path in _PATH.findall(text) if _is_ours(text, path)}
    named = {path for path in found if _NOT_A_RULE.lower() not in path.lower()}
    assert sorted(path for path in named if not (PROJECT / path.rstrip(".")).exists()) == []


def _is_ours(text: str, path: str) -> bool:
    """Tell whether a path is one of this repository: not the end of another, nor a pattern for several."""
    start = text.index(path)
    before, after = text[:start], text[start + len(path) :]
    return not re.search(r"[\w./\\-]$", before) and not re.match(r"[<*{:@]", after) and "…" not in text


def _code_of(page: Path) -> Iterator[str]:
    for token in _tokens(page):
        if token.type == "code_inline":
            yield token.content


@_pages_of_today
def test_named_programs_of_tests_are_there(page: Path) -> None:
    for name in _MODULE.findall(page.read_text(encoding="utf-8")):
        path = PROJECT.joinpath(*name.split("."))
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), name


@_every_page
def test_named_rules_are_there(page: Path) -> None:
    named = {*_CODE.findall(page.read_text(encoding="utf-8"))}
    assert named - {_NOT_A_RULE} <= {rule.code for rule in all_rules()}


@_pages_of_today
def test_commands_have_the_options_that_are_shown(page: Path) -> None:
    unknown = [
        f"{line}: {word}"
        for line in _command_lines(page)
        for word in _unknown_options(shlex.split(line, comments=True)[1:])
    ]
    assert unknown == []


def _command_lines(page: Path) -> Iterator[str]:
    for token in _tokens(page):
        if token.type == "code_inline":
            lines = [token.content]
        elif token.type == "fence" and token.info in {"console", "bash", "sh", ""}:
            lines = token.content.replace("\\\n", " ").splitlines()
        else:
            continue
        for line in lines:
            line = line.removeprefix("$ ")
            if line.startswith("gclint ") and not re.search(r"…|\.\.\. ", line):
                yield line


def _unknown_options(words: list[str]) -> Iterator[str]:
    command: click.Command = gclint
    while isinstance(command, click.Group):
        is_named = bool(words) and words[0] in command.commands
        # The default command is the first one.
        command = command.commands[words[0] if is_named else next(iter(command.commands))]
        words = words[is_named:]
        if isinstance(command, LazyCommand):
            command = command.loaded()
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    known |= {"--help", "--version"}
    for word in words:
        name = word.partition("=")[0]
        if re.fullmatch(r"--[a-z][\w-]*|-[a-zA-Z]", name) and name not in known:
            yield name


def test_an_option_that_is_gone_is_seen() -> None:
    assert [*_unknown_options(["verify", "--model", "bert", "--modle=bert"])] == ["--modle"]
    assert [*_unknown_options(["--fix", "--unsafe", "src"])] == ["--unsafe"]


def test_every_command_and_option_is_on_some_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in _OF_TODAY)
    missing = [
        f"{name} {option}"
        for name, command in _commands(gclint, "gclint")
        for option in ("", *_long_options(command))
        if (option or name).removesuffix(" run") not in text
    ]
    assert missing == []


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, LazyCommand):
        command = command.loaded()
    if isinstance(command, click.Group):
        for word, each in command.commands.items():
            yield from _commands(each, f"{name} {word}")
    else:
        yield name, command


def _long_options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield from (each for each in parameter.opts if each.startswith("--"))


@_every_page
def test_data_can_be_read(page: Path) -> None:
    readers = {"toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}
    for token in _tokens(page):
        if token.type == "fence" and token.info in readers:
            assert readers[token.info](token.content)
