"""Trains one tiny model in all scenarios of its feature."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.ending import FOREIGN
from gclint.verify.worker.examination.block_calls import file_of
from gclint.verify.worker.examination.checks import CHECKS, FROZEN, VALUES
from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.explaining.explanation import first_operation
from gclint.verify.worker.examination.explaining.switching import failure_of_hook
from gclint.verify.worker.examination.fault import ENDLESS, Fault
from gclint.verify.worker.examination.inspection.difference import first_difference
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.examination.observers import has_experts
from gclint.verify.worker.examination.phrases import described, names
from gclint.verify.worker.examination.reporting import fingerprint, verdict
from gclint.verify.worker.examination.result_builder import ClassResultBuilder, Inconclusive, not_compared
from gclint.verify.worker.examination.run import (
    ENABLING,
    OTHER_COMPUTATIONS,
    REQUIRING,
    Conditions,
    Run,
    TrainingStep,
    differences,
)
from gclint.verify.worker.examination.runner import Rounding, Runner, stability
from gclint.verify.worker.importing import forget_executed, undecided
from gclint.verify.worker.modes import CHECKPOINTED
from gclint.verify.worker.protocol import Cost, Fingerprint, Mode
from gclint.verify.worker.scenarios import Scenario, scenario_named, scenarios_of
from gclint.verify.worker.tiny_model import TinyModel
from gclint.verify.worker.watch import Watch

_NUMBERS = frozenset(
    ("missing gradients", "gradients", "loss", "outputs", "second step", "buffers", "state", FROZEN)
)
"""The checks that compare what may differ between plain runs: numbers, and what was counted or timed."""
_WATCHED = frozenset(("recomputation", "double recomputation", "saved bytes", "cache", VALUES))
"""The checks of what only an observer sees."""
_BESIDE = _WATCHED | {"state"}
"""These, and that of what is left behind, in which an inspection may leave what it holds."""
_REFERENCE = "reference"
"""The category of models that cannot be judged, since they do not work without checkpointing either."""
_OF_EMBEDDINGS = frozenset((Cause.HOOK, Cause.LEAF, Cause.NO_INPUT_GRADIENT))
"""The causes that may vanish with another input embedding module."""


class ScenarioRuns:
    """Runs one tiny model in all applicable scenarios."""

    def __init__(self, tiny_model: TinyModel, device: str, builder: ClassResultBuilder, watch: Watch) -> None:
        self._builder = builder
        self._watch = watch
        watch.begin(tiny_model.scenario, "plain", "the construction")
        # Places that only the search for a configuration has executed do not count.
        forget_executed()
        self._under_test = ModelUnderTest(tiny_model, device)
        self._runner = Runner(self._under_test, watch)
        self._rounding = Rounding(self._runner)
        self._plain_runs: dict[Scenario, Run] = {}
        self._scales: dict[str, float] = {}
        """The sizes of the outputs in the first run."""
        self._inspected_plain: dict[Scenario, Run] = {}
        """Plain runs that were inspected."""
        self._comparison: Comparison | None = None
        """The plain run of the first scenario, with its repetition."""
        self._broken: set[Mode] = set()
        self._untrainable: set[Mode] = set()

    def run(self) -> Inconclusive | None:
        """Run the scenarios of its feature that apply; return why it cannot be judged, or None."""
        first, *others = scenarios_of(self._under_test.tiny_model.scenario)
        inconclusive = self._begin(first)
        if inconclusive is not None:
            return inconclusive
        refused = self._under_test.tiny_model.refused
        if refused:
            self._builder.notes.append(
                f"run without {names(refused)}: the model fails with the values that training would pass"
            )
        self._run_other_computations()
        wanted = self._under_test.tiny_model.wanted
        for scenario in others:
            if wanted is None or scenario.name in wanted:
                self._continue(scenario)
        if wanted is None:
            self._measure_stability()
        return None

    def _begin(self, scenario: Scenario) -> Inconclusive | None:
        """Run the first scenario, on which all others build; return why it cannot be judged, or None."""
        reference = self._runner.run(Conditions(scenario, "plain", finds_blocks=True), {})
        tiny_model = self._under_test.tiny_model
        if reference.error is not None and reference.steps and tiny_model.other_inputs is not None:
            note = f"run with one length only, since {_ending(reference)}"
            reference = self._otherwise(scenario, reference, replace(tiny_model, other_inputs=None), note)
        if reference.error is not None:
            failure = f"{reference.stage} raises {described(reference.error)}"
            note = f"run without `use_cache=False`, with which {failure}"
            reference = self._otherwise(scenario, reference, replace(tiny_model, keeps_cache=True), note)
        self._scales = reference.scales
        self._plain_runs[scenario] = reference
        self._runner.blocks = reference.blocks
        self._runner.watched = reference.stacked.union(each.name for each in reference.blocks)
        self._builder.notes += reference.uncounted
        once = replace(scenario, steps=1)
        again = self._runner.run(Conditions(once, "plain"), reference.scales)
        self._plain_runs[once] = again
        # In the first step of the reference, the blocks were not known yet.
        reference.backward += again.backward
        inconclusive = _unusable(reference) or _unusable(again)
        if inconclusive is not None:
            return inconclusive
        unstable = differences(reference, again)
        self._builder.add_not_covered(self._under_test.tiny_model.not_covered)
        blocks = tuple(each for each in reference.blocks if not each.is_lone)
        lone = tuple(each for each in reference.blocks if each.is_lone)
        kinds = {name: type(module) for name, module in self._under_test.model.named_modules()}
        self._builder.add_classes(kinds.values())
        source = file_of(kinds[""])
        self._comparison = Comparison(reference, again, blocks, kinds, source, unstable, lone=lone)
        if not self._comparison.is_meaningful:
            return self._not_compared(self._comparison)
        if unstable:
            which = names(sorted(name for _, name in unstable))
            self._builder.notes.append(
                f"two plain runs from the same state differ in {which}, which are not judged"
            )
        runs = [reference, *self._checkpointed(scenario, reference)]
        if not self._builder.costs:
            self._builder.costs += [cost for each in runs for cost in _costs(each)]
        if not all(each.steps[0].saved_bytes is not None for each in runs if each.steps):
            self._builder.notes.append(
                "what autograd saves was not measured: the model allows no hooks on saved tensors, or runs "
                "modules in other threads"
            )
        return None

    def _not_compared(self, comparison: Comparison) -> Inconclusive:
        """Return why too few gradients could be compared, with the line where two plain runs differ first."""
        found = not_compared(comparison)
        if not comparison.changing:
            return found
        plain = replace(comparison.reference.conditions, inspected=True)
        one, other = (
            self._runner.run(each, comparison.reference.scales).inspection
            for each in (plain, replace(plain, finds_blocks=False))
        )
        if one is None or other is None:
            return found
        origin = first_difference(one.forward, other.forward)
        where = (
            "they do not while both are inspected, so they depend on who watches, such as on how deep the "
            "stack is"
            if origin is None
            else first_operation(origin, "the second", "the first")
        )
        return replace(found, reason=f"{found.reason}; {where}")

    def _otherwise(self, scenario: Scenario, failed: Run, tiny_model: TinyModel, note: str) -> Run:
        """Return the run of a scenario with another tiny model, or ``failed`` if that fails, too."""
        before, self._under_test.tiny_model = self._under_test.tiny_model, tiny_model
        reference = self._runner.run(Conditions(scenario, "plain", finds_blocks=True), {})
        if reference.error is not None:
            self._under_test.tiny_model = before
            return failed
        self._builder.notes.append(note)
        return reference

    def _continue(self, scenario: Scenario) -> None:
        """Run a further scenario, if it applies."""
        if scenario.frozen_statistics and not self._builder.failed_by({Cause.STATISTICS}):
            return
        if not self._under_test.allows(scenario, (each.name for each in self._known_comparison().blocks)):
            return
        is_asked_for = self._under_test.tiny_model.wanted is not None
        if scenario.reaches and not is_asked_for and not self._may_reach(scenario):
            return
        if scenario.cache_object and _unusable(self._plain_run(scenario)) is not None:
            # Whether a model takes this kind of cache is found by trying.
            return
        reference = self._reference(scenario)
        if scenario.dropout and reference.error is not None:
            # It may be written for its defaults, such as zero.
            del self._plain_runs[scenario]
            if not self._under_test.drop_by_default():
                return
            reference = self._reference(scenario)
        hooked: Run | None = None
        if reference.error is not None and scenario.require_input_grads:
            hooked, scenario = reference, replace(scenario, require_input_grads=False)
            reference = self._reference(scenario)
            if reference.error is None:
                self._report_hook(hooked)
        inconclusive = _unusable(reference)
        if inconclusive is not None:
            self._note(scenario, inconclusive)
        elif not self._adds_nothing(scenario, reference):
            self._checkpointed(scenario, reference, hooked)
        if scenario.frozen_base and self._builder.failed_by(_OF_EMBEDDINGS, scenario):
            self._builder.add_embeddings(self._runner.embeddings())

    def _may_reach(self, scenario: Scenario) -> bool:
        """Tell whether a scenario is meant for a branch that no run has reached, and reaches one."""
        words = set(undecided(self._builder.executed))
        is_meant = any(each in word for word in words for each in scenario.reaches) or (
            scenario.switches and not words.isdisjoint(self._under_test.switches)
        )
        if not is_meant:
            return False
        run = self._plain_run(scenario)
        return _unusable(run) is None and not run.executed <= self._builder.executed

    def _checkpointed(self, scenario: Scenario, reference: Run, hooked: Run | None = None) -> list[Run]:
        """Run the modes that are still meaningful, and judge each.

        ``hooked`` is a plain run that failed because inputs had to require grad.
        """
        self._builder.scenarios.append(scenario.name)
        self._builder.executed |= reference.executed
        # With everything trainable, the reference is the same steps without checkpointing.
        is_ordinary = scenario.reference is None and not scenario.frozen_base
        if scenario.reference is None:
            self._builder.fingerprints.append(self._fingerprint(reference))
        runs = []
        for mode in CHECKPOINTED:
            # A failure with everything trainable is enough, except to compare two versions.
            is_reported = mode not in (self._untrainable if scenario.frozen_base else self._broken)
            if not (is_reported or self._builder.is_complete):
                continue
            run = self._runner.run(Conditions(scenario, mode), reference.scales)
            if hooked is not None and _fails_as(run, hooked):
                # The hook is at fault here as well; newer releases register it by themselves.
                continue
            if run.error is not None and run.error.is_foreign:
                self._builder.inconclusive = self._builder.inconclusive or Inconclusive(
                    _category(run.error), _ending(run)
                )
                continue
            runs.append(run)
            if run.error is not None and run.stage == ENABLING:
                # The run does not reach the calls; they would be these.
                plain = replace(self._known_comparison().run.conditions, traced=True)
                run.calls += self._runner.run(plain, self._scales).calls
            comparison = replace(self._known_comparison(), reference=reference, run=run)
            self._builder.sites.add(comparison)
            self._builder.executed |= run.executed
            if is_ordinary:
                self._builder.sites.judge(comparison)
                self._note_left_out(comparison)
            comparison = self._judge(comparison, scenario, is_reported=is_reported)
            # A failure with a loss that has to be requested does not make the mode unusable.
            if is_ordinary and scenario.forwards == 1 and not scenario.router_losses:
                self._note_unusable(comparison, mode)
            self._watch.known(self._builder.result())
        return runs

    def _note_unusable(self, comparison: Comparison, mode: Mode) -> None:
        """Record whether an ordinary run shows that a mode cannot be used."""
        seen = {each.check for each in self._builder.verdicts[-1].observations}
        is_dead = comparison.run.error is not None and comparison.run.error.is_death
        if is_dead or "error" in seen:
            self._broken.add(mode)
        if is_dead or not seen.isdisjoint(("error", "missing gradients", "gradients")):
            self._untrainable.add(mode)

    def _judge(self, comparison: Comparison, scenario: Scenario, *, is_reported: bool) -> Comparison:
        """Record what is wrong, and return the comparison with the known effect of rounding."""
        failed_checks = _failed_checks(comparison, scenario)
        if any(each.check in _NUMBERS for each in failed_checks):
            comparison = self._rounding.sharpened(comparison)
            failed_checks = _failed_checks(comparison, scenario)
            if all(each.check == VALUES for each in failed_checks):
                # The results differ by no more than rounding explains, and so do the recomputed tensors.
                failed_checks = []
        if failed_checks and scenario.reference is not None:
            failed_checks = self._confirmed(comparison, scenario, failed_checks)
        if any(each.check not in _WATCHED for each in failed_checks):
            comparison, failed_checks = self._without_watching(comparison, scenario, failed_checks)
        inspected = self._inspected(comparison, scenario, failed_checks) if failed_checks else comparison
        if inspected.divergent is None:
            # Another kernel rounds differently, or writes to memory that is not read.
            failed_checks = [each for each in failed_checks if each.check != VALUES]
        if failed_checks and is_reported:
            self._builder.judge(inspected, failed_checks, self._under_test.tiny_model)
        self._builder.verdicts.append(verdict(inspected, failed_checks))
        self._builder.compared(comparison, self._not_compared)
        return comparison

    def _inspected(
        self, comparison: Comparison, scenario: Scenario, failed_checks: Sequence[FailedCheck]
    ) -> Comparison:
        """Return the comparison with inspections of both runs; what killed its process is not repeated."""
        if comparison.run.error is not None and comparison.run.error.is_death:
            return comparison
        run = self._runner.run(replace(comparison.run.conditions, inspected=True), comparison.run.scales)
        if scenario.use_cache:
            # Recomputed layers get no cache, so nothing can be compared.
            return replace(comparison, inspection=run.inspection)
        if scenario not in self._inspected_plain:
            conditions = replace(comparison.reference.conditions, inspected=True, finds_blocks=False)
            self._inspected_plain[scenario] = self._runner.run(conditions, comparison.reference.scales)
        plain = self._inspected_plain[scenario].inspection
        failed = {each.check for each in _failed_checks(replace(comparison, run=run), scenario)}
        return replace(
            comparison,
            inspection=run.inspection,
            plain=plain.forward if plain is not None else None,
            is_shown=not failed <= _BESIDE or all(each.check in _BESIDE for each in failed_checks),
        )

    def _without_watching(
        self, comparison: Comparison, scenario: Scenario, failed_checks: list[FailedCheck]
    ) -> tuple[Comparison, list[FailedCheck]]:
        """Return what is also wrong if nothing watches the model, which may notice that, with that run's end.

        What only an observer sees, such as how often a block runs, cannot be seen without; and what dies
        without one shows nothing.
        """
        error = comparison.run.error
        if error is not None and (error.is_death or error.kind == ENDLESS):
            return comparison, failed_checks
        reference, run = (
            self._runner.run(
                replace(each.conditions, bare=True, traced=False, finds_blocks=False), each.scales
            )
            for each in (comparison.reference, comparison.run)
        )
        if any(each.error is not None and each.error.is_death for each in (reference, run)):
            return comparison, failed_checks
        bare = replace(comparison, reference=reference, run=run)
        found_bare = _failed_checks(bare, scenario) if reference.error is None else []
        found = {each.check for each in found_bare}
        if not found <= _WATCHED.union(each.check for each in failed_checks):
            # It fails there, too, and in another way, such as by an error of which hooks keep autograd.
            ended = replace(comparison.run, error=run.error, stage=run.stage, steps=run.steps)
            return replace(comparison, run=ended), [
                *(each for each in found_bare if each.check not in _WATCHED),
                *(each for each in failed_checks if each.check in _WATCHED),
            ]
        kept = [each for each in failed_checks if each.check in found or each.check in _WATCHED]
        if len(kept) < len(failed_checks):
            # What watches the model has changed the tensors that are recomputed as well.
            kept = [] if all(each.check == VALUES for each in kept) else kept
            lost = dict.fromkeys(each.check for each in failed_checks if each not in kept)
            self._builder.notes.append(
                f"not reported, since it is so only while gclint watches the model: {', '.join(lost)} "
                f"({comparison.run.mode})"
            )
        return comparison, kept

    def _confirmed(
        self, comparison: Comparison, scenario: Scenario, failed_checks: list[FailedCheck]
    ) -> list[FailedCheck]:
        """Return what is also wrong in comparison with a plain run of the same scenario."""
        own = self._plain_run(scenario)
        inconclusive = _unusable(own)
        if inconclusive is not None:
            self._note(scenario, inconclusive)
            return []
        comparison = self._rounding.sharpened(replace(comparison, reference=own, exact=None))
        found = {each.check for each in _failed_checks(comparison, scenario)}
        return [each for each in failed_checks if each.check in found]

    def _reference(self, scenario: Scenario) -> Run:
        """Return the plain run with which a scenario is compared."""
        if scenario.reference is None:
            return self._plain_run(scenario)
        return self._plain_run(replace(scenario_named(scenario.reference), steps=scenario.steps))

    def _plain_run(self, scenario: Scenario) -> Run:
        if scenario not in self._plain_runs:
            self._plain_runs[scenario] = self._runner.run(Conditions(scenario, "plain"), self._scales)
        return self._plain_runs[scenario]

    def _adds_nothing(self, scenario: Scenario, reference: Run) -> bool:
        """Return whether a plain run of a scenario does only what the first one does already."""
        if scenario.layerdrop:
            return self._drops_nothing(reference)
        return scenario.router_losses and not self._adds_loss(reference.steps[0])

    def _adds_loss(self, step: TrainingStep) -> bool:
        """Return whether a step trains with a loss that the first scenario does not have."""
        usual = self._known_comparison().reference.steps[0]
        new = step.requiring_grad - usual.requiring_grad
        return step.own_loss != usual.own_loss or any(not step.outputs[name].dim() for name in new)

    def _drops_nothing(self, run: Run) -> bool:
        """Return whether no layer was dropped in a run with layerdrop."""
        usual = self._known_comparison().reference
        return run.steps[0].loss == usual.steps[0].loss and all(
            run.recorded[each.name] == each.runs * len(run.steps) for each in self._known_comparison().blocks
        )

    def _fingerprint(self, reference: Run, name: str | None = None) -> Fingerprint:
        """Return the fingerprint for comparing versions; on a GPU with the difference of two runs."""
        is_exact = self._under_test.device.type == "cpu"
        again = None if is_exact else self._runner.run(reference.conditions, self._scales)
        return fingerprint(reference, again, name)

    def _run_other_computations(self) -> None:
        """Record what the model computes in other ways, to compare two versions of it."""
        if not self._builder.is_complete:
            return
        feature = self._under_test.tiny_model.scenario
        for name, conditions in OTHER_COMPUTATIONS.items():
            if conditions.scenario.use_cache and not self._under_test.allows(conditions.scenario, ()):
                continue
            run = self._runner.run(conditions, self._scales)
            if _unusable(run) is None and run.steps:
                self._builder.executed |= run.executed
                full = name if feature == "default" else f"{name}, {feature}"
                self._builder.fingerprints.append(self._fingerprint(run, full))

    def _measure_stability(self) -> None:
        """Record how a mixture of experts reacts to noise in the recomputation."""
        is_default = self._under_test.tiny_model.scenario == "default"
        if is_default and "non-reentrant" not in self._broken and has_experts(self._under_test.model):
            self._builder.stability += stability(self._under_test.model, self._runner, self._scales)

    def _note(self, scenario: Scenario, inconclusive: Inconclusive) -> None:
        if inconclusive.category in FOREIGN:
            self._builder.inconclusive = self._builder.inconclusive or inconclusive
        self._builder.notes.append(f"{scenario.name}, without checkpointing: {inconclusive.reason}")

    def _report_hook(self, run: Run) -> None:
        assert run.error is not None
        text = described(run.error)
        if run.stage == REQUIRING:
            self._builder.notes.append(f"enable_input_require_grads() cannot be used: {text}")
            return
        self._builder.fail(failure_of_hook(FROZEN, run, run.error), self._under_test.tiny_model)

    def _note_left_out(self, comparison: Comparison) -> None:
        """Note which blocks are deliberately left out."""
        reasons: dict[str, list[str]] = {}
        for name, reason in comparison.deliberate.items() if comparison.run.error is None else ():
            reasons.setdefault(reason, []).append(name)
        self._builder.notes += [
            f"{names(blocks)}: deliberately left out of checkpointing ({reason})"
            for reason, blocks in reasons.items()
        ]

    def _known_comparison(self) -> Comparison:
        assert self._comparison is not None
        return self._comparison


def _failed_checks(comparison: Comparison, scenario: Scenario) -> list[FailedCheck]:
    return [failed_check for name in scenario.checks for failed_check in CHECKS[name](comparison)]


def _unusable(reference: Run) -> Inconclusive | None:
    """Return why nothing can be compared with a plain run, or None."""
    if reference.error is not None:
        return Inconclusive(_category(reference.error), _ending(reference))
    if not all(math.isfinite(step.loss) for step in reference.steps):
        return Inconclusive(_REFERENCE, "the loss is not a finite number")
    return None


def _category(fault: Fault) -> str:
    return fault.kind if fault.is_death else _REFERENCE


def _ending(run: Run) -> str:
    """Return how a run ended, in words."""
    assert run.error is not None
    if run.error.is_death:
        how = "without checkpointing" if run.mode == "plain" else f"{run.mode} checkpointing"
        return f"there was {run.error.message} during {run.stage} ({how}, {run.conditions.scenario.name})"
    return f"{run.stage} raises {described(run.error)}"


def _fails_as(one: Run, other: Run) -> bool:
    faults = [(each.error.kind, each.error.message) for each in (one, other) if each.error is not None]
    return len(faults) == 2 and faults[0] == faults[1]


def _costs(run: Run) -> Iterator[Cost]:
    """Yield what a run cost, if that is known."""
    if run.steps and (saved := run.steps[0].saved_bytes) is not None:
        yield Cost(run.mode, saved, run.steps[-1].seconds, run.steps[-1].peak_bytes)
