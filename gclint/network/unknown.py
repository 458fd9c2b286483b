"""Finds base classes that are not available, so that nothing can be reported about their subclasses."""

from __future__ import annotations

import ast

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.packages import LIBRARY
from gclint.code.project import Project
from gclint.code.walk import arguments, dotted_name, is_super
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.network.evaluation.values import EvaluatedExternal


def unknown_bases(project: Project) -> tuple[str, ...]:
    """Return the names of unavailable classes of transformers that modules in the given files derive from."""
    found: set[str] = set()
    library = library_of(project)
    for file in project.readable(project.paths):
        # If transformers is available, as in nearly all runs, no file has to be searched.
        if project.library(file) is None and _uses_library(file):
            for info in library.module(file).classes.values():
                if _is_module_like(info):
                    found.update(_unknown(info))
    return tuple(sorted(found))


def _uses_library(file: SourceFile) -> bool:
    return any(
        mentions(statement.text, LIBRARY) and not (statement.module or "").startswith(".")
        for statement in file.outline.imports
    )


def _is_module_like(info: ClassInfo) -> bool:
    """Return whether a class looks like a module: it computes something, or contains parts that do."""
    has_forward = info.definition.method("forward") is not None
    return has_forward or info.names("ModuleList") or any(map(_is_of_module, info.nodes))


def _is_of_module(node: ast.AST) -> bool:
    """Return whether a node names something of torch's modules, or hands the configuration to a base."""
    if isinstance(node, ast.Attribute):
        return (dotted_name(node.value) or "").rpartition(".")[2] == "nn"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    given = arguments(node)
    is_initial = is_super(node.func.value) and node.func.attr == "__init__"
    if not is_initial or not given:
        return False
    return "config" in (given[0].keyword, (dotted_name(given[0].value) or "").partition(".")[0])


def _unknown(info: ClassInfo) -> set[str]:
    """Return the names of the class's bases in transformers whose code is not available."""
    if info.is_module:
        return set()  # Its other bases show what it is.
    names = (base.name for base in info.bases if isinstance(base, EvaluatedExternal))
    return {name.rpartition(".")[2] for name in names if name.partition(".")[0] == LIBRARY}
