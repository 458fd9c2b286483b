"""Why someone should look before blocks become checkpointing layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from gclint.code.neighbouring_files import files_mentioning
from gclint.code.outline import Definition
from gclint.code.paths import behind_line, shown
from gclint.code.walk import dotted_name, last_name, text_of
from gclint.edit.branch import leaves_out_training
from gclint.edit.differences import differences
from gclint.edit.group import BlockGroup, classes_around, root_of, sites_of
from gclint.edit.recomputed import recomputation_doubts, stores_on_self, unknown_doubts
from gclint.edit.users import subclasses_around
from gclint.model.replacements import CALLING
from gclint.network.evaluation.classes import ClassInfo, nodes_of, words_of
from gclint.network.learned import is_decorated_unrecorded
from gclint.network.model import Network
from gclint.network.outside import CHECKPOINT_FUNCTION, FLAG, FUNCTION_SETTINGS, functions_set
from gclint.network.runsite import RunSite
from gclint.network.traits import statistics_class
from gclint.releases import FIRST_NON_REENTRANT
from gclint.wording import listed_code

_HOOKING = frozenset(("register_forward_hook", "register_forward_pre_hook"))
_HOOKING_GRADIENTS = frozenset(
    ("register_hook", "register_post_accumulate_grad_hook", "register_full_backward_hook", "register_prehook")
)
_RECORDED = "_can_record_outputs"
_GIVEN_OUT = ("hidden_states", "attentions")
"""How names of outputs end of which no model computes a loss."""
_REGISTERING = "__init_subclass__"
_READ_BY_BASE = "training"
_MOST_SUBCLASSES = 3
_PLAIN_METACLASSES = frozenset(("type", "ABCMeta"))
"""Metaclasses of Python to which bases are nothing but bases."""


def block_doubts(info: ClassInfo) -> list[str]:
    """Return why someone should look before a block is recomputed in the backward pass."""
    doubts: list[str] = []
    part = statistics_class(info)
    if part is not None:
        where = f"`{part}`" if part == info.name else f"`{part}` in `{info.name}`"
        doubts.append(
            f"{where} keeps running statistics, which recomputation updates again, so check that it may"
        )
    if stores_on_self(info):
        doubts.append(f"`{info.name}.forward` assigns to attributes of `self`, which recomputation repeats")
    for name in CALLING:
        if info.find_method(name) is not None:
            doubts.append(f"`{info.name}` overrides `{name}`, and may bypass that of the base class")
    if info.find_method(_READ_BY_BASE) is not None or any(each.assigns(_READ_BY_BASE) for each in info.mro):
        doubts.append(f"`{info.name}` has a `{_READ_BY_BASE}` of its own, which the base class reads")
    doubts += _registration_doubts(info)
    forward = info.find_method("forward")
    if forward is not None and is_decorated_unrecorded(forward[1]):
        doubts.append(
            f"`{info.name}.forward` records no gradients, and reentrant checkpointing raises where none come "
            "out of it"
        )
    return [*doubts, *later_doubts(info)]


def later_doubts(info: ClassInfo) -> Iterator[str]:
    """Yield that a block runs only once a checkpoint has returned, if it does."""
    forward = info.find_method("forward")
    if forward is not None and _runs_later(forward[1]):
        yield f"`{info.name}.forward` is a generator or a coroutine, which a checkpoint cannot run"


def _runs_later(method: Definition) -> bool:
    """Return whether a call of a method only makes an object that runs it."""
    return isinstance(method.node, ast.AsyncFunctionDef) or any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes_of(method)
    )


def _registration_doubts(info: ClassInfo) -> Iterator[str]:
    """Yield what keeps the base class from what it does to its subclasses, and to their flag."""
    registering = info.find_method(_REGISTERING)
    if registering is not None and not any(
        isinstance(node, ast.Attribute) and node.attr == _REGISTERING for node in nodes_of(registering[1])
    ):
        yield (
            f"`{registering[0].name}.{_REGISTERING}` does not call that of its base, by which transformers "
            "5.23 and later make a class recompute"
        )
    made_by = {
        last_name(each.value)
        for base in info.mro
        for each in getattr(base.definition.node, "keywords", ())
        if each.arg == "metaclass"
    }
    for name in sorted(made_by - _PLAIN_METACLASSES):
        yield f"the metaclass `{name}` gets the bases of `{info.name}`, which change"
    own = next(
        (
            name
            for name in (FLAG, CHECKPOINT_FUNCTION)
            if any(name in base.definition.text and name in words_of(base.definition) for base in info.mro)
        ),
        None,
    )
    if own is not None:
        yield f"`{info.name}` has its own `{own}`, which is also the base class's"


def recorded_doubts(network: Network, group: BlockGroup) -> list[str]:
    """Return doubts about models that take something out of blocks that were not recomputed."""
    doubts: list[str] = []
    for owner in dict.fromkeys(site.owner for site in sites_of(network, group)):
        if any(last_name(call.func) in _HOOKING for info in owner.mro for call in _calls(info)):
            doubts.append(
                f"`{owner.name}` registers forward hooks, and tensors that they take out of a block "
                "receive no gradient under reentrant checkpointing"
            )
        hooking = next((each for each in classes_around(owner, group) if _hooks_gradients(each)), None)
        if hooking is not None:
            doubts.append(
                f"`{hooking.name}` registers hooks on gradients, which reentrant checkpointing may run for "
                "parts of a gradient"
            )
        recorded = sorted({key for info in owner.mro for key in _recorded(info)})
        if recorded:
            doubts.append(
                f"`{owner.name}` records {listed_code(recorded)} inside its blocks, and losses computed from "
                "them have no gradient under reentrant checkpointing"
            )
    return doubts


def _hooks_gradients(info: ClassInfo) -> bool:
    """Return whether a class hooks into gradients, which are added up where a part is shared."""
    names = (last_name(call.func) for call in _calls(info))
    return not _HOOKING_GRADIENTS.isdisjoint(names)


def _recorded(info: ClassInfo) -> Iterator[str]:
    """Yield what a class says is recorded of its parts, other than what every model gives out."""
    for table in info.literals(_RECORDED):
        if isinstance(table, ast.Dict):
            names = ((text_of(key) if key is not None else None) or "outputs" for key in table.keys)
            yield from (each for each in names if not each.endswith(_GIVEN_OUT))
        elif not (isinstance(table, ast.Constant) and table.value is None):
            yield "outputs"


def compiled_doubts(network: Network, group: BlockGroup) -> list[str]:
    """Return doubts about blocks that are compiled when they are made, without their base class's part."""
    owners = dict.fromkeys(site.owner for site in sites_of(network, group))
    return [
        f"`{owner.name}` compiles modules with `torch.jit`, which bypasses the base class"
        for owner in owners
        if any(_compiles(call) for info in owner.mro for call in _calls(info))
    ]


