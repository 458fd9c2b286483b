"""Finds what hides defects while it is off: optional features, and options that lead to other branches."""

from __future__ import annotations

import ast
import copy
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from transformers import PreTrainedModel

from gclint.verify.worker.synthesis.configurations.tree import fields_of, is_bookkeeping
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

_CROSS = "encoder_hidden_states"
_MOST = 8
"""The most options to try per class: those on which most code depends."""
_TRIALS = 8
_LEFT_ALONE = re.compile(
    r"use_cache|output_|return_|_token_id|tie_|is_encoder_decoder|problem_type|num_labels|torchscript|pruned"
    r"|num_kv_shared_layers|add_cross_attention|_attn_implementation|training|gradient|drop"
)
"""Fields that do not affect blocks, or that have a feature of their own."""
_MISSING = object()


def further_plans(default: Situation) -> Iterator[tuple[str, Plan]]:
    """Yield the optional features of a class by name, each with the plan that enables it."""
    if _CROSS in default.parameters and _CROSS not in make_inputs(default):
        yield "cross-attention", _cross_attention(default)
    if fields_of(default.text).get("num_kv_shared_layers") == 0:
        yield "key-value sharing", _sharing(default)


def takes_part(default: Situation, feature: str, model: Any) -> bool:
    """Return whether ``feature`` took part in the step that ``model`` has run."""
    if feature != "cross-attention":
        return True
    # A decoder, used alone, reads the encoder's output in each of its layers.
    return default.is_for("Decoder") or any(
        parameter.grad is not None
        and any(word in name for word in ("cross", "encoder_attn", "crossattention"))
        for name, parameter in model.named_parameters()
    )


def _cross_attention(default: Situation) -> Plan:
    owner, names = type(default.config).__name__, ("is_decoder", "add_cross_attention")
    plan = default.plan.with_values({(owner, name): True for name in names if hasattr(default.config, name)})
    return replace(plan, also=plan.also | {_CROSS})


def _sharing(default: Situation) -> Plan:
    """Double the layers, so that the second half takes keys and values from the first."""
    fields = fields_of(default.text)
    count = fields["num_hidden_layers"]
    owner = type(default.text).__name__
    values: dict[tuple[str, str], Any] = {
        (owner, name): value * 2
        for name, value in fields.items()
        if isinstance(value, list) and len(value) == count and not name.startswith("_")
    }
    specification = fields.get("_heterogeneity_spec")
    if specification is not None:
        values[owner, "_heterogeneity_spec"] = _continued(specification, count)
    values[owner, "num_hidden_layers"] = 2 * count
    values[owner, "num_kv_shared_layers"] = count
    return default.plan.with_values(values)


def _continued(specification: Any, count: int) -> Any:
    """Return a field with an entry per layer, extended by ``count`` layers like the first ones."""
    further = copy.copy(specification)
    overrides = dict(specification.per_layer_overrides)
    overrides |= {layer + count: fields for layer, fields in overrides.items()}
    further.per_layer_overrides = overrides
    return further


@dataclass(frozen=True)
class ConfigurationOption:
    """A field of a configuration with a value other than its default."""

    owners: tuple[str, ...]
    """The configuration classes that have the field."""
    field: str
    value: Any

    def __str__(self) -> str:
        return f"{self.field}={self.value!r}"


def find_options(situation: Situation, model: Any) -> list[ConfigurationOption]:
    """Return the options that the classes of a model's own modules read in conditions.

    Modules of an inner model are left to that model's class.
    """
    tree = _classes(situation.model_class.__module__)
    reads: dict[str, _Reads] = defaultdict(_Reads)
    for name in sorted(_own_classes(model)):
        if name in tree:
            _read(tree[name], reads)
    ranked = sorted(reads.items(), key=lambda item: -item[1].weight)
    found = [option for name, read in ranked if (option := _option(situation, name, read)) is not None]
    return found[:_MOST]


def largest(
    situation: Situation, options: Sequence[ConfigurationOption], run: Callable[[Situation], bool]
) -> tuple[ConfigurationOption, ...]:
    """Return as many of the options as possible with which a class runs, found with few trials."""
    trials = [_TRIALS]

    def grow(
        kept: tuple[ConfigurationOption, ...], more: Sequence[ConfigurationOption]
    ) -> tuple[ConfigurationOption, ...]:
        if not more or not trials[0]:
            return kept
        trials[0] -= 1
        if run(with_options(situation, (*kept, *more))):
            return (*kept, *more)
        if len(more) == 1:
            return kept
        half = len(more) // 2
        return grow(grow(kept, more[:half]), more[half:])

    return grow((), options)


