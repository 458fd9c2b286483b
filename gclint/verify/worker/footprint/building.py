"""Finds the class, the configuration at the requested size, and the inputs that a question is about."""

from __future__ import annotations

import copy
import difflib
import re
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from gclint.verify.worker.estimates import EstimateRequest, Lora
from gclint.verify.worker.examination.model_under_test import enable_checkpointing
from gclint.verify.worker.examination.tensors import in_type
from gclint.verify.worker.modes import Mode
from gclint.verify.worker.synthesis.attempts import trial
from gclint.verify.worker.synthesis.configurations.defaults import (
    completed,
    configuration_class,
    default_configuration,
)
from gclint.verify.worker.synthesis.configurations.tree import children, descendants, fields_of, own_fields
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation
from gclint.verify.worker.tiny_model import NotSynthesisable
from gclint.verify.worker.vocabulary import USE_CACHE

_LIKELY = (
    r"For(Causal|Masked)LM|LMHeadModel|ForConditionalGeneration",
    r"ForPreTraining|WithLMHeadModel|ForCTC|ForSpeechSeq2Seq",
    r"Classification",
    r"For\w",
)
"""The classes that are most likely trained, by name; after these, any other."""
_ATTENTION_DROPOUT = re.compile(r"att\w*drop|drop\w*att")
_DEPTHS = (
    "num_hidden_layers", "num_layers", "encoder_layers", "decoder_layers", "num_encoder_layers",
    "num_decoder_layers", "n_layer", "n_layers", "depth",
)  # fmt: skip
_INNER_ERROR = re.compile(r"\b(?:Value|Type)Error: .*$")
_MASKS = ("attention_mask", "decoder_attention_mask")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions")


class CannotEstimate(Exception):
    """The question has no answer; the message says why, in one sentence."""


@dataclass(frozen=True)
class Trainee:
    """A class with its configuration and inputs, which can be made repeatedly."""

    situation: Situation
    dtype: torch.dtype
    question: EstimateRequest

    @property
    def reads_text(self) -> bool:
        """Whether the length of a text changes anything."""
        return any(name.endswith("input_ids") for name in self.inputs())

    def build(self, *, is_fake: bool = False) -> Any:
        """Return a new model in training mode, without layerdrop and without a cache.

        Where tensors are fake, adapters are on the meta device at first, since peft cannot move fake ones.
        """
        before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        try:
            model = trial.create(self.situation.model_class, self.situation.config)
        finally:
            torch.set_default_dtype(before)
        for module in model.modules():
            for name, value in list(vars(module).items()):
                is_attention = "Attention" in type(module).__name__ and "drop" in name
                if isinstance(value, float) and (is_attention or name == "layerdrop"):
                    setattr(module, name, 0.0)
        if self.question.lora is not None:
            model = _with_adapters(model, self.question.lora, is_fake=is_fake)
        return model.train()

    def autocast(self, device: str = "cpu") -> torch.autocast:
        """Return the context in which a forward pass runs."""
        return torch.autocast(device, torch.bfloat16, enabled=self.question.autocast)

    def checkpoint(self, model: Any, mode: Mode, **options: Any) -> None:
        """Enable checkpointing in a model, so that all that is trained gets its gradient."""
        if mode != "plain":
            enable_checkpointing(model, {"use_reentrant": mode == "reentrant"}, **options)
        if mode == "reentrant" and self.question.lora is not None:
            model.enable_input_require_grads()

    def inputs(self) -> dict[str, Any]:
        """Return new inputs; floating-point inputs have the type of the weights."""
        inputs = make_inputs(self.situation)
        if USE_CACHE in self.situation.parameters:
            inputs[USE_CACHE] = False
        typed: dict[str, Any] = in_type(inputs, self.dtype)
        return typed

    def sized(self, batch: int | None = None, sequence: int | None = None) -> Trainee:
        """Return the same with another batch or sequence size."""
        plan = self.situation.plan
        plan = replace(plan, batch=batch or plan.batch, length=sequence or plan.length)
        return self.planned(plan)

    def planned(self, plan: Plan) -> Trainee:
        """Return the same with another plan for its inputs."""
        return replace(self, situation=replace(self.situation, plan=plan))

    @property
    def positions(self) -> int | None:
        """The longest sequence that the configuration allows."""
        found = [getattr(self.situation.text, name, None) for name in _POSITIONS]
        return next((each for each in found if isinstance(each, int) and each > 0), None)


