"""Whether layers are in the mode of what runs them, and have its flag, once each is asked for its own.

A legacy branch asks the object that runs the layers whether it is in training, and whether checkpointing is
enabled in it. A checkpointing layer asks itself. Both get the same answer as long as these are set for all
modules at once, and all layers are found by that: they are made with the model, and registered as its parts.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import partial

from gclint.code.file import SourceFile
from gclint.code.outline import Definition
from gclint.code.paths import behind_line
from gclint.code.remembered import remembered
from gclint.code.walk import LOOPS, is_constant, is_super, last_name, walk
from gclint.edit.filling import stack_doubts
from gclint.edit.group import BlockGroup, classes_around
from gclint.edit.receivers import names_holding
from gclint.edit.replaced import layers_replaced
from gclint.edit.switching import FINDING, may_spell
from gclint.edit.users import files_beside, topic_beside, users_naming
from gclint.model.attributes import unregistered
from gclint.model.patches import CLASS
from gclint.network.evaluation.classes import ClassInfo, nodes_of
from gclint.network.evaluation.values import Container, ExternalInstance
from gclint.network.model import Network
from gclint.network.outside import CHECKPOINT_FUNCTION, FLAG, LIBRARY_SWITCH
from gclint.network.runsite import RunSite

_TRAINING = "training"
_SETTING = frozenset(("train", "eval"))
_WORDS = _SETTING | {_TRAINING}
_MAKING = "__init__"


def mode_doubts(network: Network, group: BlockGroup) -> Iterator[str]:
    """Yield doubts about layers whose mode or flag may not be that of what runs them."""
    legacy = [site for branch in group.branches.values() for site in branch.legacy]
    classes = {each: None for site in legacy for each in classes_around(site.owner, group)}
    for info in classes:
        reason = _of_class(info, group.blocks)
        if reason is not None:
            yield f"`{info.name}` {reason}, in which case the base class does not recompute them"
            return
    for file in _setting_modes(network) if legacy else ():
        where = behind_line(file.path, network.file.path)
        yield (
            f"line {_row_setting_mode(file)}{where} sets the mode of a part of a model, in which the base "
            "class may not recompute it"
        )
        return
    owners = {site.owner: None for site in legacy}
    held = {name for owner in owners for name in names_holding(network, owner, group.blocks)}
    for doubt in (doubt for site in legacy for doubt in _others_recomputed(network, site, group)):
        yield f"{doubt}, which the branch recomputes as well"
        return
    for place in layers_replaced(network, held | {CLASS}) if legacy else ():
        yield f"{place} may change which layers are recomputed, which the base class asks of each of them"
        return
    names = {block.name for block in group.blocks}
    for owner in owners:
        if not names.isdisjoint(unregistered(network.project, owner.file, owner.name)):
            yield (
                f"`{owner.name}` holds layers where neither torch nor the library finds them, so that they "
                "are not enabled"
            )


def _others_recomputed(network: Network, site: RunSite, group: BlockGroup) -> Iterator[str]:
    """Yield what a checkpointed call may run that is no layer, and becomes none."""
    run, row = site.scope.evaluate(site.receiver), site.rows[0]
    others = {f"`{each.name}`" for each in run if isinstance(each, ExternalInstance)}
    others |= {"several modules at once" for each in run if isinstance(each, Container)}
    yield from (f"the call on line {row} also runs {what}" for what in sorted(others))
    names = names_holding(network, site.owner, group.blocks)
    stacks = {each for each in names if any(isinstance(one, Container) for one in site.owner.attribute(each))}
    for name in sorted(stacks):
        is_recomputed = partial(_is_recomputed, group)
        yield from stack_doubts(network, site, name, is_recomputed, trusts_functions=True)


def _is_recomputed(group: BlockGroup, info: ClassInfo) -> bool:
    """Tell whether a class is a layer, or becomes one with a group."""
    return info.is_checkpointing or not set(info.mro).isdisjoint(group.blocks)


def _setting_modes(network: Network) -> Iterator[SourceFile]:
    """Yield files that set the modes of parts of models: the file, those beside it, and its importers."""
    files = (network.file, *files_beside(network, MODES, _WORDS))
    yield from (each for each in files if _row_setting_mode(each) is not None)
    importing = (each.file for each in users_naming(network, _WORDS))
    yield from (each for each in importing if each not in files and _row_setting_mode(each) is not None)


def _of_class(info: ClassInfo, blocks: Collection[ClassInfo]) -> str | None:
    """Return how a class may leave layers in another mode, or without the flag."""
    methods = tuple(info.methods())
    own = {method.name for method in methods}
    if any(_sets_mode(node) for node in info.nodes):
        return "puts modules into evaluation mode by itself"
    if own & _WORDS or info.assigns(_TRAINING):
        return "has its own way to put modules into evaluation mode"
    if own & FINDING:
        return f"has its own `{min(own & FINDING)}`, which may leave out layers"
    if any(each.name != LIBRARY_SWITCH and _sets_flag(each) for each in methods):
        return f"sets `{FLAG}` of other modules, or `{CHECKPOINT_FUNCTION}`"
    if any(_sets_computed(node) for node in info.nodes):
        return "sets attributes by computed names, which may be a flag or a mode"
    if not any(info in block.mro for block in blocks) and any(map(_bypasses, methods)):
        return "sets attributes past `nn.Module`, which may hide layers"
    names = {block.name for block in blocks}
    late = next((each for each in _run_later(info) if _makes(each, names)), None)
    if late is not None:
        return f"makes layers in `{late.name}`, perhaps after checkpointing is enabled"
    return None


def _sets_mode(node: ast.AST) -> bool:
    """Return whether a node puts a module into evaluation mode, or may do so."""
    if isinstance(node, ast.Attribute) and node.attr == _TRAINING:
        return not isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return _sets_by_name(node, _TRAINING)
    given = [*node.args, *(each.value for each in node.keywords)]
    is_switching = node.func.attr == "train" and any(not is_constant(each, True) for each in given)
    return is_switching or node.func.attr == "eval" or _sets_by_name(node, _TRAINING)


def _sets_by_name(node: ast.AST, name: str) -> bool:
    """Return whether a node is a ``setattr`` of a name."""
    is_setting = isinstance(node, ast.Call) and last_name(node.func) == "setattr" and len(node.args) > 1
    return is_setting and is_constant(node.args[1], name)  # type: ignore[attr-defined]


def _sets_computed(node: ast.AST) -> bool:
    """Return whether a node sets an attribute whose name is put together, and may be that of a flag."""
    if not isinstance(node, ast.Call) or last_name(node.func) != "setattr" or len(node.args) < 2:
        return False
    name = node.args[1]
    return not isinstance(name, ast.Constant) and any(may_spell(name, each) for each in (FLAG, _TRAINING))


def _sets_flag(method: Definition) -> bool:
    """Return whether a method sets the flag of something else than its own object, or what that runs."""
    for node in nodes_of(method):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            if node.attr == CHECKPOINT_FUNCTION or (node.attr == FLAG and not _is_own(node.value, method)):
                return True
        elif _sets_by_name(node, FLAG) or _sets_by_name(node, CHECKPOINT_FUNCTION):
            return True
    return False


def _bypasses(method: Definition) -> bool:
    """Return whether a method sets attributes of its object without the module's knowing of it, or may."""
    for node in nodes_of(method):
        if isinstance(node, ast.Call) and last_name(node.func) == "vars":
            if any(_is_own(each, method) for each in node.args):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__setattr__"):
            holder = node.value
            if is_super(holder) or last_name(holder) == "object" or _is_own(holder, method):
                return True
    return False


