"""Runs the fixtures: what is reported in them, and what becomes of them.

A fixture is a file ``fixtures/<rule>/<case>.py``, or a folder ``fixtures/<rule>/<case>/`` where it takes
several files (perhaps with a ``pyproject.toml``). What is to be reported stands behind the offending line:

    hidden_states = layer(hidden_states, past_key_values)  # expect: GC002 safe
    hidden_states = layer(hidden_states, past, states)  # expect: GC002 unsafe layer "callers"; GC003 no fix

A code, what kind of fix there is, and where it matters the symbol, and in quotes a part of the message or
of the reason. These comments are taken out before gclint sees the code. ``<case>.fixed.py`` (or the folder
``<case>.fixed/``) is what ``--fix`` makes of it, ``<case>.unsafe.py`` what ``--fix --unsafe-fixes`` makes of
it, and ``--verify`` where all is proven; where the first is missing nothing changes, and where the second is
missing nothing more.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import cycle
from pathlib import Path

from gclint.cli import vocabulary
from gclint.code.discovery import discover
from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.code.syntax import compile_problem, syntax_problem
from gclint.finding import Finding
from gclint.releases import releases
from gclint.report.findings import is_fixable, obstacle
from gclint.rule import Rule
from gclint.rules.gc000_unused_ignore import UnusedIgnore
from gclint.run.check import check
from gclint.run.fix import fix
from gclint.settings import common_folder, load_settings

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

_INSTALLED = releases(version("transformers"))
ASSUMED = f"Assumed {_INSTALLED} (the installed one); set target-version if that is wrong."
"""What a summary says first of findings in files of which nobody says which releases they run with."""
USUAL_RELEASES = ">=4.53,<5.17"
"""What fixtures run with whose `pyproject.toml` has no `target-version`: every cache is neutralised there."""

Texts = Mapping[str, str]
"""Texts of files by their paths in a fixture."""

_COMMENT = re.compile(r"[ \t]*# (expect|silent): ([^#\n]*)")
_EXPECTATION = re.compile(r'(GC\d{3}) (safe|when proven|unsafe|no fix)(?: ([^\s"]+))?(?: "([^"]+)")?')
_SILENCE = re.compile(r'(GC\d{3}) "([^"]+)"')
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


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


def load_fixtures(folder: Path = FIXTURES) -> list[Fixture]:
    """Return the fixtures of all rules, without those in syntax that the running Python does not know."""
    fixtures = [
        _load(path)
        for rule_folder in sorted(folder.glob("GC[0-9][0-9][0-9]"))
        for path in sorted(rule_folder.iterdir())
        if not _is_result(path)
    ]
    return [each for each in fixtures if not any(map(is_too_new, each.before.values()))]


def is_too_new(text: str) -> bool:
    """Tell whether a text is in syntax that the running Python does not know."""
    problem = syntax_problem(SourceFile(Path("x.py"), text.encode()))
    return problem is not None and "newer Python" in problem.message


def _is_result(path: Path) -> bool:
    case, _, version = path.name.removesuffix(".py").partition(".")
    if not version:
        return False
    fixture = path.with_name(case + path.suffix.removeprefix(f".{version}"))
    assert version in ("fixed", "unsafe"), f"{path} has a name that means nothing"
    assert fixture.exists(), f"{path} belongs to no fixture"
    return True


def _load(path: Path) -> Fixture:
    case, suffix = (path.name, "") if path.is_dir() else (path.stem, ".py")
    written = _read(path)
    before = {name: _COMMENT.sub("", text) for name, text in written.items()}
    fixed = {**before, **_read(path.with_name(f"{case}.fixed{suffix}"))}
    unsafe = {**fixed, **_read(path.with_name(f"{case}.unsafe{suffix}"))}
    expectations = sorted(
        Expectation(name, row, match[1], match[2], match[3] or "", match[4] or "")
        for name, row, match in _comments(written, "expect", _EXPECTATION)
    )
    silences = sorted(
        Silence(name, row, match[1], match[2]) for name, row, match in _comments(written, "silent", _SILENCE)
    )
    name = f"{path.parent.name}/{case}"
    return Fixture(name, before, fixed, unsafe, tuple(expectations), tuple(silences))


def _read(path: Path) -> dict[str, str]:
    if path.is_file():
        return {f"modeling_{path.name.partition('.')[0]}.py": path.read_text(encoding="utf-8")}
    return {
        file.relative_to(path).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def _comments(texts: Texts, kind: str, form: re.Pattern[str]) -> Iterator[tuple[str, int, re.Match[str]]]:
    """Yield what the comments of a kind say, each with its file and row."""
    for name, text in texts.items():
        for row, line in enumerate(text.split("\n"), start=1):
            for comment in _COMMENT.finditer(line):
                for part in comment[2].split(";") if comment[1] == kind else ():
                    match = form.fullmatch(part.strip())
                    assert match, f"{name}:{row}: this is no comment that begins with {kind!r}: {part}"
                    yield name, row, match


@dataclass(frozen=True)
class Workplace:
    """A fixture written to a folder, to be checked or fixed there."""

    folder: Path
    paths: list[Path]
    project: Project

    @classmethod
    def of(cls, files: Mapping[str, bytes], folder: Path) -> Workplace:
        """Write ``files`` into the empty ``folder``."""
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        settings = load_settings(common_folder([folder]), vocabulary())
        settings = replace(settings, target_version=settings.target_version or releases(USUAL_RELEASES))
        paths, problems = discover([folder], settings)
        assert problems == []
        return cls(folder, paths, Project(settings, paths))

    def name(self, path: Path) -> str:
        """Return the path in the fixture."""
        return path.relative_to(self.folder).as_posix()

    def row(self, finding: Finding) -> int:
        """Return the row on which a finding starts."""
        return self.project.file(finding.path).position(finding.start).row


def verify_findings(fixture: Fixture, rules: Sequence[Rule], folder: Path) -> None:
    """Assert that exactly what the fixture announces is reported, and said as it should be."""
    place = Workplace.of(_bytes(fixture.before, str.encode), folder)
    result = check(place.project, rules)
    assert result.problems == ()
    found = sorted(
        Expectation(place.name(each.path), place.row(each), each.code, _kind(each), each.symbol, _words(each))
        for each in result.findings
    )
    assert [_place(each) for each in found] == [_place(each) for each in fixture.expectations]
    for each, expected in zip(found, fixture.expectations, strict=True):
        assert expected.symbol in ("", each.symbol)
        assert expected.words in each.words
    for finding in result.findings:
        assert finding.message
        assert finding.symbol
        assert finding.end > finding.start
        # What cannot be fixed, or not without a look, is said to be so.
        assert obstacle(finding) or _kind(finding) == "safe", finding


def _place(expectation: Expectation) -> tuple[str, int, str, str]:
    return expectation.path, expectation.row, expectation.code, expectation.kind


def _kind(finding: Finding) -> str:
    return "no fix" if finding.fix is None else finding.fix.applicability.value


def _words(finding: Finding) -> str:
    return f"{finding.message}; {obstacle(finding)}"


def verify_fix(fixture: Fixture, rules: Sequence[Rule], folder: Path, variant: str, *, unsafe: bool) -> None:
    """Assert that fixing gives what the fixture says, if its files are written in some other way.

    Also that the result is Python, that nothing is left which claims a fix, and that a second fix
    changes nothing.
    """
    make = VARIANTS[variant]
    place = Workplace.of(_bytes(fixture.before, make), folder)
    result = fix(place.project, rules, unsafe=unsafe, proves=unsafe)
    assert result.problems == ()
    after = fixture.unsafe if unsafe else fixture.fixed
    for path in place.paths:
        name, file = place.name(path), place.project.file(path)
        data = file.encode(file.text)
        if variant == "mixed line endings":
            _verify_line_endings(fixture.before[name], make(fixture.before[name]), after[name], data)
        else:
            _assert_same(name, data, make(after[name]))
        _assert_python(path, make(fixture.before[name]), data)
    assert not [finding for finding in result.findings if is_fixable(finding, unsafe=unsafe)]
    again = fix(place.project, rules, unsafe=unsafe, proves=unsafe)
    assert (again.changed, again.applied, again.problems) == ({}, (), ())
    assert again.findings == result.findings


def verify_suppression(fixture: Fixture, rules: Sequence[Rule], folder: Path) -> None:
    """Assert that an ignore comment on its line suppresses each finding."""
    codes: dict[tuple[str, int], str] = {}
    about_code = [each for each in fixture.expectations if each.code != UnusedIgnore.code]
    for each in about_code:
        key = each.path, each.row
        codes[key] = f"{codes[key]}, {each.code}" if key in codes else each.code
    texts = {}
    for name, text in fixture.before.items():
        lines = text.split("\n")
        for (path, row), joined in codes.items():
            if path == name:
                lines[row - 1] += f"  # gclint: ignore[{joined}]"
        texts[name] = "\n".join(lines)
    place = Workplace.of(_bytes(texts, str.encode), folder)
    result = check(place.project, rules)
    assert result.problems == ()
    assert [finding.code for finding in result.findings if finding.code != UnusedIgnore.code] == []
    assert len(result.findings) == len(fixture.expectations) - len(about_code)


def _bytes(texts: Texts, make: Callable[[str], bytes]) -> dict[str, bytes]:
    return {name: make(text) if name.endswith(".py") else text.encode() for name, text in texts.items()}


def _assert_same(name: str, made: bytes, expected: bytes) -> None:
    old, new = (_LINE.findall(data.decode("latin-1")) for data in (expected, made))
    difference = "\n".join(map(repr, difflib.unified_diff(old, new, "expected", "made", n=1)))
    assert made == expected, f"{name} was not fixed as expected:\n{difference}"


def _assert_python(path: Path, before: bytes, after: bytes) -> None:
    """Assert that a file is Python, to the running one if it was before."""
    problem = compile_problem(path, SourceFile(path, after).text)
    if problem is not None and compile_problem(path, SourceFile(path, before).text) is not None:
        problem = syntax_problem(SourceFile(path, after))
    assert problem is None


def _with_tabs(text: str) -> bytes:
    return re.sub(r"(?m)^(?: {4})+", lambda match: "\t" * (len(match[0]) // 4), text).encode()


def _with_mixed_line_endings(text: str) -> bytes:
    endings = cycle(("\r\n", "\n", "\n", "\r\n", "\n"))
    return re.sub("\n", lambda _: next(endings), text).encode()


VARIANTS: Mapping[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "mixed line endings": _with_mixed_line_endings,
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "tabs": _with_tabs,
    "no last newline": lambda text: text.rstrip("\n").encode(),
    "form feeds": lambda text: text.replace("\n\n\nclass ", "\n\n\f\nclass ").encode(),
    "latin-1": lambda text: f"# coding: latin-1\n# é\n{text}# é\n".encode("latin-1", "xmlcharrefreplace"),
}
"""Other ways to write the same code; a fix changes nothing about them."""


def _verify_line_endings(before: str, mixed: bytes, after: str, data: bytes) -> None:
    """Assert that lines which are the same before and after have kept their ending."""
    fixed = data.decode()
    _assert_same("the file", fixed.replace("\r\n", "\n").encode(), after.encode())
    old, new = _LINE.findall(mixed.decode()), _LINE.findall(fixed)
    lines, others = (text.removesuffix("\n").split("\n") for text in (before, after))
    matcher = difflib.SequenceMatcher(None, lines, others, autojunk=False)
    counts = Counter(lines)
    for block in matcher.get_matching_blocks():
        for row in range(block.size):
            # Of lines that occur more than once, nobody can say which has stayed.
            if counts[lines[block.a + row]] == 1:
                assert old[block.a + row] == new[block.b + row]
