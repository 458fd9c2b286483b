"""The small models in ``fixtures/verify``: what is said of each, and what the examination finds."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gclint.rule import all_rules
from gclint.verify.worker.protocol import ClassResult, Failure, Source

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "verify"
_SAYS = "# verify: "
_PASSED = "passed"
_LIMITS = "limits"
_SINCE = "since "
_NOT_RUN = "not run: "
_FEATURES: dict[str, tuple[str, dict[str, Any]]] = {
    "cross_attention": ("cross-attention", {"add_cross_attention": True}),
    "relative_attention": (
        "option relative_attention=True, norm_rel_ebd='layer_norm'",
        {"relative_attention": True, "norm_rel_ebd": "layer_norm"},
    ),
    "option_irreproducible": ("option jitter=True", {"jitter": True}),
    "counts_in_deep_layers": ("default depth", {"num_hidden_layers": 12}),
    "key_value_sharing": ("key-value sharing", {"num_hidden_layers": 6, "num_kv_shared_layers": 3}),
}
"""The features of planted models that have one, by the names of their folders."""


@dataclass(frozen=True)
class Expectation:
    """A failure that is to be found."""

    mode: str
    scenario: str
    check: str
    cause: str
    """``-`` where it is not known."""
    rules: str
    """The codes of the rules that repair it; ``-`` where none does."""
    words: str
    """Something that its message or its explanation says."""

    def is_met_by(self, failure: Failure) -> bool:
        """Tell whether this failure is the one."""
        expected = (self.mode, self.scenario, self.check, self.cause, self.rules)
        return _said_of(failure) == expected and self.words in failure.text


def _said_of(failure: Failure) -> tuple[str, ...]:
    cause = failure.cause.value if failure.cause else "-"
    # A rule that was split off another one repairs the same.
    claims = (rule for rule in all_rules() if failure.cause in rule.causes and not rule.formerly)
    rules = ", ".join(rule.code for rule in claims) or "-"
    return failure.mode, failure.scenario, failure.check, cause, rules


def lines_of(failures: Iterable[Failure]) -> str:
    """Return what the first lines of a model would say of failures."""
    return "\n".join(f"{_SAYS}{' | '.join((*_said_of(each), each.text))}" for each in failures)


@dataclass(frozen=True)
class Planted:
    """A model, with what is said of it in its first lines."""

    name: str
    expectations: tuple[Expectation, ...]
    """None for a model that passes."""
    needs_limits: bool
    """Whether it kills or hangs the process that runs it, so that only the whole verifier can do so."""
    since: tuple[int, ...]
    """The release of transformers from which on this is so."""
    doubt: str = ""
    """The category of the reason why it cannot be judged, if it cannot."""

    @property
    def outcome(self) -> str:
        return "not run" if self.doubt else "failed" if self.expectations else "passed"

    @property
    def file(self) -> Path:
        return FOLDER / self.name / "modeling_toy.py"


def load_planted(folder: Path = FOLDER) -> list[Planted]:
    """Return all planted models."""
    return [_load(each) for each in sorted(folder.glob("*/modeling_*.py"))]


def _load(file: Path) -> Planted:
    lines = file.read_text(encoding="utf-8").splitlines()
    said = [line.removeprefix(_SAYS) for line in lines if line.startswith(_SAYS)]
    assert said, f"{file} does not say what is to be found in it"
    (since,) = [each.removeprefix(_SINCE) for each in said if each.startswith(_SINCE)] or ["0"]
    expectations = tuple(_expectation(each) for each in said if " | " in each)
    (doubt,) = [each.removeprefix(_NOT_RUN) for each in said if each.startswith(_NOT_RUN)] or [""]
    assert [bool(expectations), _PASSED in said, bool(doubt)].count(True) == 1, f"{file} says two things"
    known = (_PASSED, _LIMITS, _SINCE + since, _NOT_RUN + doubt)
    assert all(" | " in each or each in known for each in said), f"{file}: {said}"
    release = tuple(int(part) for part in since.split("."))
    return Planted(file.parent.name, expectations, _LIMITS in said, release, doubt)


def _expectation(text: str) -> Expectation:
    return Expectation(*text.split(" | "))


def examine_planted(name: str, without: Collection[str] = ()) -> ClassResult:
    """Examine a planted model in this process, without some of the checks.

    The model is built and fed here, so that what is found does not depend on the synthesis.
    """
    import torch

    from gclint.verify.worker.examination.checks import CHECKS
    from gclint.verify.worker.examination.examine import examine
    from gclint.verify.worker.watch import Watch

    torch.set_num_threads(1)
    disabled = {each: lambda _case: () for each in without}
    with imported(name) as module, patch.dict(CHECKS, disabled):
        source = Source(module.__file__, module.__name__)
        tiny_models = [tiny_model(module), *_further_tiny_models(module)]
        return examine(source, module.ToyModel, tiny_models, "cpu", watch=Watch())


@contextmanager
def imported(name: str) -> Iterator[Any]:
    """Import a planted model for a while, from a package that is called like its folder."""
    from gclint.verify.worker.importing import lay_over

    finders = [*sys.meta_path]
    sys.path.insert(0, str(FOLDER))
    lay_over({}, sources=[str(FOLDER / name / "modeling_toy.py")])
    try:
        yield importlib.import_module(f"{name}.modeling_toy")
    finally:
        sys.path.remove(str(FOLDER))
        sys.meta_path[:] = finders
        for each in [each for each in sys.modules if each.split(".")[0] == name]:
            del sys.modules[each]


def tiny_model(module: Any, feature: str = "default", **fields: Any) -> Any:
    """Return a tiny model of a planted model.

    Args:
        module: the module of the model.
        feature: what the tiny model is an example of.
        fields: what the configuration has for it.
    """
    import torch

    from gclint.verify.worker.tiny_model import TinyModel

    config = module.ToyConfig(**fields)

    def build() -> Any:
        torch.manual_seed(0)
        return module.ToyModel(copy.deepcopy(config)).train()

    def inputs(length: int = 6) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(1)
        if module.ToyModel.main_input_name == "pixel_values":
            return {"pixel_values": torch.randn(2, length, 12, generator=generator)}
        made = {"input_ids": torch.randint(0, 32, (2, length), generator=generator)}
        if "add_cross_attention" in fields:
            made["encoder_hidden_states"] = torch.randn(2, 4, config.hidden_size, generator=generator)
        return made | _optional_inputs(module.ToyModel, made["input_ids"])

    return TinyModel(feature, config, build, inputs, other_inputs=lambda: inputs(8))


def _optional_inputs(model_class: Any, input_ids: Any) -> dict[str, Any]:
    """Return what training gives to a model besides tokens, as far as the model takes it."""
    import torch

    positions = torch.arange(input_ids.shape[1]).expand(2, -1)
    padded = (positions < torch.tensor([[input_ids.shape[1]], [4]])).long()
    labels = torch.where(padded == 1, input_ids.flip(1), -100)
    given = {"attention_mask": padded, "position_ids": positions.flip(1), "labels": labels}
    taken = signature(model_class.forward).parameters
    return {name: value for name, value in given.items() if name in taken}


def _further_tiny_models(module: Any) -> Iterator[Any]:
    """Yield the tiny models of the feature that a planted model is about."""
    name = module.__name__.split(".")[0]
    if name in _FEATURES:
        feature, fields = _FEATURES[name]
        yield tiny_model(module, feature, **fields)


def unmet(expectations: Iterable[Expectation], failures: Iterable[Failure]) -> list[str]:
    """Return what was to be found and was not, and what was found and not said."""
    left = list(failures)
    missing = []
    for expectation in expectations:
        met = [each for each in left if expectation.is_met_by(each)]
        if met:
            left.remove(met[0])
        else:
            missing.append(f"not found: {expectation}")
    return missing + [f"not said: {each}" for each in left]
