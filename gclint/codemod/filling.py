"""What else may stand in a stack, beside the blocks that are seen to be put into it.

All code that names the stack is looked at. What is done with it there is either known to leave its blocks
as they are, or a doubt: there are too many ways to fill a list to know them all.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from gclint.network.evaluation.body import ADDING_METHODS, COMPUTED, COMPUTING, Binding, nodes_in
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Bound, ClassValue, Container, External, Function, Instance, Value
from gclint.network.evaluation.walk import children, dotted_name, walk
from gclint.network.holders import held_classes
from gclint.network.model import Network
from gclint.network.runsite import RunSite, is_checkpoint_function
from gclint.source.generated import is_modular
from gclint.source.outline import Definition
from gclint.source.words import has_word

_ADDING = ADDING_METHODS | {"__setitem__", "__iadd__", "setdefault"}
"""Methods that put their last argument into a stack."""
_INNER = frozenset(("_modules", "__dict__"))
"""Attributes in which modules keep what they hold."""
_LOOKING_UP = frozenset(("getattr", "get_submodule"))
_SETTING = frozenset((*COMPUTING, "__setattr__"))
_READING = frozenset(vars(builtins)) - {"eval", "exec", "filter", "getattr", "map", "setattr"}
"""Functions that put nothing into what they are given."""
_KEEPING = frozenset(("cpu", "cuda", "eval", "float", "half", "requires_grad_", "to", "train"))
"""Methods that return the module itself."""
_DISPLAYS = (cst.Dict, cst.DictElement, cst.Element, cst.List, cst.Set, cst.Tuple)
_HANDING_ON = (*_DISPLAYS, cst.BooleanOperation, cst.IfExp, cst.NamedExpr)
"""Expressions that are, or hold, what they are made of."""
_HARMLESS = (
    cst.Assert,
    cst.AssignTarget,
    cst.BinaryOperation,
    cst.Call,
    cst.Comparison,
    cst.ComparisonTarget,
    cst.Del,
    cst.Expr,
    cst.FormattedStringExpression,
    cst.If,
    cst.Param,
    cst.Return,
    cst.StarredElement,
    cst.UnaryOperation,
    cst.While,
)
"""What reads a stack; who gets it from a method is not followed."""
_MOST = 3
"""So many calls deep a stack is followed."""


def stack_doubts(network: Network, site: RunSite, name: str) -> Iterator[str]:
    """Yield what else may stand in the stack that an attribute of a site's owner holds."""
    names = frozenset((name, *_giving(site.owner, name)))
    for code in _code_naming(network, site.owner, names):
        if _Uses(code, site, names).may_fill():
            stack = "attributes with computed names" if name == COMPUTED else f"`{name}`"
            yield f"it is not known what else `{code.name}` puts into {stack}"
            return


@dataclass(frozen=True)
class _Code:
    """A function."""

    name: str
    scope: Scope
    is_rewritten: bool = False
    """Whether a modular file inherits it, which means classes of its own by those that it names."""


def _giving(owner: ClassInfo, name: str) -> Iterator[str]:
    """Yield the methods that return an attribute as it is."""
    returns = re.compile(rf"\breturn[ \t]+\w+\.{re.escape(name)}[ \t]*$", re.MULTILINE)
    for base in owner.mro:
        yield from (method.name for method in base.methods() if returns.search(method.code))


def _code_naming(network: Network, owner: ClassInfo, names: Collection[str]) -> Iterator[_Code]:
    """Yield the functions that may name attributes: of a class and its bases, and of the file."""
    file = network.file

    def is_named(text: str, definition: Definition) -> bool:
        start, end = definition.start, definition.end
        return any(name == COMPUTED or has_word(text, name, start, end) for name in names)

    bases = dict.fromkeys((*owner.mro, *network.module.classes.values()))
    for info in bases:
        is_base = info in owner.mro
        is_rewritten = info.file is not owner.file and is_modular(owner.file.path)
        for method in info.methods():
            if is_named(info.file.text, method):
                scope = owner.scope(method, info.module) if is_base else info.scope(method)
                yield _Code(f"{info.name}.{method.name}", scope, is_rewritten)
    for definition in file.outline.definitions:
        is_function = not definition.is_class and not definition.indent
        if is_function and is_named(file.text, definition):
            for value in network.module.lookup(definition.name):
                if isinstance(value, Function):
                    yield _Code(definition.name, value.scope.enter(value, ()))


