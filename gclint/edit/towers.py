"""Finds modules with a flag that an override leaves off, and that are no part of its model by its own code.

A function may make them, whoever makes the model may hand them over, and other code may give them the flag.
Without the override, the library switches them on.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from gclint.code.outline import Definition
from gclint.code.paths import behind_line
from gclint.code.walk import alternatives, dotted_name, last_name, walk
from gclint.network.construction import constructors, may_have_flag
from gclint.network.evaluation.classes import ClassInfo, nodes_of
from gclint.network.evaluation.modules import ModuleInfo, library_of
from gclint.network.evaluation.values import ClassValue, EvaluatedFunction, Instance
from gclint.network.outside import OutsideSwitch, outside_switches
from gclint.network.override import OldOverride, loads_model


def tower_doubts(override: OldOverride, models: Collection[ClassInfo]) -> Iterator[str]:
    """Yield what else would be switched on, or may be, of which the first of a kind."""
    without = f"without the override of `{override.model.name}`, checkpointing"
    classes = (*dict.fromkeys((*models, *override.parts)),)
    for found in (_made(override, classes), _given(models)):
        for what in found:
            yield f"{without} is also switched on in {what}, where it may be off today"
            break
    home = override.model.file
    for switch in outside_switches(override.model.module.library.project, home):
        if not switch.is_complete and _may_switch_on(override, switch, classes):
            row = switch.file.position(switch.offset).row
            where = f"line {row}{behind_line(switch.file.path, home.path)}"
            yield f"{without} is also switched on in what {where} gives a flag, where it may be off today"
            return


# -- what functions make


def _made(override: OldOverride, classes: Iterable[ClassInfo]) -> Iterator[str]:
    """Yield what functions make that constructors call, with a flag that the override leaves alone."""
    named, seen = override.named or (), set[ast.AST]()
    for info in classes:
        for base, making in constructors(info):
            yield from _made_in(making.node, base.module, named, seen)


def _made_in(
    code: ast.AST, module: ModuleInfo, named: Collection[ClassInfo], seen: set[ast.AST], function: str = ""
) -> Iterator[str]:
    """Yield what functions make that code names, and what it makes itself if it is in a ``function``."""
    if code in seen:
        return
    seen.add(code)
    is_foreign = bool(function) and module.is_library
    for node in walk(code):
        if function and loads_model(node):
            yield f"the models that `{function}` loads"
        name = dotted_name(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        # What a function of the library calls in turn makes no models of this project.
        for value in module.resolve(name) if name is not None and not is_foreign else ():
            if isinstance(value, EvaluatedFunction) and isinstance(node, (ast.Name, ast.Attribute)):
                yield from _made_in(value.node, value.scope.module, named, seen, name or "")
            elif isinstance(value, ClassValue) and not value.info.is_module:
                yield from _made_in(value.info.definition.node, value.info.module, named, seen, name or "")
            elif isinstance(value, ClassValue) and function:
                parts = sorted(value.info.all_parts, key=lambda part: part.name)
                yield from (
                    f"`{each.name}`" for each in parts if may_have_flag(each) and _is_left_off(each, named)
                )


def _is_left_off(info: ClassInfo, named: Collection[ClassInfo]) -> bool:
    """Return whether an override that names some classes does not set the flag of a class, if it has one."""
    return not info.is_checkpointing and not any(each in info.mro for each in named)


# -- what constructors get


def _given(models: Iterable[ClassInfo]) -> Iterator[str]:
    """Yield what models get from whoever makes them, and call; what other models make is seen there."""
    made = {part for model in models for part in model.parts}
    for model in (each for each in models if each not in made):
        for base, making in constructors(model):
            arguments = making.function.args
            taken = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
            for statement in walk(making.function):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                if isinstance(statement, ast.Assign) and isinstance(target, ast.Attribute):
                    kept = taken.intersection(_operands(statement.value))
                    if kept and any(_calls(node, target.attr) for info in model.mro for node in info.nodes):
                        yield f"what `{base.name}` is given as `{min(kept)}`"


def _operands(value: ast.expr) -> Iterator[str]:
    """Yield the names that an expression may be, as it depends on others."""
    if isinstance(value, ast.Name):
        yield value.id
    yield from (name for each in alternatives(value) for name in _operands(each))


def _calls(node: ast.AST, attribute: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == attribute


# -- what gets a flag from outside


def _may_switch_on(override: OldOverride, switch: OutsideSwitch, classes: Collection[ClassInfo]) -> bool:
    """Return whether a flag that is set from outside may be that of a module that an override leaves off."""
    named = override.named or ()
    if switch.attribute is not None:
        values = {value for info in classes for value in info.attribute(switch.attribute)}
        held = [value.info for value in values if isinstance(value, Instance)]
        is_known = len(held) == len(values) > 0
        return any(_is_left_off(info, named) for info in held) or (
            not is_known and any(_keeps(info, switch.attribute) for info in classes)
        )
    module = library_of(override.model.module.library.project).module(switch.file)
    set_on = [value.info for value in module.resolve(switch.receiver) if isinstance(value, ClassValue)]
    if set_on:
        return any(info in classes and _is_left_off(info, named) for info in set_on)
    around = switch.file.outline.around(switch.offset)
    kinds = [kind for each in around if not each.is_class for kind in _kinds_asked(each, switch.receiver)]
    if kinds and all(kind in {info.name for info in named} for kind in kinds):
        return False
    line = {base.definition for info in classes for base in info.mro}
    return any(each in line for each in around if each.is_class)


def _kinds_asked(function: Definition, name: str) -> Iterator[str]:
    """Yield the last names of the classes that a function asks for whether a variable is one of them."""
    for node in nodes_of(function):
        if isinstance(node, ast.Call) and last_name(node.func) == "isinstance" and len(node.args) == 2:
            kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            yield from map(last_name, kinds) if dotted_name(node.args[0]) == name else ()


def _keeps(info: ClassInfo, attribute: str) -> bool:
    """Return whether the code of a class assigns an attribute."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Store)
        for base in info.mro
        for node in base.nodes
    )
