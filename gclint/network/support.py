"""Which models hold a class, and whether they support gradient checkpointing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gclint.network.classes import ClassInfo, Module, remembered
from gclint.source.file import UnreadableFile

_FLAG = re.compile(
    r"^[ \t]+supports_gradient_checkpointing[ \t]*(?::[^=\n]+)?=[ \t]*(True|False)\b", re.MULTILINE
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
