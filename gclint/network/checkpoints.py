"""Finds where code calls a checkpoint function or passes one on, by a search for words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import cast

from gclint.network.evaluation.classes import remembered
from gclint.network.evaluation.modules import Module
from gclint.network.evaluation.values import Function
from gclint.network.search import CHECKPOINT_METHODS
from gclint.source.outline import Definition
from gclint.source.tokens import Kind, tokens
from gclint.source.words import any_between, word_ends

# A text without any of these neither calls a checkpoint function nor passes one on.
_CALLING = re.compile(r"checkpoint(?:\w{0,99}[ \t]{0,99}\(|ing_func|\.|\b(?![ \t]{0,99}=))")
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
_DEFINING = re.compile(r"\b(?:def|class)[ \t]+$")
_MODULE_OF_FUNCTIONS = re.compile(r"checkpoint[ \t]*\.[ \t]*$")
_ASSIGNED = re.compile(r"[ \t]{0,99}(\w{1,99})[ \t]{0,99}(?::[^=\n]{1,400})?=(?!=)")
_AFTER = re.compile(r"[ \t]{0,99}(\(|==|=|)")


def may_call_checkpoint(text: str) -> bool:
    """Return whether a text may call a checkpoint function."""
    return any(word in text for word in _CALLING_TOO) or _CALLING.search(text) is not None


@remembered
def checkpoint_calls(module: Module) -> list[int]:
    """Return the offsets at which a file calls a checkpoint function or passes one on, in order.

    Functions that call one, in the file or in those it imports from, count as well. Imports, comments,
    strings, and methods that enable checkpointing do not.
    """
    file = module.file
    if not may_call_checkpoint(file.outline.code):
        return []
    names = _own_names(module)
    found = set(_direct(module))
    for name in names:
        for end in word_ends(file.outline.code, name, 0, len(file.outline.code)):
            start = end - len(name)
            if not file.outline.code[_line_start(file.outline.code, start) : start].rstrip().endswith("."):
                found.add(start)
    return [offset for offset in _in_code(module, found) if not _in_switch(module, offset)]


@remembered
def _direct(module: Module) -> list[int]:
    """Return the offsets of the names of checkpoint functions in the file itself."""
    text, imported = module.file.outline.code, _imported_functions(module)
    found: list[int] = []
    end = 0
    for match in _HINT.finditer(text):
        if match.start() >= end:
            start, end = _whole_word(text, match.start(), match.end())
            if _is_function(text, start, end, imported):
                found.append(start)
    for method in CHECKPOINT_METHODS:
        found += (
            end - len(method) for end in word_ends(text, method, 0, len(text)) if text[end : end + 1] in "\"'"
        )
    for name in imported:
        if _HINT.search(name) is None:
            ends = word_ends(text, name, 0, len(text))
            found += (end - len(name) for end in ends if text[end - len(name) - 1 : end - len(name)] != ".")
    return _in_code(module, set(found))


def _whole_word(text: str, start: int, end: int) -> tuple[int, int]:
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return start, end


def _is_function(text: str, start: int, end: int, imported: frozenset[str]) -> bool:
    word = text[start:end]
    before = text[_line_start(text, start) : start]
    after = _AFTER.match(text, end)
    following = "" if after is None else after[1]
    if _DEFINING.search(before) is not None or word in _SWITCHES or following == "=":
        return False
    if following == "(":
        return _OTHER.match(word) is None
    if word in CHECKPOINT_METHODS or _MODULE_OF_FUNCTIONS.search(before) is not None:
        return True
    return word in imported and not before.rstrip().endswith(".")


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


@remembered
def _imported_functions(module: Module) -> frozenset[str]:
    """Return the names under which a file imports functions from modules for checkpointing."""
    return frozenset(
        name.bound
        for name in module.file.outline.all_imported()
        if name.name is not None
        and name.name[:1].islower()
        and (name.module.rpartition(".")[2] in ("checkpoint", "checkpointing") or name.name == "checkpoint")
    )


def _own_names(module: Module) -> frozenset[str]:
    """Return the module-level names of a file whose definitions call a checkpoint function."""
    if _own_names not in module.facts:
        for each, names in _names_by_file(module).items():
            each.facts[_own_names] = frozenset(names)
    return cast("frozenset[str]", module.facts[_own_names])


def _names_by_file(module: Module) -> dict[Module, set[str]]:
    """Return those names for a file and all files whose functions it imports, which may import each other."""
    found: dict[Module, set[str]] = {}
    importers: defaultdict[Module, set[Module]] = defaultdict(set)
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
def _names_of_its_own(module: Module) -> set[str]:
    file, found = module.file, set[str]()
    direct = _direct(module)
    inside = [each for each in file.outline.definitions if each.parent is None]
    for offset in direct:
        if not any(each.start <= offset < each.end for each in inside):
            assigned = _ASSIGNED.match(file.outline.code, _line_start(file.outline.code, offset))
            if assigned is not None:
                found.add(assigned[1])
    functions = file.outline.functions.values()
    found |= {each.name for each in functions if any_between(direct, each.header, each.end)}
    return _closed(module, found)


def _closed(module: Module, names: set[str]) -> set[str]:
    """Return the names, the functions of the file that use one of them, and so on."""
    functions = list(module.file.outline.functions.values())
    while True:
        more = {each.name for each in functions if each.name not in names and _names_one(each, names)}
        if not more:
            return names
        names = names | more


def _names_one(function: Definition, names: set[str]) -> bool:
    text = function.outline.code
    return any(any(True for _ in word_ends(text, name, function.header, function.end)) for name in names)


@remembered
def _functions_of_others(module: Module) -> list[tuple[Module, str, str]]:
    """Return the functions that a file imports: the defining module, the name there, and the name here."""
    return [
        (value.scope.module, imported.name, imported.bound)
        for imported in module.file.outline.all_imported()
        if imported.name is not None and imported.bound[:1].islower()
        for value in module.lookup(imported.bound)
        if isinstance(value, Function) and value.scope.module is not module
    ]


def _in_code(module: Module, offsets: Collection[int]) -> list[int]:
    """Return the sorted offsets outside of imports, comments and strings, except strings for ``getattr``."""
    outline, text = module.file.outline, module.file.outline.code
    found: list[int] = []
    lines: defaultdict[int, list[int]] = defaultdict(list)
    for offset in sorted(offsets):
        if not (outline.in_long_string(offset) or outline.in_comment(offset)):
            lines[_line_start(text, offset)].append(offset)
    statements = [(each.start, each.end) for each in outline.imports]
    for line, within in lines.items():
        if any(start <= within[0] < end for start, end in statements):
            continue
        strings = [
            (token.start, token.end)
            for token in tokens(text, line, within[-1] + 1)
            if token.kind is Kind.STRING and "getattr" not in text[line : token.start]
        ]
        found += (each for each in within if not any(start <= each < end for start, end in strings))
    return found


def _in_switch(module: Module, offset: int) -> bool:
    """Return whether an offset is in a method with which users enable checkpointing."""
    return any(
        each.name in _SWITCHES and each.header <= offset < each.end
        for each in module.file.outline.definitions
    )


def calls_between(module: Module, start: int, end: int) -> Iterator[int]:
    """Yield the offsets in a range of a file's text at which a checkpoint function is called."""
    calls = checkpoint_calls(module)
    for offset in calls[bisect_right(calls, start - 1) :]:
        if offset >= end:
            return
        yield offset
