"""Which models hold a class, and whether they support gradient checkpointing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.modules import Module
from gclint.network.evaluation.signature import method_signature
from gclint.network.evaluation.walk import dotted_name
from gclint.source.file import UnreadableFile
from gclint.source.fragment import parse_definition
from gclint.source.outline import Definition

_FLAG = "supports_gradient_checkpointing"


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
        try:
            function = parse_definition(self.model.file, self.method).body[0]
        except cst.ParserSyntaxError:
            return False
        return isinstance(function, cst.FunctionDef) and _only_sets_flags(function)


def old_override(module: Module) -> OldOverride | None:
    """Return the override in a file, or None where it has none."""
    for info in module.classes.values():
        method = info.definition.method("_set_gradient_checkpointing") if info.is_model else None
        signature = None if method is None else method_signature(module.file, method)
        if method is not None and signature is not None and signature.get("value") is not None:
            return OldOverride(info, method)
    return None


def _only_sets_flags(function: cst.FunctionDef) -> bool:
    """Tell whether all that a function does is to set the flag of some modules to ``value``."""
    branches = [node for node in function.body.body if not _is_docstring(node)]
    branch = branches[0] if len(branches) == 1 else None
    if not isinstance(branch, cst.If) or branch.orelse is not None or not isinstance(branch.test, cst.Call):
        return False
    statements = [each for line in branch.body.body for each in getattr(line, "body", (line,))]
    statement = statements[0] if len(statements) == 1 else None
    return (
        dotted_name(branch.test.func) == "isinstance"
        and isinstance(statement, cst.Assign)
        and [dotted_name(each.target) for each in statement.targets]
        == [f"{dotted_name(branch.test.args[0].value)}.gradient_checkpointing"]
        and dotted_name(statement.value) == "value"
    )


def _is_docstring(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return False
    return isinstance(node.body[0], cst.Expr) and isinstance(node.body[0].value, cst.SimpleString)


def _flag(model: ClassInfo) -> bool:
    for info in model.mro:
        switch = info.switch(_FLAG)
        if switch is not None:
            return switch
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
