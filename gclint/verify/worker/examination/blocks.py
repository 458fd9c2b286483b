"""The blocks of a model: what can be recomputed, and what should be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

try:
    from transformers.modeling_layers import GradientCheckpointingLayer
except ImportError:
    # Releases before 4.52 have none.
    class GradientCheckpointingLayer(nn.Module):  # type: ignore[misc, no-redef]
        """A class without subclasses."""


@dataclass(frozen=True)
class Block:
    """A module that ran in the reference, and whose parameters got a gradient there.

    It is identified by its name, since processes that run the same model do not share modules.
    """

    name: str
    inside: str
    """The name of a module in it whose runs are counted, since checkpointing wraps the block itself."""
    is_layer: bool
    """Whether the class is a ``GradientCheckpointingLayer``."""
    is_trunk: bool
    """Whether the blocks are stacked, feed one another, and mix tokens or take turns with others that do."""
    runs: int
    """How often it ran in a step of the reference with gradients recorded."""
    parameters: frozenset[str]
    """The names of its parameters."""
    is_lone: bool = False
    """Whether it is the only one in its stack, so that it is unclear whether it is a block: another
    configuration may have more."""


def is_layer(module: nn.Module) -> bool:
    """Return whether ``module`` is a ``GradientCheckpointingLayer``."""
    return is_layer_class(type(module))


def is_layer_class(kind: type) -> bool:
    """Return whether the instances of a class are checkpointing layers."""
    return issubclass(kind, GradientCheckpointingLayer)


def stacks(model: nn.Module) -> dict[nn.Module, int]:
    """Return the members of stacks, each with a number that is the same for members of the same stack.

    A stack is a list, a dictionary or a sequence of modules, or several modules of one class whose names end
    in numbers; a list of lists is one stack. A module without submodules is not a member: it is a layer of
    the framework, not a block.
    """
    members: dict[nn.Module, int] = {}
    for number, module in enumerate(model.modules()):
        # A list that is itself a member comes before its members.
        is_inner = isinstance(module, nn.ModuleList) and module in members
        for child in _stacked(module):
            if next(child.children(), None) is not None:
                members.setdefault(child, members[module] if is_inner else number)
    return members


def _stacked(module: nn.Module) -> list[nn.Module]:
    children = list(module.named_children())
    if not isinstance(module, nn.ModuleList | nn.ModuleDict | nn.Sequential):
        numbered = defaultdict(list)
        for name, child in children:
            if name[-1].isdigit():
                numbered[name.rstrip("0123456789"), type(child)].append(child)
        return [each for group in numbered.values() if len(group) > 1 for each in group]
    return [child for _, child in children]


def containers(model: nn.Module, candidates: set[nn.Module]) -> dict[nn.Module, tuple[nn.Module, ...]]:
    """Return for each module the candidates that it is part of, itself included, the outermost first.

    A module that occurs several times in the model is part of everything that contains it.
    """
    found: dict[nn.Module, dict[nn.Module, None]] = defaultdict(dict)
    for module, around in _paths(model, ()):
        found[module].update(dict.fromkeys(each for each in (*around, module) if each in candidates))
    return {module: tuple(around) for module, around in found.items()}


def _paths(
    module: nn.Module, around: tuple[nn.Module, ...]
) -> Iterator[tuple[nn.Module, tuple[nn.Module, ...]]]:
    yield module, around
    for child in module._modules.values():
        # A module that contains itself would be visited forever.
        if child is not None and child not in around:
            yield from _paths(child, (*around, module))


def inside_of(
    block: nn.Module, called: Counter[nn.Module], around: dict[nn.Module, tuple[nn.Module, ...]]
) -> nn.Module | None:
    """Return the module in ``block`` whose runs are counted as those of the block, or None.

    This is the first one that it calls, since a recomputation stops as soon as it has what it needs. Modules
    that belong to no other block, are not inside another layer, and are called least often are preferred.

    Args:
        block: the block.
        called: how often it called which modules in it, in order.
        around: what :func:`containers` returned.
    """
    chain = set(around.get(block, ()))
    own = [each for each in called if all(block in around[other] or other in chain for other in around[each])]
    bare = [each for each in own if not any(is_layer(other) for other in around[each] if other not in chain)]
    choice = bare or own or list(called)
    return min(choice, key=lambda each: called[each], default=None)
