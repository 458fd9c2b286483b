"""Finds out whether the library enables checkpointing for a stack, through its flag, or something else does.

The flag is the attribute ``gradient_checkpointing``, which is initialized to False in a model with
``supports_gradient_checkpointing``. ``gradient_checkpointing_enable()`` sets it on every module that has it.
A block that becomes a checkpointing layer has the flag itself, and is enabled with the others. Code that
sets another flag, or that of a single module, would not enable it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.naming import MODEL_BASE
from gclint.code.outline import Definition
from gclint.code.paths import shown
from gclint.code.project import Project
from gclint.code.tokens import one_line
from gclint.code.walk import (
    arguments,
    assigned,
    conjuncts,
    dotted_name,
    is_constant,
    last_name,
    text_of,
    walk,
)
from gclint.network.construction import flag_settings, own_flag_settings
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import library_of
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import EvaluatedExternal, Instance
from gclint.network.index import subclasses
from gclint.network.outside import CHECKPOINT_FUNCTION, FLAG, LIBRARY_SWITCH, OutsideSwitch, outside_switches
from gclint.network.override import old_overrides
from gclint.network.runsite import RunSite
from gclint.network.support import SUPPORT, flag, models_running
from gclint.network.words import words_in

_MODE = "training"
_UNFROZEN, _LEARNS = "_requires_grad", "requires_grad"
"""By which a model tells whether its own parameters are frozen, and parameters whether they are."""
_RECORDS = "torch.is_grad_enabled"
_METHODS = (
    "gradient_checkpointing_enable",
    "gradient_checkpointing_disable",
    "activation_checkpointing_enable",
    "activation_checkpointing_disable",
)
_ENABLE = "call `gradient_checkpointing_enable()` on the model instead"


@dataclass(frozen=True)
class OtherSwitch:
    """Something other than the library that enables checkpointing for a stack."""

    what: str
    """A clause that contains ``{where}``."""
    file: SourceFile
    offset: int
    advice: str
    """What the user should do."""

    def seen_from(self, file: SourceFile) -> str:
        """Return a description for a finding in ``file``."""
        row = self.file.position(self.offset).row
        where = f"on line {row}" if self.file is file else f"in {shown(self.file.path)} on line {row}"
        return self.what.replace("{where}", where)


def other_switch(project: Project, sites: Sequence[RunSite]) -> OtherSwitch | None:
    """Return what else enables checkpointing for the blocks of call sites; None if only the library does."""
    for site in sites:
        if site.checkpointed:
            found = _condition(site)
            if found is not None:
                return found
    for owner in dict.fromkeys(site.owner for site in sites):
        legacy = [site for site in sites if site.owner is owner and site.checkpointed]
        found = next(_of_owner(project, owner, legacy), None)
        if found is not None:
            return found
    return None


def switch_doubts(project: Project, sites: Sequence[RunSite]) -> Iterator[str]:
    """Yield what is uncertain about how checkpointing is enabled, but does not rule out a fix."""
    for file in dict.fromkeys(site.owner.file for site in sites):
        for switch in outside_switches(project, file):
            if switch.attribute is None and switch.is_asked and not (switch.is_complete or switch.is_off):
                row = switch.file.position(switch.offset).row
                yield (
                    f"`{one_line(switch.receiver)}.{FLAG}`, which is set in {shown(switch.file.path)} on "
                    f"line {row}, may enable it without the function that the library sets"
                )
    for site in sites:
        if not site.checkpointed:
            continue
        arm = _deciding_test(site)
        if arm is not None and not any(is_training(site.scope, part) for part in conjuncts(arm)):
            row, _ = site.rows
            yield (
                f"the checkpointed call on line {row} does not depend on `training`, and a checkpointing "
                "layer is not recomputed in evaluation mode"
            )
    for owner in dict.fromkeys(site.owner for site in sites if site.checkpointed):
        flags = {model.name: flag(model) for model in models_running(owner)}
        unknown = [name for name, value in flags.items() if value is None]
        if unknown and True not in flags.values():
            yield f"a base of `{unknown[0]}` could not be found, so it is not known to support checkpointing"
        elif not owner.resolved and not owner.is_model and not any(flag_settings(owner)):
            yield f"a base of `{owner.name}` could not be found, so it is not known where its flag is set"


# -- the condition


def _condition(site: RunSite) -> OtherSwitch | None:
    """Return the condition of a checkpointed call, if it tests anything but the flag and the mode."""
    test = _deciding_test(site)
    if test is None:
        return None
    for part in conjuncts(test):
        if not (is_flag(site.scope, part) or is_mode(site.scope, part)):
            shown_part = one_line(site.source(part))
            return OtherSwitch(
                f"the condition `{shown_part}` {{where}} decides whether it is checkpointed",
                site.scope.module.file,
                site.span(part)[0],
                f"make the condition `self.{FLAG} and self.training`",
            )
    return None


def _deciding_test(site: RunSite) -> ast.expr | None:
    """Return the test that decides whether a checkpointed call is executed."""
    tests = [arm.node.test for arm in reversed(site.arms) if arm.taken]
    for test in tests:
        if any(is_flag(site.scope, part) for part in conjuncts(test)):
            return test
    return next((test for test in tests if names_checkpointing(test)), None)


def names_checkpointing(test: ast.expr) -> bool:
    """Return whether a test is about checkpointing, by the words in it."""
    return any("checkpoint" in word for word in words_in(test))


def is_flag(scope: Scope, part: ast.expr) -> bool:
    """Return whether an expression is the flag of ``self``."""
    own = scope.self_name
    if isinstance(part, ast.Attribute):
        return own is not None and dotted_name(part) == f"{own}.{FLAG}"
    given = arguments(part) if isinstance(part, ast.Call) and dotted_name(part.func) == "getattr" else ()
    if own is None or len(given) < 2 or dotted_name(given[0].value) != own:
        return False
    is_off = len(given) == 2 or is_constant(given[2].value, False)
    return is_off and text_of(given[1].value) == FLAG


def is_mode(scope: Scope, part: ast.expr) -> bool:
    """Return whether an expression is the mode of ``self``, or tells whether gradients are recorded.

    Without gradients, it makes no difference whether something is recomputed.
    """
    if isinstance(part, ast.Call) and not (part.args or part.keywords):
        return scope.evaluate(part.func) == {EvaluatedExternal(_RECORDS)}
    if scope.owner is not None and dotted_name(part) == f"{scope.self_name}.{_UNFROZEN}":
        return all(_freezes(method) for base in scope.owner.mro for method in base.methods())
    return is_training(scope, part)


def _freezes(method: Definition) -> bool:
    """Return whether a method says only that something is frozen if it also freezes something."""
    nodes = [node for statement in method.function.body for node in walk(statement)]
    values = [value for node in nodes for target, value in assigned(node) if last_name(target) == _UNFROZEN]
    frozen = (value for node in nodes for target, value in assigned(node) if last_name(target) == _LEARNS)
    return all(is_constant(each, True) for each in values) or any(is_constant(each, False) for each in frozen)


def is_training(scope: Scope, part: ast.expr) -> bool:
    """Return whether an expression is the mode of ``self``."""
    return scope.self_name is not None and dotted_name(part) == f"{scope.self_name}.{_MODE}"


# -- the flag and the model


def _of_owner(project: Project, owner: ClassInfo, legacy: Sequence[RunSite]) -> Iterator[OtherSwitch]:
    """Yield what else sets the flag of a class that runs blocks, or of all modules.

    The flag enables its ``legacy`` calls of the blocks, the checkpointed ones, today.
    """
    if legacy:
        yield from _settings(project, owner)
        yield from _without_support(owner, legacy)
    seen: dict[ClassInfo, None] = {}
    for model in models_running(owner):
        # Whoever inherits from what inherits from a model inherits from that, too.
        if model not in seen:
            seen |= dict.fromkeys((model, *subclasses(project, model)))
    for info in seen:
        yield from _overrides(info)
    for switch in outside_switches(project, owner.file):
        if not switch.is_complete and _reaches(project, switch, owner, legacy=bool(legacy)):
            does = "disables" if switch.is_off else "enables"
            what = f"`{one_line(switch.receiver)}.{FLAG}`, which is set {{where}}, {does} it"
            yield OtherSwitch(what, switch.file, switch.offset, _ENABLE)


def _settings(project: Project, owner: ClassInfo) -> Iterator[OtherSwitch]:
    inheriting = ((subclass, subclass) for subclass in subclasses(project, owner))
    for info, base in (*((owner, base) for base in owner.mro), *inheriting):
        for setting in own_flag_settings(info, base):
            if not setting.is_librarys:
                value = one_line(setting.code)
                is_property = setting.method == FLAG
                what = f"`{FLAG}` is " + ("a property" if is_property else f"set to `{value}`") + " {where}"
                advice = f"initialize it to False, and {_ENABLE}"
                yield OtherSwitch(what, setting.file, setting.offset, advice)


def _without_support(owner: ClassInfo, sites: Sequence[RunSite]) -> Iterator[OtherSwitch]:
    """Yield the model for which the library raises, so that something else must enable checkpointing.

    A branch that calls the library's checkpoint function does not count: without the library, it is dead.
    """
    models = models_running(owner)
    if (
        models
        and all(flag(model) is False for model in models)
        and not all(map(_has_librarys_function, sites))
    ):
        own = [each for each in models[0].mro if each.is_model and each.name != MODEL_BASE]
        base = next((each for each in own if each.switch(SUPPORT) is not None), own[-1])
        yield OtherSwitch(
            f"`gradient_checkpointing_enable()` raises for `{base.name}` {{where}}, which does not "
            "support checkpointing",
            base.file,
            base.definition.header,
            "set `supports_gradient_checkpointing = True` there if the model supports it",
        )


def _has_librarys_function(site: RunSite) -> bool:
    func = site.call.func
    if (
        not isinstance(func, ast.Attribute)
        or dotted_name(func) != f"{site.scope.self_name}.{CHECKPOINT_FUNCTION}"
    ):
        return False
    return not any(_own_function(info) for info in site.owner.mro if info.name != MODEL_BASE)


def _own_function(info: ClassInfo) -> bool:
    """Return whether a class itself sets a checkpoint function under the library's name."""
    declared = {node.target for node in info.nodes if isinstance(node, ast.AnnAssign) and node.value is None}
    return any(
        isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and node not in declared
        and (node.id if isinstance(node, ast.Name) else node.attr) == CHECKPOINT_FUNCTION
        for node in info.nodes
    )


