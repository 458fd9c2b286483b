"""Holds rules to their fixtures: what differs, a line each, with the file and row."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from gclint.code.discovery import discover
from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.code.syntax import compile_problem, syntax_problem
from gclint.code.trainer_settings import are_settings
from gclint.finding import Finding, Position, Problem
from gclint.releases import releases
from gclint.report.findings import is_fixable, obstacle
from gclint.rule import Rule, rule_words
from gclint.rules.gc000_unused_ignore import UnusedIgnore
from gclint.run.check import check
from gclint.run.explain import Explainer, Opinion
from gclint.run.fix import fix
from gclint.settings import Vocabulary, common_folder, load_settings
from gclint.testing.fixtures import Expectation, Fixture

USUAL_RELEASES = ">=4.53,<5.17"
"""What fixtures run with whose `pyproject.toml` has no `target-version`: every cache is neutralised there."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


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
        settings = load_settings(common_folder([folder]), Vocabulary(rule_words))
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

    def problems(self, fixture: Fixture, problems: Sequence[Problem]) -> Iterator[str]:
        """Yield what kept files from being checked or repaired."""
        for each in problems:
            row = (each.position or Position(1, 1)).row
            yield f"{fixture.place(self.name(each.path), row)}: {each.message}"


def all_differences(fixture: Fixture, rules: Sequence[Rule]) -> list[str]:
    """Return whatever differs from what a fixture says; empty if nothing does.

    Fixes are also made in the other ways to write the same code. The fixture is written to temporary folders.
    """
    with TemporaryDirectory() as folder:
        names = (Path(folder, str(number)) for number in range(1000))
        found = [
            *finding_differences(fixture, rules, next(names)),
            *silence_differences(fixture, rules, next(names)),
        ]
        for variant in VARIANTS:
            for unsafe in (False, True):
                if not found:
                    found += fix_differences(fixture, rules, next(names), variant, unsafe=unsafe)
        return found or [*suppression_differences(fixture, rules, next(names))]


def undeclared_fixes(fixtures: Iterable[Fixture], rules: Iterable[Rule]) -> Iterator[str]:
    """Yield the kinds of fixes that fixtures announce, and that their rules do not declare."""
    declared = {rule.code: {each.value for each in rule.fixes} for rule in rules}
    for fixture in fixtures:
        for each in fixture.expectations:
            if each.kind not in ("no fix", *declared.get(each.code, (each.kind,))):
                where = fixture.place(each.path, each.row)
                yield f"{where}: {each.code} has a fix that is {each.kind}, which its `fixes` do not declare"


def finding_differences(fixture: Fixture, rules: Sequence[Rule], folder: Path) -> Iterator[str]:
    """Yield what is reported otherwise than the fixture announces, or not said as it should be."""
    place = Workplace.of(_bytes(fixture.before, "as it is"), folder)
    result = check(place.project, rules)
    yield from place.problems(fixture, result.problems)
    found = sorted(
        Expectation(place.name(each.path), place.row(each), each.code, _kind(each), each.symbol, _words(each))
        for each in result.findings
    )
    expected = Counter(map(_what, fixture.expectations))
    reported = Counter(map(_what, found))
    for path, row, code, kind in sorted((expected - reported).elements()):
        yield f"{fixture.place(path, row)}: {code} {kind} is expected, and not reported"
    for each in found:
        if (reported - expected)[_what(each)]:
            where = fixture.place(each.path, each.row)
            yield f"{where}: {each.code} {each.kind} is reported, and not expected: {each.words}"
    if expected == reported:
        for each, wanted in zip(found, fixture.expectations, strict=True):
            where = fixture.place(each.path, each.row)
            if wanted.symbol not in ("", each.symbol):
                yield f"{where}: the symbol of {each.code} is {each.symbol}, and {wanted.symbol} is expected"
            if wanted.words not in each.words:
                yield f'{where}: "{wanted.words}" is expected in what {each.code} says: {each.words}'
    for finding in result.findings:
        # What cannot be fixed, or not without a look, is said to be so.
        is_said = obstacle(finding) or _kind(finding) == "safe"
        if not (finding.message and finding.symbol and finding.end > finding.start and is_said):
            where = fixture.place(place.name(finding.path), place.row(finding))
            yield f"{where}: {finding.code} has no message, symbol, place or reason"


def _what(expectation: Expectation) -> tuple[str, int, str, str]:
    return expectation.path, expectation.row, expectation.code, expectation.kind


def _kind(finding: Finding) -> str:
    return "no fix" if finding.fix is None else finding.fix.applicability.value


def _words(finding: Finding) -> str:
    why = obstacle(finding)
    return finding.message if why is None else f"{finding.message}; {why}"


def silence_differences(fixture: Fixture, rules: Sequence[Rule], folder: Path) -> Iterator[str]:
    """Yield where a rule gives other reasons for its silence than the fixture says."""
    if not fixture.silences:
        return
    place = Workplace.of(_bytes(fixture.before, "as it is"), folder)
    for each in fixture.silences:
        explainer = Explainer(place.project, folder / each.path, rules, rules)
        explained = explainer.explain(Position(each.row, 0)).explained
        opinions = (opinion for code in explained for opinion in code.opinions)
        said = [words for one in opinions if one.rule.code == each.code for words in _reasons(one)]
        if not any(each.words in words for words in said):
            what = " | ".join(said) or "nothing"
            where = fixture.place(each.path, each.row)
            yield f'{where}: "{each.words}" is expected as a reason of {each.code}, which says {what}'


