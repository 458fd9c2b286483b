"""Finds where a class sets its own checkpointing flag."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.naming import MODEL_BASE
from gclint.code.outline import Definition
from gclint.code.remembered import remembered
from gclint.code.walk import (
    FUNCTIONS,
    assigned,
    dotted_name,
    is_constant,
    is_super,
    last_name,
    walk,
    walk_scope,
)
from gclint.model.notes import quoted
from gclint.network.evaluation.body import Body
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.outside import FLAG

_CONSTRUCTOR = "__init__"
_ASSIGNING = (ast.Assign, ast.AnnAssign)
_BY_NAME = frozenset(("getattr", "hasattr", "setattr", "get"))
"""Functions that get the name of a flag, and leave it in its place."""


@dataclass(frozen=True)
class FlagSetting:
    """A statement of a class that sets the checkpointing flag of its instances."""

    file: SourceFile
    offset: int
    method: str | None
    """The method that contains it; None for the class body."""
    code: str
    """The code of the value."""
    is_certain: bool = False
    """Whether it is run for each object, whatever the settings are."""

    @property
    def is_librarys(self) -> bool:
        """Whether it initializes the flag to False, as the library expects."""
        return self.code == "False" and self.method in (None, _CONSTRUCTOR)


def flag_settings(info: ClassInfo) -> Iterator[FlagSetting]:
    """Yield the statements of a class and its bases that set the flag."""
    for base in info.mro:
        yield from own_flag_settings(info, base)


def may_have_flag(info: ClassInfo) -> bool:
    """Return whether objects of a class may have a flag of their own, whatever gives it to them.

    What asks for its own flag has one, or gets one from others.
    """
    own = (base for base in info.mro if base.name != MODEL_BASE and mentions(base.definition.text, FLAG))
    return any(any(_asks_for_own(base, node) for node in base.nodes) for base in own) or any(
        flag_settings(info)
    )


def _asks_for_own(base: ClassInfo, node: ast.AST) -> bool:
    """Return whether a node names the flag of the object whose method it stands in, or may do so."""
    if isinstance(node, ast.Attribute):
        holders = base.file.outline.own_names(base.file.places.start(node)) if node.attr == FLAG else ()
        return dotted_name(node.value) in holders
    if isinstance(node, ast.Call):
        texts = [place for place, each in enumerate(node.args) if is_constant(each, FLAG)]
        holder = node.args[0] if texts and last_name(node.func) in _BY_NAME else None
        is_own = holder is None or dotted_name(holder) in base.file.outline.own_names(
            base.file.places.start(node)
        )
        return (bool(texts) and is_own) or any(each.arg == FLAG for each in node.keywords)
    return isinstance(node, (ast.List, ast.Tuple, ast.Set)) and any(
        is_constant(each, FLAG) for each in node.elts
    )


def flag_doubt(info: ClassInfo) -> str | None:
    """Return why an object of a class may not have the library's flag, or not as a plain attribute."""
    for file in dict.fromkeys(base.file for base in info.mro if base.name != MODEL_BASE):
        node = _taking_away(file)
        if node is not None:
            return f"`{quoted(node)}` on line {node.lineno} of `{file.path.name}` takes `{FLAG}` away"
    if any(each.is_librarys and each.is_certain for each in flag_settings(info)):
        return None
    return f"`{info.name}.{FLAG}` is not set on every way in which one is made"


@remembered
def _taking_away(file: SourceFile) -> ast.Attribute | ast.Call | None:
    """Return where a file deletes flags, or has a call do something with them that is not known."""
    for node in () if file.tree is None or not mentions(file.text, FLAG) else walk(file.tree.module):
        if isinstance(node, ast.Call):
            is_given = any(is_constant(each, FLAG) for each in node.args)
            if is_given and last_name(node.func) not in _BY_NAME:
                return node
        elif isinstance(node, ast.Attribute) and node.attr == FLAG and isinstance(node.ctx, ast.Del):
            return node
    return None


def own_flag_settings(info: ClassInfo, base: ClassInfo) -> Iterator[FlagSetting]:
    """Yield the statements of ``base``, one of the classes in the MRO of ``info``, that set the flag.

    A property that computes the flag counts, too. The library's own base class of models is left out.
    """
    if base.name == MODEL_BASE or not mentions(base.definition.text, FLAG):
        return
    yield from _in_body(base)
    file = base.file
    for method in base.methods():
        if method.name == FLAG:
            yield FlagSetting(file, method.header, method.name, "a property")
        elif mentions(method.text, FLAG):
            scope = info.scope(method, base.module)
            for binding in scope.bindings(f"{scope.self_name}.{FLAG}"):
                start = file.places.start(binding.value)
                is_certain = method.name == _CONSTRUCTOR and binding.value in {
                    each.value for each in always_assigned(info, base)
                }
                yield FlagSetting(file, start, method.name, file.source(binding.value), is_certain)


def _in_body(base: ClassInfo) -> Iterator[FlagSetting]:
    """Yield the assignments in the class body."""
    file = base.file
    plain = {each.value for each in base.definition.node.body if isinstance(each, _ASSIGNING)}
    for node in Body.of_definition(base.definition).own_nodes:
        for target, value in assigned(node):
            if isinstance(target, ast.Name) and target.id == FLAG:
                yield FlagSetting(file, file.places.start(target), None, file.source(value), value in plain)


def constructors(info: ClassInfo) -> Iterator[tuple[ClassInfo, Definition]]:
    """Yield the constructors of a class and its bases, without the library's own class of models."""
    for base in info.mro:
        making = base.definition.method(_CONSTRUCTOR)
        if making is not None and base.name != MODEL_BASE:
            yield base, making


def always_assigned(info: ClassInfo, base: ClassInfo) -> list[ast.Assign | ast.AnnAssign]:
    """Return the assignments in ``__init__`` of a base that run whenever an object of a class is made."""
    names = [each.name for each in info.mro]
    last = info.mro.index(base)  # A base of another file may have the same name.
    for number, each in enumerate(info.mro[: last + 1]):
        making = each.definition.method(_CONSTRUCTOR)
        if making is None:
            continue
        body = making.function.body
        leaving = (place for place, one in enumerate(body) if _may_return(one))
        body = body[: next(leaving, len(body))]
        if each is base:
            return [one for one in body if isinstance(one, _ASSIGNING)]
        further = names[number + 1 : last + 1]
        if not any(_calls_base(one, each.name, further) for one in body):
            break  # That of the base need not be run.
    return []


def _may_return(statement: ast.stmt) -> bool:
    """Tell whether a statement may end the function that it stands in."""
    inner = () if isinstance(statement, FUNCTIONS) else walk_scope(statement)
    return any(isinstance(each, ast.Return) for each in (statement, *inner))


def _calls_base(statement: ast.stmt, name: str, further: Sequence[str]) -> bool:
    """Tell whether a statement calls ``__init__`` of what follows a class, or of one of some bases."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    if not isinstance(function, ast.Attribute) or function.attr != _CONSTRUCTOR:
        return False
    if not isinstance(function.value, ast.Call):
        return last_name(function.value) in further
    return is_super(function.value) and all(last_name(each) == name for each in function.value.args[:1])
