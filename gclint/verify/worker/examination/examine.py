"""The examination of one model class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from gclint.verify.worker.coverage import unreached
from gclint.verify.worker.examination.findings import ClassResultBuilder
from gclint.verify.worker.examination.scenarios import ScenarioRuns
from gclint.verify.worker.importing import text_of, undecided
from gclint.verify.worker.protocol import ClassResult, Source
from gclint.verify.worker.scenarios import OF_LAYERS, OPTION
from gclint.verify.worker.specimen import NotSynthesisable, TinyModel
from gclint.verify.worker.watch import Watch


def examine(
    source: Source, model_class: Any, specimens: Iterable[TinyModel], device: str, *, watch: Watch
) -> ClassResult:
    """Run a model class with and without checkpointing, and judge what happens.

    Of the specimens, which are ways to build and feed it, the default one comes first.

    Raises:
        NotSynthesisable: there is no specimen.
    """
    findings = ClassResultBuilder(source, model_class)
    for specimen in _and_deeper(_available(specimens, findings), findings):
        if specimen.scenario.startswith(f"{OPTION} "):
            findings.take(_with_options(specimen, device, findings, watch))
            watch.known(findings.result())
            continue
        doubt = ScenarioRuns(specimen, device, findings, watch).run()
        if doubt is not None and not findings.scenarios:
            return findings.not_run(doubt)
        if doubt is not None:
            findings.not_judged(specimen, doubt)
    if not findings.scenarios:
        raise NotSynthesisable("no specimen", "there is nothing to run")
    result = findings.result()
    missed = (each for each in unreached([result], text_of) if each.part != "elsewhere")
    # No block has a cache while it is checkpointed.
    return replace(result, unreached=tuple(each for each in missed if not each.branch.needs_cache))


def _with_options(
    specimen: TinyModel, device: str, findings: ClassResultBuilder, watch: Watch
) -> ClassResultBuilder:
    """Return the findings with the fewest options that show what no other scenario has shown."""
    found = _separately(specimen, device, findings, watch)
    new_failures = findings.new_failures(found)
    needed = 0
    # Two versions of a class are compared with the same options.
    while new_failures and not findings.is_complete and needed < len(specimen.without):
        try:
            smaller = specimen.without[needed]()
            other = _separately(smaller, device, findings, watch)
        except NotSynthesisable:
            other = None
        if other is not None and new_failures & other.failures:
            specimen, found = smaller, other
        else:
            needed += 1
    return found


def _separately(
    specimen: TinyModel, device: str, findings: ClassResultBuilder, watch: Watch
) -> ClassResultBuilder:
    found = findings.separate()
    # Partial results are not the whole result.
    doubt = ScenarioRuns(specimen, device, found, Watch(watch.begin)).run()
    if doubt is not None:
        found.not_judged(specimen, doubt)
    return found


def _and_deeper(specimens: Iterator[TinyModel], findings: ClassResultBuilder) -> Iterator[TinyModel]:
    """Yield specimens, and one with more layers if a branch that no run has reached may hang on these."""
    deeper: list[Callable[[], TinyModel | None]] = []
    for each in specimens:
        deeper += () if each.deeper is None else (each.deeper,)
        yield each
    for make in deeper:
        words = set(undecided(findings.executed))
        made = make() if any(each in word for word in words for each in OF_LAYERS) else None
        if made is not None:
            yield made


def _available(specimens: Iterable[TinyModel], findings: ClassResultBuilder) -> Iterator[TinyModel]:
    """Yield the specimens as long as they can be made; only the first is required."""
    waiting = iter(specimens)
    while True:
        try:
            yield next(waiting)
        except StopIteration:
            return
        except NotSynthesisable as error:
            if not findings.scenarios:
                raise
            findings.notes.append(f"a further scenario cannot be built: {error}")
            return
