"""What gclint says about a tree, by place and kind of fact."""

from __future__ import annotations

import io
import json as standard_json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from gclint.code.project import Project
from gclint.edit.ignoring import suppressed
from gclint.finding import Finding, Position
from gclint.report import json
from gclint.report.diff import unified_diff
from gclint.report.explanation import write_text
from gclint.report.places import Places, fingerprints
from gclint.report.report import Report
from gclint.rule import all_rules
from gclint.run.baseline import Baseline
from gclint.run.check import LintResult, check, known_codes
from gclint.run.explain import Explainer
from gclint.run.fix import fix
from tests.environment import CACHE
from tests.verdicts.samples import Tree
from tests.verdicts.words import Words, names_in

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


class Fact(NamedTuple):
    """One thing that is said about a place."""

    structure: str = ""
    """All of it but the words."""
    words: tuple[str, ...] = ()
    text: str = ""
    """The same for people."""


Place = tuple[str, str]
"""A file, and rows and columns in it."""
Row = tuple[Path, int]


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
        project = Project(settings, tree.given_files(settings), within=given)
        found = Taken(tree.name, tree.code(project.paths), templates=words.templates)
        result = check(project, all_rules())
        taking = _Taking(folder, project, result, words, found)
        taking.findings()
        taking.silence(tree.silent)
        taking.ignores()
        taking.fixed("diff", unsafe=False)
        taking.fixed("unsafe diff", unsafe=True)
    return found


