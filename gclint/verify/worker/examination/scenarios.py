"""Trains one specimen in all scenarios of its feature."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.ending import FOREIGN
from gclint.verify.worker.examination.case import Comparison, FailedCheck
from gclint.verify.worker.examination.checks import CHECKS, FROZEN, VALUES
from gclint.verify.worker.examination.evidence import fingerprint, verdict
from gclint.verify.worker.examination.explaining.switching import failure_of_hook
from gclint.verify.worker.examination.fault import ENDLESS, Fault
from gclint.verify.worker.examination.findings import ClassResultBuilder, Inconclusive, not_compared
from gclint.verify.worker.examination.observers import has_experts
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
from gclint.verify.worker.examination.subject import ModelUnderTest
from gclint.verify.worker.examination.trace import file_of
from gclint.verify.worker.examination.words import described, names
from gclint.verify.worker.importing import forget_executed, undecided
from gclint.verify.worker.modes import CHECKPOINTED
from gclint.verify.worker.protocol import Cost, Fingerprint, Mode
from gclint.verify.worker.scenarios import Scenario, scenario_named, scenarios_of
from gclint.verify.worker.specimen import TinyModel
from gclint.verify.worker.watch import Watch

_NUMBERS = frozenset(
    ("missing gradients", "gradients", "loss", "outputs", "second step", "buffers", "state", FROZEN)
)
"""The checks that compare what may differ between plain runs: numbers, and what was counted or timed."""
_WATCHED = frozenset(("recomputation", "double recomputation", "saved bytes", "cache", VALUES))
"""The checks of what only an observer sees."""
_REFERENCE = "reference"
"""The category of models that cannot be judged, since they do not work without checkpointing either."""
_OF_EMBEDDINGS = frozenset((Cause.HOOK, Cause.LEAF, Cause.NO_INPUT_GRADIENT))
"""The causes that may vanish with another input embedding module."""


class ScenarioRuns:
    """Runs one specimen in all applicable scenarios."""

    def __init__(self, specimen: TinyModel, device: str, findings: ClassResultBuilder, watch: Watch) -> None:
        self._findings = findings
        self._watch = watch
        watch.begin(specimen.scenario, "plain", "the construction")
        # Places that only the search for a configuration has executed do not count.
        forget_executed()
        self._subject = ModelUnderTest(specimen, device)
        self._runner = Runner(self._subject, watch)
        self._rounding = Rounding(self._runner)
        self._plain_runs: dict[Scenario, Run] = {}
        self._scales: dict[str, float] = {}
        """The sizes of the outputs in the first run."""
        self._inspected_plain: dict[Scenario, Run] = {}
        """Plain runs that were inspected."""
        self._case: Comparison | None = None
        """The plain run of the first scenario, with its repetition."""
        self._broken: set[Mode] = set()
        self._untrainable: set[Mode] = set()

    def run(self) -> Inconclusive | None:
        """Run the scenarios of the specimen's feature that apply; return why it cannot be judged, or None."""
        first, *others = scenarios_of(self._subject.specimen.scenario)
        doubt = self._begin(first)
        if doubt is not None:
            return doubt
        refused = self._subject.specimen.refused
        if refused:
            self._findings.notes.append(
                f"run without {names(refused)}: the model fails with the values that training would pass"
            )
        self._run_other_computations()
        wanted = self._subject.specimen.wanted
        for scenario in others:
            if wanted is None or scenario.name in wanted:
                self._continue(scenario)
        if wanted is None:
            self._measure_stability()
        return None

    def _begin(self, scenario: Scenario) -> Inconclusive | None:
        """Run the first scenario, on which all others build; return why it cannot be judged, or None."""
        reference = self._runner.run(Conditions(scenario, "plain", finds_blocks=True), {})
        specimen = self._subject.specimen
        if reference.error is not None and reference.steps and specimen.other_inputs is not None:
            note = f"run with one length only, since {_ending(reference)}"
            reference = self._otherwise(scenario, reference, replace(specimen, other_inputs=None), note)
        if reference.error is not None:
            failure = f"{reference.stage} raises {described(reference.error)}"
            note = f"run without `use_cache=False`, with which {failure}"
            reference = self._otherwise(scenario, reference, replace(specimen, keeps_cache=True), note)
        self._scales = reference.scales
        self._plain_runs[scenario] = reference
        self._runner.blocks = reference.blocks
        self._runner.watched = reference.stacked.union(each.name for each in reference.blocks)
        self._findings.notes += reference.uncounted
        once = replace(scenario, steps=1)
        again = self._runner.run(Conditions(once, "plain"), reference.scales)
        self._plain_runs[once] = again
        # In the first step of the reference, the blocks were not known yet.
        reference.backward += again.backward
        doubt = _unusable(reference) or _unusable(again)
        if doubt is not None:
            return doubt
        unstable = differences(reference, again)
        self._findings.add_not_covered(self._subject.specimen.not_covered)
        blocks = tuple(each for each in reference.blocks if not each.is_lone)
        lone = tuple(each for each in reference.blocks if each.is_lone)
        kinds = {name: type(module) for name, module in self._subject.model.named_modules()}
        self._findings.add_classes(kinds.values())
        source = file_of(kinds[""])
        self._case = Comparison(reference, again, blocks, kinds, source, unstable, lone=lone)
        if not self._case.is_meaningful:
            return not_compared(self._case)
        if unstable:
            which = names(sorted(name for _, name in unstable))
            self._findings.notes.append(
                f"two plain runs from the same state differ in {which}, which are not judged"
            )
        runs = [reference, *self._checkpointed(scenario, reference)]
        if not self._findings.costs:
            self._findings.costs += [cost for each in runs for cost in _costs(each)]
        if not all(each.steps[0].saved_bytes is not None for each in runs if each.steps):
            self._findings.notes.append(
                "what autograd saves was not measured: the model allows no hooks on saved tensors, or runs "
                "modules in other threads"
            )
        return None

    def _otherwise(self, scenario: Scenario, failed: Run, specimen: TinyModel, note: str) -> Run:
        """Return the run of a scenario with another specimen, or ``failed`` if that fails, too."""
        before, self._subject.specimen = self._subject.specimen, specimen
        reference = self._runner.run(Conditions(scenario, "plain", finds_blocks=True), {})
        if reference.error is not None:
            self._subject.specimen = before
            return failed
        self._findings.notes.append(note)
        return reference

    def _continue(self, scenario: Scenario) -> None:
        """Run a further scenario, if it applies."""
        if scenario.frozen_statistics and not self._findings.failed_by({Cause.STATISTICS}):
            return
        if not self._subject.allows(scenario, (each.name for each in self._known_case().blocks)):
            return
        is_asked_for = self._subject.specimen.wanted is not None
        if scenario.reaches and not is_asked_for and not self._may_reach(scenario):
            return
        if scenario.cache_object and _unusable(self._plain_run(scenario)) is not None:
            # Whether a model takes this kind of cache is found by trying.
            return
        reference = self._reference(scenario)
        if scenario.dropout and reference.error is not None:
            # It may be written for its defaults, such as zero.
            del self._plain_runs[scenario]
            if not self._subject.drop_by_default():
                return
            reference = self._reference(scenario)
        hooked: Run | None = None
        if reference.error is not None and scenario.require_input_grads:
            hooked, scenario = reference, replace(scenario, require_input_grads=False)
            reference = self._reference(scenario)
            if reference.error is None:
                self._report_hook(hooked)
        doubt = _unusable(reference)
        if doubt is not None:
            self._note(scenario, doubt)
        elif not self._adds_nothing(scenario, reference):
            self._checkpointed(scenario, reference, hooked)
        if scenario.frozen_base and self._findings.failed_by(_OF_EMBEDDINGS, scenario):
            self._findings.add_embeddings(self._runner.embeddings())

    def _may_reach(self, scenario: Scenario) -> bool:
        """Tell whether a scenario is meant for a branch that no run has reached, and reaches one."""
        words = set(undecided(self._findings.executed))
        is_meant = any(each in word for word in words for each in scenario.reaches) or (
            scenario.switches and not words.isdisjoint(self._subject.switches)
        )
        if not is_meant:
            return False
        run = self._plain_run(scenario)
        return _unusable(run) is None and not run.executed <= self._findings.executed

    def _checkpointed(self, scenario: Scenario, reference: Run, hooked: Run | None = None) -> list[Run]:
        """Run the modes that are still meaningful, and judge each.

        ``hooked`` is a plain run that failed because inputs had to require grad.
        """
        self._findings.scenarios.append(scenario.name)
        self._findings.executed |= reference.executed
        # With everything trainable, the reference is the same steps without checkpointing.
        is_ordinary = scenario.reference is None and not scenario.frozen_base
        if scenario.reference is None:
            self._findings.fingerprints.append(self._fingerprint(reference))
        runs = []
        for mode in CHECKPOINTED:
            # A failure with everything trainable is enough, except to compare two versions.
            is_reported = mode not in (self._untrainable if scenario.frozen_base else self._broken)
            if not (is_reported or self._findings.is_complete):
                continue
            run = self._runner.run(Conditions(scenario, mode), reference.scales)
            if hooked is not None and _fails_as(run, hooked):
                # The hook is at fault here as well; newer releases register it by themselves.
                continue
            if run.error is not None and run.error.is_foreign:
                self._findings.doubt = self._findings.doubt or Inconclusive(
                    _category(run.error), _ending(run)
                )
                continue
            runs.append(run)
            if run.error is not None and run.stage == ENABLING:
                # The run does not reach the calls; they would be these.
                plain = replace(self._known_case().run.conditions, traced=True)
                run.calls += self._runner.run(plain, self._scales).calls
            case = replace(self._known_case(), reference=reference, run=run)
            self._findings.sites.add(case)
            self._findings.executed |= run.executed
            if is_ordinary:
                self._findings.sites.judge(case)
                self._note_left_out(case)
            case = self._judge(case, scenario, is_reported=is_reported)
            # A failure with a loss that has to be requested does not make the mode unusable.
            if is_ordinary and scenario.forwards == 1 and not scenario.router_losses:
                self._note_unusable(case, mode)
            self._watch.known(self._findings.result())
        return runs

    def _note_unusable(self, case: Comparison, mode: Mode) -> None:
        """Record whether an ordinary run shows that a mode cannot be used."""
        seen = {each.check for each in self._findings.verdicts[-1].observations}
        is_dead = case.run.error is not None and case.run.error.is_death
        if is_dead or "error" in seen:
            self._broken.add(mode)
        if is_dead or not seen.isdisjoint(("error", "missing gradients", "gradients")):
            self._untrainable.add(mode)

    def _judge(self, case: Comparison, scenario: Scenario, *, is_reported: bool) -> Comparison:
        """Record what is wrong, and return the case with the known effect of rounding."""
        symptoms = _symptoms(case, scenario)
        if any(each.check in _NUMBERS for each in symptoms):
            case = self._rounding.sharpened(case)
            symptoms = _symptoms(case, scenario)
            if all(each.check == VALUES for each in symptoms):
                # The results differ by no more than rounding explains, and so do the recomputed tensors.
                symptoms = []
        if symptoms and scenario.reference is not None:
            symptoms = self._confirmed(case, scenario, symptoms)
        if any(each.check not in _WATCHED for each in symptoms):
            symptoms = self._without_watching(case, scenario, symptoms)
        inspected = self._inspected(case, scenario) if symptoms else case
        if inspected.divergent is None:
            # Another kernel rounds differently, or writes to memory that is not read.
            symptoms = [each for each in symptoms if each.check != VALUES]
        if symptoms and is_reported:
            self._findings.judge(inspected, symptoms, self._subject.specimen)
        self._findings.verdicts.append(verdict(inspected, symptoms))
        self._findings.compared(case)
        return case

    def _inspected(self, case: Comparison, scenario: Scenario) -> Comparison:
        """Return the case with inspections of both runs; a run that killed its process is not repeated."""
        if case.run.error is not None and case.run.error.is_death:
            return case
        run = self._runner.run(replace(case.run.conditions, inspected=True), case.run.scales)
        if scenario.use_cache:
            # Recomputed layers get no cache, so nothing can be compared.
            return replace(case, inspection=run.inspection)
        if scenario not in self._inspected_plain:
            conditions = replace(case.reference.conditions, inspected=True, finds_blocks=False)
            self._inspected_plain[scenario] = self._runner.run(conditions, case.reference.scales)
        plain = self._inspected_plain[scenario].inspection
        return replace(case, inspection=run.inspection, plain=plain.forward if plain is not None else None)

    def _without_watching(
        self, case: Comparison, scenario: Scenario, symptoms: list[FailedCheck]
    ) -> list[FailedCheck]:
        """Return what is also wrong if nothing watches the model, which may notice that.

        What only an observer sees, such as how often a block runs, cannot be seen without; and what dies
        without one shows nothing.
        """
        error = case.run.error
        if error is not None and (error.is_death or error.kind == ENDLESS):
            return symptoms
        reference, run = (
            self._runner.run(
                replace(each.conditions, bare=True, traced=False, finds_blocks=False), each.scales
            )
            for each in (case.reference, case.run)
        )
        if any(each.error is not None and each.error.is_death for each in (reference, run)):
            return symptoms
        bare = replace(case, reference=reference, run=run)
        found = {each.check for each in _symptoms(bare, scenario)} if reference.error is None else set()
        if not found <= _WATCHED.union(each.check for each in symptoms):
            return symptoms  # It fails there, too, and only in another way.
        kept = [each for each in symptoms if each.check in found or each.check in _WATCHED]
        if len(kept) < len(symptoms):
            lost = dict.fromkeys(each.check for each in symptoms if each not in kept)
            self._findings.notes.append(
                f"not reported, since it is so only while gclint watches the model: {', '.join(lost)} "
                f"({case.run.mode})"
            )
        return kept

    def _confirmed(
        self, case: Comparison, scenario: Scenario, symptoms: list[FailedCheck]
    ) -> list[FailedCheck]:
        """Return what is also wrong in comparison with a plain run of the same scenario."""
        own = self._plain_run(scenario)
        doubt = _unusable(own)
        if doubt is not None:
            self._note(scenario, doubt)
            return []
        case = self._rounding.sharpened(replace(case, reference=own, exact=None))
        found = {each.check for each in _symptoms(case, scenario)}
        return [each for each in symptoms if each.check in found]

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
        usual = self._known_case().reference.steps[0]
        new = step.requiring_grad - usual.requiring_grad
        return step.own_loss != usual.own_loss or any(not step.outputs[name].dim() for name in new)

    def _drops_nothing(self, run: Run) -> bool:
        """Return whether no layer was dropped in a run with layerdrop."""
        usual = self._known_case().reference
        return run.steps[0].loss == usual.steps[0].loss and all(
            run.recorded[each.name] == each.runs * len(run.steps) for each in self._known_case().blocks
        )

    def _fingerprint(self, reference: Run, name: str | None = None) -> Fingerprint:
        """Return the fingerprint for comparing versions; on a GPU with the difference of two runs."""
        is_exact = self._subject.device.type == "cpu"
        again = None if is_exact else self._runner.run(reference.conditions, self._scales)
        return fingerprint(reference, again, name)

    def _run_other_computations(self) -> None:
        """Record what the model computes in other ways, to compare two versions of it."""
        if not self._findings.is_complete:
            return
        feature = self._subject.specimen.scenario
        for name, conditions in OTHER_COMPUTATIONS.items():
            if conditions.scenario.use_cache and not self._subject.allows(conditions.scenario, ()):
                continue
            run = self._runner.run(conditions, self._scales)
            if _unusable(run) is None and run.steps:
                self._findings.executed |= run.executed
                full = name if feature == "default" else f"{name}, {feature}"
                self._findings.fingerprints.append(self._fingerprint(run, full))

    def _measure_stability(self) -> None:
        """Record how a mixture of experts reacts to noise in the recomputation."""
        is_default = self._subject.specimen.scenario == "default"
        if is_default and "non-reentrant" not in self._broken and has_experts(self._subject.model):
            self._findings.stability += stability(self._subject.model, self._runner, self._scales)

    def _note(self, scenario: Scenario, doubt: Inconclusive) -> None:
        if doubt.category in FOREIGN:
            self._findings.doubt = self._findings.doubt or doubt
        self._findings.notes.append(f"{scenario.name}, without checkpointing: {doubt.reason}")

    def _report_hook(self, run: Run) -> None:
        assert run.error is not None
        text = described(run.error)
        if run.stage == REQUIRING:
            self._findings.notes.append(f"enable_input_require_grads() cannot be used: {text}")
            return
        self._findings.fail(failure_of_hook(FROZEN, run, run.error), self._subject.specimen)

    def _note_left_out(self, case: Comparison) -> None:
        """Note which blocks are deliberately left out."""
        reasons: dict[str, list[str]] = {}
        for name, reason in case.deliberate.items() if case.run.error is None else ():
            reasons.setdefault(reason, []).append(name)
        self._findings.notes += [
            f"{names(blocks)}: deliberately left out of checkpointing ({reason})"
            for reason, blocks in reasons.items()
        ]

    def _known_case(self) -> Comparison:
        assert self._case is not None
        return self._case


def _symptoms(case: Comparison, scenario: Scenario) -> list[FailedCheck]:
    return [symptom for name in scenario.checks for symptom in CHECKS[name](case)]


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
