"""The steps that are run of one specimen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from gclint.verify.worker.examination.adapters import freeze_under_adapters
from gclint.verify.worker.examination.case import Case, Check, Symptom, differences, rounding
from gclint.verify.worker.examination.checks import CHECKS, FROZEN, FROZEN_CHECKS
from gclint.verify.worker.examination.dissection import Dissection
from gclint.verify.worker.examination.fingerprint import fingerprint
from gclint.verify.worker.examination.ledger import Ledger
from gclint.verify.worker.examination.run import REQUIRING, Conditions, Run, Runner
from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.examination.words import described, names
from gclint.verify.worker.protocol import Cause, Cost, Failure, Mode
from gclint.verify.worker.specimen import Specimen
from gclint.verify.worker.watch import Watch

_NUMBERS = frozenset(("gradients", "loss", "outputs", "second step", "buffers", FROZEN))
"""The checks that compare numbers."""
_MODES: tuple[Mode, ...] = ("non-reentrant", "reentrant")


class Scenarios:
    """Runs one specimen in all the ways that it is to be run in."""

    def __init__(self, specimen: Specimen, device: str, ledger: Ledger, watch: Watch) -> None:
        self._specimen = specimen
        self._ledger = ledger
        self._watch = watch
        watch.begin(specimen.scenario, "plain", "the construction")
        self._subject = Subject(specimen, device)
        self._runner = Runner(self._subject, watch)
        self._runner.before_backward = self._tell
        self._case: Case | None = None
        self._once = Run(Conditions(specimen.scenario, "plain"))
        self._broken: set[Mode] = set()
        self._untrainable: set[Mode] = set()

    def run_all(self) -> str | None:
        """Run every scenario, with two steps where that shows more.

        Returns:
            Why the specimen cannot be judged, or None.
        """
        reason = self._trainable(steps=2)
        if reason is None:
            if self._subject.drops:
                self._with_dropout()
            if self._subject.knows_cache:
                self._with_cache()
            self._with_frozen_base()
        return reason

    def run_once(self) -> str | None:
        """Run it with everything trainable, one step a mode.

        Returns:
            Why the specimen cannot be judged, or None.
        """
        return self._trainable(steps=1)

    def _tell(self, run: Run) -> None:
        if run.mode == "reentrant":
            self._ledger.sites.add(run)
            self._watch.known(self._ledger.result())

    def _trainable(self, steps: int) -> str | None:
        plain = Conditions(self._specimen.scenario, "plain", steps)
        dissection = Dissection(self._subject.model)
        reference = self._runner.run(plain, dissection)
        again = self._runner.run(replace(plain, steps=1)) if steps > 1 else reference
        reason = _unusable(reference) or _unusable(again)
        if reason is not None:
            return reason
        self._begin(reference, dissection)
        self._compare_with(again)
        self._once = again
        runs = [reference, *self._checkpointed(plain)]
        if steps > 1:
            self._ledger.costs += [_cost(each) for each in runs if each.steps]
        return None

    def _begin(self, reference: Run, dissection: Dissection) -> None:
        self._ledger.scenarios.append(self._specimen.scenario)
        self._ledger.cover_all_but(self._specimen.not_covered)
        self._ledger.fingerprints.append(fingerprint(reference))
        blocks = dissection.blocks(reference.steps[0].touched.keys())
        modules = dict(self._subject.model.named_modules())
        stacked = {name: module for name, module in modules.items() if module in dissection.stacked}
        self._runner.blocks = blocks
        self._runner.watched = {module: name for name, module in stacked.items()}
        self._runner.watched |= {each.module: each.name for each in blocks}
        kinds = {name: type(module).__name__ for name, module in modules.items()}
        self._case = Case(reference, reference, blocks, frozenset(stacked), kinds)

    def _compare_with(self, again: Run) -> None:
        case = self._known_case()
        unstable = differences(case.reference, again)
        if unstable:
            self._ledger.notes.append(
                f"two plain runs differ in {names(sorted(unstable))}, which are not judged"
            )
            self._case = replace(case, unstable=unstable)

    def _checkpointed(self, plain: Conditions) -> list[Run]:
        """Run the modes that still make sense, and judge each."""
        runs = []
        for mode in _MODES:
            if mode not in self._broken:
                run = self._runner.run(replace(plain, mode=mode))
                runs.append(run)
                case = replace(self._known_case(), run=run)
                self._ledger.sites.add(run)
                self._ledger.sites.judge(case)
                case, symptoms = self._symptoms(case, plain, CHECKS)
                self._ledger.judge(case, symptoms, self._specimen)
                if run.error is not None:
                    self._broken.add(mode)
                if run.error is not None or case.lost or case.wrong:
                    self._untrainable.add(mode)
        return runs

    def _symptoms(self, case: Case, plain: Conditions, checks: Sequence[Check]) -> tuple[Case, list[Symptom]]:
        """Return what the checks find, and the case without what rounding alone would change as much.

        Args:
            case: what is to be judged.
            plain: how its reference was run.
            checks: those to make.
        """
        symptoms = self._ledger.symptoms(case, checks)
        if not symptoms or case.lost or any(each.check not in _NUMBERS for each in symptoms):
            return case, symptoms
        shaken = self._runner.run(replace(plain, steps=len(case.reference.steps), shaken=True))
        sensitive = rounding(case.reference, shaken, case.run)
        if sensitive:
            self._ledger.notes.append(
                f"rounding alone changes {names(sorted(sensitive))} in {plain.scenario}, which are not judged"
            )
            case = replace(case, unstable=case.unstable | sensitive)
            symptoms = self._ledger.symptoms(case, checks)
        return case, symptoms

    def _with_dropout(self) -> None:
        plain = Conditions("dropout", "plain", dropout=True)
        reference = self._runner.run(plain)
        reason = _unusable(reference)
        if reason is not None:
            self._ledger.notes.append(f"with dropout: {reason}")
            return
        self._ledger.scenarios.append(plain.scenario)
        self._ledger.fingerprints.append(fingerprint(reference))
        without = self._known_case()
        self._case = replace(without, reference=reference)
        self._checkpointed(plain)
        self._case = without

    def _with_cache(self) -> None:
        """Ask for a cache; a layer that is recomputed drops it, so the reference is the run without one."""
        self._ledger.scenarios.append("cache")
        cached: Run | None = None
        for mode in _MODES:
            if mode in self._broken:
                continue
            conditions = Conditions("cache", mode, use_cache=True)
            run = self._runner.run(conditions)
            case = replace(self._known_case(), reference=self._once, run=run)
            self._ledger.sites.add(run)
            case, symptoms = self._symptoms(case, replace(conditions, mode="plain", use_cache=False), CHECKS)
            if not symptoms:
                continue
            cached = cached or self._runner.run(replace(conditions, mode="plain"))
            reason = _unusable(cached)
            if reason is not None:
                self._ledger.notes.append(
                    f"cannot be trained with a cache even without checkpointing: {reason}"
                )
            elif self._ledger.symptoms(replace(case, reference=cached), CHECKS):
                self._ledger.judge(case, symptoms, self._specimen)

    def _with_frozen_base(self) -> None:
        case = self._known_case()
        self._subject.restore(dropout=False)
        adapters = freeze_under_adapters(self._subject.model, [each.module for each in case.blocks])
        if not adapters:
            return
        self._subject.adopt(adapters)
        plain = Conditions(FROZEN, "plain", require_input_grads=True)
        reference = hooked = self._runner.run(plain)
        if reference.error is not None:
            plain = replace(plain, require_input_grads=False)
            reference = self._runner.run(plain)
            if reference.error is None:
                self._tell_of_hook(hooked)
        reason = _unusable(reference)
        if reason is not None:
            self._ledger.notes.append(f"with a frozen base: {reason}")
            return
        self._ledger.scenarios.append(FROZEN)
        for mode in _MODES:
            if mode not in self._untrainable:
                run = self._runner.run(replace(plain, mode=mode))
                if run.error is not None and str(run.error) == str(hooked.error):
                    # The hook is to blame here as well; newer releases set it by themselves.
                    continue
                frozen = replace(case, reference=reference, run=run)
                frozen, symptoms = self._symptoms(frozen, plain, FROZEN_CHECKS)
                self._ledger.judge(frozen, symptoms, self._specimen)

    def _tell_of_hook(self, run: Run) -> None:
        assert run.error is not None
        text = described(run.error)
        if run.stage == REQUIRING:
            self._ledger.notes.append(f"enable_input_require_grads() cannot be used: {text}")
            return
        message = (
            f"with a frozen base, {run.stage} raises {text} as soon as enable_input_require_grads() is called"
        )
        explanation = (
            "It lets the output of the module that get_input_embeddings() returns require grad: "
            "that must be one tensor, which is not changed in place."
        )
        failure = Failure(FROZEN, "plain", FROZEN, message, cause=Cause.HOOK, explanation=explanation)
        self._ledger.fail(failure, self._specimen)

    def _known_case(self) -> Case:
        assert self._case is not None
        return self._case


def _unusable(reference: Run) -> str | None:
    """Return why nothing can be compared with a plain run, or None."""
    if reference.error is not None:
        return f"{reference.stage} raises {described(reference.error)}"
    if not all(math.isfinite(step.loss) for step in reference.steps):
        return "the loss is not a finite number"
    return None


def _cost(run: Run) -> Cost:
    last = run.steps[-1]
    return Cost(run.mode, run.steps[0].saved_bytes, last.seconds, last.peak_bytes)
