"""Runs one subject, each time in a process of its own, so that all runs start from the same state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from gclint.verify.worker import child
from gclint.verify.worker.ending import FOREIGN, End
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.embeddings import embeddings
from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.examination.forked import Fork, in_fork
from gclint.verify.worker.examination.run import Conditions, Run
from gclint.verify.worker.examination.steps import Steps
from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.protocol import InputEmbedding
from gclint.verify.worker.watch import Watch

_SECONDS = 120.0
"""The time limit of a class that has none."""
_SHARE = 3
"""How many hanging runs fit into the time of a class: one in each mode, so that the others can go on."""


class Runner:
    """Makes runs of one subject."""

    def __init__(self, subject: Subject, watch: Watch) -> None:
        self.blocks: tuple[Block, ...] = ()
        """The blocks whose runs are counted."""
        self.watched: frozenset[str] = frozenset()
        """The names of the modules whose calls are traced."""
        self._subject = subject
        self._watch = watch
        self._longest: dict[str, float] = defaultdict(float)
        """The seconds of the longest plain run, by scenario."""
        self._plain: dict[str, Run] = {}
        """A plain run of each scenario: tensors that another run shares with it need not be sent."""

    def run(self, conditions: Conditions, scales: Mapping[str, float]) -> Run:
        """Run steps from the start; an error of the model, or the death of its process, is part of the run.

        The loss is scaled by the sizes of the outputs in the run with which this one will be compared.
        """
        stages = ["the construction"]
        name, mode = conditions.scenario.name, conditions.mode
        self._watch.begin(name, mode, stages[-1])

        def receive(stage: str) -> None:
            stages.append(stage)
            self._watch.begin(name, mode, stage)

        plain = self._plain.get(conditions.scenario.reference or name) or Run(conditions)

        def work(fork: Fork) -> None:
            def keep(run: Run) -> None:
                run.share(plain)
                fork.keep(run)

            watched = (self.blocks, self.watched)
            keep(Steps(self._subject, conditions, *watched, scales, fork.send, keep).take())

        run, end = in_fork(work, receive, (child.seconds() or _SECONDS) / _SHARE, plain.tensors)
        run = run or Run(conditions)
        assert isinstance(run, Run)
        if end.cause == "error":
            raise RuntimeError(end.message)
        if end.cause != "done":
            run.stage, run.error = stages[-1], self._fault(end, conditions)
        elif mode == "plain":
            self._longest[name] = max(self._longest[name], end.seconds)
            self._plain.setdefault(name, run)
        # Unchanged values are not sent.
        run.values = self._subject.state | run.values
        return run

    def embeddings(self) -> tuple[InputEmbedding, ...]:
        """Return which modules would give the first blocks inputs that require grad with a frozen base."""

        def work(fork: Fork) -> None:
            names = [each.name for each in self.blocks if not each.is_lone]
            fork.keep(embeddings(self._subject, names))

        found, end = in_fork(work, lambda _line: None, (child.seconds() or _SECONDS) / _SHARE)
        # If this fails, the model is judged without it.
        return found if end.cause == "done" else ()

    def _fault(self, end: End, conditions: Conditions) -> Fault:
        """Return the fault for the death of a process, distinguishing slowness from a hang."""
        longest = self._longest.get(conditions.scenario.name)
        is_slow = end.cause == "time limit" and not end.is_hang(end.seconds, longest)
        return Fault(end.cause, end.message, end.frames, is_slow or end.cause in FOREIGN)