def trainee_of(classes: Sequence[Any], question: EstimateRequest) -> Trainee:
    """Return the class, configuration and inputs of a question; raise CannotEstimate if it has none."""
    model_class = _class_of(classes, question.model_class)
    dtype = getattr(torch, question.dtype, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise CannotEstimate(f"torch has no floating-point type {question.dtype!r}")
    config = _configuration(model_class, question)
    plan = Plan(batch=question.batch)
    if question.sequence is not None:
        plan = replace(plan, length=question.sequence)
    situation = Situation(model_class, config, plan, config)
    if question.padding:
        masks = tuple(name for name in _MASKS if name in situation.parameters)
        if not masks:
            raise CannotEstimate(f"{model_class.__name__} takes no mask, so there is no padding")
        situation = replace(situation, plan=replace(plan, training=masks))
    if question.bits is not None and question.lora is None:
        raise CannotEstimate(
            f"{question.bits}-bit weights are not trained themselves; add --lora, such as --lora r=16"
        )
    return Trainee(situation, dtype, question)


def _with_adapters(model: Any, lora: Lora, *, is_fake: bool) -> Any:
    try:
        import peft
    except ImportError:
        raise CannotEstimate("peft is not installed for this interpreter, and --lora needs it") from None
    config = peft.LoraConfig(r=lora.rank, target_modules=list(lora.targets) or "all-linear")
    try:
        with warnings.catch_warnings(), _disable_current_modes() if is_fake else nullcontext():
            # It warns of what it does by itself, such as for layers that are stored the other way round.
            warnings.simplefilter("ignore")
            return peft.get_peft_model(model, config, low_cpu_mem_usage=is_fake)
    except ValueError as error:
        raise CannotEstimate(f"peft adds no such adapters: {in_a_line(error)}") from None


def _class_of(classes: Sequence[Any], wanted: str) -> Any:
    by_name = {each.__name__: each for each in classes}
    if wanted:
        if wanted not in by_name:
            close = difflib.get_close_matches(wanted, by_name)
            hint = (
                f"did you mean {' or '.join(close)}?"
                if close
                else f"choose from {', '.join(sorted(by_name))}"
            )
            raise CannotEstimate(f"there is no model class {wanted!r}; {hint}")
        return by_name[wanted]
    if not classes:
        raise CannotEstimate(
            "the file defines no model class that supports gradient checkpointing, so there is nothing to "
            "compare"
        )
    for pattern in _LIKELY:
        found = [each for each in classes if re.search(pattern, each.__name__)]
        if found:
            return found[0]
    return classes[-1]


def _configuration(model_class: Any, question: EstimateRequest) -> Any:
    config_class = configuration_class(model_class)
    if config_class is None:
        raise CannotEstimate(f"{model_class.__name__} names no configuration class")
    try:
        config = _configured(model_class, config_class, question)
    except CannotEstimate:
        raise
    except NotSynthesisable as error:
        raise CannotEstimate(f"{model_class.__name__} cannot be configured: {error}") from error
    except Exception as error:
        raise CannotEstimate(f"{config_class.__name__} rejects these sizes: {in_a_line(error)}") from error
    for part in descendants(config):
        fields = fields_of(part)
        for name, value in list(fields.items()):
            if isinstance(value, float) and _ATTENTION_DROPOUT.search(str(name)):
                fields[name] = 0.0
        if fields.get(USE_CACHE):
            fields[USE_CACHE] = False
    return config


def _configured(model_class: Any, config_class: Any, question: EstimateRequest) -> Any:
    """Return the configuration with the fields that were set, and those that follow from them."""
    given: dict[str, Any] = copy.deepcopy(question.config or {})
    if question.config is None:
        reference = default_configuration(model_class)
    else:
        reference = completed(config_class.from_dict(copy.deepcopy(given)))
    changes = [(_path_to(reference, name), value) for name, value in question.fields.items()]
    if question.layers is not None:
        changes += [(path, question.layers) for path in _depths(reference)]
    if not changes:
        return reference
    for path, value in changes:
        _put(given, path, value, reference)
    try:
        return completed(config_class.from_dict(given))
    except Exception:
        if question.config is None and not _has_defaults(config_class):
            # It cannot be made from fields, so an example is changed in place.
            for (*owners, name), value in changes:
                fields_of(_part(reference, owners))[name] = value
            return reference
        raise


def _has_defaults(config_class: Any) -> bool:
    try:
        config_class()
    except Exception:
        return False
    return True


def _path_to(config: Any, dotted: str) -> list[str]:
    """Return the path to a field of any part; raise CannotEstimate if none or several have it."""
    *owners, name = dotted.split(".")
    try:
        part = _part(config, owners)
    except KeyError as error:
        raise _unknown(config, dotted, str(error.args[0])) from None
    own = _own_name(part, name)
    if own is not None:
        return [*owners, own]
    inner = [(key, own) for key, child in children(part) if (own := _own_name(child, name)) is not None]
    if len(inner) == 1:
        return [*owners, *inner[0]]
    if inner:
        paths = ", ".join(".".join((*owners, key, own)) for key, own in inner)
        raise CannotEstimate(f"several parts have a field {name!r}; say which: {paths}")
    raise _unknown(config, dotted, name)


def _unknown(config: Any, dotted: str, name: str) -> CannotEstimate:
    known = {".".join((*path, key)): key for path, part in _parts(config) for key, _ in own_fields(part)}
    near = difflib.get_close_matches(name, sorted(set(known.values())), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return CannotEstimate(f"{type(config).__name__} has no field {dotted!r}{hint}")


def _parts(config: Any) -> list[tuple[tuple[str, ...], Any]]:
    return [((), config), *(((name,), child) for name, child in children(config))]


def _part(config: Any, owners: Sequence[str]) -> Any:
    for name in owners:
        inner = dict(children(config))
        if name not in inner:
            raise KeyError(name)
        config = inner[name]
    return config


def _own_name(part: Any, name: str) -> str | None:
    """Return the configuration's own name of a field, if it has it."""
    name = getattr(type(part), "attribute_map", {}).get(name, name)
    return name if name in fields_of(part) else None


def _depths(config: Any) -> list[list[str]]:
    """Return the paths to the fields for the depth of stacks; those of a text model, if there is one."""
    text = config.get_text_config(decoder=True)
    owner = next((path for path, part in _parts(config) if part is text), ())
    found: list[list[str]] = []
    for name in _DEPTHS:
        own = _own_name(_part(config, owner), name)
        if own is not None and isinstance(fields_of(_part(config, owner))[own], int):
            found.append([*owner, own])
    if not found:
        raise CannotEstimate(
            f"{type(config).__name__} has no field for the number of layers; set it with --set"
        )
    return [list(each) for each in dict.fromkeys(map(tuple, found))]


def _put(given: dict[str, Any], path: Sequence[str], value: Any, reference: Any) -> None:
    """Set a field of a configuration, and adapt lists with one entry per layer."""
    *owners, name = path
    inner = given
    for each in owners:
        inner = inner.setdefault(each, {})
    before = fields_of(_part(reference, owners)).get(name)
    if name in {*_DEPTHS} and isinstance(before, int) and isinstance(value, int):
        for key, entries in inner.items():
            if isinstance(entries, list) and before > 1 and len(entries) == before:
                inner[key] = [entries[number % before] for number in range(value)]
    inner[name] = value


def in_a_line(error: BaseException) -> str:
    """Return the message of an error, or of its cause, as one line of limited length."""
    message = " ".join(str(error).split())
    inner = _INNER_ERROR.findall(message)
    return (inner[-1] if inner else f"{type(error).__name__}: {message}")[:300]
