"""The practices that were asked for, run with one class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gclint.verify.worker import child
from gclint.verify.worker.ending import FOREIGN
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.comparison import deviation
from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.examination.forked import Fork, in_fork
from gclint.verify.worker.examination.run import Conditions
from gclint.verify.worker.examination.runner import Runner
from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.practices import Practice
from gclint.verify.worker.protocol import Advice, ClassResult, SetUp
from gclint.verify.worker.scenarios import scenario_named
from gclint.verify.worker.specimen import Specimen
from gclint.verify.worker.training.groups import GROUPS
from gclint.verify.worker.training.judgement import judge, told
from gclint.verify.worker.training.taken import Taken, take
from gclint.verify.worker.watch import Watch

_SECONDS = 60.0
"""The time limit of one practice, where the class has none."""
_SHARE = 4
"""So many practices that hang fit into the time limit of a class."""
_SHAKES = 2
"""How often the last bits of the parameters are changed, to see what rounding does to gradients."""


def trained(
    result: ClassResult, specimen: Specimen, device: str, practices: Sequence[Practice], watch: Watch
) -> ClassResult:
    """Return a class's result with a row for each practice, and advice for each group.

    Args:
        result: what the scenarios have shown.
        specimen: how to build and feed the class.
        device: ``cpu``, ``cuda`` or ``cuda:n``.
        practices: what to run.
        watch: told what begins and what is known.
    """
    training = _Training(Subject(specimen, device), watch)
    rows: list[SetUp] = []
    for practice in practices:
        rows.append(training.row(practice))
        result = replace(result, setups=tuple(rows))
        watch.known(result)
    return replace(result, advice=tuple(_advice(rows)))


def _advice(rows: Sequence[SetUp]) -> Iterator[Advice]:
    by_group: defaultdict[str, list[SetUp]] = defaultdict(list)
    for each in rows:
        by_group[each.group].append(each)
    for name, of_group in by_group.items():
        advice = GROUPS[name].advise(of_group)
        if advice is not None:
            yield advice


class _Training:
    """One subject, and the steps that several practices are compared with."""

    def __init__(self, subject: Subject, watch: Watch) -> None:
        self._subject = subject
        self._watch = watch
        self._blocks: tuple[Block, ...] | None = None
        self._references: dict[Practice, Taken] = {}
        self._noise: dict[Practice, dict[tuple[int, str], float]] = {}

    def row(self, practice: Practice) -> SetUp:
        """Run one practice, and what it takes to judge it."""
        group, reference = GROUPS[practice.group], practice.reference()
        expected = self._reference(reference)
        if expected.refusal is not None or expected.error is not None or expected.bad is not None:
            return self._without_reference(practice, expected)
        taken = self._take(practice, expected.scales)
        row = judge(practice, group, expected, taken, {})
        if row.outcome == "fails" and row.parameters:
            row = judge(practice, group, expected, taken, self._noise_of(reference))
        return self._with_control(practice, row, expected) if row.outcome == "fails" else row

    def _with_control(self, practice: Practice, row: SetUp, expected: Taken) -> SetUp:
        """Return a failed row that says so if the same happens without checkpointing."""
        control = practice.control()
        if control == practice.reference():
            return row
        taken = self._take(control, expected.scales)
        again = judge(control, GROUPS[practice.group], expected, taken, self._noise_of(practice.reference()))
        if (again.outcome, again.symptom) != (row.outcome, row.symptom):
            return row
        return replace(row, message=f"{row.message}; without checkpointing as well")

    def _without_reference(self, practice: Practice, expected: Taken) -> SetUp:
        if expected.error is not None:
            expected = replace(expected, error=None, refusal=None, bad=None, stage=told(expected))
            message = f"without checkpointing, {expected.stage}"
            return SetUp(practice.group, practice.name, practice.data, "not run", "no reference", message)
        row = judge(practice, GROUPS[practice.group], expected, expected, {})
        return replace(row, outcome="not run")

    def _reference(self, practice: Practice) -> Taken:
        if practice not in self._references:
            self._references[practice] = self._take(practice, {})
        return self._references[practice]

    def _noise_of(self, practice: Practice) -> Mapping[tuple[int, str], float]:
        """Return what rounding does to each gradient of a reference at most, by step and name."""
        if practice not in self._noise:
            reference, found = self._reference(practice), dict[tuple[int, str], float]()
            for number in range(_SHAKES + 1):
                # The first is shaken by nothing: what differs then is chance.
                other = self._take(practice, reference.scales, number)
                for step, (one, another) in enumerate(
                    zip(reference.gradients, other.gradients, strict=False)
                ):
                    for name, mine in one.items():
                        yours = another.get(name)
                        if mine is not None and yours is not None:
                            found[step, name] = max(found.get((step, name), 0.0), deviation(mine, yours))
            self._noise[practice] = found
        return self._noise[practice]

    def _take(self, practice: Practice, scales: Mapping[str, float], shaken: int = 0) -> Taken:
        group = GROUPS[practice.group]
        blocks = self._known_blocks()
        stages = ["the set-up"]

        def hear(stage: str) -> None:
            stages.append(stage)
            # Nothing that ends the class's process here is taken for a failure of a scenario.
            self._watch.begin(practice.title, "plain", stage)

        def live(fork: Fork) -> None:
            fork.keep(take(practice, group, self._subject, blocks, scales, fork.tell, shaken))

        taken, end = in_fork(live, hear, (child.seconds() or _SECONDS) / _SHARE)
        if end.cause == "error":
            raise RuntimeError(end.message)
        if end.cause == "done":
            assert isinstance(taken, Taken)
            return taken
        fault = Fault(end.cause, end.message, end.frames, end.cause in FOREIGN)
        return Taken(stage=stages[-1], error=fault)

    def _known_blocks(self) -> tuple[Block, ...]:
        if self._blocks is None:
            conditions = Conditions(replace(scenario_named("default"), steps=1), "plain", dissected=True)
            run = Runner(self._subject, self._watch).run(conditions, {})
            self._blocks = tuple(each for each in run.blocks if not each.is_lone)
        return self._blocks
