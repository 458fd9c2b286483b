"""Finds code that sets a module's checkpointing flag from outside of its class."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.outline import Definition
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.code.tree import OffsetTable, Unparsable, line_starts, parsed
from gclint.code.walk import (
    FUNCTIONS,
    all_nodes,
    assigned,
    dotted_name,
    is_constant,
    last_name,
    text_of,
    walk,
)
from gclint.code.word_search import word_ends
from gclint.network.evaluation.classes import nodes_of

FLAG = "gradient_checkpointing"
CHECKPOINT_FUNCTION = "_gradient_checkpointing_func"
KEEPING = "_can_checkpoint_with_cache"
LIBRARY_SWITCH = "_set_gradient_checkpointing"
_PIECE = re.compile(r"\n[^\s#)\]}]")
"""Before a line on which a statement of a module may begin."""
_NOT_CALLED = re.compile(rf"{CHECKPOINT_FUNCTION}(?!\w|[ \t]*\()")
_SETTING_CALLS = frozenset(("setattr", "__setattr__"))
# Objects with these names hold options, not modules.
_OPTIONS = (
    *("config", "cfg", "conf", "args", "arguments"),
    *("hparams", "params", "settings", "options", "flags"),
)


@dataclass(frozen=True)
class OutsideSwitch:
    """A statement that sets the flag of a module, outside of the module's own methods."""

    file: SourceFile
    offset: int
    receiver: str
    """The code of the expression whose flag is set."""
    attribute: str | None
    """The attribute that holds the module; None if the receiver is a variable or an item."""
    is_complete: bool
    """Whether it does the same as the library: for all modules with a flag, and setting the function, too."""
    is_off: bool
    """Whether it sets the flag to False."""
    is_asked: bool
    """Whether its function asks whether the module has the flag already."""


def outside_switches(project: Project, user: SourceFile) -> tuple[OutsideSwitch, ...]:
    """Return the statements that set flags from outside, in the files of a run and around them.

    The verdict on ``user`` depends on the answer.
    """
    files = project.chosen(files_mentioning(project, FLAG), SWITCHES, "", user)
    for file in files:
        project.consult(user, file.path)
    return tuple(each for file in files for each in switches_in(file))


@remembered
def switches_in(file: SourceFile) -> tuple[OutsideSwitch, ...]:
    """Return the statements in a file that set flags from outside."""
    return () if sets_only_own_flags(file) else tuple(_in_file(file))


SWITCHES = Topic("switches", lambda file, _key: bool(switches_in(file)), is_about_others=True)
"""Asks which files set the flag of modules from outside."""


@remembered
def functions_set(file: SourceFile) -> tuple[int, ...]:
    """Return where code sets the checkpoint function of some other object, and not of all modules."""
    return tuple(_functions_set(file)) if _NOT_CALLED.search(file.text) else ()


FUNCTION_SETTINGS = Topic(
    "function settings", lambda file, _key: bool(functions_set(file)), is_about_others=True
)
"""Asks which files set the checkpoint function of an object from outside."""


def sets_only_own_flags(file: SourceFile) -> bool:
    """Return whether only methods name the flag, that of their own object; this may only save work.

    Most files are like that, and only their classes that name the flag are parsed.
    """
    text = file.text
    pieces: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for after in word_ends(text, FLAG, 0, len(text)):
        mention = after - len(FLAG)
        start = text.rfind("\nclass", 0, mention) + 1
        if not start or _PIECE.search(text, start, mention):
            return False  # It is in no class.
        end = _PIECE.search(text, mention)
        pieces[start, end.start() + 1 if end else len(text)].add(mention - start)
    return all(_own_flags(text[start:end]) >= found for (start, end), found in pieces.items())


def _own_flags(piece: str) -> set[int]:
    """Return where the methods of a single class name the flag of their first parameter.

    What is code here is inside a string in the file if ``class`` stands in one, and sets nothing there;
    where it is in a string here, it is not found.
    """
    try:
        body = parsed(piece).body
    except Unparsable:
        return set()
    if len(body) != 1 or not isinstance(body[0], ast.ClassDef):
        return set()
    places = OffsetTable(piece, line_starts(piece))
    found: set[int] = set()
    for method in body[0].body:
        if isinstance(method, FUNCTIONS):
            first = next((each.arg for each in (*method.args.posonlyargs, *method.args.args)), None)
            for node in walk(method):
                if isinstance(node, ast.Attribute) and dotted_name(node) == f"{first}.{FLAG}":
                    found.add(places.end(node) - len(FLAG))
    return found


