"""The examination of one model class."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from gclint.verify.worker.examination.ledger import Ledger
from gclint.verify.worker.examination.scenarios import Scenarios
from gclint.verify.worker.protocol import ClassResult, Mode, Source
from gclint.verify.worker.scenarios import OPTION
from gclint.verify.worker.specimen import NotSynthesisable, Specimen
from gclint.verify.worker.watch import Watch


def examine(
    source: Source, model_class: Any, specimens: Iterable[Specimen], device: str, *, watch: Watch
) -> ClassResult:
    """Run a model class with and without checkpointing, and judge what happens.

    Args:
        source: the file that the class is defined in.
        model_class: the class.
        specimens: ways to build and feed it, the default one first.
        device: ``cpu``, ``cuda`` or ``cuda:n``.
        watch: receives what begins and what is known.

    Raises:
        NotSynthesisable: there is no specimen.
    """
    return examine_without((), source, model_class, specimens, device, watch)


def examine_without(
    checks: Collection[str],
    source: Source,
    model_class: Any,
    specimens: Iterable[Specimen],
    device: str,
    watch: Watch,
) -> ClassResult:
    """Do the same as :func:`examine` with some checks disabled, to test what these contribute."""
    ledger = Ledger(source, model_class, checks)
    for specimen in _available(specimens, ledger):
        if specimen.scenario.startswith(f"{OPTION} "):
            ledger.take(_with_options(specimen, device, ledger, watch))
            watch.known(ledger.result())
            continue
        doubt = Scenarios(specimen, device, ledger, watch).run()
        if doubt is not None and not ledger.scenarios:
            return ledger.not_run(doubt)
        if doubt is not None:
            ledger.not_judged(specimen, doubt)
    if not ledger.scenarios:
        raise NotSynthesisable("no specimen", "there is nothing to run")
    return ledger.result()


def _with_options(specimen: Specimen, device: str, ledger: Ledger, watch: Watch) -> Ledger:
    """Return the findings with the fewest options that show what no other scenario has shown."""
    found = _separately(specimen, device, ledger, watch)
    news = ledger.news(found)
    needed = 0
    # Two versions of a class are compared with the same options.
    while news and not ledger.is_complete and needed < len(specimen.without):
        try:
            smaller = specimen.without[needed]()
            other = _separately(smaller, device, ledger, watch)
        except NotSynthesisable:
            other = None
        if other is not None and news & other.failures:
            specimen, found = smaller, other
        else:
            needed += 1
    return found


def _separately(specimen: Specimen, device: str, ledger: Ledger, watch: Watch) -> Ledger:
    found = ledger.separate()
    doubt = Scenarios(specimen, device, found, _Beginnings(watch)).run()
    if doubt is not None:
        found.not_judged(specimen, doubt)
    return found


class _Beginnings:
    """A watch that forwards only what begins, since partial results are not the whole result."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def begin(self, scenario: str, mode: Mode, step: str) -> None:
        """Forward what begins."""
        self._watch.begin(scenario, mode, step)

    def known(self, result: ClassResult) -> None:
        """Do nothing."""


def _available(specimens: Iterable[Specimen], ledger: Ledger) -> Iterator[Specimen]:
    """Yield the specimens as long as they can be made; only the first is required."""
    waiting = iter(specimens)
    while True:
        try:
            yield next(waiting)
        except StopIteration:
            return
        except NotSynthesisable as error:
            if not ledger.scenarios:
                raise
            ledger.notes.append(f"a further scenario cannot be built: {error}")
            return