def _is_own(node: ast.AST, method: Definition) -> bool:
    """Return whether an expression is the object whose method it stands in."""
    return isinstance(node, ast.Name) and node.id == method.first_parameter


def _run_later(info: ClassInfo) -> Iterator[Definition]:
    """Yield the methods of a class that nothing runs which is run when it is made."""
    every = [method for base in info.mro for method in base.methods()]
    waiting, early = {_MAKING}, set[str]()
    while waiting:
        early |= waiting
        nodes = (node for method in every if method.name in waiting for node in nodes_of(method))
        waiting = {node.attr for node in nodes if isinstance(node, ast.Attribute)} - early
    return (method for method in info.methods() if method.name not in early)


def _makes(method: Definition, names: Collection[str]) -> bool:
    """Return whether a method calls one of some classes, or copies what its object holds."""
    for call in (node for node in nodes_of(method) if isinstance(node, ast.Call)):
        copied = call.args if last_name(call.func) == "deepcopy" else []
        if last_name(call.func) in names or any(
            _is_own(each, method) for arg in copied for each in walk(arg)
        ):
            return True
    return False


@remembered
def _row_setting_mode(file: SourceFile) -> int | None:
    """Return the row on which code outside of models sets the mode of what may be a part of one."""
    tree = file.tree
    if tree is None:
        return None
    for statement in tree.module.body:
        if isinstance(statement, ast.ClassDef):
            continue
        parts = {
            each.id for target in _targets(statement) for each in walk(target) if isinstance(each, ast.Name)
        }
        for node in walk(statement):
            if _sets_mode(node) and _is_part(node, parts):
                return file.position(file.places.start(node)).row
    return None


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield what a statement binds to the items of something."""
    for node in walk(statement):
        if isinstance(node, (*LOOPS, ast.comprehension)) and not isinstance(node, ast.While):
            yield node.target
        elif isinstance(node, ast.Assign) and _is_item(node.value):
            yield from node.targets


def _is_item(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Subscript)


def _is_part(node: ast.AST, parts: Collection[str]) -> bool:
    """Return whether what a mode is set of may be a part of something: no name, or that of an item."""
    target = node.func if isinstance(node, ast.Call) else node
    if not isinstance(target, ast.Attribute):
        return True
    return not isinstance(target.value, ast.Name) or target.value.id in parts


MODES = topic_beside("modes", lambda file: _row_setting_mode(file) is not None)
"""Which files of a folder set the modes of parts of models."""