class _Taking:
    def __init__(
        self, folder: Path, project: Project, result: LintResult, words: Words, found: Taken
    ) -> None:
        self._folder, self._project, self._result = folder, project, result
        self._words, self._facts = words, found.facts
        self._explainers: dict[Path, Explainer] = {}
        self._rows: set[Row] = set()
        """Where a finding is."""

    def findings(self) -> None:
        """Take what is said about each finding, and about what could not be read."""
        project, result, places = self._project, self._result, Places(self._project)
        places.root = self._folder
        stream = io.StringIO()
        json.write(Report(project, result.findings, result.problems, result.files), stream)
        marks = fingerprints(project, places, result.findings)
        baseline = Baseline(Path("baseline.json"), {})
        met: Counter[Place] = Counter()
        for finding, entry, mark in zip_longest(
            result.findings, standard_json.loads(stream.getvalue()), marks
        ):
            if finding is None:
                self._facts[entry["filename"], FILE]["problems"] = Fact(
                    str(entry["location"]), self._kinds(entry["message"]), entry["message"]
                )
                continue
            first, last = entry["location"], entry["end_location"]
            self._rows |= {(finding.path, row) for row in range(first["row"], last["row"] + 1)}
            place = entry["filename"], _span(entry)
            met[place] += 1
            facts = self._facts[place if met[place] == 1 else (place[0], f"{place[1]}#{met[place]}")]
            names = self._said(finding, entry, facts)
            explained, more = self._explained(finding.path, Position(first["row"], first["column"]))
            known = baseline.entry(project, finding)
            facts["names"] = Fact(repr(sorted((*names, *more))), text=" ".join((*names, *more)))
            facts["explain"] = explained
            facts["baseline"] = Fact(repr((known.file, known.symbol, known.hash)), text=str(known))
            facts["fingerprint"] = Fact(mark, text=mark)
            del entry["level"]  # It follows from the rule and the settings, and may be changed by itself.
            fields = standard_json.dumps(_shape(entry), indent=1)
            facts["JSON"] = Fact(fields, text=fields)

    def _said(self, finding: Finding, entry: dict[str, Any], facts: dict[str, Fact]) -> list[str]:
        """Take what the entry says of a finding; return the names in it."""
        made = entry["fix"] or {"applicability": "none", "message": "", "reason": "", "edits": []}
        message, reason = self._local(entry["message"]), self._local(entry["reason"] or made["reason"] or "")
        words = self._words.word(entry["code"]), *self._kinds(message)
        facts["finding"] = Fact("", words, f"{entry['code']} {message}")
        facts["fix"] = Fact(made["applicability"].replace(" ", "-"))
        facts["reason"] = Fact("" if reason else "-", self._kinds(*reason.split("; ")), reason)
        edits = [f"{each['filename']}:{_span(each)}: {each['content']!r}" for each in made["edits"]]
        duties = () if finding.fix is None else finding.fix.duties
        edits += [f"{each.path}: by hand" for each in duties]
        said = self._kinds(made["message"], *(each.text for each in duties))
        facts["edits"] = Fact("\n".join(edits), said, "\n".join(edits))
        steps = [f"{self._local(each['filename'])}:{_span(each)}" for each in entry["story"]]
        told = [self._local(each["message"]) for each in entry["story"]]
        lines = map(": ".join, zip(steps, told, strict=True))
        facts["story"] = Fact("\n".join(steps), self._kinds(*told), "\n".join(lines))
        return names_in(message, reason, *told)

    def _explained(self, path: Path, place: Position) -> tuple[Fact, list[str]]:
        """Return what ``gclint explain`` says about a place, and the names in it."""
        rules, stream = all_rules(), io.StringIO()
        if path not in self._explainers:
            self._explainers[path] = Explainer(self._project, path, rules, rules, known=self._result)
        write_text(self._explainers[path].explain(place), stream)
        lines = [self._local(line) for line in stream.getvalue().splitlines()[1:] if line]
        # Rules stand in the order of their codes, which is none of what is said.
        structure = sorted((len(line) - len(line.lstrip()), *_PLACE.findall(line)) for line in lines)
        said = [_PLACE.sub("", line).strip() for line in lines]
        return Fact(repr(structure), self._kinds(*said), "\n".join(lines)), names_in(*said)

    def _kinds(self, *texts: str) -> tuple[str, ...]:
        return tuple(word for text in texts if text for word in self._words.kinds(text))

    def _local(self, text: str) -> str:
        """Return a text without what is different on another machine."""
        # Releases may be kept elsewhere, and linked.
        releases = text.replace(str((CACHE / "releases").resolve()), "<cache>/releases")
        return releases.replace(f"{self._folder}/", "")

    def silence(self, count: int) -> None:
        """Take what is explained about some places without a finding."""
        for path, row in _drawn(self._readable(), count):
            if (path, row) not in self._rows:
                explained, names = self._explained(path, Position(row, 0))
                said = {
                    "silence": explained,
                    "names in silence": Fact(repr(sorted(names)), text=" ".join(names)),
                }
                self._facts[str(path), str(row)] |= said

    def _readable(self) -> list[Path]:
        unread = {problem.path for problem in self._result.problems}
        return [path for path in self._project.paths if path not in unread]

    def ignores(self) -> None:
        """Take what ``--add-ignores`` would write."""
        own = defaultdict(list)
        for finding in self._result.findings:
            own[finding.path].append(finding)
        for path, findings in own.items():
            before = self._project.file(path)
            after, count = suppressed(before, findings, known_codes(all_rules()))
            codes = (code.strip() for each in _IGNORE.findall(after.text) for code in each.split(","))
            diff = "".join(unified_diff({path: (before.text, after.text)}))
            fact = Fact(f"{count}\0{_IGNORE.sub('', after.text)}", self._kinds(*codes), diff)
            self._facts[str(path), FILE]["ignores"] = fact

    def fixed(self, kind: str, *, unsafe: bool) -> None:
        """Take what ``--fix`` makes of the files, and put them back."""
        result = fix(self._project, all_rules(), unsafe=unsafe, proves=unsafe, known=self._result)
        for path, (before, after) in result.changed.items():
            left = sum(finding.path == path for finding in result.findings)
            diff = "".join(unified_diff({path: (before, after)}))
            data = self._project.file(path).encode(after)
            self._facts[str(path), FILE][kind] = Fact(f"{left} {data!r}", (), diff)
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


def _drawn(paths: Sequence[Path], count: int) -> Iterator[Row]:
    """Yield telling lines: of each kind those whose checksums are the smallest, whatever is found there."""
    kinds: defaultdict[str, list[tuple[int, str, int]]] = defaultdict(list)
    for path in paths if count else ():
        for row, line in enumerate(path.read_bytes().splitlines(), start=1):
            match = _TELLING.match(line)
            if match is not None:
                kinds[str(match.lastgroup)].append((zlib.crc32(f"{path}:{row}".encode()), str(path), row))
    ranked = sorted(nsmallest(count, lines) for lines in kinds.values())
    rounds = (line for lines in zip_longest(*ranked) for line in lines if line is not None)
    for _, name, row in islice(rounds, count):
        yield Path(name), row
