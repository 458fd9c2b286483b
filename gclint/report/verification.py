"""What runs of models say, for people: a story for each cause of failures, and a summary."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gclint.report.findings import counted
from gclint.report.report import Report
from gclint.source.paths import shown
from gclint.verify.results import Results, reasons
from gclint.verify.worker.protocol import ClassResult, Failure, Place

_PARAMETERS = 6
_REPAIRS = "gclint --fix --select {rule} {path}"
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def run_lines(report: Report, *, names_passed: bool) -> Iterator[str]:
    """Yield what failed and what to do about it, what could not be run, and a summary.

    Args:
        report: what came of a run of models.
        names_passed: whether classes that passed are told too: by file, with their names if the report
            is to be verbose.
    """
    assert report.runs is not None
    runs = report.runs
    for source in sorted(runs.unusable):
        yield f"{shown(source)}: error: {runs.unusable[source].message}"
    for result in runs.of("not run"):
        yield f"{shown(result.source)}: {result.name} not run ({result.category}): {result.reason}"
    for story in _stories(runs.of("failed")):
        yield from story.lines()
    if names_passed:
        yield from _passed(runs.of("passed"), verbose=report.verbose)
    yield from summary_lines(runs)


@dataclass
class _Story:
    """Failures of one cause: what is told once, and the classes that have it."""

    first: Failure
    classes: dict[str, list[str]] = field(default_factory=dict)
    """By file, in the order of the results."""
    conditions: dict[str, None] = field(default_factory=dict)
    """Modes and scenarios."""

    def lines(self) -> Iterator[str]:
        (path, names), *others = self.classes.items()
        failure = self.first
        where = ", ".join(self.conditions)
        who = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        yield f"{shown(path)}: {who} failed {failure.check} ({where}): {failure.message}"
        if len(names) > 1:
            yield f"    in {', '.join(names)}"
        for other, inside in others:
            yield f"    in {', '.join(inside)} of {shown(other)}"
        yield from (f"    {line}" for line in _advice(failure, of=names[0] if self.is_shared else None))

    @property
    def is_shared(self) -> bool:
        """Whether more than one class has the failure."""
        return sum(map(len, self.classes.values())) > 1


def _stories(results: Iterable[ClassResult]) -> list[_Story]:
    """Return the failures, those of one cause together."""
    stories: dict[object, _Story] = {}
    for result in results:
        for failure in result.failures:
            story = stories.setdefault(_cause(failure), _Story(failure))
            names = story.classes.setdefault(result.source, [])
            if result.name not in names:
                names.append(result.name)
            story.conditions[f"{failure.mode} {failure.scenario}"] = None
    return list(stories.values())


def _cause(failure: Failure) -> object:
    """Return what is the same for failures of one cause: all but numbers, which each class has of its own."""
    return failure.check, _NUMBER.sub("", failure.message), failure.places


def _passed(results: Iterable[ClassResult], *, verbose: bool) -> Iterator[str]:
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for result in results:
        by_file[result.source].append(result.name)
    for source, names in by_file.items():
        listed = f": {', '.join(names)}" if verbose else ""
        yield f"{shown(source)}: {_classes(len(names))} passed{listed}"


def summary_lines(results: Results) -> Iterator[str]:
    """Yield the closing lines: how many classes passed, failed and were not run, and where."""
    passed, failed, not_run = (results.of(outcome) for outcome in ("passed", "failed", "not run"))
    if results.problem:
        yield f"error: {results.problem}"
    for environment in dict.fromkeys(results.environments.values()):
        yield (
            f"Python {environment.python}, torch {environment.torch}, "
            f"transformers {environment.transformers}, on {environment.device}"
        )
    uncovered = [result for result in (*passed, *failed) if result.not_covered]
    if uncovered:
        yield f"{_classes(len(uncovered))} ran without some parts, such as {_example(uncovered[0])}."
    kinds = ", ".join(f"{count} {kind}" for kind, count in reasons(not_run))
    yield (
        f"{_classes(len(passed))} passed, {len(failed)} failed, {len(not_run)} not run"
        f"{f' ({kinds})' if kinds else ''}."
    )


def _advice(failure: Failure, of: str | None) -> Iterator[str]:
    if failure.parameters:
        yield f"parameters{f' of {of}' if of else ''}: {_listed(failure.parameters)}"
    for place in failure.places:
        yield f"at {_position(place)}"
    if failure.rule:
        path = shown(failure.places[0].path) if failure.places else "PATH"
        yield f"{failure.rule} repairs it: {_REPAIRS.format(rule=failure.rule, path=path)}"


def _listed(parameters: Sequence[str]) -> str:
    names = parameters[:_PARAMETERS]
    more = len(parameters) - len(names)
    return f"{', '.join(names)}{f' and {more} more' if more else ''}"


def _position(place: Place) -> str:
    return f"{shown(place.path)}:{place.line}:1"


def _classes(number: int) -> str:
    return counted(number, "class", "classes")


def _example(result: ClassResult) -> str:
    return f"{result.not_covered[0]} of {result.name}"
