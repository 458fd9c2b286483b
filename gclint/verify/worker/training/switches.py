"""What switches checkpointing on in models that are not from transformers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

_METHODS = ("activation_checkpointing_enable", "gradient_checkpointing_enable")
_UNDOING = tuple(each.replace("enable", "disable") for each in _METHODS)
FLAG = "gradient_checkpointing"
"""The attribute of modules of transformers that says whether it is on."""
_OF_TIMM = "set_grad_checkpointing"
_FLAG = re.compile(r"_?(use_|do_|with_|enable_|grad_|gradient_|activation_)*(checkpoint|checkpointing)")


@dataclass(frozen=True)
class Switch:
    """Something other than the Trainer that switches checkpointing on."""

    lines: tuple[str, ...]
    """The lines of code that do."""
    on: Callable[[Any], object]
    off: Callable[[Any], object] | None = None
    """Switches it off; None if that is unknown, so that it has to be off at first."""
    is_on: bool = False
    """Whether it is on already."""


def _leave(_model: Any) -> None:
    """Do nothing."""


UNASKED = Switch((), _leave, is_on=True)
"""That of a model that checkpoints whatever is set."""


def switch_of(model: Any, enable: Callable[[Any], object] | None) -> Switch | None:
    """Return what switches checkpointing on in a model; None if the Trainer does.

    If nothing is found, the model may checkpoint without being asked.
    """
    if enable is not None:
        return Switch(("enable(model)  # your own function",), enable)
    if is_enabled_by_trainer(model):
        return None
    for name, part in model.named_modules():
        if is_enabled_by_trainer(part):
            return _of_part(name, part)
    if callable(getattr(model, _OF_TIMM, None)):
        is_on = any(getattr(each, "grad_checkpointing", False) is True for each in model.modules())
        return Switch(
            (f"model.{_OF_TIMM}(True)",),
            lambda of: getattr(of, _OF_TIMM)(True),
            lambda of: getattr(of, _OF_TIMM)(False),
            is_on,
        )
    found = {
        (module, name): value
        for module in model.modules()
        for name, value in vars(module).items()
        if isinstance(value, bool) and _FLAG.fullmatch(name)
    }
    if not found:
        return UNASKED
    # Modules are the same objects in a copy of the process.
    lines = ["for module in model.modules():"]
    for name in dict.fromkeys(name for _, name in found):
        lines += [f'    if hasattr(module, "{name}"):', f"        module.{name} = True"]
    return Switch(
        tuple(lines),
        lambda _: _set(found, True),
        lambda _: _set(found, False),
        any(found.values()),
    )


def _of_part(name: str, part: Any) -> Switch:
    """Return what switches it on in a model of transformers that another module holds."""
    enable, disable = (
        next(each for each in _METHODS if callable(getattr(part, each, None))),
        next((each for each in _UNDOING if callable(getattr(part, each, None))), None),
    )
    return Switch(
        (f"model.{name}.{enable}()",),
        lambda _: getattr(part, enable)(),
        None if disable is None else lambda _: getattr(part, disable)(),
        any(vars(each).get(FLAG) for each in part.modules()),
    )


def _set(flags: Iterable[tuple[Any, str]], value: bool) -> None:
    for module, name in flags:
        setattr(module, name, value)


def is_enabled_by_trainer(model: Any) -> bool:
    """Return whether the Trainer can switch checkpointing on."""
    return any(callable(getattr(model, name, None)) for name in _METHODS)
