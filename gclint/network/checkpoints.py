"""Finds where code calls a checkpoint function or passes one on, by the names of such functions."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import cast

from gclint.code.file import SourceFile
from gclint.code.remembered import remembered
from gclint.code.tree import DEFINITIONS
from gclint.code.walk import assigned, dotted_name, last_name, text_of, walk, walk_scope
from gclint.code.word_search import any_between
from gclint.network.evaluation.classes import words_of
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.values import EvaluatedFunction
from gclint.network.search import CHECKPOINT_METHODS

# A text without any of these neither calls a checkpoint function nor passes one on.
_CALLING = re.compile(r"checkpoint(?:\w{0,99}[\s\\]{0,99}\(|ing_func|ing[ \t]+import|\.|\b(?![ \t]{0,99}=))")
_CALLING_TOO = ("ckpt", "remat", ".checkpoint", "CheckpointWrapper", "CheckpointFunction")
_HINT = re.compile(r"checkpoint|ckpt|remat", re.IGNORECASE)
# Checkpoints of weights, and methods that enable checkpointing: they recompute nothing.
_OTHER = re.compile(
    r"_*(?:load|save|from|read|open|download|convert|find|resolve|is|has|use|uses|should|supports|enable"
    r"|disable|set|reset|can|write|list|delete|remove|parse|validate|verify|check|compare|sort|rotate|shard"
    r"|merge|average|restore|resume|push|upload|fetch|consolidate|inspect|strip|remap|rename|export|import)_"
    r"|.*(?:_|^)(?:enable|disable|path|paths|file|files|dir|name|url|mapping|config|version|state|states"
    r"|keys|shards|checkpoints|from_checkpoint|(?:load|save)_checkpoint)$"
    r"|(?!.*[Cc]heckpoint(?:Wrapper|Function|ed))_*[A-Z]"
)
_SWITCH_NAMES = (
    "gradient_checkpointing_enable",
    "gradient_checkpointing_disable",
    "set_gradient_checkpointing",
)
_SWITCHES = frozenset(prefix + name for name in _SWITCH_NAMES for prefix in ("", "_"))


def may_call_checkpoint(text: str) -> bool:
    """Return whether a text may call a checkpoint function."""
    return any(word in text for word in _CALLING_TOO) or _CALLING.search(text) is not None


@remembered
def checkpoint_calls(module: ModuleInfo) -> list[int]:
    """Return the offsets at which a file calls a checkpoint function or passes one on, in order.

    Functions that call one, in the file or in those it imports from, count as well. Imports, comments,
    strings, and methods that enable checkpointing do not.
    """
    file = module.file
    if not may_call_checkpoint(file.text):
        return []
    names = _own_names(module)
    nodes = _read_names(file) if names else ()
    named = (node for node in nodes if isinstance(node, ast.Name) and node.id in names)
    found = {*_direct(module), *(_offset(file, node) for node in named)}
    return [offset for offset in sorted(found) if not _in_switch(module, offset)]


@remembered
def _direct(module: ModuleInfo) -> list[int]:
    """Return the offsets of the names of checkpoint functions in the file itself, in order."""
    file, imported = module.file, _imported_functions(module)
    called: set[ast.AST] = set()
    found: list[int] = []
    for node in _read_names(file):
        if isinstance(node, ast.Call):
            called.add(node.func)
            # What `getattr` gets has a name, too.
            got = node.args[1] if dotted_name(node.func) == "getattr" and len(node.args) > 1 else None
            if got is not None and text_of(got) in CHECKPOINT_METHODS | imported:
                found.append(file.places.start(got))
        elif _is_function(node, imported, is_called=node in called):
            found.append(_offset(file, node))
    return sorted(found)


def _read_names(file: SourceFile) -> Iterator[ast.Call | ast.Name | ast.Attribute]:
    """Yield the names and attributes that a file's code reads, and its calls, each before what it calls."""
    for statement in () if file.tree is None else file.tree.module.body:
        for node in walk(statement):
            if isinstance(node, ast.Call) or (
                isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
            ):
                yield node


def _offset(file: SourceFile, node: ast.Name | ast.Attribute) -> int:
    """Return where a name begins, or that of an attribute."""
    return file.places.end(node) - len(last_name(node))