class _Uses:
    """What a function does with a stack."""

    def __init__(self, code: _Code, site: RunSite, names: Collection[str], depth: int = 0) -> None:
        """Look at a function's code.

        Args:
            code: the function.
            site: where the stack's blocks are run.
            names: the attributes that hold the stack, and the methods that return it.
            depth: how many calls away from the code that names it.
        """
        self._code, self._site, self._names, self._depth = code, site, names, depth
        self._scope = code.scope
        self._aliases: set[str] = set()
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}

    def may_fill(self, aliases: Collection[str] = ()) -> bool:
        """Return whether other blocks than the site's may get into the stack, or into what variables hold."""
        self._look_at([*self._names, *(COMPUTING if COMPUTED in self._names else ())])
        waiting = [node for node in self._parents if self._is_stack(node)]
        waiting += self._named(aliases)
        while waiting:
            found = self._used(waiting.pop())
            if found is None:
                return True
            waiting += found
        return False

    def _look_at(self, words: Collection[str]) -> None:
        """Parse the code in which words stand."""
        pieces = [] if self._scope.body is None else self._scope.body.pieces_naming(words)
        self._parents |= {child: node for node in nodes_in(pieces) for child in children(node)}

    # -- what stands for the stack

    def _is_stack(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Attribute):
            return node.attr.value in self._names and self._may_own(node.value)
        if isinstance(node, cst.Call):
            function = (dotted_name(node.func) or "").rpartition(".")[2]
            if function in _SETTING and len(node.args) > 1:
                return self._is_key(node.args[-2].value)
            if function in _LOOKING_UP:
                return any(self._is_key(arg.value) for arg in node.args)
            return isinstance(node.func, cst.Attribute) and self._is_stack(node.func)
        if isinstance(node, cst.Subscript):
            holder = node.value.attr.value if isinstance(node.value, cst.Attribute) else ""
            keys = [each.slice.value for each in node.slice if isinstance(each.slice, cst.Index)]
            return holder in _INNER and any(map(self._is_key, keys))
        return False

    def _is_key(self, node: cst.BaseExpression) -> bool:
        name = str(node.evaluated_value) if isinstance(node, cst.SimpleString) else COMPUTED
        return name in self._names

    def _may_own(self, node: cst.BaseExpression) -> bool:
        """Return whether an object may be one whose attribute the stack is."""
        if isinstance(node, cst.Name) and node.value == self._scope.self_name:
            return self._may_hold(self._scope.owner)
        infos = [value.info for value in self._scope.evaluate(node) if isinstance(value, Instance)]
        return not infos or any(map(self._may_hold, infos))

    def _may_hold(self, info: ClassInfo | None) -> bool:
        owner = self._site.owner
        return info is None or info in owner.mro or owner in info.mro

    def _named(self, names: Collection[str]) -> list[cst.CSTNode]:
        """Return where variables are used that were not looked at yet."""
        new = set(names) - self._aliases
        self._aliases |= new
        self._look_at(new)
        return [
            node
            for node, parent in self._parents.items()
            if isinstance(node, cst.Name)
            and node.value in new
            and not (isinstance(parent, cst.Attribute) and parent.attr is node)
            and not (isinstance(parent, cst.Arg) and parent.keyword is node)
        ]

    # -- what is done with it

    def _used(self, node: cst.CSTNode) -> list[cst.CSTNode] | None:
        """Return what else stands for the stack by a use of it; None where something may be put into it."""
        parent = self._parents.get(node)
        if isinstance(node, cst.Call) and (dotted_name(node.func) or "").rpartition(".")[2] in _SETTING:
            return None if self._adds_other(node.args[-1].value) else []
        value = self._value_set(node)
        if value is not None and isinstance(node, cst.Name) and not isinstance(parent, cst.AugAssign):
            # A variable that gets another value as well; what the stack gets of it is known by its values.
            return None if self._is_opaque(value) else self._named(self._lists_in(value))
        if value is not None:
            return None if self._adds_other(value) else self._named(self._lists_in(value))
        if isinstance(parent, cst.Subscript) and parent.value is node:
            return self._used(parent) if self._is_changed(parent) else []
        if isinstance(parent, cst.Attribute):
            return self._method(parent)
        if isinstance(parent, _HANDING_ON):
            is_test = isinstance(parent, cst.IfExp) and parent.test is node
            return [] if is_test else [parent, *self._kept(parent)]
        if isinstance(parent, cst.Arg):
            return self._passed(parent)
        if isinstance(parent, (cst.Assign, cst.AnnAssign)):
            return self._kept(parent) if self._is_kept_by_names(parent) else None
        if isinstance(parent, (cst.For, cst.CompFor)):
            return self._kept(parent) if isinstance(node, _DISPLAYS) else []
        is_read = isinstance(parent, (*_HARMLESS, cst.AugAssign, cst.Index))
        return [] if parent is None or is_read else None

    def _is_changed(self, item: cst.Subscript) -> bool:
        """Return whether an item, which may be a stack too, is replaced, or something is put into it."""
        parent = self._parents.get(item)
        is_filled = isinstance(parent, cst.Attribute) and parent.attr.value in _ADDING
        return is_filled or self._value_set(item) is not None

    def _value_set(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        """Return what an assignment puts in the place of an expression."""
        path: list[int] = []
        target, parent = node, self._parents.get(node)
        while isinstance(parent, (cst.Element, cst.Tuple, cst.List)):
            if not isinstance(parent, cst.Element):
                path.insert(0, [each is target for each in parent.elements].index(True))
            target, parent = parent, self._parents.get(parent)
        if isinstance(parent, (cst.AugAssign, cst.AnnAssign, cst.NamedExpr)) and parent.target is target:
            return parent.value
        if not isinstance(parent, cst.AssignTarget):
            return None
        return Binding(cst.ensure_type(self._parents[parent], cst.Assign).value, tuple(path)).literal

    def _method(self, attribute: cst.Attribute) -> list[cst.CSTNode] | None:
        name, call = attribute.attr.value, self._parents.get(attribute)
        if name in _INNER:
            return [attribute]
        if name not in _ADDING:
            return []
        if not isinstance(call, cst.Call) or call.func is not attribute or not call.args:
            return None
        return None if self._adds_other(call.args[-1].value) else []

    def _kept(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Return the uses of the variables that an assignment or a loop binds."""
        targets: list[cst.CSTNode] = []
        if isinstance(node, cst.Assign):
            targets = [each.target for each in node.targets]
        elif isinstance(node, (cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor)):
            targets = [node.target]
        return self._named(
            {each.value for target in targets for each in walk(target) if isinstance(each, cst.Name)}
        )

    def _is_kept_by_names(self, node: cst.Assign | cst.AnnAssign) -> bool:
        """Return whether no object keeps what is assigned under a name of its own."""
        targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]
        kept = [each for target in targets for each in walk(target) if isinstance(each, cst.Attribute)]
        return all(self._is_stack(each) for each in kept)

    def _passed(self, arg: cst.Arg) -> list[cst.CSTNode] | None:
        """Follow a stack into the function that it is passed to."""
        call = cst.ensure_type(self._parents[arg], cst.Call)
        name = dotted_name(call.func) or ""
        if name in _READING or (arg.star == "*" and not isinstance(arg.value, _DISPLAYS)):
            return []
        functions = self._scope.evaluate(call.func)
        taken = all(self._takes(value, call.args, arg) for value in functions)
        for index, each in enumerate(call.args):
            # As `partial` and `checkpoint` do it: a function, and behind it what it is to be called with.
            for value in self._functions(each.value):
                taken &= self._takes(value, call.args[index + 1 :], arg)
        is_known = bool(functions) or is_checkpoint_function(self._scope, call.func)
        return [] if is_known and taken else None

    def _functions(self, node: cst.BaseExpression) -> list[Value]:
        return [value for value in self._scope.evaluate(node) if isinstance(value, (Function, Bound))]

    def _takes(self, value: Value, args: Sequence[cst.Arg], arg: cst.Arg) -> bool:
        """Return whether a function leaves a stack as it is that it is called with."""
        if isinstance(value, External):
            return value.name.rpartition(".")[2] not in _ADDING
        inner: Scope | None = None
        if isinstance(value, Function):
            inner = self._scope.enter(value, args)
        elif isinstance(value, Bound):
            inner = self._scope.enter_method(value.instance.info, value.method, args)
        elif isinstance(value, (ClassValue, Instance)):
            method = "__init__" if isinstance(value, ClassValue) else "forward"
            inner = self._scope.enter_method(value.info, method, args)
        if inner is None or self._depth == _MOST:
            return False
        given = {name: inner.argument(name) for name in inner.parameters.names}
        names = {name for name, each in given.items() if each is not None and each[1] is arg.value}
        code = _Code("", inner)
        return bool(names) and not _Uses(code, self._site, self._names, self._depth + 1).may_fill(names)

    # -- what is put into it

    def _lists_in(self, value: cst.BaseExpression) -> set[str]:
        """Return the variables that hold lists of which a stack is made."""
        if isinstance(value, cst.NamedExpr):
            return {*self._lists_in(value.target), *self._lists_in(value.value)}
        parts = [value]
        if isinstance(value, cst.Call) and self._is_external(value):
            parts = [arg.value for arg in value.args]
        names = [part for part in parts if isinstance(part, cst.Name)]
        return {
            name.value
            for name in names
            if any(isinstance(held, Container) for held in self._scope.evaluate(name))
        }

    def _adds_other(self, value: cst.BaseExpression) -> bool:
        held = {info for info in held_classes(self._scope.evaluate(value)) if info.is_module}
        is_other = not held <= set(self._site.blocks) and not self._code.is_rewritten
        return is_other or self._is_opaque(value)

    def _is_opaque(self, node: cst.BaseExpression) -> bool:
        """Return whether what is put into a stack, or a part of it, cannot be followed."""
        if self._is_stack(node):
            return False
        parts = _parts(node)
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in _KEEPING:
                parts = [node.func.value]
            elif self._is_external(node):
                parts = [arg.value for arg in node.args if arg.keyword is None]
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return self._is_chosen(node.elt) or not self._scope.evaluate(node)
        if parts is not None:
            return any(map(self._is_opaque, parts))
        if isinstance(node, cst.Subscript) and self._is_stack(node.value):
            return False
        is_followed = isinstance(node, (cst.Attribute, cst.Call, cst.Name, cst.Subscript))
        is_nothing = is_followed and not self._scope.evaluate(node) and dotted_name(node) != "None"
        return is_nothing or self._is_chosen(node)

    def _is_external(self, call: cst.Call) -> bool:
        return any(isinstance(value, External) for value in self._scope.evaluate(call.func))

    def _is_chosen(self, node: cst.BaseExpression) -> bool:
        """Return whether a class is made that a parameter of the function hands in."""
        scope, func = self._scope, node.func if isinstance(node, cst.Call) else None
        if not isinstance(func, cst.Name) or not scope.parameters.has(func.value):
            return False
        return scope.argument(func.value) is None and not scope.binds(func.value)


def _parts(node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """Return the expressions of which one, or all, are what an expression gives; None for any other."""
    if isinstance(node, cst.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        return [node.left, node.right]
    if isinstance(node, cst.NamedExpr):
        return [node.value]
    if isinstance(node, (cst.List, cst.Tuple)):
        return [each.value for each in node.elements]
    return None
