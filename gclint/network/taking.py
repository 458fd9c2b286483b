"""Finds other files that use a name of a module, in whatever way they get it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from gclint.code.file import SourceFile
from gclint.code.likely import given_by_word, likely_imported
from gclint.code.neighbouring_files import files_importing, files_mentioning
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.code.walk import is_docstring, text_of, walk

_BY_TEXT = (
    *("import_module", "__import__", "sys.modules", "spec_from_file_location", "runpy"),
    *("mock", "monkeypatch"),
)
"""Files with one of these words may name a module by a text."""
_PACKAGE = "__init__"


def is_taken(project: Project, file: SourceFile, name: str) -> bool:
    """Return whether another file may use what a file binds to a name, be it only imported there."""
    modules = sorted({file.path.stem, project.model(file.path)})
    importing = given_by_word(project, likely_imported)
    given = {path for word in modules for path in importing.get(word, ())}
    likely = (
        *project.in_order(given),
        *files_importing(project, modules),
        *files_mentioning(project, *_BY_TEXT),
    )
    by_star = "*" if file.outline.exports(name) is not False else ""
    key = "|".join((name, " ".join(modules), by_star))
    return any(each is not file for each in project.chosen(dict.fromkeys(likely), TAKING, key, file))


def _takes(file: SourceFile, key: str) -> bool:
    name, modules, by_star = key.split("|")
    words = modules.split()
    if file.tree is None or not any(word in file.text for word in words):
        return False
    if _imports(file, {name, by_star}, words):
        return True
    bound = set(_bound(file, words))
    nodes = [*walk(file.tree.module)]
    if not bound and not any(_names(text, words) for text in _texts(nodes)):
        return False
    return any(_reads(node, name) for node in nodes) or _is_handed_on(nodes, bound)


def _imports(file: SourceFile, names: Collection[str], modules: Collection[str]) -> bool:
    """Return whether a file imports a name from a module that is called like one of some."""
    return any(
        _last(statement.module) in modules and any(item.path in names for item in statement.items)
        for statement in file.outline.imports
        if statement.module is not None
    )


def _last(module: str) -> str:
    """Return the last word of a module's name; only dots are the package itself."""
    return module.rpartition(".")[2] or _PACKAGE


def _bound(file: SourceFile, modules: Collection[str]) -> Iterator[str]:
    """Yield the variables of a file for modules that are called like one of some, or for their packages."""
    for statement in file.outline.imports:
        for item in statement.items:
            if item.path.rpartition(".")[2] in modules:
                yield item.alias or item.path.partition(".")[0]


def _texts(nodes: Collection[ast.AST]) -> Iterator[str]:
    """Yield the texts in code, without docstrings."""
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr) and is_docstring(node)}
    yield from filter(None, (text_of(node) for node in nodes if node not in docstrings))


def _names(text: str, words: Collection[str]) -> bool:
    return not set(re.findall(r"\w+", text)).isdisjoint(words)


def _reads(node: ast.AST, name: str) -> bool:
    """Return whether a node has a name as an attribute, as a keyword, or in a text."""
    return name in (getattr(node, "attr", None), getattr(node, "arg", None)) or _names(
        text_of(node) or "", (name,)
    )


def _is_handed_on(nodes: Collection[ast.AST], modules: Collection[str]) -> bool:
    """Return whether a variable for a module stands anywhere but before a dot."""
    asked = {node.value for node in nodes if isinstance(node, ast.Attribute)}
    return any(isinstance(node, ast.Name) and node.id in modules and node not in asked for node in nodes)


TAKING = Topic("taking", _takes, is_about_others=True)
"""Asks which files may use this name of a module that is called like one of these."""