def _compiles(call: ast.Call) -> bool:
    holder, _, name = (dotted_name(call.func) or "").rpartition(".")
    return holder.rpartition(".")[2] == "jit" and name.startswith(("script", "trace"))


def _calls(info: ClassInfo) -> Iterator[ast.Call]:
    return (node for node in info.nodes if isinstance(node, ast.Call))


def branch_doubts(network: Network, group: BlockGroup) -> list[str]:
    """Return what the plain call passes otherwise than the checkpointed one that it replaces."""
    doubts: list[str] = []
    for branch in group.branches.values():
        row = network.file.position(branch.span[0]).row
        doubts += [
            f"check that checkpointing may use the plain call on line {row}, which the fix keeps: "
            f"{difference.description}"
            for difference in differences(branch, network.releases)
        ]
        if not all(site.calls_library or site.calls_only_torch for site in branch.legacy):
            doubts.append(
                f"the branch on line {row} does not surely call torch's checkpoint function, or has options "
                "set for it elsewhere"
            )
        if any(site.calls_library for site in branch.legacy):
            doubts += islice(_functions_set(network, row), 1)
        if any(site.option("context_fn") is not None for site in branch.legacy):
            doubts.append(f"the branch on line {row} passes a `context_fn`, which the base class does not")
        if network.releases.come_before(FIRST_NON_REENTRANT) and any(
            site.may_be_non_reentrant for site in branch.legacy
        ):
            doubts.append(
                f"the branch on line {row} may choose `use_reentrant=False`, and the base class checkpoints "
                f"with reentry before transformers {FIRST_NON_REENTRANT} unless it is told otherwise"
            )
        if leaves_out_training(branch):
            doubts.append(
                f"the branch on line {row} also checkpoints in evaluation mode, which the base class does not"
            )
    return doubts


