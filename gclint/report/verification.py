"""The results of runs as text: a story for each cause of failures, further set-ups, and a summary."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gclint.code.file import UnreadableFile
from gclint.code.paths import as_argument, shown
from gclint.proof.evidence import Hint, Weighed
from gclint.report.report import Report
from gclint.verify.proven import proven_setting
from gclint.verify.results import Results, has_no_way, is_broken, reasons
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.coverage import listed, of_all
from gclint.verify.worker.protocol import Advice, ClassResult, Failure, SetUp, Stability
from gclint.wording import counted, first_of

_PARAMETERS = 6
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def run_lines(report: Report) -> Iterator[str]:
    """Yield the failures and what to do about them, what could not be run, and a summary.

    The classes that passed are counted by file, and named if the report is verbose.
    """
    assert report.runs is not None
    runs = report.runs
    for source in sorted(runs.unusable):
        yield f"{shown(source)}: error: {runs.unusable[source].message}"
    for result in runs.of("not run"):
        yield _not_run(result)
    for story in stories(runs.of("failed"), report.weighed):
        yield from story.lines()
    yield from setup_lines(runs.sorted())
    yield from _passed(runs.of("passed"), verbose=report.verbose)
    yield from summary_lines(runs)


def result_lines(result: ClassResult) -> Iterator[str]:
    """Yield the result of a single class."""
    if result.outcome == "not run":
        yield _not_run(result)
    elif result.outcome == "passed":
        yield (
            f"{shown(result.source)}: {result.name} passed: {_recomputed(result)} recomputed, and the "
            f"gradients of {result.compared} of {result.parameters} parameters compared"
        )
    for story in stories([result], None):
        yield from story.lines()
    yield from setup_lines([result])
    yield from _unstable([result])
    if result.unreached:
        yield f"    branches that no run reached: {listed(result.unreached)}"
    if result.scenarios:
        yield f"    scenarios: {', '.join(result.scenarios)}"
    yield from (f"    note: {note}" for note in result.notes)


def _recomputed(result: ClassResult) -> str:
    if not result.blocks:
        return "what it checkpoints outside of stacks was"
    return f"{result.recomputed} of {result.blocks} blocks were"


def _not_run(result: ClassResult) -> str:
    return f"{shown(result.source)}: {result.name} not run ({result.category}): {result.reason}"


@dataclass
class Story:
    """The failures with one cause, which are reported together, and the classes that have them."""

    first: Failure
    hints: tuple[Hint, ...]
    classes: dict[str, list[str]] = field(default_factory=dict)
    """The names of the classes by file, in the order of the results."""
    checks: dict[str, None] = field(default_factory=dict)
    conditions: dict[str, None] = field(default_factory=dict)
    """The modes and scenarios in which they occur."""

    settings: dict[str, list[str]] = field(default_factory=dict)
    """The classes by the setting that is proven to work for them, if there is one."""

    def add(self, result: ClassResult, failure: Failure) -> None:
        """Add a failure of a class with this cause."""
        setting = proven_setting(result)
        users = self.settings.setdefault(setting, []) if setting else []
        if result.name not in users:
            users.append(result.name)
        names = self.classes.setdefault(result.source, [])
        if result.name not in names:
            names.append(result.name)
        self.checks[failure.check] = None
        self.conditions[f"{failure.mode} {failure.scenario}"] = None

    def lines(self) -> Iterator[str]:
        """Yield the story as text."""
        (path, names), *others = self.classes.items()
        more = sum(map(len, self.classes.values())) - 1
        who = f"{names[0]} and {more} more" if more else names[0]
        what = f"{', '.join(self.checks)} ({', '.join(self.conditions)})"
        yield f"{shown(path)}: {who} failed {what}: {self.first.text}"
        if len(names) > 1:
            yield f"    classes: {', '.join(names)}"
        for other, inside in others:
            yield f"    also in {shown(other)}: {', '.join(inside)}"
        if self.first.parameters:
            of = f" of {names[0]}" if more else ""
            yield f"    parameters{of}: {first_of(self.first.parameters, _PARAMETERS)}"
        lines = dict.fromkeys((place.path, place.line) for place in self.first.places)
        yield from (f"    at {shown(path)}:{line}:1" for path, line in lines)
        yield from (f"    {advice(hint)}" for hint in self.hints)
        for setting, users in self.settings.items():
            of = "" if len(users) == more + 1 else f" of {', '.join(users)}"
            yield f"    proven setting{of}: {setting}"


def stories(results: Iterable[ClassResult], weighed: Weighed | None) -> list[Story]:
    """Return the failures, grouped by cause."""
    found: dict[object, Story] = {}
    for result in results:
        for failure in result.failures:
            hints = () if weighed is None else weighed.hints_of(result, failure)
            story = found.setdefault((_cause(failure), hints), Story(failure, hints))
            story.add(result, failure)
    return list(found.values())


def _cause(failure: Failure) -> object:
    """Return a key that is equal for failures with one cause: their text without numbers.

    If the cause is not known, the observed failure must be the same.
    """
    known = failure.cause not in (None, Cause.DISAGREEMENT) and failure.explanation
    what = failure.explanation if known else f"{failure.check}: {failure.text}"
    return failure.cause, NUMBER.sub("", what), failure.places


def _passed(results: Iterable[ClassResult], *, verbose: bool) -> Iterator[str]:
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for result in results:
        by_file[result.source].append(result.name)
    for source, names in by_file.items():
        listed = f": {', '.join(names)}" if verbose else ""
        yield f"{shown(source)}: {_classes(len(names))} passed{listed}"


def summary_lines(results: Results) -> Iterator[str]:
    """Yield the closing lines: how many classes passed, failed and were not run, and the environment."""
    passed, failed, not_run = (results.of(outcome) for outcome in ("passed", "failed", "not run"))
    if results.problem:
        yield f"error: {results.problem}"
    for environment in dict.fromkeys(results.environments.values()):
        yield (
            f"Python {environment.python}, torch {environment.torch}, "
            f"transformers {environment.transformers}, on {environment.device}"
        )
        if environment.numerics:
            yield f"Numbers: {'; '.join(environment.numerics)}."
        if environment.isolation:
            yield f"Isolation: {'; '.join(environment.isolation)}."
    yield from remark_lines(results)
    kinds = ", ".join(f"{count} {kind}" for kind, count in reasons(not_run))
    yield (
        f"{_classes(len(passed))} passed, {len(failed)} failed, {len(not_run)} not run"
        f"{f' ({kinds})' if kinds else ''}."
    )


def remark_lines(results: Results) -> Iterator[str]:
    """Yield the caveats of the numbers in the summary: what was not compared or not run."""
    if results.empty:
        number = len(results.empty)
        what, have = ("1 file", "has") if number == 1 else (f"{number} files", "have")
        such = "" if number == 1 else "such as "
        yield f"{what} {have} no model class that supports checkpointing: {such}{shown(results.empty[0])}."
    ran = [*results.of("passed"), *results.of("failed")]
    uncovered = [result for result in ran if result.not_covered]
    if uncovered:
        example = f"{uncovered[0].not_covered[0]} of {uncovered[0].name}"
        yield f"{_classes(len(uncovered))} ran without some parts, such as {example}."
    missed = of_all(ran)
    if missed:
        many = f"{len(missed)} branches" if len(missed) > 1 else "1 branch"
        yield f"{many} in or around blocks that no run reached: {listed(missed, _PARAMETERS)}."
    yield from _unstable(results.sorted())
    partly = [result for result in ran if result.not_compared]
    if partly:
        least = min(partly, key=lambda each: each.compared / each.parameters)
        yield (
            f"In {_classes(len(partly))}, rounding or randomness kept some gradients from being compared; "
            f"{least.name} had the fewest ({least.compared} of {least.parameters})."
        )


def _unstable(results: Iterable[ClassResult]) -> Iterator[str]:
    """Yield which mixtures of experts are not robust to rounding errors in recomputation, by the effect."""
    groups: defaultdict[tuple[str, str], dict[str, Stability]] = defaultdict(dict)
    for result in results:
        for each in result.stability:
            if each.grade != "stable":
                groups[each.experts, each.grade][result.name] = each
    for (experts, grade), found in groups.items():
        furthest = max(each.moved for each in found.values())
        does = "raises" if grade == "raises" else f"moves gradients by up to {furthest:.0%}"
        yield (
            f"Recomputation that is off by a rounding error of bfloat16 {does} with {experts} experts: "
            f"{first_of(found, _PARAMETERS)}."
        )


def advice(hint: Hint) -> str:
    """Return whether a rule repairs a failure in full or in part, and the command for it."""
    return f"{hint.code} repairs {'it' if hint.is_whole else 'a part of it'}: {repair_command(hint)}"


def repair_command(hint: Hint) -> str:
    """Return the command that repairs a failure."""
    options = f"{' --unsafe-fixes' if hint.is_unsafe else ''}{' --verify' if hint.needs_run else ''}"
    paths = " ".join(map(as_argument, hint.paths))
    return f"gclint --fix{options} --select {hint.code} {paths}"


def _classes(number: int) -> str:
    return counted(number, "class", "classes")


_Rows = tuple[tuple[str, str, str, str], ...]


def setup_lines(results: Iterable[ClassResult]) -> Iterator[str]:
    """Yield which set-ups work and fail, for each group of set-ups and the classes with equal results."""
    alike: defaultdict[tuple[str, str, _Rows], list[tuple[ClassResult, list[SetUp]]]] = defaultdict(list)
    for result in results:
        for group, rows in by_group(result.setups).items():
            signature = tuple((each.name, each.data, each.outcome, each.symptom) for each in rows)
            alike[group, advised(result.advice, group), signature].append((result, rows))
    for (group, sentence, _), members in alike.items():
        names = [result.name for result, _ in members]
        yield f"{group}, {first_of(names, 1)}: {sentence}"
        if len(names) > 1:
            yield f"    classes: {', '.join(names)}"
        for fate in fates(members[0][1]):
            first, own = fate[0], "; ".join(map(setup_name, fate))
            kind = f" ({first.symptom})" if first.symptom else ""
            yield f"    {first.outcome}: {own}{kind}{f': {first.message}' if first.message else ''}"


def by_group(rows: Iterable[SetUp]) -> dict[str, list[SetUp]]:
    """Return set-ups by group."""
    found: defaultdict[str, list[SetUp]] = defaultdict(list)
    for each in rows:
        found[each.group].append(each)
    return dict(found)


def advised(advice: Iterable[Advice], group: str) -> str:
    """Return the recommendation for a group of set-ups."""
    return next((each.sentence for each in advice if each.group == group), "no recommendation.")


def fates(rows: Iterable[SetUp]) -> list[list[SetUp]]:
    """Return set-ups in lists with the same outcome; those that work come first."""
    alike: defaultdict[tuple[str, str, str], list[SetUp]] = defaultdict(list)
    for each in sorted(rows, key=lambda row: row.outcome != "works"):
        alike[each.outcome, each.symptom, each.message].append(each)
    return list(alike.values())


def setup_name(row: SetUp) -> str:
    """Return the name of a set-up within its group."""
    return f"{row.name}, {row.data}" if row.data else row.name


Status = Literal["passed", "failed", "not run", "error"]


@dataclass(frozen=True)
class ClassOutcome:
    """The outcome of a class, or of a file that cannot be imported."""

    path: Path
    line: int
    name: str
    """The name of the class, or what was done with the whole file."""
    status: Status
    texts: tuple[str, ...] = ()
    """What failed, or why it was not run."""
    seconds: float = 0.0

    @property
    def headline(self) -> str:
        """The outcome in one line; if there are several failures, only the first."""
        more = f" (and {len(self.texts) - 1} more)" if len(self.texts) > 1 else ""
        return f"{self.name} {self.status}{f': {self.texts[0]}{more}' if self.texts else ''}"


def outcomes(report: Report) -> Iterator[ClassOutcome]:
    """Yield the outcomes of all classes by file, and of files that cannot be imported."""
    assert report.runs is not None
    for source in sorted(report.runs.unusable):
        yield ClassOutcome(Path(source), 1, "import", "error", (report.runs.unusable[source].message,))
    lines: dict[str, Mapping[str, int]] = {}
    for result in report.runs.sorted():
        if result.source not in lines:
            lines[result.source] = _class_lines(report, Path(result.source))
        yield _outcome(result, lines[result.source])


def _outcome(result: ClassResult, lines: Mapping[str, int]) -> ClassOutcome:
    path, line = Path(result.source), lines.get(result.name, 1)
    if result.outcome == "not run":
        status: Status = "error" if is_broken(result) else "not run"
        return ClassOutcome(
            path, line, result.name, status, (f"{result.category}: {result.reason}",), result.seconds
        )
    texts = [_failure_text(failure) for failure in result.failures]
    if has_no_way(result):
        texts += (f"{each.group}: {each.sentence}" for each in result.advice if not each.setting)
    status = "failed" if texts or result.outcome == "failed" else "passed"
    return ClassOutcome(path, line, result.name, status, tuple(texts), result.seconds)


def _failure_text(failure: Failure) -> str:
    where = "".join(f" (at line {place.line} of {Path(place.path).name})" for place in failure.places[:1])
    return f"{failure.check} ({failure.mode} {failure.scenario}): {failure.text}{where}"


def _class_lines(report: Report, path: Path) -> Mapping[str, int]:
    """Return the line in which each class of a file begins; empty if the file no longer exists."""
    try:
        file = report.project.file(path)
    except (OSError, UnreadableFile):
        return {}
    return {each.name: file.position(each.header).row for each in file.outline.definitions if each.is_class}
