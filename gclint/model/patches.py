"""Where code puts something else in the place of what another module has, or hooks into modules from outside.

Wherever it stands: a function that does so may be called before the model is run, between two runs of a
block, or while a file is imported.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, partial
from typing import NamedTuple

from gclint.code.file import SourceFile
from gclint.code.naming import names_model
from gclint.code.outline import ImportedName
from gclint.code.remembered import remembered
from gclint.code.walk import (
    FUNCTIONS,
    FunctionNode,
    all_nodes,
    called_name,
    children,
    last_name,
    text_of,
    walk,
)
from gclint.model import known
from gclint.model.notes import quoted
from gclint.model.usage import FILLING, SETTERS, Usage, usage_of

_NAMESPACES = frozenset(
    ("__dict__", "__code__", "__defaults__", "__kwdefaults__", "__globals__", "_modules", "_parameters")
)
ANY_PART = ""
"""The name of a part of which it is not known which one it is."""
CLASS = "__class__"
"""The attribute by which an object becomes one of another class, with other parts."""
_REMAKING = frozenset((CLASS, "__bases__", "__code__", "__defaults__", "__kwdefaults__"))
_TRAINING = known.TRAINING_PACKAGES | {"deepspeed"}
_RELIED_ON = known.ALL | frozenset(
    (
        "builtins",
        "torch.Tensor",
        "torch.autograd",
        "torch.nn.modules",
        "torch.nn.Parameter",
        "torch.overrides",
        "torch.utils.checkpoint",
        "transformers.modeling_layers",
        "transformers.modeling_utils",
    )
)
"""Names that have a meaning for gclint, and with them all that they have."""
_MEANING = (ast.Attribute, ast.IfExp, ast.BoolOp, ast.NamedExpr)
"""Expressions that are attributes, or one of several."""
_ADDING = frozenset(("add_module", "register_module"))
"""The methods by which a module gets another part."""
_OF_ALL = ("register_module_", "_global_")
"""How names begin of what hooks into all modules."""
OF_ATTENTION = "AttentionInterface", "ALL_ATTENTION_FUNCTIONS"
"""The class that registers functions of attention, and the name by which models look them up."""
REGISTRIES = frozenset((*OF_ATTENTION, "ACT2FN"))
"""What tables of functions are called; who gets one may fill it."""
_MOST_MEANINGS = 99
"""Of more that a name may stand for, no others are added."""


class Patch(NamedTuple):
    """Something that gets another meaning at a place."""

    code: str
    row: int
    imported: ImportedName | None
    """The import behind whose name it is; None for what is told by the text that names it."""
    path: tuple[str, ...]
    """The names behind that of the import; the last one is that of what is replaced, if it is known."""
    is_imported: bool
    """Whether importing the file does it, and not only a call of a function."""
    is_filled: bool = False
    """Whether only an item of it is replaced, or added."""

    @property
    def last(self) -> tuple[str, ...]:
        """The last two names of what is replaced."""
        return (*(() if self.imported is None else (self.imported.name or "",)), *self.path)[-2:]

    @property
    def full(self) -> str:
        """The full name of what is replaced, if it is of another package."""
        first = () if self.imported is None else (self.imported.module, self.imported.name or "")
        return ".".join(filter(None, (*first, *self.path)))


class ReplacedPart(NamedTuple):
    """An attribute that something gets which is neither imported, nor ``self``, nor a class of the file.

    Or one that a function of another package gets, of which nothing is known, outside of all classes.
    """

    code: str
    row: int
    name: str
    is_imported: bool
    """Whether importing the file does it, and not only a call of a function."""
    is_given: bool = False
    """Whether no code that is followed shows what becomes of it."""
    is_filled: bool = False
    """Whether only an item of it is replaced, or added."""


class Hook(NamedTuple):
    """A place that hooks into all modules, into one outside of any class, or into a part of an object."""

    code: str
    row: int
    is_imported: bool
    """Whether importing the file does it, and not only a call of a function."""


@remembered
def patches(file: SourceFile) -> tuple[Patch | ReplacedPart | Hook, ...]:
    """Return the places of a file that give what it imports or gets another meaning, or hook into modules."""
    usage = Usage(None) if file.tree is None else usage_of(file.tree)
    nodes = all_nodes(file.tree) if usage.replacing or usage.hooking else ()
    functions = [each for each in nodes if isinstance(each, FUNCTIONS)]
    in_functions = _in_functions(functions)
    imported = [each for each in file.outline.all_imported() if each.name]
    handed = (each for each in imported if each.name in REGISTRIES and each.bound in usage.touched)
    hooking = (each.name or "" for each in imported)
    return (
        *_patches(file, usage, functions, in_functions),
        *(Patch(each.bound, 1, each, (), is_imported=True) for each in handed),
        *(Hook(each, 1, is_imported=True) for each in hooking if each.startswith(_OF_ALL)),
        *_hooks(usage, in_functions),
        *_given(file),
    )


def _patches(
    file: SourceFile, usage: Usage, functions: list[FunctionNode], in_functions: Set[ast.AST]
) -> Iterator[Patch | ReplacedPart]:
    imports: defaultdict[str, list[ImportedName]] = defaultdict(list)
    for each in file.outline.all_imported():
        imports[each.bound].append(each)
    bound = _bound(all_nodes(file.tree)) if usage.replacing else {}
    functions_at = cache(partial(_functions_at, functions))
    aliases: defaultdict[str, dict[tuple[ImportedName, tuple[str, ...]], None]] = defaultdict(dict)
    for name, values in bound.items():
        for root, path in (each for value in values for each in _meant(value)):
            known = [*((each, ()) for each in imports.get(root, ())), *aliases.get(root, ())]
            if root != name and len(aliases[name]) < _MOST_MEANINGS:
                aliases[name] |= dict.fromkeys((each, (*before, *path)) for each, before in known)
    for node in usage.replacing:
        is_imported, is_filled = node not in in_functions, not _sets_attribute(node)
        if isinstance(node, ast.Name):
            yield ReplacedPart(quoted(node), _row(node), ANY_PART, is_imported, is_given=True)
        for root, path in _replaced(node):
            for each in imports.get(root, ()):
                if each.name is None and _is_function_of(node, root):
                    continue
                yield Patch(quoted(node), _row(node), each, path, is_imported, is_filled)
            for each, before in aliases.get(root, ()):
                # What is filled under another name is a table only if it is known to be one.
                if is_filled and each.name not in REGISTRIES:
                    continue
                yield Patch(quoted(node), _row(node), each, (*before, *path), is_imported, is_filled)
            is_item = bool(path) and (path[-1].isdigit() or called_name(node) in _ADDING)
            if len(path) == is_item and (is_item or (_is_filling(node) and not _sets_attribute(node))):
                for name in _parts_meant(node, bound.get(root, ()), functions_at):
                    yield ReplacedPart(quoted(node), _row(node), name, is_imported, is_filled=True)
            if not path or root in imports or not (_sets_attribute(node) or _is_filling(node)):
                continue
            if len(path) > 1 and is_item:
                yield ReplacedPart(quoted(node), _row(node), path[-2], is_imported, is_filled=True)
            if len(path) < 2 and bound.get(root) and all(_makes_own(file, each) for each in bound[root]):
                continue
            if len(path) < 2 and (root in file.outline.classes or _is_self(file, node, root)):
                continue
            if _sets_attribute(node):
                is_given = path[-1] in (ANY_PART, CLASS) or isinstance(node, ast.Subscript)
                yield ReplacedPart(quoted(node), _row(node), path[-1], is_imported, is_given)
            else:
                yield ReplacedPart(quoted(node), _row(node), path[-1], is_imported, is_filled=True)
        for text in _names_given(node):
            yield Patch(quoted(node), _row(node), None, tuple(text.split(".")), is_imported)


def _parts_meant(
    node: ast.AST, values: Iterable[ast.AST], functions_at: Callable[[int], list[FunctionNode]]
) -> dict[str, None]:
    """Return the attributes that a name may stand for at a place, by its values in the same functions."""
    found = dict[str, None]()
    for value in values:
        if isinstance(value, _MEANING) and functions_at(_row(value)) == functions_at(_row(node)):
            found |= {path[-1]: None for _, path in _meant(value) if path}
    return found


def _functions_at(functions: Iterable[FunctionNode], row: int) -> list[FunctionNode]:
    """Return those of some functions that a line stands in."""
    return [each for each in functions if each.lineno <= row <= (each.end_lineno or 0)]


def _bound(nodes: Sequence[ast.AST]) -> Mapping[str, list[ast.AST]]:
    """Return what the names of a file may stand for, by its nodes; for parameters, it need not be all."""
    found: defaultdict[str, list[ast.AST]] = defaultdict(list)
    given: defaultdict[str, list[ast.AST]] = defaultdict(list)
    for node in nodes:
        if isinstance(node, ast.Call):
            given[last_name(node.func)] += (*node.args, *(each.value for each in node.keywords))
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            for each in node.args.args:
                found[each.arg] += (each, *given[node.name]) if each.arg not in ("self", "cls") else ()
        value = getattr(node, "iter" if isinstance(node, (ast.For, ast.comprehension)) else "value", None)
        if value is not None:
            for target in (*getattr(node, "targets", ()), *filter(None, (getattr(node, "target", None),))):
                for name in walk(target):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        found[name.id].append(value)
    return found


def _meant(value: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names that something may be, or have as items, with the attributes that are read of them."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield from _chain(node)
        elif isinstance(node, (ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Tuple, ast.List)):
            waiting += children(node)


def _makes_own(file: SourceFile, value: ast.AST) -> bool:
    """Tell whether something is an object of a class of the file."""
    return isinstance(value, ast.Call) and last_name(value.func) in file.outline.classes


def _is_self(file: SourceFile, node: ast.AST, name: str) -> bool:
    """Tell whether a name is that of the object whose method a place stands in."""
    if name == "self":
        return True
    methods = (each for info in file.outline.classes.values() for each in info.children)
    around = (each for each in methods if each.node.lineno <= _row(node) <= (each.node.end_lineno or 0))
    return any(each.first_parameter == name for each in around)


def _in_functions(functions: Iterable[FunctionNode]) -> frozenset[ast.AST]:
    """Return the nodes of a file that only run when a function is called."""
    bodies = (statement for each in functions for statement in each.body)
    return frozenset(each for statement in bodies for each in walk(statement))


def _hooks(usage: Usage, in_functions: Set[ast.AST]) -> Iterator[Hook]:
    body = [] if usage.tree is None or not usage.hooking else usage.tree.body
    classes = [each for each in body if isinstance(each, ast.ClassDef)]
    methods = [one for each in classes for one in each.body if isinstance(one, ast.FunctionDef)]
    harmless = {one for each in methods if each.name in known.HOOKING_METHODS for one in walk(each)}
    for node in usage.hooking:
        if node in harmless:
            continue
        name = last_name(node)
        is_inside = any(each.lineno <= _row(node) <= (each.end_lineno or 0) for each in classes)
        holder = node.value if isinstance(node, ast.Attribute) else node
        is_own = isinstance(holder, ast.Name) and holder.id in ("self", name)
        if not (is_inside and is_own) or name.startswith(_OF_ALL):
            yield Hook(quoted(node), _row(node), node not in in_functions)


@remembered
def replaces(file: SourceFile) -> bool:
    """Tell whether a file may replace something, in whatever it is."""
    return file.tree is not None and bool(usage_of(file.tree).replacing)


@remembered
def remade(file: SourceFile) -> tuple[tuple[int, str], ...]:
    """Return the lines and code of a file by which an object or class becomes something else, or any name."""
    places = () if file.tree is None else usage_of(file.tree).replacing
    return tuple((_row(each), quoted(each)) for each in places if _remakes(each))


def _remakes(node: ast.AST) -> bool:
    """Tell whether a place makes another class of an object, other code of a function, or sets any name."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Call) and last_name(node.value.func) in ("globals", "vars")
    given = {text_of(each) for each in node.args} if isinstance(node, ast.Call) else {last_name(node)}
    return not given.isdisjoint(_REMAKING)


