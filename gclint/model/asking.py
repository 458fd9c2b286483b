"""Where code may ask what a class or a function is, which differs once a class is a checkpointing layer.

Wherever it stands: what is not known to be the same is taken for a question, whatever it is asked of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gclint.code.file import SourceFile
from gclint.code.names import names
from gclint.code.remembered import remembered
from gclint.code.walk import FUNCTIONS, last_name, text_of, walk
from gclint.model.notes import quoted

LAYER = "GradientCheckpointingLayer"
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


_OWN_CLASS = frozenset(("self.__class__", "type(self)"))


@remembered
def questions(file: SourceFile) -> dict[int, tuple[str, str]]:
    """Return the code of a file that may ask for what differs, by its line.

    With it comes the name of the class that it asks of itself; nothing if it may ask of any.
    """
    found: dict[int, tuple[str, str]] = {}
    classes: list[ast.ClassDef] = []
    layer = {LAYER, *(each.bound for each in file.outline.all_imported() if each.name == LAYER)}
    plain = set[ast.AST]()
    for node in () if file.tree is None else walk(file.tree.module):
        plain.update(_plain(node))
        classes += [node] if isinstance(node, ast.ClassDef) else []
        name, text = last_name(node), text_of(node)
        is_read = isinstance(getattr(node, "ctx", None), ast.Load)
        if (
            (node not in plain and ((is_read and name in layer) or text == LAYER))
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
            is_own = isinstance(node, ast.Attribute) and quoted(node.value) in _OWN_CLASS
            owner = around[-1].name if is_own and around else ""
            if not owner or row not in found:
                found[row] = quoted(node), owner
    return found


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
