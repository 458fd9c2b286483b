"""Fixtures of rules: files that say themselves what is reported in them, and what becomes of them.

A fixture is a file ``<rule>/<case>.py`` below a folder, or a folder ``<rule>/<case>/`` where it takes several
files (perhaps with a ``pyproject.toml``). What is to be reported stands behind the offending line:

    hidden_states = layer(hidden_states, past_key_values)  # expect: GC002 safe
    hidden_states = layer(hidden_states, past, states)  # expect: GC002 unsafe layer "callers"; GC003 no fix

A code, what kind of fix there is, and where it matters the symbol, and in quotes a part of the message or
of the reason. ``# silent: GC002 "words"`` has a part of what ``gclint explain`` says there of a rule. These
comments are taken out before gclint sees the code. ``<case>.fixed.py`` (or the folder ``<case>.fixed/``) is
what ``--fix`` makes of it, ``<case>.unsafe.py`` what ``--fix --unsafe-fixes`` makes of it, and ``--verify``
where all is proven; where the first is missing nothing changes, and where the second is missing nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.paths import shown
from gclint.code.syntax import syntax_problem

Texts = Mapping[str, str]
"""Texts of files by their paths in a fixture."""

_FOLDERS = "[A-Z]*[0-9][0-9][0-9]"
_CODE = r"([A-Z]{2,20}\d{3})"
_COMMENT = re.compile(r"[ \t]{0,99}# (expect|silent): ([^#\n]{0,999})")
_EXPECTATION = re.compile(
    rf'{_CODE} (safe|when proven|unsafe|no fix)(?: ([^\s"]{{1,99}}))?(?: "([^"]{{1,400}})")?'
)
_SILENCE = re.compile(rf'{_CODE} "([^"]{{1,400}})"')
_FORMS = {
    "expect": '# expect: GC001 safe, with "unsafe", "when proven" or "no fix" in place of "safe"',
    "silent": '# silent: GC001 "a part of the reason"',
}
_RESULTS = ("fixed", "unsafe")


class MalformedFixture(Exception):
    """A fixture is not of the form that is described here; the message names the place."""


@dataclass(frozen=True, order=True)
class Expectation:
    """One finding that a fixture announces."""

    path: str
    row: int
    code: str
    kind: str
    symbol: str
    words: str


@dataclass(frozen=True, order=True)
class Silence:
    """Why a rule has no finding at a place, as a fixture says it."""

    path: str
    row: int
    code: str
    words: str


@dataclass(frozen=True)
class Fixture:
    """Code before and after, and what is reported."""

    name: str
    before: Texts
    fixed: Texts
    unsafe: Texts
    expectations: tuple[Expectation, ...]
    silences: tuple[Silence, ...] = ()
    sources: Mapping[str, Path] = field(default_factory=dict)
    """The files that its texts are from, by their paths in it."""

    def place(self, path: str, row: int) -> str:
        """Return where a row of a text stands, for people."""
        return f"{shown(self.sources.get(path, path))}:{row}"


def load_fixtures(folder: Path) -> list[Fixture]:
    """Return the fixtures of all rules, without those in syntax that the running Python does not know.

    Raises:
        MalformedFixture: a comment or the name of a file means nothing.
        OSError: the folder cannot be read.
    """
    fixtures = [
        _load(path)
        for rule_folder in sorted(folder.glob(_FOLDERS))
        if rule_folder.is_dir()
        for path in sorted(rule_folder.iterdir())
        if _is_fixture(path)
    ]
    return [each for each in fixtures if not any(map(is_too_new, each.before.values()))]


def is_too_new(text: str) -> bool:
    """Tell whether a text is in syntax that the running Python does not know."""
    problem = syntax_problem(SourceFile(Path("x.py"), text.encode()))
    return problem is not None and "newer Python" in problem.message


def _is_fixture(path: Path) -> bool:
    """Return whether a path is that of a fixture, and not that of a result, or of what Python leaves behind.

    Raises:
        MalformedFixture: it is neither.
    """
    stem, _, version = path.name.removesuffix(".py").partition(".")
    if not stem or path.name == "__pycache__":
        return False
    if not version:
        return True
    fixture = path.with_name(stem + path.suffix.removeprefix(f".{version}"))
    if version not in _RESULTS:
        raise MalformedFixture(f"{shown(path)} is neither a fixture (case.py) nor a result (case.fixed.py)")
    if not fixture.exists():
        raise MalformedFixture(f"{shown(path)} belongs to {fixture.name}, which does not exist")
    return False


def _load(path: Path) -> Fixture:
    stem, suffix = (path.name, "") if path.is_dir() else (path.stem, ".py")
    sources = _sources(path)
    if not sources:
        raise MalformedFixture(f"{shown(path)} has no files")
    written = _read(sources)
    before = {name: _COMMENT.sub("", text) for name, text in written.items()}
    fixed = {**before, **_read(_sources(path.with_name(f"{stem}.fixed{suffix}")))}
    unsafe = {**fixed, **_read(_sources(path.with_name(f"{stem}.unsafe{suffix}")))}
    expectations = sorted(
        Expectation(name, row, match[1], match[2], match[3] or "", match[4] or "")
        for name, row, match in _comments(written, "expect", _EXPECTATION, sources)
    )
    silences = sorted(
        Silence(name, row, match[1], match[2])
        for name, row, match in _comments(written, "silent", _SILENCE, sources)
    )
    name = f"{path.parent.name}/{stem}"
    return Fixture(name, before, fixed, unsafe, tuple(expectations), tuple(silences), sources)


def _sources(path: Path) -> dict[str, Path]:
    """Return the files of a fixture, or of a result that may be missing, by their paths in it."""
    if path.is_file():
        return {f"modeling_{path.name.partition('.')[0]}.py": path}
    files = (each for each in sorted(path.rglob("*")) if each.is_file() and each.suffix != ".pyc")
    return {each.relative_to(path).as_posix(): each for each in files}


def _read(sources: Mapping[str, Path]) -> dict[str, str]:
    texts = {}
    for name, path in sources.items():
        try:
            texts[name] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise MalformedFixture(f"{shown(path)} is not UTF-8") from None
    return texts


def _comments(
    texts: Texts, kind: str, form: re.Pattern[str], sources: Mapping[str, Path]
) -> Iterator[tuple[str, int, re.Match[str]]]:
    """Yield what the comments of a kind say, each with its file and row."""
    for name, text in texts.items():
        for row, line in enumerate(text.split("\n"), start=1):
            for comment in _COMMENT.finditer(line):
                for part in comment[2].split(";") if comment[1] == kind else ():
                    match = form.fullmatch(part.strip())
                    if match is None:
                        where = f"{shown(sources[name])}:{row}"
                        raise MalformedFixture(
                            f"{where}: this is not of the form {_FORMS[kind]}: {part.strip()}"
                        )
                    yield name, row, match
