"""What gclint says about a tree, by place and kind of fact."""

from __future__ import annotations

import io
import json as standard_json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gclint.codemod.ignoring import suppressed
from gclint.engine.baseline import Baseline
from gclint.engine.check import CheckResult, check, known_codes
from gclint.engine.explain import Explainer
from gclint.engine.fix import fix
from gclint.finding import Finding, Position
from gclint.report import json
from gclint.report.diff import unified_diff
from gclint.report.explanation import write_text
from gclint.report.fingerprints import fingerprints
from gclint.report.places import Places
from gclint.report.report import Report
from gclint.rule import all_rules
from gclint.source.discovery import survey
from gclint.source.project import Project
from tests.environment import CACHE
from tests.verdicts.samples import Tree
from tests.verdicts.words import Words, digest, read

OF_FINDINGS = (
    *("finding", "fix", "reason", "names", "edits", "story", "explain", "baseline", "fingerprint"),
    "JSON",
)
OF_FILES = ("diff", "unsafe diff", "ignores", "problems")
OF_SILENCE = ("silence", "names in silence")
FILE = "*"
"""The place of what is about a whole file."""

_PROSE = {"code", "message", "reason", "name", "url"}
_IGNORE = re.compile(r"# gclint: ignore\[([^\]]*)\]")
_PLACE = re.compile(r"  \[(?:line \d+|[^\]]+:\d+)\]$")
_TELLING = re.compile(
    rb"\s*(?:(?P<header>class \w+\()|(?P<loop>for \w.* in )|(?P<made>self\.\w+ = [\w.]+\()"
    rb"|(?P<called>\w+(?:, \w+)* = (?:self\.)?\w+\()|(?P<brought>from |import )|(?P<defined>def forward))"
)
"""Lines at which a rule may have something to say, by what stands there."""


@dataclass(frozen=True)
class Fact:
    """One thing that is said about a place."""

    structure: str = ""
    """All of it but the words."""
    words: tuple[str, ...] = ()
    text: str = ""
    """The same for people."""
    is_short: bool = False
    """Whether it is written down as it is."""

    def value(self, renamed: dict[str, str]) -> str:
        """Return what is written down, with words by their old names."""
        words = [renamed.get(word, word) for word in self.words]
        return (
            "+".join(filter(None, (self.structure, *words)))
            if self.is_short
            else digest(self.structure, *words)
        )


Place = tuple[str, str]
"""A file, and rows and columns in it."""


@dataclass
class Taken:
    """What is said about a tree."""

    tree: str
    code: str
    """A checksum of the files."""
    facts: defaultdict[Place, dict[str, Fact]] = field(default_factory=lambda: defaultdict(dict))
    templates: dict[str, str] = field(default_factory=dict)


def taken(tree: Tree) -> Taken:
    """Run gclint over a tree, and return what it says."""
    words = Words()
    with tree.entered() as folder:
        settings, given = tree.settings(), [Path(tree.given)]
        project = Project(settings, survey(given, settings).files, within=given)
        code = digest(*(f"{path}\0{zlib.crc32(path.read_bytes())}" for path in project.paths))
        found = Taken(tree.name, code, templates=words.templates)
        _Taking(tree, folder, project, words, found).all()
    return found


