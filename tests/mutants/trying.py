"""Many mutants, as many at a time as there are copies of the project."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import astuple
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import click

from tests.mutants.drawing import Mutant
from tests.mutants.nursery import Next, Nursery, Tell, Work, is_too_cold
from tests.mutants.reach import Reach
from tests.mutants.trial import Outcome, TrialFailed

Results = dict[Mutant, Outcome]
_Try = Callable[[Nursery, Sequence[Work], Next, Tell], None]


def tried(
    mutants: Sequence[Mutant],
    reach: Reach,
    places: Sequence[Path],
    seconds: float,
    modules: Sequence[str] = (),
) -> Results:
    """Return what became of the mutants; one is killed only by a test that passes without it.

    Args:
        mutants: which.
        reach: which tests execute what.
        places: copies of the project.
        seconds: how long the tests of one mutant may take.
        modules: what to import before any test.
    """
    nurseries = [Nursery(place, modules) for place in places]
    work = [_work(each, reach, seconds) for each in mutants]
    results = {each.mutant: Outcome(False, "no test executes it") for each in work if not each.tests}
    warm = [each for each in work if each.tests and not each.is_cold]
    results |= _shared(nurseries, warm, Nursery.try_warm)
    cold = [each for each in work if each.tests and (each.is_cold or is_too_cold(results[each.mutant]))]
    results |= _shared(nurseries, cold, _try_cold)
    return results | _doubted(results, reach, nurseries[0])


def _work(mutant: Mutant, reach: Reach, seconds: float) -> Work:
    tests = tuple(reach.tests(mutant, seconds))
    is_cold = mutant.is_run_on_import or reach.runs_on_import(mutant)
    return Work(mutant, tests, sum(map(reach.seconds, tests)), is_cold)


def _shared(nurseries: Sequence[Nursery], work: Sequence[Work], way: _Try) -> Results:
    """Share work between nurseries, each with a process of its own."""
    if not work:
        return {}
    context = get_context("fork")
    numbers: SimpleQueue[int | None] = context.SimpleQueue()
    told: SimpleQueue[tuple[int, bool, str] | str] = context.SimpleQueue()
    processes = [context.Process(target=_live, args=(way, each, work, numbers, told)) for each in nurseries]
    for process in processes:
        process.start()
    for number in (*range(len(work)), *(None for _ in processes)):
        numbers.put(number)
    results: Results = {}
    ended = 0
    while ended < len(processes):
        message = told.get()
        if isinstance(message, str):
            ended += 1
            if message:
                raise TrialFailed(message)
            continue
        mutant, outcome = work[message[0]].mutant, Outcome(*message[1:])
        results[mutant] = outcome
        state = f"killed by {outcome.by}" if outcome.is_killed else "alive"
        click.echo(f"{len(results)}/{len(work)} {mutant.key.file} {mutant.key.function}: {state}")
    return results


def _live(
    way: _Try,
    nursery: Nursery,
    work: Sequence[Work],
    numbers: SimpleQueue[int | None],
    told: SimpleQueue[tuple[int, bool, str] | str],
) -> None:
    """Try mutants until there are none, and say why if that goes wrong."""
    message = ""
    try:
        way(nursery, work, numbers.get, lambda number, outcome: told.put((number, *astuple(outcome))))
    except BaseException:
        message = traceback.format_exc()
    told.put(message)


def _try_cold(nursery: Nursery, work: Sequence[Work], take: Next, tell: Tell) -> None:
    while (number := take()) is not None:
        tell(number, nursery.try_cold(work[number]))


def _doubted(results: Results, reach: Reach, nursery: Nursery) -> Results:
    """Return those killed by tests that fail in such a run without a mutant as well."""
    killers = sorted({outcome.by for outcome in results.values() if "::" in outcome.by})
    if not killers:
        return {}
    failing = nursery.failing(killers, sum(map(reach.seconds, killers)))
    return {
        mutant: Outcome(False, f"{outcome.by} fails without it")
        for mutant, outcome in results.items()
        if outcome.by in failing
    }
