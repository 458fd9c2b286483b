"""The small models in ``fixtures/setups``: what is said of each, and what training in set-ups shows of it.

A line says what a practice is to come to: ``# setup: peft:LoRA/R | fails | nothing recomputed | words``. All
other practices of the groups that are named work; ``# setup: runs GROUP`` names a group of which all do.
Where single practices are named so, as in ``# setup: runs ddp:N/plain``, no others of their group run. One
that hangs says ``# setup: within SECONDS``, which is the time limit of each then.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from gclint.verify.worker.practices import practices_named
from gclint.verify.worker.protocol import ClassResult, SetUp
from tests.verify.planted import tiny_model

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "setups"
_SAYS = "# setup: "
_RUNS = "runs "
_WITHIN = "within "


@dataclass(frozen=True)
class Said:
    """What is said of one practice."""

    title: str
    outcome: str
    symptom: str
    words: str
    """Something that the message says."""

    def is_met_by(self, row: SetUp) -> bool:
        return (row.title, row.outcome, row.symptom) == (self.title, self.outcome, self.symptom) and (
            self.words in row.message
        )


@dataclass(frozen=True)
class PlantedSetup:
    """A model, with what is said of it in its first lines."""

    name: str
    said: tuple[Said, ...]
    asked: tuple[str, ...]
    """What is trained: names of groups and titles."""
    seconds: float | None = None
    """The time limit of each practice, if not the usual one."""

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.group for each in practices_named(self.asked)))


def load_planted_setups() -> list[PlantedSetup]:
    """Return all planted models."""
    return [_load(each) for each in sorted(FOLDER.glob("*/modeling_*.py"))]


def unmet(planted: PlantedSetup, rows: tuple[SetUp, ...]) -> list[str]:
    """Return what was to come and did not, and what came and was not said."""
    said = {each.title: each for each in planted.said}
    missing = [f"no row: {title}" for title in said.keys() - {each.title for each in rows}]
    for row in rows:
        expected = said.get(row.title, Said(row.title, "works", "", ""))
        if not expected.is_met_by(row):
            missing.append(f"expected {expected}, found {row}")
    return missing


def train_planted(planted: PlantedSetup) -> ClassResult:
    """Train a planted model in its groups, from this process."""
    import torch

    from gclint.verify.worker.training import training
    from gclint.verify.worker.training.training import trained
    from gclint.verify.worker.watch import Watch

    torch.set_num_threads(1)
    with _imported(planted.name) as module:
        # What the helper builds is called ToyModel; peft takes a model's task from its name.
        module.ToyModel = getattr(module, "ToyForCausalLM", None) or module.ToyModel
        bare = ClassResult(module.__file__, module.ToyModel.__name__, "passed")
        with pytest.MonkeyPatch.context() as patch:
            if planted.seconds is not None:
                patch.setattr(training, "_SECONDS", planted.seconds)
            return trained(bare, _tiny_model(module), "cpu", practices_named(planted.asked), Watch())


def _load(file: Path) -> PlantedSetup:
    lines = file.read_text(encoding="utf-8").splitlines()
    said = [line.removeprefix(_SAYS) for line in lines if line.startswith(_SAYS)]
    assert said, f"{file} does not say what is to be found in it"
    rows = tuple(Said(*each.split(" | ")) for each in said if not each.startswith((_RUNS, _WITHIN)))
    seconds = next((float(each.removeprefix(_WITHIN)) for each in said if each.startswith(_WITHIN)), None)
    asked = [each.removeprefix(_RUNS) for each in said if each.startswith(_RUNS)]
    singly = {each.partition(":")[0] for each in asked if ":" in each}
    for row in rows:
        group = row.title.partition(":")[0]
        asked.append(row.title if group in singly else group)
    return PlantedSetup(file.parent.name, rows, tuple(dict.fromkeys(asked)), seconds)


def _tiny_model(module: Any) -> Any:
    """Return the usual tiny model, or one with images and videos beside text if the model takes them."""
    usual = tiny_model(module)
    if "pixel_values_videos" not in signature(module.ToyModel.forward).parameters:
        return usual
    batches = _Batches(usual.inputs())
    return replace(
        usual, inputs=partial(batches.inputs, batches.modalities), other_inputs=None, variants=batches
    )


@dataclass(frozen=True)
class _Batches:
    """Images and videos beside text."""

    text: dict[str, Any]
    modalities = frozenset(("image", "video"))

    def inputs(self, kept: Collection[str]) -> dict[str, Any]:
        import torch

        pixels = torch.randn(2, 2, 4, 12, generator=torch.Generator().manual_seed(2))
        seen = {"pixel_values": pixels[0], "pixel_values_videos": pixels[1]}
        names = [name for name, modality in zip(seen, ("image", "video"), strict=True) if modality in kept]
        return {**self.text, **{name: seen[name] for name in names}}


@contextmanager
def _imported(name: str) -> Iterator[Any]:
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module(f"{name}.modeling_toy")
    finally:
        sys.path.remove(str(FOLDER))
        for each in [each for each in sys.modules if each.split(".")[0] == name]:
            del sys.modules[each]
