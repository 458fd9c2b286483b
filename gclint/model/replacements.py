"""Where code may replace the ``forward`` of an object or class, or what calls it."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from gclint.code.file import SourceFile
from gclint.code.walk import last_name
from gclint.model.interpreter import Interpreter
from gclint.model.spaces import Space, Spaces
from gclint.model.values import NEVER, Class, Function

CALLING = ("__call__", "_call_impl", "_compiled_call_impl", "_slow_forward", "_wrapped_call_impl")
"""The methods by which a module gets to run its ``forward``."""
RUN = frozenset(("forward", *CALLING))
"""The methods that a run of a module goes through."""
_SETTERS = frozenset(("setattr", "__setattr__"))
_OF_PARTS = "set_submodule"
"""The method that puts another module into the place of one, however deep that is."""
_DICTS = frozenset(("vars", "__dict__"))
WORDS = (
    ".forward",
    "forward=",
    "setattr",
    _OF_PARTS,
    "__dict__",
    "vars",
    '"forward"',
    "'forward'",
    "_call_impl",
    "_slow_forward",
    ".__call__",
)
"""Of these, every text that replaces a ``forward`` has one, unless blanks stand around a dot."""
_NAMED = tuple(re.compile(rf"{name}(?!\w)") for name in sorted(RUN))
"""Each begins with letters: a pattern that may begin with any of the names is ten times as slow."""
_HOLDING = (re.compile("setattr"), re.compile(_OF_PARTS), re.compile("__dict__"), re.compile(r"vars(?!\w)"))
_BLANKS = frozenset(" \t\f\r\n\\")


def places_of_words(text: str) -> Iterator[int]:
    """Yield offsets in the lines of all places that may replace a ``forward``; it may only skip work."""
    for pattern in _HOLDING:
        for match in pattern.finditer(text):
            before = text[match.start() - 1 : match.start()]
            if match[0] != "vars" or not (before.isalnum() or before == "_"):
                yield match.start()
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            place, end = match.span()
            before = text[place - 1 : place]
            while before in _BLANKS and place > 1:
                place -= 1
                before = text[place - 1]
            # What a backtick follows is never code.
            is_attribute = before == "." and text[end : end + 1] not in ("(", "`")
            while text[end : end + 1] in _BLANKS:
                end += 1
            is_given = text[end : end + 1] == "=" != text[end + 1 : end + 2]
            if is_attribute or is_given or before in ("'", '"'):
                yield match.start()


def replacements(file: SourceFile) -> tuple[ast.AST, ...]:
    """Return the places of a file that may replace a ``forward``, of whatever it is: nodes of its tree."""
    rows = sorted(set(map(file.places.row, places_of_words(file.text))))
    tree = file.tree if rows else None
    return () if tree is None else tuple(_replacing(tree.module, rows))


def _walk(tree: ast.Module, rows: Sequence[int]) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that stand on one of some sorted rows, or around it."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            last = getattr(child, "end_lineno", None)
            # Arguments and the like have no place of their own.
            if last is None or bisect_left(rows, _begin(child)) < bisect_right(rows, last):
                waiting.append(child)


def _begin(node: ast.AST) -> int:
    """Return the row on which a node begins, a definition with its decorators."""
    decorators = getattr(node, "decorator_list", ())
    row: int = getattr(node, "lineno", 0)
    return min(row, decorators[0].lineno) if decorators else row


def _replacing(tree: ast.Module, rows: Sequence[int]) -> Iterator[ast.AST]:
    for node in _walk(tree, rows):
        if isinstance(node, ast.Attribute):
            is_kept = isinstance(node.ctx, ast.Load)
            if (node.attr in RUN and not is_kept) or node.attr in _DICTS:
                yield node
        elif isinstance(node, ast.Call):
            name = last_name(node.func)
            if (
                name in _DICTS
                or name == _OF_PARTS
                or (name in _SETTERS and _may_name_run(node))
                or _names_run(node, name)
            ):
                yield node


def _may_name_run(node: ast.Call) -> bool:
    """Tell whether what sets an attribute may set a ``forward``."""
    names = [each for each in node.args[:3] if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return not names or any(each.value in RUN for each in names)


def _names_run(node: ast.Call, function: str) -> bool:
    """Tell whether a call that may set attributes has the name of a ``forward``, as mocks have."""
    if function in ("getattr", "hasattr", "print", "warning", "warning_once"):
        return False
    given = [*node.args, *(each.value for each in node.keywords)]
    texts = {each.value for each in given if isinstance(each, ast.Constant)}
    return not RUN.isdisjoint(texts) or any(each.arg in RUN for each in node.keywords)


def classes_replaced(
    space: Space, node: ast.AST, places: tuple[ast.AST, ...]
) -> frozenset[ast.ClassDef | str]:
    """Return of which classes a place may replace the ``forward``, or in words of what is not known.

    Args:
        space: the module.
        node: the place.
        places: all such places of the module.
    """
    own = _own_class(space, node)
    if own is not None:
        return frozenset((own,))
    return frozenset(space.targets_at(places).get(node, ("",)))


def _own_class(space: Space, node: ast.AST) -> ast.ClassDef | None:
    """Return the class if a place is about the ``self`` of one of its methods."""
    receiver = receiver_of(node)
    classes = [each for each in (space.tree.body if space.tree else ()) if isinstance(each, ast.ClassDef)]
    methods = [
        (kind, each)
        for kind in classes
        for each in kind.body
        if isinstance(each, ast.FunctionDef) and each.lineno <= _row(node) <= (each.end_lineno or 0)
    ]
    for kind, method in methods:
        first = [*method.args.posonlyargs, *method.args.args][:1]
        is_own = isinstance(receiver, ast.Name) and bool(first) and receiver.id == first[0].arg
        return kind if is_own and not _rebinds(method, receiver) else None
    return None


def _rebinds(method: ast.FunctionDef, name: ast.expr | None) -> bool:
    """Tell whether a method binds a name again, or has functions that may."""
    return any(
        (
            isinstance(each, ast.Name)
            and each.id == getattr(name, "id", "")
            and not isinstance(each.ctx, ast.Load)
        )
        or (isinstance(each, (ast.FunctionDef, ast.Lambda)) and each is not method)
        for each in ast.walk(method)
    )


def receiver_of(node: ast.AST) -> ast.expr | None:
    """Return of what a place may replace an attribute."""
    if isinstance(node, ast.Attribute):
        return node.value
    if isinstance(node, ast.Call) and last_name(node.func) in _SETTERS | _DICTS:
        is_bound = isinstance(node.func, ast.Attribute) and len(node.args) < 3
        return (
            node.func.value
            if is_bound and isinstance(node.func, ast.Attribute)
            else next(iter(node.args), None)
        )
    return None


def _row(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def is_plain(spaces: Spaces, file: SourceFile, name: str) -> bool:
    """Tell whether objects of a class have a ``forward`` that is a function of a class, and nothing else."""
    space = spaces.of(file)
    if space.tree is None:
        return True  # Its grammar is newer than that of the running Python.
    kinds = [each for each in (space.value(name) or NEVER).things if isinstance(each, Class)]
    reader = Interpreter(spaces, is_quiet=True)
    for kind in kinds:
        found = reader.find(kind, "forward")
        functions = [] if found is None else [each for each in found[0].things if isinstance(each, Function)]
        decorators = [each for one in functions for each in getattr(one.node, "decorator_list", ())]
        if found is not None and (len(functions) != len(found[0].things) or any(map(_binds, decorators))):
            return False
        if reader.find(kind, "__getattribute__") is not None:
            return False
    return True


def _binds(decorator: ast.expr) -> bool:
    """Tell whether a decorator makes something else of a method than a method."""
    return last_name(decorator) in ("property", "cached_property", "staticmethod", "classmethod")