def _functions_set(network: Network, row: int) -> Iterator[str]:
    """Yield where code sets the function by which a branch checkpoints, and not that of its layers."""
    project, own = network.project, network.file
    for file in project.chosen(files_mentioning(project, CHECKPOINT_FUNCTION), FUNCTION_SETTINGS, "", own):
        for offset in functions_set(project.consult(own, file.path)):
            where = f"line {file.position(offset).row}{behind_line(file.path, own.path)}"
            yield (
                f"{where} may set the checkpoint function of the branch on line {row}, and the layers would "
                "keep the one that the library sets"
            )


def shared_bases(network: Network, group: BlockGroup) -> list[str]:
    """Return doubts about classes that are no blocks and would change along with a base."""
    doubts: list[str] = []
    blocks = {block.info for block in network.unprotected_blocks} | set(group.blocks)
    recomputed = blocks | {each for each in network.module.classes.values() if each.is_checkpointing}
    for info in group.blocks:
        root = root_of(info)
        others = sorted(
            other.name
            for other in network.module.classes.values()
            if root in other.mro and other not in blocks and other is not root
        )
        if others:
            doubts.append(f"`{root.name}` is also a base of `{others[0]}`, which is not a stacked block")
        holders = sorted(each.name for each in recomputed if info not in each.mro and info in each.all_parts)
        if holders:
            doubts.append(f"`{info.name}` is also part of `{holders[0]}`, which is recomputed as a whole")
    return doubts


def subclass_doubts(network: Network, group: BlockGroup) -> Iterator[str]:
    """Yield what becomes different in classes of other files, or in functions, that inherit from blocks.

    Only the first few are looked for: there may be a thousand, and none is safe if one is not.
    """
    return islice(_subclass_doubts(network, group), _MOST_SUBCLASSES)


def _subclass_doubts(network: Network, group: BlockGroup) -> Iterator[str]:
    roots = dict.fromkeys(root_of(info) for info in group.blocks)
    is_new = bool(newly_checkpointed(network, group))
    for info in dict.fromkeys(each for root in roots for each in subclasses_around(network, root)):
        is_own = info.file is network.file
        where = "" if is_own else f" in {shown(info.file.path)}"
        if info in group.blocks or info.is_checkpointing:
            continue
        if info.definition.is_local:
            yield f"`{info.name}`{where}, which a function makes, is recomputed with its base"
        elif not is_own:
            doubts = (
                block_doubts(info) or recomputation_doubts(info) or (unknown_doubts(info) if is_new else [])
            )
            yield from (
                f"`{info.name}`{where} is recomputed with its base, and {each}" for each in doubts[:1]
            )


def newly_checkpointed(network: Network, group: BlockGroup) -> list[RunSite]:
    """Return the plain calls of blocks that stand beside no checkpointed one."""
    beside = {site for branch in group.branches.values() for site in branch.plain}
    return [
        site
        for site in (*network.run_sites, *network.foreign_sites)
        if not site.checkpointed and site not in beside and any(info in group.blocks for info in site.blocks)
    ]