def _reasons(opinion: Opinion) -> Iterator[str]:
    yield from opinion.reasons
    yield from (f"{opinion.outcome.value}: {_words(each)}" for each in opinion.findings)


def fix_differences(
    fixture: Fixture, rules: Sequence[Rule], folder: Path, variant: str, *, unsafe: bool
) -> Iterator[str]:
    """Yield what fixing makes otherwise than the fixture says, if its files are written in some other way.

    Also whether the result is not Python, whether something is left that claims a fix, and whether a second
    fix changes something.
    """
    place = Workplace.of(_bytes(fixture.before, variant), folder)
    result = fix(place.project, rules, unsafe=unsafe, proves=unsafe)
    yield from place.problems(fixture, result.problems)
    after = fixture.unsafe if unsafe else fixture.fixed
    option = "--fix --unsafe-fixes" if unsafe else "--fix"
    for path in place.paths:
        name, file = place.name(path), place.project.file(path)
        data, start = file.encode(file.text), _written(name, fixture.before[name], variant)
        if variant == "mixed line endings":
            found = _line_ending_differences(fixture.before[name], start, after[name], data)
        else:
            found = _difference(data, _written(name, after[name], variant))
        if found:
            yield f"{fixture.place(name, 1)}: {option} makes something else ({variant}):\n{found}"
        if not _is_python(path, start, data):
            yield f"{fixture.place(name, 1)}: what {option} makes is not Python ({variant})"
    for finding in result.findings:
        if is_fixable(finding, unsafe=unsafe):
            where = fixture.place(place.name(finding.path), place.row(finding))
            yield f"{where}: {finding.code} is left after {option}, although it has a fix ({variant})"
    again = fix(place.project, rules, unsafe=unsafe, proves=unsafe)
    is_same = (again.changed, again.applied, again.problems) == ({}, (), ())
    if not is_same or again.findings != result.findings:
        where = fixture.place(next(iter(fixture.before)), 1)
        yield f"{where}: a second {option} changes something ({variant})"


def suppression_differences(fixture: Fixture, rules: Sequence[Rule], folder: Path) -> Iterator[str]:
    """Yield the findings that an ignore comment on their line does not suppress."""
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
    place = Workplace.of(_bytes(texts, "as it is"), folder)
    result = check(place.project, rules)
    yield from place.problems(fixture, result.problems)
    left = [finding for finding in result.findings if finding.code != UnusedIgnore.code]
    for finding in left:
        where = fixture.place(place.name(finding.path), place.row(finding))
        yield f"{where}: an ignore comment on this line does not suppress {finding.code}"
    if len(result.findings) - len(left) != len(fixture.expectations) - len(about_code):
        yield f"{fixture.place(next(iter(fixture.before)), 1)}: an ignore comment is said to suppress nothing"


def _bytes(texts: Mapping[str, str], variant: str) -> dict[str, bytes]:
    return {name: _written(name, text, variant) for name, text in texts.items()}


def _written(name: str, text: str, variant: str) -> bytes:
    """Return a text as it is written in some other way, as far as that way is one for files of its kind."""
    is_code = name.endswith(".py") or (are_settings(Path(name)) and variant not in _OF_CODE)
    return VARIANTS[variant](text) if is_code else text.encode()


def _difference(made: bytes, expected: bytes) -> str:
    old, new = (_LINE.findall(data.decode("latin-1")) for data in (expected, made))
    return "\n".join(map(repr, difflib.unified_diff(old, new, "expected", "made", n=1)))


def _is_python(path: Path, before: bytes, after: bytes) -> bool:
    """Return whether a file is Python, to the running one if it was before."""
    problem = compile_problem(path, SourceFile(path, after).text)
    if problem is not None and compile_problem(path, SourceFile(path, before).text) is not None:
        problem = syntax_problem(SourceFile(path, after))
    return problem is None


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
_OF_CODE = ("tabs", "form feeds", "latin-1")
"""The ways in which no YAML can be written."""


def _line_ending_differences(before: str, mixed: bytes, after: str, data: bytes) -> str:
    """Return what differs, also where lines that are the same before and after have another ending."""
    fixed = data.decode()
    found = _difference(fixed.replace("\r\n", "\n").encode(), after.encode())
    if found:
        return found
    old, new = _LINE.findall(mixed.decode()), _LINE.findall(fixed)
    lines, others = (text.removesuffix("\n").split("\n") for text in (before, after))
    matcher = difflib.SequenceMatcher(None, lines, others, autojunk=False)
    counts = Counter(lines)
    # Of lines that occur more than once, nobody can say which has stayed.
    kept = [
        (old[block.a + row], new[block.b + row])
        for block in matcher.get_matching_blocks()
        for row in range(block.size)
        if counts[lines[block.a + row]] == 1
    ]
    return "\n".join(f"-{one!r}\n+{other!r}" for one, other in kept if one != other)
