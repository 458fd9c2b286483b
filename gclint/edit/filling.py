"""What else may stand in a stack, beside the blocks that are seen to be put into it.

All code that names the stack is looked at. What is done with it there is either known to leave its blocks
as they are, or a doubt: there are too many ways to fill a list to know them all.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from gclint.code.outline import Definition
from gclint.code.walk import Arg, alternatives, arguments, children, dotted_name, last_name, text_of, walk
from gclint.copies.generated import is_modular
from gclint.edit.replaced import files_imported
from gclint.edit.unfollowed import unfollowed
from gclint.edit.users import code_of, users_naming
from gclint.network.evaluation.body import (
    ADDING_METHODS,
    COMPUTED,
    COMPUTING,
    Body,
    NameBinding,
    unstarred,
)
from gclint.network.evaluation.classes import ClassInfo, words_of
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import (
    ClassValue,
    Container,
    EvaluatedExternal,
    EvaluatedFunction,
    EvaluatedMethod,
    Instance,
    Value,
)
from gclint.network.holders import held_classes
from gclint.network.model import Network
from gclint.network.runsite import RunSite, is_checkpoint_function

_ADDING = ADDING_METHODS | {"__setitem__", "__iadd__", "setdefault", "setitem"}
"""Methods that put their last argument into a stack."""
_INNER = frozenset(("_modules", "__dict__"))
"""Attributes in which modules keep what they hold."""
_LOOKING_UP = frozenset(("getattr", "get_submodule"))
_SETTING = frozenset((*COMPUTING, "__setattr__", "set_submodule"))
_COMPUTING = _SETTING | {"getattr"}
_ANY = ".+"
_GAPS = re.compile(r"%\w|\{[^{}]*\}")
"""Where a text that is filled in has gaps."""
_OF_PATHS = "_submodule"
"""A part of the names of methods that take paths of parts."""
_CLASS = "__class__"
_READING = frozenset(vars(builtins)) - {"eval", "exec", "filter", "getattr", "map", "setattr"}
"""Functions that put nothing into what they are given."""
_KEEPING = frozenset(("cpu", "cuda", "eval", "float", "half", "requires_grad_", "to", "train"))
"""Methods that return the module itself."""
_SEQUENCES = (ast.List, ast.Tuple)
_DISPLAYS = (*_SEQUENCES, ast.Dict, ast.Set)
_HANDING_ON = (*_DISPLAYS, ast.BoolOp, ast.IfExp, ast.NamedExpr)
"""Expressions that are, or hold, what they are made of."""
_HARMLESS = (
    ast.Assert,
    ast.AugAssign,
    ast.BinOp,
    ast.Call,
    ast.Compare,
    ast.Delete,
    ast.Expr,
    ast.FormattedValue,
    ast.If,
    ast.Return,
    ast.Subscript,
    ast.UnaryOp,
    ast.While,
    ast.arguments,
)
"""What reads a stack; who gets it from a method is not followed."""
_MOST = 3
"""So many calls deep a stack is followed."""


def stack_doubts(
    network: Network,
    site: RunSite,
    name: str,
    suits: Callable[[ClassInfo], bool],
    *,
    trusts_functions: bool = False,
) -> Iterator[str]:
    """Yield what else may stand in the stack that an attribute of a site's owner holds.

    Args:
        network: the file.
        site: where the stack's blocks are run.
        name: the attribute.
        suits: tells whether objects of a class may be run there.
        trusts_functions: whether one that is not known is taken to put nothing into a stack that it gets.
    """
    names = frozenset((name, *_giving(site.owner, name)))
    for code in _code_naming(network, site.owner, names):
        if _Uses(code, site, names, suits, trusts_functions=trusts_functions).may_fill():
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
    for method in (method for base in owner.mro for method in base.methods() if name in method.text):
        returned = (
            node.value for node in Body.of_definition(method).own_nodes if isinstance(node, ast.Return)
        )
        if any(_is_attribute(value, name) for value in returned):
            yield method.name


def _is_attribute(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name)


def _code_naming(network: Network, owner: ClassInfo, names: Collection[str]) -> Iterator[_Code]:
    """Yield the functions that may name attributes: of a class and its bases, and of the file."""

    def is_named(definition: Definition) -> bool:
        text = definition.text
        return any(
            name == COMPUTED or (name in text and (_OF_PATHS in text or name in words_of(definition)))
            for name in names
        )

    is_generated = is_modular(owner.file.path)
    for info in owner.mro:
        for method in info.methods():
            if is_named(method):
                scope = owner.scope(method, info.module)
                yield _Code(f"{info.name}.{method.name}", scope, info.file is not owner.file and is_generated)
    imported = map(network.library.module, files_imported(network))
    around = (network.module, *users_naming(network, frozenset(names) - {COMPUTED}), *imported)
    for module in dict.fromkeys(around):
        for name, scope in code_of(module, is_named):
            if scope.owner not in owner.mro:
                yield _Code(name, scope, module.file is not owner.file and is_generated)


class _Uses:
    """What a function does with a stack."""

    def __init__(
        self,
        code: _Code,
        site: RunSite,
        names: Collection[str],
        suits: Callable[[ClassInfo], bool],
        depth: int = 0,
        *,
        trusts_functions: bool = False,
    ) -> None:
        """Look at a function's code.

        Args:
            code: the function.
            site: where the stack's blocks are run.
            names: the attributes that hold the stack, and the methods that return it.
            suits: tells whether objects of a class may be run there.
            depth: how many calls away from the code that names it.
            trusts_functions: whether one that is not known is taken to put nothing into a stack.
        """
        self._trusts_functions = trusts_functions
        self._code, self._site, self._names, self._depth = code, site, names, depth
        self._suits = suits
        self._scope = code.scope
        self._aliases: set[str] = set()
        nodes = self._scope.body.nodes
        self._parents = {child: node for node in nodes for child in children(node)}

    def may_fill(self, aliases: Collection[str] = ()) -> bool:
        """Return whether other blocks than the site's may get into the stack, or into what variables hold."""
        if any(isinstance(node, ast.Attribute) and _sets_class(node) for node in self._parents):
            return True
        waiting = [node for node in self._parents if self._is_stack(node)]
        waiting += self._named(aliases)
        while waiting:
            found = self._used(waiting.pop())
            if found is None:
                return True
            waiting += found
        return False

    # -- what stands for the stack

    def _is_stack(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            is_named = node.attr in self._names or (
                COMPUTED in self._names and any(each.fullmatch(node.attr) for each in self._patterns)
            )
            return is_named and self._may_own(node.value)
        if isinstance(node, ast.Call):
            function, given = last_name(node.func), arguments(node)
            if function in _SETTING and len(given) > 1:
                return self._is_key(given[-2].value)
            if function in _LOOKING_UP:
                place = 1 if function == "getattr" else 0
                return len(given) > place and self._is_key(given[place].value)
            return isinstance(node.func, ast.Attribute) and self._is_stack(node.func)
        if isinstance(node, ast.Subscript):
            holder = node.value.attr if isinstance(node.value, ast.Attribute) else ""
            return holder in _INNER and not isinstance(node.slice, ast.Slice) and self._is_key(node.slice)
        return False

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        """Patterns of the names that the site's owner computes, as far as their text says something."""
        calls = (node for base in self._site.owner.mro for node in base.nodes if isinstance(node, ast.Call))
        names = (
            arg.value for call in calls if last_name(call.func) in _COMPUTING for arg in arguments(call)[:2]
        )
        found = {_pattern(name) for name in names if text_of(name) is None}
        return [re.compile(each) for each in found if each.strip(_ANY)]

    def _is_key(self, node: ast.expr) -> bool:
        path = text_of(node)
        return not frozenset((COMPUTED,) if path is None else path.split(".")).isdisjoint(self._names)

    def _may_own(self, node: ast.expr) -> bool:
        """Return whether an object may be one whose attribute the stack is."""
        if isinstance(node, ast.Name) and node.id == self._scope.self_name:
            return self._may_hold(self._scope.owner)
        infos = [value.info for value in self._scope.evaluate(node) if isinstance(value, Instance)]
        return not infos or any(map(self._may_hold, infos))

    def _may_hold(self, info: ClassInfo | None) -> bool:
        owner = self._site.owner
        return info is None or info in owner.mro or owner in info.mro

    def _named(self, names: Collection[str]) -> list[ast.AST]:
        """Return where variables are used that were not looked at yet."""
        new = set(names) - self._aliases
        self._aliases |= new
        return [node for node in self._parents if isinstance(node, ast.Name) and node.id in new]

    # -- what is done with it

    def _used(self, node: ast.AST) -> list[ast.AST] | None:
        """Return what else stands for the stack by a use of it; None where something may be put into it."""
        parent = self._parents.get(node)
        if isinstance(node, ast.Call) and last_name(node.func) in _SETTING:
            return None if self._adds_other(arguments(node)[-1].value) else []
        value = self._value_set(node)
        if value is not None and isinstance(node, ast.Name) and not isinstance(parent, ast.AugAssign):
            # A variable that gets another value as well; what the stack gets of it is known by its values.
            return None if self._is_opaque(value) else self._named(self._lists_in(value))
        if value is not None:
            return None if self._adds_other(value) else self._named(self._lists_in(value))
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            return None  # A loop or a context sets it.
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return self._used(parent) if self._is_changed(parent) else []
        if isinstance(parent, ast.Attribute):
            return self._method(parent)
        if isinstance(parent, _HANDING_ON):
            return self._handed_on(parent, node)
        passed = self._argument(node)
        if passed is not None:
            return self._passed(*passed)
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            return self._kept(parent) if self._is_kept_by_names(parent) else None
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
            return self._kept(parent) if isinstance(node, _DISPLAYS) else []
        if isinstance(parent, ast.Starred):
            return []
        return [] if parent is None or isinstance(parent, _HARMLESS) else None

    def _handed_on(self, parent: ast.AST, node: ast.AST) -> list[ast.AST] | None:
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return []
        if isinstance(parent, ast.Dict):
            unpacked = (value for key, value in zip(parent.keys, parent.values, strict=True) if key is None)
            if any(value is node for value in unpacked):
                return None
        return [parent, *self._kept(parent)]

    def _is_changed(self, item: ast.Subscript) -> bool:
        """Return whether an item, which may be a stack too, is replaced, or something is put into it."""
        parent = self._parents.get(item)
        is_filled = isinstance(parent, ast.Attribute) and parent.attr in _ADDING
        return is_filled or isinstance(item.ctx, ast.Store) or self._value_set(item) is not None

    def _value_set(self, node: ast.AST) -> ast.expr | None:
        """Return what an assignment puts in the place of an expression."""
        path: list[int] = []
        target, parent = node, self._parents.get(node)
        while isinstance(parent, _SEQUENCES):
            path.insert(0, [each is target for each in parent.elts].index(True))
            target, parent = parent, self._parents.get(parent)
        if isinstance(parent, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and parent.target is target:
            return parent.value
        if isinstance(parent, ast.Assign) and any(each is target for each in parent.targets):
            return NameBinding(parent.value, tuple(path)).unpacked[0]
        return None

    def _method(self, attribute: ast.Attribute) -> list[ast.AST] | None:
        call = self._parents.get(attribute)
        if attribute.attr in _INNER:
            return [attribute]
        if attribute.attr not in _ADDING:
            return []
        given = arguments(call) if isinstance(call, ast.Call) and call.func is attribute else ()
        return None if not given or self._adds_other(given[-1].value) else []

    def _kept(self, node: ast.AST) -> list[ast.AST]:
        """Return the uses of the variables that an assignment or a loop binds."""
        kinds = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension)
        parts = (
            (part for target in _targets(node) for part in walk(target)) if isinstance(node, kinds) else ()
        )
        return self._named({part.id for part in parts if isinstance(part, ast.Name)})

    def _is_kept_by_names(self, node: ast.Assign | ast.AnnAssign) -> bool:
        """Return whether no object keeps what is assigned under a name of its own."""
        kept = [part for each in _targets(node) for part in walk(each) if isinstance(part, ast.Attribute)]
        return all(self._is_stack(each) for each in kept)

    def _argument(self, node: ast.AST) -> tuple[ast.Call, Arg] | None:
        """Return the call that an expression is an argument of, and the argument."""
        parent = self._parents.get(node)
        call = self._parents.get(parent) if isinstance(parent, (ast.keyword, ast.Starred)) else parent
        given = arguments(call) if isinstance(call, ast.Call) else ()
        found = next((arg for arg in given if arg.value is node), None)
        return None if found is None or not isinstance(call, ast.Call) else (call, found)

    def _passed(self, call: ast.Call, arg: Arg) -> list[ast.AST] | None:
        """Follow a stack into the function that it is passed to."""
        name, given = dotted_name(call.func) or "", arguments(call)
        if last_name(call.func) in _ADDING and given[0].value is arg.value and len(given) > 1:
            return None if self._adds_other(given[-1].value) else []
        if name in _READING or (arg.star == "*" and not isinstance(arg.value, _DISPLAYS)):
            return []
        functions = self._scope.evaluate(call.func)
        taken = all(self._takes(value, given, arg) for value in functions)
        for index, each in enumerate(given):
            # As `partial` and `checkpoint` do it: a function, and behind it what it is to be called with.
            for value in self._functions(each.value):
                taken &= self._takes(value, given[index + 1 :], arg)
        is_known = bool(functions) or is_checkpoint_function(self._scope, call.func)
        return [] if self._trusts_functions or (is_known and taken) else None

    def _functions(self, node: ast.expr) -> list[Value]:
        return [
            value
            for value in self._scope.evaluate(node)
            if isinstance(value, (EvaluatedFunction, EvaluatedMethod))
        ]

    def _takes(self, value: Value, args: Sequence[Arg], arg: Arg) -> bool:
        """Return whether a function leaves a stack as it is that it is called with."""
        if isinstance(value, EvaluatedExternal):
            return value.name.rpartition(".")[2] not in _ADDING
        inner: Scope | None = None
        if isinstance(value, EvaluatedFunction):
            inner = self._scope.enter(value, args)
        elif isinstance(value, EvaluatedMethod):
            inner = self._scope.enter_method(value.instance.info, value.method, args)
        elif isinstance(value, (ClassValue, Instance)):
            method = "__init__" if isinstance(value, ClassValue) else "forward"
            inner = self._scope.enter_method(value.info, method, args)
        if inner is None or self._depth == _MOST:
            return False
        given = {name: inner.argument(name) for name in inner.parameters.names}
        names = {name for name, each in given.items() if each is not None and each[1] is arg.value}
        code = _Code("", inner)
        uses = _Uses(
            code,
            self._site,
            self._names,
            self._suits,
            self._depth + 1,
            trusts_functions=self._trusts_functions,
        )
        return bool(names) and not uses.may_fill(names)

    # -- what is put into it

    def _lists_in(self, value: ast.expr) -> set[str]:
        """Return the variables that hold lists of which a stack is made."""
        if isinstance(value, ast.NamedExpr):
            return {*self._lists_in(value.target), *self._lists_in(value.value)}
        parts = [value]
        if isinstance(value, ast.Call) and self._is_external(value):
            parts = [arg.value for arg in arguments(value)]
        return {
            part.id
            for part in parts
            if isinstance(part, ast.Name)
            and any(isinstance(held, Container) for held in self._scope.evaluate(part))
        }

    def _adds_other(self, value: ast.expr) -> bool:
        held = {info for info in held_classes(self._scope.evaluate(value)) if info.is_module}
        is_other = not all(map(self._suits, held)) and not self._code.is_rewritten
        return is_other or self._is_opaque(value)

    def _is_opaque(self, node: ast.expr) -> bool:
        """Return whether what is put into a stack, or a part of it, cannot be followed."""
        if self._is_stack(node):
            return False
        parts = _parts(node)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
                parts = [node.func.value]
            elif self._is_external(node):
                parts = [arg.value for arg in arguments(node) if arg.keyword is None]
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            scope = self._scope
            items = Scope(
                scope.module, Body(scope.module.file, [node]), parent=scope, depth=scope.depth, place=node
            )
            is_unknown = not scope.evaluate(node) or any(True for _ in unfollowed(items, node.elt))
            return self._is_chosen(node.elt) or is_unknown
        if parts is not None:
            return any(map(self._is_opaque, parts))
        if isinstance(node, ast.Subscript) and self._is_stack(node.value):
            return False
        is_followed = isinstance(node, (ast.Attribute, ast.Call, ast.Name, ast.Subscript))
        is_unknown = is_followed and any(True for _ in unfollowed(self._scope, node))
        return is_unknown or self._is_chosen(node)

    def _is_external(self, call: ast.Call) -> bool:
        return any(isinstance(value, EvaluatedExternal) for value in self._scope.evaluate(call.func))

    def _is_chosen(self, node: ast.expr) -> bool:
        """Return whether a class is made that a parameter of the function hands in."""
        scope, func = self._scope, node.func if isinstance(node, ast.Call) else None
        if not isinstance(func, ast.Name) or not scope.parameters.has(func.id):
            return False
        return scope.argument(func.id) is None and not scope.binds(func.id)


def _pattern(name: ast.expr) -> str:
    """Return a pattern of the names that code may compute; it matches all where their text says nothing."""
    if isinstance(name, ast.JoinedStr):
        return "".join(map(_pattern, name.values))
    if isinstance(name, ast.BinOp) and isinstance(name.op, ast.Add):
        return _pattern(name.left) + _pattern(name.right)
    text = text_of(name)
    if text is not None:
        return re.escape(text)
    filled = name.left if isinstance(name, ast.BinOp) else getattr(getattr(name, "func", None), "value", name)
    text = text_of(filled)
    return _ANY if text is None else _ANY.join(map(re.escape, _GAPS.split(text)))


def _sets_class(node: ast.Attribute) -> bool:
    """Return whether an object becomes one of another class."""
    return node.attr == _CLASS and isinstance(node.ctx, ast.Store)


def _targets(
    node: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.AsyncFor | ast.comprehension,
) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """Return the expressions of which one, or all, are what an expression gives; None for any other."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, _SEQUENCES):
        return [unstarred(each) for each in node.elts]
    return alternatives(node) or None