def _row(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def is_relied_on(full: str) -> bool:
    """Tell whether a name of another package has a meaning for gclint, or is inside of what has one."""
    parts = full.split(".")
    holders = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    parent, _, last = full.rpartition(".")
    if full in known.TORCH or full.startswith(f"{known.MODULES_BY_NAME}."):
        return True
    return not holders.isdisjoint(_RELIED_ON) or (parent in known.TORCH and last in known.OPERATIONS)


def may_be_run(full: str) -> bool:
    """Tell whether code can run what has a name without naming it, unlike a method of a class, or a table."""
    holder, _, last = full.rpartition(".")
    if full in known.TABLES:
        return last in REGISTRIES
    return holder not in _RELIED_ON or last.startswith("_") or last == "forward"


def _replaced(node: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names of what a place may replace: a first one, and those behind it."""
    if isinstance(node, ast.Attribute):
        yield from (*_chain(node),) or (("", (node.attr,)),)
    elif isinstance(node, ast.AugAssign):
        yield from _chain(node.target)
    elif isinstance(node, ast.Subscript):
        for root, path in _chain(node.value):
            yield root, (*path, text_of(node.slice) or ANY_PART) if _is_namespace(node.value) else path
    elif isinstance(node, ast.Call):
        for holder, name in zip(node.args, node.args[1:], strict=False):
            text = getattr(name, "value", None)
            for root, path in _chain(holder):
                if isinstance(text, str):
                    yield root, (*path, text)
                elif last_name(node.func) == "setattr":
                    yield root, path
            if isinstance(text, str) and last_name(node.func) in SETTERS and not [*_chain(holder)]:
                yield "", (text,)
        if isinstance(node.func, ast.Attribute) and node.func.attr not in known.READING_METHODS:
            is_filled = node.func.attr in FILLING or _is_namespace(node.func.value)
            named = [text_of(each) or ANY_PART for each in node.args[:1] if node.func.attr in SETTERS]
            for root, path in _chain(node.func.value) if is_filled or named else ():
                yield root, (*path, *named)


def _is_function_of(node: ast.AST, module: str) -> bool:
    """Tell whether a place calls a function of a module, such as ``torch.sort``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return (
        isinstance(node.func.value, ast.Name)
        and node.func.value.id == module
        and node.func.attr not in SETTERS
    )


def _sets_attribute(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_namespace(node.value)
    return isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and last_name(node.func) in SETTERS)


def _is_filling(node: ast.AST) -> bool:
    """Tell whether a place puts an item into something, or changes which items it has."""
    return isinstance(node, (ast.Subscript, ast.Call))


def _given(file: SourceFile) -> Iterator[ReplacedPart]:
    """Yield the parts, or whole models, that functions of other packages get outside of classes."""
    applied = _applied(file)
    imports = {each.bound: each for each in file.outline.all_imported() if not each.level}
    waiting: list[tuple[ast.AST, bool]] = [] if file.tree is None else [(file.tree.module, False)]
    parts: dict[str, str] = {}
    models: set[str] = set()
    while waiting:
        node, is_inside = waiting.pop()
        if isinstance(node, (ast.For, ast.comprehension)):
            source = node.iter
            is_call = isinstance(source, ast.Call) and last_name(source.func) in known.PARTS
            names = [ANY_PART] if is_call else [path[-1] for _, path in _chain(source) if path]
            bound = (each.id for each in walk(node.target) if isinstance(each, ast.Name))
            parts |= {each: name for each in bound for name in names}
        elif isinstance(node, FUNCTIONS) and getattr(node, "name", "") in applied:
            parts |= {each.arg: ANY_PART for each in node.args.args}
        elif isinstance(node, ast.Assign) and _loads_model(node.value):
            models |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.Call) and _may_change_parts(node, imports):
            for each in (*node.args, *(one.value for one in node.keywords)):
                for root, path in _chain(each):
                    is_model = root in models and not _prepares(node, imports)
                    name = path[-1] if path else parts.get(root, ANY_PART if is_model else None)
                    if root not in imports and name is not None:
                        yield ReplacedPart(quoted(node), _row(node), name, not is_inside, is_given=True)
        inner = is_inside or isinstance(node, FUNCTIONS)
        # Last in, first out: what a loop binds is known in its body.
        waiting += [
            (each, inner) for each in reversed([*children(node)]) if not isinstance(each, ast.ClassDef)
        ]


def _applied(file: SourceFile) -> frozenset[str]:
    """Return the names of functions that a method of modules calls with each part."""
    nodes = all_nodes(file.tree) if "apply" in file.text else ()
    calls = (each for each in nodes if isinstance(each, ast.Call) and called_name(each) == "apply")
    return frozenset(last_name(each) for call in calls for each in call.args)


def _prepares(node: ast.Call, imports: Mapping[str, ImportedName]) -> bool:
    """Tell whether a call is of a function of a package that makes models ready for training."""
    return any(imports[root].module.partition(".")[0] in _TRAINING for root, _ in _chain(node.func))


def _loads_model(node: ast.expr) -> bool:
    """Tell whether something is a call that loads a model, which no code shows that is followed."""
    function = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(function, ast.Attribute)
        and function.attr in known.MODEL_MAKERS
        and names_model(last_name(function.value), is_librarys=True)
    )


