"""The examination of one model class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from gclint.verify.worker.coverage import unreached
from gclint.verify.worker.examination.result_builder import ClassResultBuilder
from gclint.verify.worker.examination.scenario_runs import ScenarioRuns
from gclint.verify.worker.importing import text_of, undecided
from gclint.verify.worker.protocol import ClassResult, Source
from gclint.verify.worker.scenarios import OF_LAYERS, OPTION
from gclint.verify.worker.tiny_model import NotSynthesisable, TinyModel
from gclint.verify.worker.watch import Watch


def examine(
    source: Source, model_class: Any, tiny_models: Iterable[TinyModel], device: str, *, watch: Watch
) -> ClassResult:
    """Run a model class with and without checkpointing, and judge what happens.

    Of the tiny models, which are ways to build and feed it, the default one comes first.

    Raises:
        NotSynthesisable: there is no tiny model.
    """
    builder = ClassResultBuilder(source, model_class)
    for tiny_model in _and_deeper(_available(tiny_models, builder), builder):
        if tiny_model.scenario.startswith(f"{OPTION} "):
            builder.take(_with_options(tiny_model, device, builder, watch))
            watch.known(builder.result())
            continue
        inconclusive = ScenarioRuns(tiny_model, device, builder, watch).run()
        if inconclusive is not None and not builder.scenarios:
            return builder.not_run(inconclusive)
        if inconclusive is not None:
            builder.not_judged(tiny_model, inconclusive)
    if not builder.scenarios:
        raise NotSynthesisable("no tiny model", "there is nothing to run")
    result = builder.result()
    missed = (each for each in unreached([result], text_of) if each.part != "elsewhere")
    # No block has a cache while it is checkpointed.
    return replace(result, unreached=tuple(each for each in missed if not each.branch.needs_cache))


def _with_options(
    tiny_model: TinyModel, device: str, builder: ClassResultBuilder, watch: Watch
) -> ClassResultBuilder:
    """Return the results with the fewest options that show what no other scenario has shown."""
    found = _separately(tiny_model, device, builder, watch)
    new_failures = builder.new_failures(found)
    needed = 0
    # Two versions of a class are compared with the same options.
    while new_failures and not builder.is_complete and needed < len(tiny_model.without):
        try:
            smaller = tiny_model.without[needed]()
            other = _separately(smaller, device, builder, watch)
        except NotSynthesisable:
            other = None
        if other is not None and new_failures & other.failures:
            tiny_model, found = smaller, other
        else:
            needed += 1
    return found


def _separately(
    tiny_model: TinyModel, device: str, builder: ClassResultBuilder, watch: Watch
) -> ClassResultBuilder:
    found = builder.separate()
    # Partial results are not the whole result.
    inconclusive = ScenarioRuns(tiny_model, device, found, Watch(watch.begin)).run()
    if inconclusive is not None:
        found.not_judged(tiny_model, inconclusive)
    return found


def _and_deeper(tiny_models: Iterator[TinyModel], builder: ClassResultBuilder) -> Iterator[TinyModel]:
    """Yield tiny models, and one with more layers if a branch that no run has reached may hang on these."""
    deeper: list[Callable[[], TinyModel | None]] = []
    for each in tiny_models:
        deeper += () if each.deeper is None else (each.deeper,)
        yield each
    for make in deeper:
        words = set(undecided(builder.executed))
        made = make() if any(each in word for word in words for each in OF_LAYERS) else None
        if made is not None:
            yield made


def _available(tiny_models: Iterable[TinyModel], builder: ClassResultBuilder) -> Iterator[TinyModel]:
    """Yield the tiny models as long as they can be made; only the first is required."""
    waiting = iter(tiny_models)
    while True:
        try:
            yield next(waiting)
        except StopIteration:
            return
        except NotSynthesisable as error:
            if not builder.scenarios:
                raise
            builder.notes.append(f"a further scenario cannot be built: {error}")
            return
