"""Hooks on modules that see which arguments of a call are passed by position, and which by keyword."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.remembered import remembered
from gclint.code.walk import FUNCTIONS, all_nodes, last_name, text_of, walk
from gclint.edit.replaced import files_imported
from gclint.edit.users import files_beside, topic_beside, users_naming
from gclint.model.callees import LOOKING_AROUND
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network
from gclint.network.runsite import RunSite

_AFTER = "register_forward_hook"
"""Registers hooks that run after a module; unless they ask for more, they get what is given by position."""
_REGISTERING = (
    "register_forward",
    "register_full_backward",
    "register_module_forward",
    "register_module_full_backward",
)
"""How the names of methods and functions begin that register hooks; those of gradients get the gradients
of what is passed by position."""
_TABLES = frozenset(
    f"_{scope}{what}_hooks"
    for scope in ("", "global_")
    for what in ("forward", "forward_pre", "backward", "backward_pre")
)
_SAYING = "print"
"""The function of Python's own that only says what it gets."""
_ENDINGS = ("forward_hook", "forward_pre_hook", "backward_hook", "backward_pre_hook")
_PARTS = frozenset(("_hook", "pre_hook", "_pre_hook"))
"""How texts end, or what they are, of which code puts such a name together."""
_WORD = "hook"
"""Every text that registers hooks has it."""


def hooking_doubts(network: Network, site: RunSite) -> Iterator[str]:
    """Yield what may see that an argument moves between position and keyword."""
    run = {site.owner, *site.blocks}
    holders = (each for each in network.module.classes.values() if not run.isdisjoint(each.all_parts))
    around = dict.fromkeys((site.owner, *site.blocks, *holders))
    found = [info.name for info in around if any(map(_is_hooking_itself, info.mro))]
    found += [network.file.path.name] if _is_hooking_others(network.file) else []
    found += [each.path.name for each in files_beside(network, FILES_THAT_HOOK, (_WORD,))]
    farther = (each.file for each in users_naming(network, frozenset((_WORD,))))
    found += [each.path.name for each in (*farther, *files_imported(network)) if _is_hooking(each)]
    for name in found[:1]:
        yield (
            f"`{name}` registers hooks that may see which arguments are passed by position, and which by "
            "keyword"
        )


@remembered
def _is_hooking_itself(info: ClassInfo) -> bool:
    """Return whether the code of a class registers such hooks, on whatever it is."""
    return any(True for _ in _hooking(info.nodes, info.file))


@remembered
def _is_hooking(file: SourceFile) -> bool:
    """Return whether a file registers such hooks, on whatever it is."""
    tree = file.tree if mentions(file.text, _WORD) else None
    return tree is not None and any(True for _ in _hooking(all_nodes(tree), file))


@remembered
def _is_hooking_others(file: SourceFile) -> bool:
    """Return whether a file does so on something else than ``self``, which only that class is about."""
    hooking = _hooking(all_nodes(file.tree), file) if _is_hooking(file) else ()
    return any(last_name(getattr(each, "value", each)) != "self" for each in hooking)


def _hooking(nodes: Iterable[ast.AST], file: SourceFile) -> Iterator[ast.AST]:
    """Yield what registers hooks of which it is not known that they do not mind, or names how to do so."""
    harmless = set[ast.AST]()
    for node in nodes:
        if isinstance(node, ast.Call) and last_name(node.func) == _AFTER and _ignores(node, file):
            harmless.add(node.func)
        elif node not in harmless and _names_hooking(node):
            yield node


def _names_hooking(node: ast.AST) -> bool:
    text = text_of(node)
    if text is not None:
        is_name = text.startswith(_REGISTERING) or text.endswith(_ENDINGS)
        return text.isidentifier() and (is_name or text in _TABLES | _PARTS)
    if isinstance(node, ast.alias):
        return node.name.startswith(_REGISTERING)
    name = last_name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    return name in _TABLES or name.startswith(_REGISTERING)


def _ignores(call: ast.Call, file: SourceFile) -> bool:
    """Return whether a call registers a function that is known not to read the arguments of the module."""
    options = {each.arg: each.value for each in call.keywords}
    hook = next(iter(call.args), options.pop("hook", None))
    if hook is None or None in options or "with_kwargs" in options:
        return False
    if last_name(hook) == _SAYING and isinstance(hook, ast.Name) and not _named(hook, file):
        return True
    functions = [hook] if isinstance(hook, ast.Lambda) else _functions(hook, file)
    return bool(functions) and not any(map(_reads_arguments, functions))


def _functions(hook: ast.expr, file: SourceFile) -> list[ast.AST]:
    """Return the functions that a name stands for in a file; none if it may be something else, too."""
    named = _named(hook, file)
    functions = [each for each in named if isinstance(each, FUNCTIONS) and not each.decorator_list]
    return [*functions] if len(functions) == len(named) else []


def _named(hook: ast.expr, file: SourceFile) -> list[ast.AST]:
    tree = file.tree if isinstance(hook, ast.Name) else None
    return [each for each in all_nodes(tree) if last_name(hook) in _bound(each)]


def _bound(node: ast.AST) -> tuple[str | None, ...]:
    """Return the names that a node binds."""
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, ast.alias):
        return ((node.asname or node.name).partition(".")[0],)
    if isinstance(node, ast.keyword):
        return ()
    names = getattr(node, "names", ())
    return (getattr(node, "name", None), getattr(node, "arg", None), getattr(node, "rest", None), *names)


def _reads_arguments(function: ast.AST) -> bool:
    """Return whether a hook that runs after a module may read its second parameter: the arguments."""
    taken = function.args if isinstance(function, (*FUNCTIONS, ast.Lambda)) else None
    second = [] if taken is None else [each.arg for each in (*taken.posonlyargs, *taken.args)][1:2]
    if not second:
        return True
    return any(
        (isinstance(each, ast.Name) and each.id in (*second, *LOOKING_AROUND))
        or (isinstance(each, ast.Attribute) and each.attr in LOOKING_AROUND)
        for each in walk(function)
    )


FILES_THAT_HOOK = topic_beside("onlookers", _is_hooking)
"""Which files of a folder register hooks that may mind how arguments are passed."""
