"""Runs the requested practices with one class."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from gclint.verify.worker import child
from gclint.verify.worker.ending import FOREIGN, End
from gclint.verify.worker.examination.agreement import deviation
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.examination.forked import Fork, in_forks
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.examination.run import Conditions
from gclint.verify.worker.examination.runner import Runner
from gclint.verify.worker.practices import AUTOCAST, COMPILE, DDP, PEFT, WRAPPER, Practice
from gclint.verify.worker.protocol import Advice, ClassResult, SetUp
from gclint.verify.worker.scenarios import scenario_named
from gclint.verify.worker.tiny_model import TinyModel
from gclint.verify.worker.training.adapters import ADAPTERS
from gclint.verify.worker.training.autocast import AUTOCASTING
from gclint.verify.worker.training.compiling import COMPILING
from gclint.verify.worker.training.group import ALONE, DoesNotApply, PracticeGroup, Rank
from gclint.verify.worker.training.judgement import how_it_ended, judge
from gclint.verify.worker.training.parallel import advise, exists, load, prepare
from gclint.verify.worker.training.practice_run import PracticeRun, average, run_practice, together
from gclint.verify.worker.training.wrapping import WRAPPING
from gclint.verify.worker.watch import Watch

GROUPS: dict[str, PracticeGroup] = {
    DDP: PracticeGroup(prepare, advise, exists=exists, load=load),
    PEFT: ADAPTERS,
    WRAPPER: WRAPPING,
    AUTOCAST: AUTOCASTING,
    COMPILE: COMPILING,
}
"""The groups by name."""


_SECONDS = 30.0
"""The time limit of the steps of one practice, if the class has none."""
_SHARE = 4
"""How many such limits fit into the time that a class has for each practice."""
_PERTURBATIONS = 2
"""How many runs with perturbed parameters measure the effect of rounding on gradients."""


def trained(
    result: ClassResult,
    tiny_model: TinyModel,
    device: str,
    practices: Sequence[Practice],
    watch: Watch,
    groups: Mapping[str, PracticeGroup] = GROUPS,
) -> ClassResult:
    """Return the result of a class with a row for each practice, and advice for each group."""
    training = _Training(ModelUnderTest(tiny_model, device), watch, _limit(len(practices)), groups)
    rows: list[SetUp] = []
    for practice in training.existing(practices):
        row = training.row(practice)
        if row is None:
            continue
        rows.append(row)
        result = replace(result, setups=tuple(rows))
        watch.known(result)
    return replace(result, advice=tuple(_advice(rows, groups)))


def _limit(count: int) -> float:
    """Return the time limit of each of several practices, which share the time of their class."""
    whole = child.seconds()
    return _SECONDS if whole is None else whole / (1 + count) / _SHARE


def _advice(rows: Sequence[SetUp], groups: Mapping[str, PracticeGroup]) -> Iterator[Advice]:
    by_group: defaultdict[str, list[SetUp]] = defaultdict(list)
    for each in rows:
        by_group[each.group].append(each)
    for name, of_group in by_group.items():
        advice = groups[name].advise(of_group)
        if advice is not None:
            yield advice


class _Training:
    """One model under test, with the reference steps that several practices share."""

    def __init__(
        self,
        under_test: ModelUnderTest,
        watch: Watch,
        seconds: float,
        groups: Mapping[str, PracticeGroup] = GROUPS,
    ) -> None:
        self._groups = groups
        self._under_test = under_test
        self._watch = watch
        self._seconds = seconds
        self._longest = 0.0
        """The seconds of the longest completed steps without checkpointing."""
        self._blocks: tuple[Block, ...] | None = None
        self._references: dict[Practice, PracticeRun] = {}
        self._controls: dict[Practice, PracticeRun] = {}
        self._noise: dict[Practice, dict[tuple[int, str], float]] = {}

    def existing(self, practices: Sequence[Practice]) -> Iterator[Practice]:
        """Yield the practices that apply to the model, after importing what they need."""
        for name in dict.fromkeys(each.group for each in practices):
            # The rows report missing libraries.
            with suppress(DoesNotApply):
                self._groups[name].load()
        yield from (each for each in practices if self._groups[each.group].exists(each, self._under_test))

    def row(self, practice: Practice) -> SetUp | None:
        """Run one practice and what it takes to judge it; None if its reference cannot be run either."""
        expected = self._reference(practice.reference())
        if not expected.is_whole:
            is_none = practice.is_tentative and expected.error is not None
            return None if is_none else self._without_reference(practice, expected)
        row = self._judged(practice, expected, self._run(practice, expected.scales))
        return self._with_controls(practice, row, expected) if row.outcome == "fails" else row

    def _judged(self, practice: Practice, expected: PracticeRun, run: PracticeRun) -> SetUp:
        """Return the row of a practice; the effect of rounding is measured only if gradients differ."""
        group = self._groups[practice.group]
        row = judge(practice, group, expected, run, {})
        if row.outcome == "fails" and row.parameters and run.is_whole:
            differing = len(row.parameters)
            row = judge(practice, group, expected, run, self._noise_of(practice.reference()))
            if group.rounding is not None and row.outcome == "works":
                row = replace(row, message=f"{differing} gradients differ by no more than rounding explains")
        return row

    def _with_controls(self, practice: Practice, row: SetUp, expected: PracticeRun) -> SetUp:
        """Return a failed row, with a remark if a control fails in the same way."""
        for control, without in practice.controls():
            if control not in self._controls:
                self._controls[control] = self._run(control, expected.scales)
            again = self._judged(control, expected, self._controls[control])
            if (again.outcome, again.symptom) == (row.outcome, row.symptom):
                return replace(row, message=f"{row.message}; without {without} as well")
        return row

    def _without_reference(self, practice: Practice, expected: PracticeRun) -> SetUp:
        if expected.error is not None:
            message = f"without checkpointing, {how_it_ended(expected)}"
            return SetUp(practice.group, practice.name, practice.data, "not run", "no reference", message)
        row = judge(practice, self._groups[practice.group], expected, expected, {})
        return replace(row, outcome="not run")

    def _reference(self, practice: Practice) -> PracticeRun:
        if practice not in self._references:
            self._references[practice] = self._run(practice, {})
        return self._references[practice]

    def _noise_of(self, practice: Practice) -> Mapping[tuple[int, str], float]:
        """Return the largest effect of rounding on each gradient of a reference, by step and name."""
        if practice not in self._noise:
            reference, found = self._reference(practice), dict[tuple[int, str], float]()
            for number in range(_PERTURBATIONS + 1):
                # The first run is not perturbed: it differs by chance alone.
                other = self._run(practice, reference.scales, number)
                for step, (one, another) in enumerate(
                    zip(reference.gradients, other.gradients, strict=False)
                ):
                    for name, mine in one.items():
                        yours = another.get(name)
                        if mine is not None and yours is not None:
                            found[step, name] = max(found.get((step, name), 0.0), deviation(mine, yours))
            self._noise[practice] = found
        return self._noise[practice]

    def _run(self, practice: Practice, scales: Mapping[str, float], perturbed: int = 0) -> PracticeRun:
        """Run the steps of a practice, in a fork for each of the processes that train together."""
        if practice.ranks == 1:
            return self._forked(practice, [ALONE], scales, perturbed)[0]
        if not practice.is_together:
            apart: list[PracticeRun] = []
            for number in range(practice.ranks):
                # One after the other: the sizes of the outputs come from the first.
                known = {**(apart[-1].scales if apart else {}), **scales}
                apart += self._forked(practice, [Rank(number, practice.ranks)], known, perturbed)
            return average(apart)
        with tempfile.TemporaryDirectory() as folder:
            rendezvous = os.path.join(folder, "ranks")  # noqa: PTH118
            ranks = [Rank(number, practice.ranks, rendezvous) for number in range(practice.ranks)]
            return together(self._forked(practice, ranks, scales, perturbed))

    def _forked(
        self, practice: Practice, ranks: Sequence[Rank], scales: Mapping[str, float], perturbed: int
    ) -> list[PracticeRun]:
        group, blocks = self._groups[practice.group], self._known_blocks(practice)
        stages = ["the set-up" for _ in ranks]

        def receive(index: int, stage: str) -> None:
            stages[index] = stage
            # If the process of the class ends here, that is not a failure of a scenario.
            self._watch.begin(practice.title, "plain", stage)

        def work(rank: Rank, fork: Fork) -> None:
            fork.keep(
                run_practice(practice, group, self._under_test, blocks, scales, fork.send, perturbed, rank)
            )

        ended = in_forks([partial(work, rank) for rank in ranks], receive, self._seconds)
        if practice.mode == "plain" and all(end.cause == "done" for _, end in ended):
            self._longest = max(self._longest, *(end.seconds for _, end in ended))
        return [
            _run_of(run, end, stage, not end.is_hang(self._seconds, self._longest))
            for (run, end), stage in zip(ended, stages, strict=True)
        ]

    def _known_blocks(self, practice: Practice) -> tuple[Block, ...]:
        if self._blocks is None and self._groups[practice.group].finds_blocks:
            self._blocks = ()  # It looks for them.
            found = self._reference(practice.reference()).blocks
            self._blocks = tuple(each for each in found if not each.is_lone)
        elif self._blocks is None:
            conditions = Conditions(replace(scenario_named("default"), steps=1), "plain", finds_blocks=True)
            run = Runner(self._under_test, self._watch).run(conditions, {})
            self._blocks = tuple(each for each in run.blocks if not each.is_lone)
        return self._blocks


def _run_of(run: PracticeRun | None, end: End, stage: str, is_slow: bool) -> PracticeRun:
    """Return the record of the steps of a process; a time limit is no failure if plain steps are slow."""
    if end.cause == "error":
        raise RuntimeError(end.message)
    if end.cause == "done":
        assert run is not None
        return run
    is_foreign = end.cause in FOREIGN or (is_slow and end.cause == "time limit")
    return PracticeRun(stage=stage, error=Fault(end.cause, end.message, end.frames, is_foreign))