def _overrides(model: ClassInfo) -> Iterator[OtherSwitch]:
    """Yield the methods of a model that override the library's methods for setting flags."""
    old = {override.method for override in old_overrides([model])}
    for info in model.mro:
        if info.name == MODEL_BASE:
            return
        for method in info.methods():
            if method.name == LIBRARY_SWITCH and method in old:
                continue
            if method.name in (*_METHODS, LIBRARY_SWITCH) and not _hands_on(method):
                yield OtherSwitch(
                    f"`{info.name}` overrides `{method.name}` {{where}}",
                    info.file,
                    method.header,
                    "remove that, or call the library's method in it",
                )


def _hands_on(method: Definition) -> bool:
    """Return whether a method calls the library's own method, of its model or of one that it contains."""
    names = (LIBRARY_SWITCH,) if method.name == LIBRARY_SWITCH else _METHODS
    nodes = (node for statement in method.function.body for node in walk(statement))
    return any(isinstance(node, ast.Attribute) and node.attr in names for node in nodes)


def _reaches(project: Project, switch: OutsideSwitch, owner: ClassInfo, *, legacy: bool) -> bool:
    """Return whether a statement from outside may set the flag of a class, or of the layers that it runs."""
    name = switch.attribute
    if name is None:  # What has no flag yet may get one from the fix.
        return legacy or not (switch.is_off or switch.is_asked)
    if not legacy or _is_of_another(project, switch, owner):
        return False
    if any(each.is_model for each in owner.mro):
        return True
    modules = {owner.module, *(model.module for model in models_running(owner))}
    return any(_may_hold(info, name, owner) for module in modules for info in module.classes.values())


def _is_of_another(project: Project, switch: OutsideSwitch, owner: ClassInfo) -> bool:
    """Return whether a class sets the flag of a known part of its own that is not an ``owner``."""
    first, *names = switch.receiver.split(".")
    outline, module = switch.file.outline, library_of(project).module(switch.file)
    around = outline.around(switch.offset) if names and first in outline.own_names(switch.offset) else ()
    for info in module.classes.values():
        if info.definition in around:
            values = info.attribute(names[0])
            return bool(values) and not any(
                not isinstance(value, Instance) or any(owner in part.mro for part in value.info.all_parts)
                for value in values
            )
    return False


def _may_hold(info: ClassInfo, name: str, owner: ClassInfo) -> bool:
    """Return whether an attribute of a class holds, or may hold, an instance of ``owner``."""
    values = info.attribute(name)
    if values:
        return any(isinstance(value, Instance) and owner in value.info.mro for value in values)
    makes_one = any(owner in part.mro for part in info.parts)
    return makes_one and any(isinstance(node, ast.Attribute) and node.attr == name for node in info.nodes)