def _is_function(node: ast.Name | ast.Attribute, imported: frozenset[str], *, is_called: bool) -> bool:
    """Return whether a name or attribute is a checkpoint function, which is called or passed on."""
    word = last_name(node)
    is_imported = isinstance(node, ast.Name) and word in imported
    if word in _SWITCHES or _HINT.search(word) is None:
        return is_imported
    if is_called:
        return _OTHER.match(word) is None
    is_member = isinstance(node, ast.Attribute) and last_name(node.value).endswith("checkpoint")
    return is_imported or is_member or word in CHECKPOINT_METHODS


@remembered
def _imported_functions(module: ModuleInfo) -> frozenset[str]:
    """Return the names under which a file imports functions from modules for checkpointing."""
    return frozenset(
        name.bound
        for name in module.file.outline.all_imported()
        if name.name is not None
        and name.name[:1].islower()
        and (name.module.rpartition(".")[2] in ("checkpoint", "checkpointing") or name.name == "checkpoint")
    )


def _own_names(module: ModuleInfo) -> frozenset[str]:
    """Return the module-level names of a file whose definitions call a checkpoint function."""
    if _own_names not in module.facts:
        for each, names in _names_by_file(module).items():
            each.facts[_own_names] = frozenset(names)
    return cast("frozenset[str]", module.facts[_own_names])


def _names_by_file(module: ModuleInfo) -> dict[ModuleInfo, set[str]]:
    """Return those names for a file and all files whose functions it imports, which may import each other."""
    found: dict[ModuleInfo, set[str]] = {}
    importers: defaultdict[ModuleInfo, set[ModuleInfo]] = defaultdict(set)
    waiting = [module]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = set(_names_of_its_own(each))
            for other, _, _ in _functions_of_others(each):
                importers[other].add(each)
                waiting.append(other)
    waiting = list(found)
    while waiting:
        each = waiting.pop()
        imported = {bound for other, name, bound in _functions_of_others(each) if name in found[other]}
        if not imported <= found[each]:
            found[each] = _closed(each, found[each] | imported)
            waiting += importers[each]
    return found


@remembered
def _names_of_its_own(module: ModuleInfo) -> set[str]:
    file, direct = module.file, _direct(module)
    found = {name for name, start, end in _assigned(file) if any_between(direct, start, end)}
    functions = file.outline.functions.values()
    found |= {each.name for each in functions if any_between(direct, each.header, each.end)}
    return _closed(module, found)


def _assigned(file: SourceFile) -> Iterator[tuple[str, int, int]]:
    """Yield the names that a module's own statements assign, each with the place of its statement."""
    for statement in () if file.tree is None else file.tree.module.body:
        for node in () if isinstance(statement, DEFINITIONS) else (statement, *walk_scope(statement)):
            for target, _ in assigned(node):
                if isinstance(target, ast.Name):
                    yield target.id, *file.places.span(node)


def _closed(module: ModuleInfo, names: set[str]) -> set[str]:
    """Return the names, the functions of the file that use one of them, and so on."""
    functions = list(module.file.outline.functions.values())
    while True:
        more = {each.name for each in functions if not names.isdisjoint(words_of(each))} - names
        if not more:
            return names
        names = names | more


@remembered
def _functions_of_others(module: ModuleInfo) -> list[tuple[ModuleInfo, str, str]]:
    """Return the functions that a file imports: the defining module, the name there, and the name here."""
    return [
        (value.scope.module, imported.name, imported.bound)
        for imported in module.file.outline.all_imported()
        if imported.name is not None and imported.bound[:1].islower()
        for value in module.lookup(imported.bound)
        if isinstance(value, EvaluatedFunction) and value.scope.module is not module
    ]


def _in_switch(module: ModuleInfo, offset: int) -> bool:
    """Return whether an offset is in a method with which users enable checkpointing."""
    return any(each.name in _SWITCHES for each in module.file.outline.around(offset))


def calls_between(module: ModuleInfo, start: int, end: int) -> Iterator[int]:
    """Yield the offsets in a range of a file's text at which a checkpoint function is called."""
    calls = checkpoint_calls(module)
    for offset in calls[bisect_right(calls, start - 1) :]:
        if offset >= end:
            return
        yield offset