class _Taking:
    def __init__(self, tree: Tree, folder: Path, project: Project, words: Words, found: Taken) -> None:
        self._tree, self._folder, self._project = tree, folder, project
        self._words, self._facts = words, found.facts
        self._explainers: dict[Path, Explainer] = {}

    def all(self) -> None:
        result = check(self._project, all_rules())
        places = self._findings(result)
        self._silence(result, places)
        self._ignores(result)
        for kind, unsafe in (("diff", False), ("unsafe diff", True)):
            self._fixed(result, kind, unsafe=unsafe)

    # -- findings

    def _findings(self, result: CheckResult) -> set[tuple[Path, int]]:
        """Take the facts about each finding; return the rows where one is."""
        project, places = self._project, Places(self._project)
        places.root = self._folder
        stream = io.StringIO()
        json.write(Report(project, result.findings, result.problems, result.files), stream)
        entries: list[dict[str, Any]] = standard_json.loads(stream.getvalue())
        marks = fingerprints(project, places, result.findings)
        baseline = Baseline(Path("baseline.json"), {})
        met: Counter[Place] = Counter()
        rows = set()
        for finding, entry, mark in zip_longest(result.findings, entries, marks):
            if finding is None:
                self._problem(entry)
                continue
            rows |= {
                (finding.path, row)
                for row in range(entry["location"]["row"], entry["end_location"]["row"] + 1)
            }
            place = entry["filename"], _span(entry)
            met[place] += 1
            if met[place] > 1:
                place = place[0], f"{place[1]}#{met[place]}"
            facts = self._facts[place]
            names = self._said(finding, entry, facts)
            known = baseline.entry(project, finding)
            facts["baseline"] = Fact(
                digest(known.file, known.symbol, known.hash), text=known.hash, is_short=True
            )
            facts["fingerprint"] = Fact(mark[:8], text=mark, is_short=True)
            position = Position(entry["location"]["row"], entry["location"]["column"])
            facts["explain"] = self._explained(result, finding.path, position, names)
            facts["names"] = Fact(digest(*names), text=" ".join(names), is_short=True)
            facts["JSON"] = Fact(
                standard_json.dumps(_shape(entry)), text=standard_json.dumps(entry, indent=1)
            )
        return rows

    def _said(self, finding: Finding, entry: dict[str, Any], facts: dict[str, Fact]) -> list[str]:
        """Take what the entry says of a finding; return the names in it."""
        made = entry["fix"]
        reason = self._local(entry["reason"] or (made or {}).get("reason") or "")
        message, story = self._local(entry["message"]), entry["story"]
        words = self._words.word(entry["code"]), self._words.kind(message)
        facts["finding"] = Fact("", words, f"{entry['code']} {message}", is_short=True)
        facts["fix"] = Fact(
            "none" if made is None else made["applicability"].replace(" ", "-"), is_short=True
        )
        facts["reason"] = Fact("" if reason else "-", self._kinds(reason.split("; ")), reason, is_short=True)
        edits = (
            []
            if made is None
            else [(each["filename"], _span(each), each["content"]) for each in made["edits"]]
        )
        duties = () if finding.fix is None else finding.fix.duties
        said = self._kinds([] if made is None else [made["message"], *(each.text for each in duties)])
        about = [str(each.path) for each in duties]
        facts["edits"] = Fact(repr((edits, about)), said, "\n".join(map(repr, edits)))
        steps = [(self._local(each["filename"]), _span(each)) for each in story]
        told = [self._local(each["message"]) for each in story]
        lines = (f"{path}:{span}: {text}" for (path, span), text in zip(steps, told, strict=True))
        facts["story"] = Fact(repr(steps), self._kinds(told), "\n".join(lines))
        return [name for text in (message, reason, *told) for name in read(text)[0]]

    def _explained(self, result: CheckResult, path: Path, place: Position, names: list[str]) -> Fact:
        """Return what ``gclint explain`` says about a place, and add the names in it."""
        if path not in self._explainers:
            self._explainers[path] = Explainer(self._project, path, all_rules(), all_rules(), known=result)
        stream = io.StringIO()
        write_text(self._explainers[path].explain(place), stream)
        lines = [self._local(line) for line in stream.getvalue().splitlines()[1:] if line]
        structure = [(len(line) - len(line.lstrip()), _PLACE.findall(line)) for line in lines]
        said = [_PLACE.sub("", line).strip() for line in lines]
        names += [name for text in said for name in read(text)[0]]
        return Fact(repr(structure), self._kinds(said), "\n".join(lines))

    def _problem(self, entry: dict[str, Any]) -> None:
        message, where = self._local(entry["message"]), entry["location"]
        known = self._facts[entry["filename"], FILE].get("problems", Fact())
        fact = Fact(
            f"{known.structure}{where}", (*known.words, *self._kinds([message])), f"{known.text}{message}\n"
        )
        self._facts[entry["filename"], FILE]["problems"] = fact

    def _kinds(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._words.kind(text) for text in texts if text)

    def _local(self, text: str) -> str:
        """Return a text without what is different on another machine."""
        return text.replace(str(CACHE.resolve()), "<cache>").replace(f"{self._folder}/", "")

    # -- silence

    def _silence(self, result: CheckResult, found: set[tuple[Path, int]]) -> None:
        unread = {problem.path for problem in result.problems}
        for path, row in _drawn(self._project.paths, unread, self._tree.silent):
            if (path, row) in found:
                continue
            names: list[str] = []
            fact = self._explained(result, path, Position(row, 0), names)
            said = Fact(digest(*names), text=" ".join(names), is_short=True)
            self._facts[str(path), str(row)] |= {"silence": fact, "names in silence": said}

    # -- texts

    def _ignores(self, result: CheckResult) -> None:
        """Take what ``--add-ignores`` would write."""
        own = defaultdict(list)
        for finding in result.findings:
            if finding.path in self._project.fixable:
                own[finding.path].append(finding)
        for path, findings in own.items():
            before = self._project.file(path)
            after, count = suppressed(before, findings, known_codes(all_rules()))
            codes = [
                code for comment in _IGNORE.findall(after.text) for code in re.findall(r"[\w-]+", comment)
            ]
            structure = f"{count}\0{_IGNORE.sub('', after.text)}"
            diff = "".join(unified_diff({path: (before.text, after.text)}))
            self._facts[str(path), FILE]["ignores"] = Fact(structure, self._kinds(codes), diff)

    def _fixed(self, result: CheckResult, kind: str, *, unsafe: bool) -> None:
        """Take what ``--fix`` makes of the files, and put them back."""
        fixed = fix(self._project, all_rules(), unsafe=unsafe, proves=unsafe, known=result)
        left = Counter(str(finding.path) for finding in fixed.findings)
        for path, (before, after) in fixed.changed.items():
            data = self._project.file(path).encode(after)
            diff = "".join(unified_diff({path: (before, after)}))
            self._facts[str(path), FILE][kind] = Fact(f"{left[str(path)]} {data!r}", (), diff)
        for path, (before, _) in fixed.changed.items():
            self._project.replace(path, before)