def _in_file(file: SourceFile) -> Iterator[OutsideSwitch]:
    for node in all_nodes(file.tree):
        for offset, receiver, value in _settings(file, node, FLAG):
            if last_name(receiver).lower().endswith(_OPTIONS):
                continue
            if isinstance(receiver, ast.Name) and receiver.id in file.outline.own_names(offset):
                continue  # The receiver is `self`.
            functions = [each for each in file.outline.around(offset) if not each.is_class]
            function = functions[-1] if functions else None
            if function is None or function.name != LIBRARY_SWITCH:
                attribute = receiver.attr if isinstance(receiver, ast.Attribute) else None
                is_off = is_constant(value, False)
                is_complete = _is_complete(file, receiver, function, is_off=is_off)
                nodes = () if function is None else nodes_of(function)
                is_asked = any(_asks(node, dotted_name(receiver)) for node in nodes)
                code = file.source(receiver)
                yield OutsideSwitch(file, offset, code, attribute, is_complete, is_off, is_asked)


def _functions_set(file: SourceFile) -> Iterator[int]:
    for node in all_nodes(file.tree):
        for offset, receiver, value in _settings(file, node, CHECKPOINT_FUNCTION):
            functions = [each for each in file.outline.around(offset) if not each.is_class]
            function = functions[-1] if functions else None
            is_librarys = function is not None and function.name == LIBRARY_SWITCH
            if not (is_librarys or _is_complete(file, receiver, function, is_off=is_constant(value, None))):
                yield offset


def _settings(file: SourceFile, node: ast.AST, name: str) -> Iterator[tuple[int, ast.expr, ast.expr]]:
    """Yield where a node itself sets attributes ``name``, of which objects, and to which values."""
    if isinstance(node, ast.Call):
        called = last_name(node.func)
        given = node.args
        if isinstance(node.func, ast.Attribute) and len(given) == 2:
            given = [node.func.value, *given]  # It is a method of the object.
        if called in _SETTING_CALLS and len(given) == 3 and text_of(given[1]) == name:
            yield file.places.end(node.func) - len(called), given[0], given[2]
    for target, value in assigned(node):
        for each in walk(target):
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and each.attr == name:
                yield file.places.end(each) - len(f".{name}"), each.value, value
            elif isinstance(each, ast.Subscript) and text_of(each.slice) == name:
                holder = _holder(each.value) if isinstance(each.ctx, ast.Store) else None
                if holder is not None:
                    yield file.places.end(each.value), holder, value


def _holder(variables: ast.expr) -> ast.expr | None:
    """Return the object of an expression for the variables of an object; None for any other expression."""
    if isinstance(variables, ast.Attribute) and variables.attr == "__dict__":
        return variables.value
    if isinstance(variables, ast.Call) and dotted_name(variables.func) == "vars":
        return variables.args[0] if len(variables.args) == 1 else None
    return None


def _is_complete(file: SourceFile, receiver: ast.expr, function: Definition | None, *, is_off: bool) -> bool:
    if function is None or not isinstance(receiver, ast.Name):
        return False
    nodes = nodes_of(function)
    if any(_asks(node, receiver.id, "isinstance") for node in nodes):
        return False
    hands_on = any(
        dotted_name(each) == receiver.id
        for node in nodes
        for _, each, _ in _settings(file, node, CHECKPOINT_FUNCTION)
    )
    return (is_off or hands_on) and any(_goes_over_all(node, receiver.id) for node in nodes)


def _goes_over_all(node: ast.AST, name: str) -> bool:
    """Return whether a node asks for all modules, or whether a variable's has an attribute."""
    return (isinstance(node, ast.Call) and last_name(node.func) == "modules") or _asks(node, name)


def _asks(node: ast.AST, name: str | None, question: str = "hasattr") -> bool:
    """Return whether a node asks whether something has an attribute, or what else it is."""
    if not isinstance(node, ast.Call) or last_name(node.func) != question or not node.args:
        return False
    return dotted_name(node.args[0]) == name
