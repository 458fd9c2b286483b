"""The examination of a user's own model and batch; torch is imported when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gclint.verify.results import has_no_way
from gclint.verify.worker.practices import (
    MISSING_LIBRARY,
    TRAINER,
    Practice,
    UnknownPractice,
    practices_named,
)
from gclint.verify.worker.protocol import ClassResult, Failure
from gclint.verify.worker.scenarios import SCENARIOS

SECONDS = 600.0
"""The time limit of an examination."""
_SCENARIOS = {each.name: each for each in SCENARIOS if each.feature == "default"}
"""Those that a model needs no other configuration for."""


class CheckError(Exception):
    """A model cannot be examined; the message says why, and what to do."""


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What came of the examination of a model."""

    details: ClassResult
    """All that is known: which blocks were recomputed, bytes and seconds, each scenario in each mode."""

    @property
    def passed(self) -> bool:
        """Whether enough was compared, nothing is wrong, and of each group of set-ups something works."""
        is_lacking = any(each.symptom == MISSING_LIBRARY for each in self.details.setups)
        return self.details.outcome == "passed" and not is_lacking and not has_no_way(self.details)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What is wrong; also empty where nothing could be judged."""
        return self.details.failures

    @property
    def reason(self) -> str | None:
        """Why nothing could be judged, or None."""
        return self.details.reason

    @property
    def setting(self) -> str:
        """The lines of code of a setting that has run and works, if a trainer has a worse one, or none."""
        return "\n".join(each.setting for each in self.details.advice if each.group == TRAINER)

    @property
    def text(self) -> str:
        """The complete report as text."""
        from gclint.report.verification import result_lines

        return "\n".join(result_lines(self.details))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        # An assertion that fails shows it, cut short.
        return f"<CheckResult: {self.details.name} {self.details.outcome}>"


class TrainerResult(CheckResult):
    """What came of the examination of a trainer; its text begins with whether the run is fine."""

    @property
    def passed(self) -> bool:
        """Whether the trainer as it is has been run, and nothing is wrong."""
        return self.details.outcome == "passed"

    @property
    def text(self) -> str:
        """The answer in a sentence, the lines to write, and a table of what was tried."""
        from gclint.report.trainer import trainer_lines

        return "\n".join(trainer_lines(self.details))


def check(
    model: Any,
    batch: Any = None,
    *,
    scenarios: Iterable[str] | None = None,
    seconds: float = SECONDS,
    enable: Callable[[Any], object] | None = None,
) -> CheckResult:
    """Train a model with and without gradient checkpointing for a few steps, in copies of this process.

    Args:
        model: a model of transformers, or one with adapters around it, on the CPU. A few small layers show
            as much as the real size does. Or a Trainer before ``train()``, without a batch: the result then
            says whether its run is fine. Nothing of either is changed.
        batch: the keyword arguments of its ``forward``, with labels if it takes any; or a list of two such
            batches, which take turns. Two lengths show more than one.
        scenarios: what to run besides the scenario ``default``, which always is: names of training scenarios,
            and of set-ups as ``gclint verify --scenario`` takes them. By default all scenarios that apply.
        seconds: the time limit of the scenarios; each further set-up adds as much.
        enable: what switches checkpointing on in the model of a trainer that is not from transformers, if
            gclint does not find it.

    Raises:
        CheckError: the model or the batch cannot be examined; the message says what to do.
    """
    asked = _known(scenarios)
    if not hasattr(os, "fork"):
        raise CheckError("models can only be run on a system with os.fork, such as Linux or macOS")
    try:
        from gclint.verify.worker.live import NotExaminable, Wanted, examine_live
    except ImportError as error:
        raise CheckError(
            f"torch and transformers are needed ({error}); install them with: pip install 'gclint[verify]'"
        ) from error
    try:
        if batch is None and _is_trainer(model):
            return TrainerResult(_of_trainer(model, scenarios, seconds, enable))
        return CheckResult(examine_live(model, batch, Wanted(*asked), seconds))
    except NotExaminable as error:
        raise CheckError(str(error)) from error


def _is_trainer(model: Any) -> bool:
    """Return whether something trains a model, without importing what would know."""
    return all(hasattr(model, name) for name in ("args", "training_step", "get_train_dataloader"))


def _of_trainer(
    trainer: Any,
    scenarios: Iterable[str] | None,
    seconds: float,
    enable: Callable[[Any], object] | None,
) -> ClassResult:
    from gclint.verify.worker.trainers import examine_trainer

    if scenarios is not None:
        raise CheckError("scenarios are those of a model: pass the trainer's model and a batch to run them")
    return examine_trainer(trainer, seconds, enable)


def _known(scenarios: Iterable[str] | None) -> tuple[frozenset[str] | None, tuple[Practice, ...]]:
    """Return which scenarios and which set-ups are asked for; None for all scenarios that apply.

    Raises:
        CheckError: one of the names is unknown.
    """
    if scenarios is None:
        return None, ()
    if isinstance(scenarios, str):
        raise CheckError(f"scenarios has to be a list of names, such as [{scenarios!r}]")
    names = frozenset(scenarios)
    try:
        return names & _SCENARIOS.keys(), practices_named(names - _SCENARIOS.keys())
    except UnknownPractice as error:
        raise CheckError(f"{error}, and the scenarios are {', '.join(_SCENARIOS)}") from None
