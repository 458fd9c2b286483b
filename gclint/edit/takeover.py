"""What models meet that lose an override of the library's switch: another one, or nothing to switch on."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator

from gclint.code.naming import MODEL_BASE
from gclint.code.packages import LIBRARY
from gclint.code.paths import behind_line
from gclint.code.walk import COMPREHENSIONS, alternatives, dotted_name, walk
from gclint.edit.own_functions import own_function_doubts
from gclint.edit.towers import tower_doubts
from gclint.edit.users import subclasses_around
from gclint.network.construction import always_assigned, constructors, flag_settings
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.values import ClassValue, EvaluatedExternal
from gclint.network.model import Network
from gclint.network.outside import LIBRARY_SWITCH
from gclint.network.override import OldOverride
from gclint.network.support import flag

_KNOWN = frozenset((*sys.stdlib_module_names, "torch", LIBRARY))
"""The packages whose classes have no such method, apart from the library's own class of models."""
_CONTAINERS = frozenset(("torch.nn.ModuleList", "torch.nn.Sequential"))
_MAKERS = frozenset(("_from_config", "from_pretrained"))


def takeover_doubts(override: OldOverride) -> Iterator[str]:
    """Yield what models without an override do otherwise, of which at most one thing of a kind."""
    models = tuple(_losing(override))
    yield from _first(_of_another(override, model) for model in models)
    yield from _first(_of_nothing(model) for model in models)
    yield from own_function_doubts(override, models)
    yield from tower_doubts(override, models)


def _first(reasons: Iterator[str | None]) -> Iterator[str]:
    found = next(filter(None, reasons), None)
    yield from () if found is None else (found,)


def _losing(override: OldOverride) -> Iterator[ClassInfo]:
    """Yield the models that have an override: its class, and the heirs without one of their own."""
    model = override.model
    network = Network(model.module.library.project, model.file)
    for each in (model, *subclasses_around(network, model)):
        if next((one for one in each.mro if _defines(one)), None) is model:
            yield each


def _defines(info: ClassInfo) -> bool:
    return info.definition.method(LIBRARY_SWITCH) is not None or info.assigns(LIBRARY_SWITCH)


def _of_another(override: OldOverride, model: ClassInfo) -> str | None:
    """Return what the library would call on a model instead of its own method, or may call."""
    named = f"without the override of `{override.model.name}`,"
    behind = _behind_library(model)
    for info in model.mro[model.mro.index(override.model) :]:
        if info in behind:
            continue
        if _is_librarys(info):
            return None
        others = [
            each
            for each in info.definition.children
            if each.name == LIBRARY_SWITCH and each is not override.method
        ]
        if others or (_defines(info) and info is not override.model) or info.assigns(LIBRARY_SWITCH):
            row = info.file.position(others[-1].header if others else info.definition.header).row
            where = f"line {row}{behind_line(info.file.path, override.model.file.path)}"
            return f"{named} that of `{info.name}` on {where} takes its place in `{model.name}`"
        for name, base in zip(info.base_names, info.bases, strict=True):
            if _is_librarys(base):
                break
            if not isinstance(base, ClassInfo) and not _is_known(base):
                return f"{named} `{name}`, which could not be found, may have one for `{model.name}`"
    return None


def _behind_library(model: ClassInfo) -> set[ClassInfo]:
    """Return the classes in the line of a model that come behind the library's own class of models."""
    behind: set[ClassInfo] = set()
    for info in model.mro:
        places = [place for place, base in enumerate(info.bases) if _is_librarys(base)]
        for base in info.bases[places[0] :] if places else ():
            behind.update(base.mro if isinstance(base, ClassInfo) else ())
    return {each for each in behind if not each.is_model}


def _is_librarys(base: ClassInfo | EvaluatedExternal | None) -> bool:
    """Return whether a base is the library's class of models."""
    if isinstance(base, ClassInfo):
        return base.name == MODEL_BASE and not base.is_namesake
    return base is not None and base.name.rpartition(".")[2] == MODEL_BASE


def _is_known(base: EvaluatedExternal | None) -> bool:
    if base is None:
        return False
    package, dot, _ = base.name.partition(".")
    return package in _KNOWN or (not dot and hasattr(builtins, package))


def _of_nothing(model: ClassInfo) -> str | None:
    """Return that the library may raise for a model, in which it finds no flag, once it looks for flags."""
    running = model.find_method("forward")
    is_made = running is not None and not _is_librarys(running[0])
    if not is_made or flag(model) is False or _has_flag(model, frozenset()):
        return None
    return (
        f"`{model.name}` is not known to always have a module with the flag, and without one "
        "`gradient_checkpointing_enable()` raises, which it does not with this override"
    )


def _has_flag(info: ClassInfo, around: frozenset[ClassInfo]) -> bool:
    """Return whether each object of a class has a module with the library's flag: itself, or a part."""
    if info.is_checkpointing or any(each.is_librarys and each.is_certain for each in flag_settings(info)):
        return True
    if info in around:
        return False
    return any(
        _makes_flag(base, statement.value, around | {info})
        for base in info.mro
        for statement in always_assigned(info, base)
        if statement.value is not None and _is_kept(info, statement)
    )


def _is_kept(info: ClassInfo, statement: ast.Assign | ast.AnnAssign) -> bool:
    """Return whether a statement assigns an attribute that no constructor assigns or deletes otherwise."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Attribute):
        return False
    name = targets[0].attr
    return all(
        node is targets[0]
        for _, making in constructors(info)
        for node in walk(making.function)
        if isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load)
    )


def _makes_flag(base: ClassInfo, value: ast.expr, around: frozenset[ClassInfo]) -> bool:
    """Return whether what an expression of a class gives has a flag, or a module with one, in each case."""
    ways = alternatives(value)
    if ways:
        return all(_makes_flag(base, each, around) for each in ways)
    if isinstance(value, (ast.List, ast.Tuple)):
        return any(_makes_flag(base, each, around) for each in value.elts)
    if isinstance(value, COMPREHENSIONS) and not isinstance(value, ast.DictComp):
        return _makes_flag(base, value.elt, around)
    function = dotted_name(value.func) if isinstance(value, ast.Call) else None
    if function is None or not isinstance(value, ast.Call):
        return False
    kind, _, maker = function.rpartition(".")
    made = base.module.resolve(kind if maker in _MAKERS else function)
    (only,) = made if len(made) == 1 else (None,)
    if isinstance(only, EvaluatedExternal):
        return only.name in _CONTAINERS and any(_makes_flag(base, each, around) for each in value.args)
    return isinstance(only, ClassValue) and _has_flag(only.info, around)
