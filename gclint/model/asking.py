"""Where code may ask what a class or a function is, which differs once a class is a checkpointing layer.

Wherever it stands: what is not known to be the same is taken for a question, whatever it is asked of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gclint.code.file import SourceFile
from gclint.code.names import names
from gclint.code.remembered import remembered
from gclint.code.walk import FUNCTIONS, all_nodes, last_name, text_of, walk
from gclint.model import known
from gclint.model.notes import quoted
from gclint.model.usage import SETTERS

LAYER = "GradientCheckpointingLayer"
OF_LAYERS = names("gradient_checkpointing _gradient_checkpointing_func _can_checkpoint_with_cache")
"""The attributes that the base class gives to a block."""
_ALL = "__all__"
_SAME = frozenset(name for kind in (dict, float, list) for name in dir(kind)) - {
    "__dir__",
    "__subclasshook__",
} | names(
    """
    __all__ __annotations__ __call__ __enter__ __exit__ __file__ __future__ __get__ __getattr__ __main__
    __module__ __name__ __next__ __package__ __path__ __post_init__ __qualname__ __spec__ __version__
    """
)
"""The special names that are the same of a class, its objects and methods whatever its bases are."""
_HELD = "__dict__"
_SETTINGS = names("PretrainedConfig PreTrainedConfig")
"""The bases of configurations."""
_ORDER = "mro"
_ASKING = names("getattr_static getfullargspec getmro getsource getsourcelines") | {_ORDER}
"""Other names by which code looks at a class or function itself."""


_OWN_CLASS = frozenset(("self", "self.__class__", "type(self)"))
_CHECKING = names("__subclasshook__ __subclasscheck__ __instancecheck__")
_OF_SETTINGS = ("args", "cfg", "config")
"""How names end of what holds settings, which are no layers."""
_OF_CONTAINERS = known.READING_METHODS | known.FILLING_METHODS | known.TAKING_METHODS


@remembered
def questions(file: SourceFile) -> dict[int, tuple[str, str]]:
    """Return the code of a file that may ask for what differs, by its line.

    With it comes the name of the class that it asks of itself; nothing if it may ask of any.
    """
    found: dict[int, tuple[str, str]] = {}
    classes: list[ast.ClassDef] = []
    layer = {LAYER, *(each.bound for each in file.outline.all_imported() if each.name == LAYER)}
    plain, tried, switching = set[ast.AST](), set[ast.AST](), set[ast.AST]()
    for node in all_nodes(file.tree):
        plain.update(_plain(node))
        classes += [node] if isinstance(node, ast.ClassDef) else []
        name, text = last_name(node), text_of(node)
        is_read = isinstance(getattr(node, "ctx", None), ast.Load)
        body = node.body if isinstance(node, ast.Try) else ()
        tried.update(each for one in body for each in walk(one))
        switching.update(walk(node.test) if isinstance(node, ast.If) and _only_switches(node) else ())
        # What these ask is followed where code asks for instances.
        switching.update(walk(node) if getattr(node, "name", None) in _CHECKING else ())
        holder = _holder_asked(node, is_tried=node in tried and is_read) if node not in switching else None
        if (
            holder is not None
            or (node not in plain and ((is_read and name in layer) or text == LAYER))
            or (name in _ASKING and (name != _ORDER or isinstance(node, ast.Attribute)))
            or (isinstance(node, ast.Attribute) and _is_telling(name) and not _is_own(node))
            or _is_telling(text or "")
            or (isinstance(node, ast.Compare) and _tells_a_method((node.left, *node.comparators)))
        ):
            row = getattr(node, "lineno", 0)
            around = [each for each in classes if each.lineno <= row <= (each.end_lineno or 0)]
            if (
                around
                and _HELD in (name, text)
                and not _SETTINGS.isdisjoint(map(last_name, around[-1].bases))
            ):
                continue  # What settings hold are settings.
            holder = node.value if isinstance(node, ast.Attribute) else holder
            owner = "" if holder is None else last_name(holder)
            if owner not in file.outline.classes:
                is_own = holder is not None and quoted(holder) in _OWN_CLASS
                owner = around[-1].name if is_own and around else ""
            if not owner or row not in found:
                found[row] = quoted(node), owner
    return found


def _only_switches(node: ast.If) -> bool:
    """Tell whether a branch only sets what the base class gives to a layer."""
    targets = (each.targets if isinstance(each, ast.Assign) else [each] for each in node.body)
    return not node.orelse and all(last_name(each) in OF_LAYERS for several in targets for each in several)


def _holder_asked(node: ast.AST, *, is_tried: bool) -> ast.AST | None:
    """Return of what something asks for an attribute of the base class, by its name or with a way out."""
    if isinstance(node, ast.MatchClass):
        return None if OF_LAYERS.isdisjoint(node.kwd_attrs) else node.cls
    if isinstance(node, ast.Attribute):
        return node.value if is_tried and node.attr in OF_LAYERS else None
    if not isinstance(node, ast.Call) or OF_LAYERS.isdisjoint(map(text_of, node.args)):
        return None
    is_other = isinstance(node.func, ast.Attribute) and node.func.attr in _OF_CONTAINERS
    is_of_settings = last_name(node.args[0]).endswith(_OF_SETTINGS)
    return None if is_other or is_of_settings or last_name(node.func) in SETTERS else node.args[0]


def _plain(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what names the base class without asking: bases, and annotations that no decorator reads."""
    if isinstance(node, ast.ClassDef):
        yield from node.bases
    elif isinstance(node, FUNCTIONS) and not node.decorator_list:
        given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        for each in (node.returns, *(one.annotation for one in given)):
            yield from () if each is None else walk(each)
    elif isinstance(node, ast.AnnAssign):
        yield from walk(node.annotation)
    elif isinstance(node, ast.Assign) and _ALL in map(last_name, node.targets):
        yield from walk(node.value)


def _is_telling(name: str) -> bool:
    is_special = name.startswith("__") and name.endswith("__") and name.isidentifier()
    return is_special and name.strip("_") != "" and name not in _SAME


def _is_own(node: ast.Attribute) -> bool:
    return node.attr == _HELD and last_name(node.value) == "self"


def _tells_a_method(compared: Sequence[ast.expr]) -> bool:
    """Tell whether a method that some releases wrap in a checkpointing layer is compared with another one."""
    is_literal = any(isinstance(each, ast.Constant) for each in compared)
    return not is_literal and any(
        isinstance(each, ast.Attribute) and each.attr == "forward" for each in compared
    )
