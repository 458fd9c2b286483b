"""Which models hold a class, and whether they support gradient checkpointing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.modules import Module
from gclint.source.file import UnreadableFile
from gclint.source.outline import Definition

_FLAG = re.compile(
    r"^[ \t]+supports_gradient_checkpointing[ \t]*(?::[^=\n]+)?=[ \t]*(True|False)\b", re.MULTILINE
)
_OLD_OVERRIDE = re.compile(r"def _set_gradient_checkpointing\([^)]{0,400}\bvalue\b")
_OLD_BODY = re.compile(
    r"def _set_gradient_checkpointing\([^)]*\):\s+if isinstance\(module, \(*[\w.,\s]+\)+:"
    r"\s+module\.gradient_checkpointing = value"
)


@remembered
def supports_checkpointing(owner: ClassInfo) -> bool:
    """Tell whether a model that holds ``owner``, or is it, says that it supports checkpointing.

    Looked for in the owner's file; where no model there holds it, in the files beside it.
    """
    models = list(_models_holding(owner, owner.module))
    if not models:
        models = [model for module in _siblings(owner.module) for model in _models_holding(owner, module)]
    if not models:
        models = [info for info in owner.module.classes.values() if info.is_model]
    return any(_flag(model) for model in models)


@dataclass(frozen=True)
class OldOverride:
    """A model's own `_set_gradient_checkpointing` with the signature that the library once had.

    The library knows it by the parameter ``value``, calls it for every module, and leaves the flag of
    checkpointing layers alone.
    """

    model: ClassInfo
    method: Definition

    @property
    def description(self) -> str:
        """What the override does to checkpointing layers."""
        return (
            f"`{self.model.name}` overrides `_set_gradient_checkpointing(module, value)`, the old interface, "
            "which never switches a checkpointing layer on"
        )

    @property
    def only_sets_flags(self) -> bool:
        """Whether nothing is lost with the method: it sets `gradient_checkpointing` on some modules."""
        return _OLD_BODY.fullmatch(self.method.text.strip()) is not None


def old_override(module: Module) -> OldOverride | None:
    """Return the override in a file, or None where it has none."""
    for info in module.classes.values():
        method = info.definition.method("_set_gradient_checkpointing") if info.is_model else None
        if method is not None and _OLD_OVERRIDE.match(module.file.text, method.header):
            return OldOverride(info, method)
    return None


def _flag(model: ClassInfo) -> bool:
    for info in model.mro:
        flags = _FLAG.findall(info.text)
        if flags:
            return bool(flags[-1] == "True")
    return False


def _models_holding(owner: ClassInfo, module: Module) -> Iterator[ClassInfo]:
    for info in module.classes.values():
        if info.is_model and (owner is info or owner in info.mro or _holds(info, owner)):
            yield info


def _holds(model: ClassInfo, owner: ClassInfo) -> bool:
    return any(owner in part.mro for part in model.all_parts)


def _siblings(module: Module) -> Iterator[Module]:
    path = module.file.path
    for sibling in sorted(path.parent.glob("mod*ing_*.py")) + sorted(path.parent.glob("modular_*.py")):
        if sibling.name == path.name:
            continue
        try:
            file = module.library.project.consult(module.file, sibling)
        except (OSError, UnreadableFile):
            continue
        yield module.library.module(file)