def with_options(situation: Situation, options: Sequence[ConfigurationOption]) -> Situation:
    """Return the situation with a plan that sets these options; its configuration is still to be made."""
    values = {(owner, each.field): each.value for each in options for owner in each.owners}
    return replace(situation, plan=situation.plan.with_values(values))


class _Reads:
    """How conditions use a field."""

    def __init__(self) -> None:
        self.weight = 0
        """The amount of code that depends on it."""
        self.words: list[str] = []
        """The words with which it is compared."""
        self.default: Any = _MISSING
        """The default if the configuration has no such field."""


def _own_classes(model: Any) -> set[str]:
    """Return the names of the classes of modules outside of inner models, with their bases."""
    inner = {
        part
        for module in model.modules()
        if module is not model and isinstance(module, PreTrainedModel)
        for part in module.modules()
    }
    own = (type(module) for module in model.modules() if module not in inner)
    return {base.__name__ for kind in own for base in kind.__mro__}


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, SyntaxError):
        # A class that was created dynamically has no source.
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _read(kind: ast.ClassDef, reads: dict[str, _Reads]) -> None:
    """Record the fields that conditions in a class read."""
    aliases: dict[str, set[str]] = {}
    for node in ast.walk(kind):
        if isinstance(node, ast.Assign):
            fields = {name for name, _ in _mentioned(node.value, {})}
            for target in node.targets:
                if isinstance(target, ast.Attribute) and len(fields) == 1:
                    aliases[target.attr] = fields
    for node in ast.walk(kind):
        for name, default in _mentioned(node, {}):
            if default is not _MISSING and reads[name].default is _MISSING:
                reads[name].default = default
        for test, weight in _conditions(node):
            for name in {name for name, _ in _mentioned(test, aliases)}:
                reads[name].weight += weight
                reads[name].words += _words(test, name, aliases)


def _conditions(node: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """Yield the conditions of a node, each with the number of nodes that depend on it."""
    if isinstance(node, ast.If):
        yield node.test, sum(1 for each in (*node.body, *node.orelse) for _ in ast.walk(each))
    elif isinstance(node, ast.IfExp):
        yield node.test, sum(1 for each in (node.body, node.orelse) for _ in ast.walk(each))


def _mentioned(node: ast.AST, aliases: dict[str, set[str]]) -> list[tuple[str, Any]]:
    """Return the fields that an expression reads, each with the default if there is none."""
    found: list[tuple[str, Any]] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and _is_config(each.value):
            found.append((each.attr, _MISSING))
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self":
            found += [(name, _MISSING) for name in aliases.get(each.attr, ())]
        elif (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Name)
            and each.func.id == "getattr"
            and len(each.args) == 3
            and _is_config(each.args[0])
            and isinstance(each.args[1], ast.Constant)
        ):
            default = each.args[2].value if isinstance(each.args[2], ast.Constant) else _MISSING
            found.append((str(each.args[1].value), default))
    return found


def _is_config(node: ast.AST) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name == "config" or name.endswith("_config")


def _words(test: ast.AST, name: str, aliases: dict[str, set[str]]) -> list[str]:
    """Return the words that a condition compares a field with."""
    found = []
    for each in ast.walk(test):
        if isinstance(each, ast.Compare) and any(name == other for other, _ in _mentioned(each, aliases)):
            found += [
                part.value
                for part in ast.walk(each)
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value != name
            ]
    return found


def _option(situation: Situation, name: str, reads: _Reads) -> ConfigurationOption | None:
    if not reads.weight or name.startswith("_") or is_bookkeeping(name) or _LEFT_ALONE.search(name):
        return None
    owners = [part for part in situation.parts if name in fields_of(part) and not isinstance(part, dict)]
    value = fields_of(owners[0])[name] if owners else reads.default
    owners = owners or [situation.config]
    other = _other(name, value, list(dict.fromkeys(reads.words)))
    if other is None:
        return None
    return ConfigurationOption(tuple(dict.fromkeys(type(each).__name__ for each in owners)), name, other)


def _other(name: str, value: Any, words: list[str]) -> Any:
    """Return a value with another effect than ``value``, or None if none is known."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and value == 0:
        return 3 if "kernel" in name else 1
    if isinstance(value, float) and value == 0:
        return 0.5
    further = [word for word in words if word != value]
    if isinstance(value, str) and further:
        return further[0]
    if (value is None or value == []) and further:
        return further
    return None
