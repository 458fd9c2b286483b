"""Layers that code puts into models without naming their stack: it walks through modules, or is given one.

What is put into something named otherwise, or into a list of the function's own, is none of the stack's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gclint.code.tree import DEFINITIONS
from gclint.code.walk import COMPREHENSIONS, alternatives, arguments, called_name, last_name, text_of, walk
from gclint.copies.generated import is_modular
from gclint.edit.replaced import files_imported
from gclint.edit.users import code_of, users
from gclint.network.evaluation.body import ADDING_METHODS, Body, NameBinding, unstarred
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Instance, items_of
from gclint.network.holders import held_classes
from gclint.network.model import Network

_KEPT = "_modules"
"""Where modules keep their parts."""
_WALKING = frozenset((_KEPT, "children", "modules", "named_children", "named_modules"))
"""What modules have that gives their parts, whatever these are called."""
_LOOKING_UP = frozenset(("getattr", "get_submodule"))
_SETTING = frozenset(("__setattr__", "add_module", "register_module", "set_submodule", "setattr", "setitem"))
"""What puts its last argument into the place that the one before it names."""
_ADDING = ADDING_METHODS | {"__setitem__", "setdefault"}
_LISTS = frozenset(("torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Sequential"))
_NEW = frozenset(("defaultdict", "dict", "list", "set"))
"""Functions that make new ones of Python's own."""
_MADE = (ast.Attribute, ast.BoolOp, ast.Call, ast.IfExp, ast.Name, ast.Subscript)
"""Expressions that may be a module."""


def unnamed_doubts(network: Network, suits: Callable[[ClassInfo], bool]) -> Iterator[str]:
    """Yield where code may put other modules into a stack that it does not name.

    Args:
        network: the file of the stack.
        suits: tells whether objects of a class may be run in it.
    """
    imported = map(network.library.module, files_imported(network))
    for module in dict.fromkeys((network.module, *users(network), *imported)):
        is_generated = is_modular(module.file.path)
        for function in _functions(module) if not is_generated else ():
            found = (each for each in function.values() if _may_be_other(each, function.scope, suits))
            for value in found:
                where = f"on line {getattr(value, 'lineno', 0)} of {module.file.path.name}"
                yield f"`{function.name}` may put another module into a stack {where}"
                return


@dataclass(frozen=True)
class _Putting:
    """A function, or the code of a module outside of its functions."""

    name: str
    scope: Scope

    def values(self) -> Iterator[ast.expr]:
        """Yield what it puts into something that may be a stack, or a module, but is not called so."""
        for node in self.scope.body.nodes:
            if isinstance(node, ast.Assign):
                items = (target for target in node.targets if isinstance(target, ast.Subscript))
                yield from (node.value for target in items if self._is_unnamed(target))
            elif isinstance(node, ast.Call):
                given = [unstarred(arg.value) for arg in arguments(node)]
                name = last_name(node.func)
                holder = node.func.value if isinstance(node.func, ast.Attribute) else None
                if name in _SETTING and len(given) > 1:
                    yield from given[-1:] if text_of(given[-2]) is None else ()
                elif holder is not None and given and name in _ADDING and self._is_unnamed(holder):
                    yield given[-1]

    def _is_unnamed(self, holder: ast.expr) -> bool:
        if isinstance(holder, ast.Attribute):
            return holder.attr == _KEPT and not isinstance(holder.value, ast.Attribute)
        if isinstance(holder, ast.Subscript):
            is_named = last_name(holder.value) == _KEPT and text_of(holder.slice) is not None
            return not is_named and self._is_unnamed(holder.value)
        if isinstance(holder, ast.Call) and last_name(holder.func) in _LOOKING_UP:
            return text_of(arguments(holder)[-1].value) is None
        ways = alternatives(holder)
        if ways:
            return any(map(self._is_unnamed, ways))
        scope = self.scope
        if isinstance(holder, ast.Name):
            bindings = [each for each in scope.bindings(holder.id) if not each.added]
            if bindings:
                return not all(_is_known(each, scope) for each in bindings)
            if scope.parameters.has(holder.id) and self._is_given_by_name():
                return False
        is_added = isinstance(holder, ast.Name) and scope.binds(holder.id)
        values = () if is_added else scope.evaluate(holder)
        lists = {value.info for value in values if isinstance(value, Instance)}
        is_list = any(not _LISTS.isdisjoint(info.external_bases) for info in lists)
        return is_list or not (values or _is_own(holder))

    def _is_given_by_name(self) -> bool:
        """Return whether the file only calls the function itself, where it walks through no modules.

        Then what it is given has a name there, by which it is followed.
        """
        tree, name = self.scope.module.file.tree, self.name.rpartition(".")[2]
        is_used = False
        for statement in _statements(tree.module.body if tree else ()):
            nodes = [*walk(statement)]
            calls = [node for node in nodes if isinstance(node, ast.Call)]
            called = {
                node.args[0] if called_name(node) == "partial" and node.args else node.func for node in calls
            }
            used = [node for node in nodes if last_name(node) == name]
            is_walking = any(isinstance(node, ast.Attribute) and node.attr in _WALKING for node in nodes)
            if used and (is_walking or not called.issuperset(used)):
                return False
            is_used |= bool(used)
        return is_used


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and those of classes among them."""
    for each in body:
        yield from _statements(each.body) if isinstance(each, ast.ClassDef) else (each,)


def _functions(module: ModuleInfo) -> Iterator[_Putting]:
    """Yield the functions of a module, and the code outside of them."""
    for name, scope in code_of(module, lambda _: True):
        yield _Putting(name, scope)
    tree = module.file.tree
    body = [each for each in tree.module.body if not isinstance(each, DEFINITIONS)] if tree else []
    yield _Putting(module.file.path.stem, Scope(module, Body(module.file, body), tree=tree))


def _is_known(binding: NameBinding, scope: Scope) -> bool:
    """Return whether it is known what a name is set to, or that it is a new list."""
    value, _ = binding.unpacked
    values = scope.evaluate(value)
    return bool(items_of(values) if binding.iterated else values or _is_own(value))


def _is_own(value: ast.expr) -> bool:
    """Return whether a value is a new list or the like, and no module."""
    return isinstance(value, (*COMPREHENSIONS, ast.Dict, ast.List, ast.Set)) or called_name(value) in _NEW


def _may_be_other(value: ast.expr, scope: Scope, suits: Callable[[ClassInfo], bool]) -> bool:
    """Return whether what is put somewhere may be another module.

    Of what is not known, it may be one only where modules are walked through.
    """
    values = scope.evaluate(value)
    if values:
        return any(info.is_module and not suits(info) for info in held_classes(values))
    names = (getattr(node, "attr", called_name(node)) for node in scope.body.nodes)
    return isinstance(value, _MADE) and not _WALKING.isdisjoint(filter(None, names))
