"""Finds code that refers to ``_set_gradient_checkpointing``, whose override a fix may remove."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.naming import MODEL_BASE
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.outline import Definition
from gclint.code.paths import behind_line
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.code.walk import dotted_name, is_docstring, is_super, text_of, walk
from gclint.network.evaluation.modules import library_of
from gclint.network.index import subclasses
from gclint.network.outside import LIBRARY_SWITCH
from gclint.network.override import OldOverride

_IN_STRING = re.compile(rf"(?:\A|['\".]){LIBRARY_SWITCH}(?!\w)|(?<!\w){LIBRARY_SWITCH}(?:\Z|['\"(])")
"""Matches what names or runs the method in a string; in a message, its name stands among words."""


@dataclass(frozen=True)
class _Use:
    """A place where code refers to the method, in a call, as a value, or by a string with its name."""

    offset: int
    owner: Definition | None
    """The class whose code refers to it as its own, by ``self``, ``super()`` or the name alone."""


def uses_of(override: OldOverride) -> Iterator[str]:
    """Yield the places, in words, that refer to an override or to one that may be it."""
    project, model = override.model.module.library.project, override.model
    kin = {base for subclass in (model, *subclasses(project, model)) for base in subclass.mro}
    for file in project.chosen(files_mentioning(project, LIBRARY_SWITCH), SWITCH_USES, "", model.file):
        project.consult(model.file, file.path)
        for use in _uses(file):
            if file is model.file and override.method.start <= use.offset < override.method.end:
                continue
            owner = (
                None if use.owner is None else library_of(project).module(file).classes.get(use.owner.name)
            )
            if use.owner is None or owner in kin:
                yield f"line {file.position(use.offset).row}{behind_line(file.path, model.file.path)}"


@remembered
def _uses(file: SourceFile) -> tuple[_Use, ...]:
    return tuple(sorted(_in_file(file), key=lambda use: use.offset))


SWITCH_USES = Topic("switch-uses", lambda file, _key: bool(_uses(file)), is_about_others=True)
"""Asks which files refer to the method."""


def _in_file(file: SourceFile) -> Iterator[_Use]:
    if not mentions(file.text, LIBRARY_SWITCH) or file.tree is None:
        return
    for each in file.outline.imports:
        for item in each.items:
            if LIBRARY_SWITCH in (item.path, item.alias):
                yield _Use(item.start, None)
    docstrings: set[ast.AST] = set()
    for node in walk(file.tree.module):
        if isinstance(node, ast.Expr) and is_docstring(node):
            docstrings.add(node.value)
        elif _names_switch(node) and node not in docstrings:
            use = _use(file, node)
            if use is not None:
                yield use


def _names_switch(node: ast.AST) -> bool:
    """Return whether a node has the name of the method, or is a string that names it."""
    if isinstance(node, ast.Constant):
        return _IN_STRING.search(text_of(node) or "") is not None
    return LIBRARY_SWITCH in (getattr(node, field, None) for field in ("id", "attr", "arg"))


def _use(file: SourceFile, node: ast.AST) -> _Use | None:
    """Return the use of a method that a node names; None if the method is the library's."""
    holder = node.value if isinstance(node, ast.Attribute) else None
    receiver = "" if holder is None else dotted_name(holder) or ""
    if receiver.rpartition(".")[2] == MODEL_BASE:
        return None  # That of the library, by its name.
    start = file.places.start(node)
    offset = start if holder is None else file.places.end(node) - len(LIBRARY_SWITCH)
    classes = [each for each in file.outline.around(offset) if each.is_class]
    if any(each.name == MODEL_BASE for each in classes):
        return None  # The library itself asks for the signature first.
    is_of_own = holder is None or receiver in file.outline.own_names(offset) or is_super(holder)
    is_own = is_of_own and not isinstance(node, ast.Constant)
    return _Use(offset, classes[-1] if is_own and classes else None)
