"""Results of runs for people, as plain text, and for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TextIO

from gclint import __version__
from gclint.report.findings import counted
from gclint.verify.results import Results, reasons
from gclint.verify.worker.protocol import ClassResult, Failure, Place

_PARAMETERS = 6
_REPAIRS = "gclint --fix --select {rule} {path}"


def write_text(stream: TextIO, results: Results) -> None:
    """Write what failed and what to do about it, what could not be run, and a summary."""
    for source in sorted(results.unusable):
        stream.write(f"{shown(source)}: error: {results.unusable[source].message}\n")
    for result in results.of("not run"):
        stream.write(f"{shown(result.source)}: {result.name} not run ({result.category}): {result.reason}\n")
    for result in results.of("failed"):
        for line in failure_lines(result):
            stream.write(f"{line}\n")
    for line in summary_lines(results):
        stream.write(f"{line}\n")


def write_json(stream: TextIO, results: Results, findings: Sequence[object]) -> None:
    """Write everything that is known as one JSON object, with what the linter's findings are now."""
    json.dump(
        {
            "gclint": __version__,
            "environments": [
                {"tree": tree, **asdict(environment)} for tree, environment in results.environments.items()
            ],
            "exit_status": results.exit_status,
            "problem": results.problem,
            "summary": {
                "passed": len(results.of("passed")),
                "failed": len(results.of("failed")),
                "not_run": dict(reasons(results.of("not run"))),
                "not_covered": sum(bool(each.not_covered) for each in results.sorted()),
            },
            "unusable": [asdict(results.unusable[source]) for source in sorted(results.unusable)],
            "findings": findings,
            "results": [asdict(result) for result in results.sorted()],
        },
        stream,
        indent=2,
    )
    stream.write("\n")


def failure_lines(result: ClassResult) -> Iterator[str]:
    """Yield what failed in a class, and what to do about it."""
    yield f"{shown(result.source)}: {result.name} failed {counted(len(result.failures), 'check')}"
    alike: dict[Failure, list[str]] = {}
    for failure in result.failures:
        first = result.failures[0]
        key = replace(failure, mode=first.mode, scenario=first.scenario)
        alike.setdefault(key, []).append(f"{failure.mode} {failure.scenario}")
    for failure, conditions in alike.items():
        yield f"    {failure.check} ({', '.join(conditions)}): {failure.message}"
        yield from (f"        {line}" for line in _advice(failure))


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


def shown(path: str) -> str:
    """Return a path as somebody in the current folder would write it."""
    relative = os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path
    return str(relative)


def _advice(failure: Failure) -> Iterator[str]:
    if failure.parameters:
        names = failure.parameters[:_PARAMETERS]
        more = len(failure.parameters) - len(names)
        yield f"parameters: {', '.join(names)}{f' and {more} more' if more else ''}"
    for place in failure.places:
        yield f"at {_position(place)}"
    if failure.rule:
        path = shown(failure.places[0].path) if failure.places else "PATH"
        yield f"{failure.rule} repairs it: {_REPAIRS.format(rule=failure.rule, path=path)}"


def _position(place: Place) -> str:
    return f"{shown(place.path)}:{place.line}:1"


def _classes(number: int) -> str:
    return "1 class" if number == 1 else f"{number} classes"


def _example(result: ClassResult) -> str:
    return f"{result.not_covered[0]} of {result.name}"