def _span(entry: dict[str, Any]) -> str:
    start, end = entry["location"], entry["end_location"]
    return f"{start['row']}:{start['column']}-{end['row']}:{end['column']}"


def _shape(value: object, key: str = "") -> object:
    """Return the fields of an entry, with the values that are neither words nor facts of their own."""
    if isinstance(value, dict):
        return {name: _shape(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_shape(each) for each in value[: len(value) if key == "inherited_by" else 1]]
    return type(value).__name__ if key in _PROSE or isinstance(value, int) else value


def _drawn(paths: Sequence[Path], unread: set[Path], count: int) -> Iterator[tuple[Path, int]]:
    """Yield telling lines: of each kind those whose checksums are the smallest, whatever is found there."""
    if not count:
        return
    kinds: defaultdict[str, list[tuple[int, str, int]]] = defaultdict(list)
    for path in paths:
        for row, line in enumerate([] if path in unread else path.read_bytes().splitlines(), start=1):
            match = _TELLING.match(line)
            if match is not None:
                kinds[str(match.lastgroup)].append((zlib.crc32(f"{path}:{row}".encode()), str(path), row))
    ranked = sorted((nsmallest(count, lines) for _, lines in sorted(kinds.items())), key=lambda each: each[0])
    rounds = (line for lines in zip_longest(*ranked) for line in lines if line is not None)
    for _, (_, path, row) in zip(range(count), rounds, strict=False):
        yield Path(path), row
