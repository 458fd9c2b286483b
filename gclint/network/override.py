"""Finds overrides of ``_set_gradient_checkpointing`` with the signature of old releases."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gclint.code.outline import Definition
from gclint.code.walk import dotted_name, is_docstring, is_super, last_name, walk
from gclint.network.activation import is_constant
from gclint.network.construction import may_have_flag
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.signature import method_signature
from gclint.network.evaluation.values import ClassValue, EvaluatedExternal, Values
from gclint.network.index import subclasses
from gclint.network.outside import FLAG, LIBRARY_SWITCH

_NAMES = (ast.Name, ast.Attribute)
_ANY_MODEL = frozenset(("from_config", "from_pretrained", "_from_config"))
"""Methods that create a model whose class is not known from the code."""


@dataclass(frozen=True)
class OldOverride:
    """An override and the model that has it.

    The library recognizes it by the parameter ``value``, and calls it for every module without the
    checkpoint function and its options. It sets no flags itself, so that those of checkpointing layers stay
    False.
    """

    model: ClassInfo
    method: Definition

    @property
    def description(self) -> str:
        """A clause about the effect of the override on checkpointing layers."""
        return (
            f"`{self.model.name}` overrides `{LIBRARY_SWITCH}(module, value)`, the old interface, which "
            "does not enable checkpointing layers"
        )

    @property
    def named(self) -> tuple[ClassInfo, ...] | None:
        """The classes whose flag it sets, if it does nothing else; None otherwise.

        Classes that cannot be found are left out.
        """
        names = _named(self)
        if names is None:
            return None
        return tuple(
            value.info
            for name in names
            for value in self.model.module.resolve(name)
            if isinstance(value, ClassValue)
        )

    @property
    def not_found(self) -> tuple[str, ...]:
        """What it names and sets the flag of, and is not known to be a class of the project.

        Where no class of the model names it as well, nothing in the model is one, unless a class of torch is.
        """
        resolve, names = self.model.module.resolve, _named(self) or ()
        others = [
            name
            for name in names
            if not all(isinstance(each, ClassValue) for each in resolve(name) or (None,))
        ]
        line = {base for part in (self.model, *self.parts) for base in part.mro} if others else ()
        words = {
            last_name(node) for info in line for node in self._own_nodes(info) if isinstance(node, _NAMES)
        }
        return tuple(name for name in others if name.rpartition(".")[2] in words or _is_torchs(resolve(name)))

    def _own_nodes(self, info: ClassInfo) -> Iterator[ast.AST]:
        """Yield the nodes of a class without those of the override."""
        left_out = set(walk(self.method.function)) if info is self.model else ()
        yield from (node for node in info.nodes if node not in left_out)

    @property
    def parts(self) -> list[ClassInfo]:
        """The parts of the model and of its heirs."""
        models = [self.model, *subclasses(self.model.module.library.project, self.model)]
        return sorted({part for model in models for part in model.all_parts}, key=lambda each: each.name)

    def unnamed(self) -> Iterator[str]:
        """Yield descriptions of the classes that the library would enable, but the override does not.

        Checkpointing layers are not included, since leaving them out is the defect.
        """
        named = self.named or ()
        for info in self.parts:
            is_named = any(each in info.mro for each in named)
            if not is_named and not info.is_checkpointing and may_have_flag(info):
                yield f"`{info.name}`"
            elif any(map(loads_model, info.nodes)):
                yield f"the models that `{info.name}` loads"


def old_overrides(models: Iterable[ClassInfo]) -> tuple[OldOverride, ...]:
    """Return the overrides that models have or inherit."""
    found: dict[OldOverride, None] = {}
    for model in models:
        place = model.find_method(LIBRARY_SWITCH)
        signature = None if place is None else method_signature(place[1])
        if place is not None and signature is not None and signature.get("value") is not None:
            found[OldOverride(*place)] = None
    return tuple(found)


def own_overrides(module: ModuleInfo) -> tuple[OldOverride, ...]:
    """Return the overrides that a file defines."""
    return tuple(
        override
        for override in old_overrides(info for info in module.classes.values() if info.is_module)
        if override.model.file is module.file
    )


def loads_model(node: ast.AST) -> bool:
    """Return whether a node creates another model from a configuration or a checkpoint."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _ANY_MODEL
        and not is_super(node.func.value)
    )


def _is_torchs(values: Values) -> bool:
    return any(isinstance(each, EvaluatedExternal) and each.name.startswith("torch.") for each in values)


def _named(override: OldOverride) -> list[str] | None:
    """Return the names in ``if isinstance(module, …): module.gradient_checkpointing = value``."""
    node = override.method.function
    positional = [*node.args.posonlyargs, *node.args.args]
    if len(positional) < 3 or node.decorator_list or not all(map(is_constant, node.args.defaults)):
        return None
    module, value = (each.arg for each in positional[1:3])
    names: list[str] = []
    for statement in node.body:
        own = _tested(statement, module, value)
        if own is None and not is_docstring(statement):
            return None
        names += own or ()
    return names


def _tested(statement: ast.stmt, module: str, value: str) -> list[str] | None:
    if not isinstance(statement, ast.If) or statement.orelse:
        return None
    test, body = statement.test, statement.body
    if not isinstance(test, ast.Call) or dotted_name(test.func) != "isinstance":
        return None
    if len(test.args) != 2 or test.keywords or dotted_name(test.args[0]) != module:
        return None
    if len(body) != 1 or not _assigns(body[0], f"{module}.{FLAG}", value):
        return None
    classes = test.args[1]
    names = [dotted_name(each) for each in (classes.elts if isinstance(classes, ast.Tuple) else [classes])]
    return None if None in names else [name for name in names if name is not None]


def _assigns(statement: ast.stmt, target: str, value: str) -> bool:
    """Return whether a statement is ``target = value``."""
    return (
        isinstance(statement, ast.Assign)
        and [dotted_name(each) for each in statement.targets] == [target]
        and dotted_name(statement.value) == value
    )