def _may_change_parts(node: ast.Call, imports: Mapping[str, ImportedName]) -> bool:
    """Tell whether a call is of a function of another package of which nothing is known."""
    for root, path in _chain(node.func):
        each = imports.get(root)
        if each is None or each.module.partition(".")[0] in sys.stdlib_module_names:
            return False
        full = ".".join(filter(None, (each.module if each.name or not path else root, each.name, *path)))
        parent, _, last = full.rpartition(".")
        return not (
            full in known.FUNCTIONS
            or parent in (*known.TORCH, "torch.nn", "torch.nn.init")
            or last[:1].isupper()
        )
    return False


def _names_given(node: ast.AST) -> Iterator[str]:
    """Yield the full names of what gclint relies on that a call gets as texts."""
    for each in node.args if isinstance(node, ast.Call) else ():
        text = getattr(each, "value", None)
        if isinstance(text, str) and text.isascii() and "." in text and is_relied_on(text):
            yield text


def _chain(node: ast.expr) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the first name of an expression, with the attributes that are read of it."""
    path: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            path += [] if node.attr in _NAMESPACES else [node.attr]
            node = node.value
        elif isinstance(node, ast.Subscript) and called_name(node.value) == "globals" and text_of(node.slice):
            node = ast.Name(text_of(node.slice) or "")
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and last_name(node.func) == "vars" and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Call) and called_name(node) == "get_submodule" and node.args:
            path += reversed((text_of(node.args[0]) or ANY_PART).split("."))
            node = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        else:
            return
    yield node.id, tuple(reversed(path))


def _is_namespace(node: ast.expr) -> bool:
    return (
        (isinstance(node, ast.Attribute) and node.attr in _NAMESPACES)
        or last_name(node) == "__builtins__"
        or called_name(node) == "vars"
    )
