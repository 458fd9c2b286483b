"""What a maintainer of a library needs for each defect that runs have shown, as pages in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath

from gclint.code.paths import printable
from gclint.proof.evidence import Hint
from gclint.report.diff import unified_diff
from gclint.report.markdown import escaped, in_code
from gclint.report.page.excerpts import brief
from gclint.report.report import Report, texts_of_fixes
from gclint.report.verification import NUMBER
from gclint.verify.proven import proven_setting
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Demonstration, Environment, Failure, Mode, SourcePlace
from gclint.wording import counted, listed

INDEX = "README.md"
RELEASES = "## Releases\n"
"""The heading of the last section of a page, which has a line for each release."""
_WITH: Mapping[Mode, str] = {
    "plain": "without checkpointing",
    "non-reentrant": "with `use_reentrant=False`",
    "reentrant": "with `use_reentrant=True`",
}
_SHOWS = "the script shows it"
_HEADING = re.compile(r"^# (.*)$", re.MULTILINE)
_TITLE_LENGTH = 200
_SENTENCE = 200
"""The most characters of what a script printed, in the line of a release."""


_KINDS = {
    Cause.NOT_A_LAYER: "blocks that are not checkpointing layers",
    Cause.NOTHING_TO_SWITCH: "support without anything to checkpoint",
    Cause.POSITIONAL_CACHE: "caches by position",
    Cause.WRITTEN_CACHE: "caches written twice",
    Cause.KEYWORD_ACTIVATION: "activations by keyword",
    Cause.CONTAINED_ACTIVATION: "activations in containers",
    Cause.NO_INPUT_GRADIENT: "no gradient at the first block",
    Cause.STATISTICS: "running statistics updated twice",
    Cause.LEAF: "embeddings changed in place",
    Cause.HOOK: "input embeddings that are not a tensor",
}
"""What defects with one of these causes are; others are called like their causes."""
_ERRORS = ("error", "frozen base", "warning")
"""The checks whose messages quote something, which may have a colon."""


@dataclass
class Defect:
    """The failures that have one cause at the same lines, of several classes and in several modes."""

    failures: list[tuple[ClassResult, Failure]]
    hints: list[Hint] = field(default_factory=list)
    """The rules that repair any of these failures."""

    @property
    def kind(self) -> str:
        """What defects have in common that one change can mend."""
        failure = self.failures[0][1]
        cause = failure.cause if _is_known(failure) else None
        return f"other {failure.check}" if cause is None else _KINDS.get(cause, cause.value)

    @property
    def demonstrable(self) -> list[tuple[ClassResult, Failure]]:
        """The failures that a script can show, those of the smallest classes in the default mode first."""
        order: list[Mode] = ["non-reentrant", "reentrant", "plain"]

        def size(each: tuple[ClassResult, Failure]) -> tuple[int, int]:
            return order.index(each[1].mode), len(str(each[0].recipe_of(each[1])))

        return sorted((each for each in self.failures if each[0].recipe_of(each[1])), key=size)

    @property
    def shown_failure(self) -> tuple[ClassResult, Failure]:
        """The first of these, or any failure if there are none."""
        return (self.demonstrable or self.failures)[0]

    @property
    def repair(self) -> Hint | None:
        """The rule that repairs it, in full if there is one."""
        return next((each for each in self.hints if each.is_whole), next(iter(self.hints), None))

    @property
    def classes(self) -> dict[str, list[str]]:
        """The names of the classes by file."""
        found: dict[str, dict[str, None]] = {}
        for result, _ in self.failures:
            found.setdefault(brief(result.source), {})[result.name] = None
        return {path: list(names) for path, names in found.items()}

    @property
    def title(self) -> str:
        """The title of an issue about it."""
        result, failure = self.shown_failure
        others = len({(each.source, each.name) for each, _ in self.failures}) - 1
        more = f" and {counted(others, 'more class', 'more classes')}" if others else ""
        end = "; " if failure.check in _ERRORS else ": "
        what = failure.message.partition(end)[0][:_TITLE_LENGTH]
        modes = {each.mode for _, each in self.failures}
        with_ = "" if "checkpointing" in what else " with gradient checkpointing"
        if len(modes) == 1:
            with_ = "" if modes == {"plain"} else f" {_WITH[failure.mode]}"
        return printable(f"`{result.name}`{more}: {what}{with_}")


@dataclass(frozen=True)
class DemonstrationScript:
    """A script that is to show a defect, and what came of it."""

    text: str
    result: Demonstration
    repaired: Demonstration | None = None
    """What came of it with the repair."""

    @property
    def shows(self) -> bool:
        """Whether it shows the defect."""
        return self.result.status == 1


def defects(report: Report) -> list[Defect]:
    """Return the defects that the runs of a report have shown, by cause and place."""
    assert report.runs is not None
    assert report.weighed is not None
    found: dict[object, Defect] = {}
    for result in report.runs.of("failed"):
        for failure in result.failures:
            hints = report.weighed.hints_of(result, failure)
            defect = found.setdefault(_key(report, result, failure, hints), Defect([]))
            defect.failures.append((result, failure))
            defect.hints += (each for each in hints if each not in defect.hints)
    return list(found.values())


def _is_known(failure: Failure) -> bool:
    return failure.cause not in (None, Cause.DISAGREEMENT)


def _key(report: Report, result: ClassResult, failure: Failure, hints: Iterable[Hint]) -> object:
    """Return what is equal for failures of one defect: the cause and the lines.

    In files that are generated from the same one, the code of the lines must be the same; if the lines are
    not known, the first sentence of the explanation, which may have some.
    """
    what: object = failure.cause if _is_known(failure) else (failure.check, NUMBER.sub("", failure.text))
    findings = frozenset(finding for hint in hints for finding in hint.findings)
    if any(finding.inherited_by for finding in findings):
        return what, findings, tuple("".join(_code(report, place)) for place in failure.places)
    return what, failure.places or (result.source, failure.explanation.partition(". ")[0])


def _code(report: Report, place: SourcePlace) -> list[str]:
    """Return the lines of a place, without the indentation that they have in common."""
    try:
        file = report.project.file(Path(place.path))
        last = min(place.end_line, len(file.line_starts))
        return [file.line(row).rstrip() for row in range(place.line, last + 1)]
    except OSError:
        return []


def page_name(defect: Defect, taken: Iterable[str]) -> str:
    """Return the name of the page of a defect, in the folder of its kind; none of those that are taken."""
    result, _ = defect.shown_failure
    stem = Path(result.source).stem.removeprefix("modeling_")
    parts = [re.sub(r"\W", "_", each) for each in (defect.kind.replace(" ", "-"), stem, result.name)]
    name = f"{parts[0].replace('_', '-')}/{parts[1]}-{parts[2]}"
    names = (f"{name}{f'-{number}' if number > 1 else ''}.md" for number in count(1))
    return next(each for each in names if each not in {*taken})


def page(report: Report, defect: Defect, script: DemonstrationScript | None, environment: Environment) -> str:
    """Return the page of a defect."""
    sections = (
        f"# {defect.title}\n",
        *_happenings(defect),
        *_cause(report, defect),
        *_script(script, environment),
        *_repair(report, defect, script),
        RELEASES,
        release_line(environment.transformers, None if script is None else script.result),
    )
    return "\n".join(sections)


def release_line(version: str, result: Demonstration | None) -> str:
    """Return the line about a release in the last section of a page, with the last sentence of the script."""
    if result is None:
        return f"- transformers {version}: there is no script\n"
    what = {1: _SHOWS, 0: "the script does not show it"}.get(result.status, "the script does not run")
    lines = result.output.splitlines() or [""]
    said = f": {escaped(lines[-1][:_SENTENCE])}" if result.status else ""
    return f"- transformers {version}: {what}{said}\n"


def _happenings(defect: Defect) -> Iterator[str]:
    for path, names in defect.classes.items():
        yield f"Classes of {in_code(path)}: {', '.join(map(in_code, names))}\n"
    yield "## What happens\n"
    reported: dict[str, list[str]] = {}
    for result, failure in defect.failures:
        usual = "" if failure.scenario in ("default", "frozen base") else f", {escaped(failure.scenario)}"
        line = f"{_WITH[failure.mode]}{usual}: {escaped(failure.message)}"
        reported.setdefault(line, []).append(result.name)
    for line, own in reported.items():
        yield f"- {', '.join(map(in_code, own))} {line}."
    settings = {proven_setting(result) for result, _ in defect.failures}
    if len(settings) == 1 and None not in settings:
        yield f"\nEverything that was run is right with {in_code(settings.pop() or '')}."
    yield ""


def _cause(report: Report, defect: Defect) -> Iterator[str]:
    yield "## Cause\n"
    for text in dict.fromkeys(failure.explanation for _, failure in defect.failures):
        yield f"{escaped(text) if text else 'It is not known.'}\n"
    for place in dict.fromkeys(place for _, failure in defect.failures for place in failure.places):
        lines = _code(report, place)
        if lines:
            until = f" to {place.end_line}" if place.end_line > place.line else ""
            yield f"{in_code(brief(place.path))}, line {place.line}{until}:\n"
            yield _fenced("python", "\n".join(lines))


def _script(script: DemonstrationScript | None, environment: Environment) -> Iterator[str]:
    yield "## Script\n"
    if script is None:
        yield "There is none: it is not known how to build the class.\n"
        return
    yield "It needs torch and transformers, and exits with 1 if the defect is there, with 0 if it is gone.\n"
    yield _fenced("python", script.text)
    where = f"transformers {environment.transformers} and torch {environment.torch}"
    ends = f"exits with {script.result.status}" if script.result.status >= 0 else "ends with an error"
    yield f"With {where} it {ends}{'' if script.shows else ', so it does not show the defect'}:\n"
    yield _fenced("text", script.result.output)


def _repair(report: Report, defect: Defect, script: DemonstrationScript | None) -> Iterator[str]:
    yield "## Repair\n"
    hint = defect.repair
    if hint is None:
        yield "There is no automatic repair.\n"
        return
    changed = {
        Path(brief(path)): texts for path, texts in texts_of_fixes(report.project, hint.findings).items()
    }
    yield _fenced("diff", "".join(unified_diff(changed)))
    if not hint.is_whole:
        yield "It repairs a part of what fails.\n"
    if script is not None and script.shows and script.repaired is not None:
        ends = script.repaired.status
        yield f"With it, the script {f'exits with {ends}' if ends >= 0 else 'ends with an error'}.\n"
        if ends:
            yield _fenced("text", script.repaired.output)
    reasons = (finding.fix.reason for finding in hint.findings if finding.fix is not None)
    for reason in dict.fromkeys(filter(None, reasons)):
        yield f"It needs a review: {escaped(reason)}.\n"
    command = in_code(f"gclint --fix --verify --select {hint.code}")
    yield f"It has not been proven: {command} runs all classes that use the code for that.\n"


def _fenced(language: str, text: str) -> str:
    fence = "`" * max(3, *(len(each) + 1 for each in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def index(pages: Mapping[str, str]) -> str:
    """Return the table of pages, by kind, from their names and texts."""
    kinds: dict[str, list[str]] = {}
    for name in pages:
        kinds.setdefault(str(PurePosixPath(name).parent), []).append(name)
    lines = [
        "# Defects of gradient checkpointing\n",
        "Each page has a defect with a script that shows it. Those of one kind can be mended together.\n",
        "| kind | defect | releases |",
        "|---|---|---|",
    ]
    for kind in sorted(kinds):
        for name in sorted(kinds[kind]):
            heading = _HEADING.search(pages[name])
            title = heading[1].replace("|", "\\|") if heading else name
            lines.append(f"| {kind.replace('-', ' ')} | [{title}]({name}) | {_shown_on(pages[name])} |")
    return "\n".join((*lines, ""))


def _shown_on(page: str) -> str:
    """Return the releases on which the script of a page shows the defect."""
    lines = page.partition(RELEASES)[2]
    shown = re.findall(rf"^- transformers (\S+): {_SHOWS}\b", lines, re.MULTILINE)
    return listed(shown) if shown else "not shown"
