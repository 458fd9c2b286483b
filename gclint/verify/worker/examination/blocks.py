"""The blocks of a model: what can be recomputed, and what should be, as one forward pass shows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from inspect import isfunction, unwrap
from itertools import islice, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from gclint.verify.worker.examination.tensors import address_of, tensors_in

try:
    from transformers.modeling_layers import GradientCheckpointingLayer
except ImportError:
    # Releases before 4.52 have none.
    class GradientCheckpointingLayer(nn.Module):  # type: ignore[misc, no-redef]
        """A class without subclasses."""


_CONTRACTIONS = {
    "matmul": 0,
    "__matmul__": 0,
    "__rmatmul__": 0,
    "bmm": 0,
    "mm": 0,
    "baddbmm": 1,
    "einsum": 1,
    "tensordot": 0,
    "scaled_dot_product_attention": 0,
    "multi_head_attention_forward": 0,
}
"""Operations that contract two tensors, and the position of the first one."""
_FRAMEWORK = re.compile(r"(builtins|typing|abc|torch|transformers(?!\.models))(\.|$)")
"""The modules whose classes are bases of everything, or of all models and layers."""
_LARGE = 0.5
"""The least size of a block, as a share of that of the smallest other one in its list, unlike adapters."""
_SHARE = 0.1
"""The least share of what autograd saves that a stack saves if it counts, whatever it is built of."""
_FARTHEST = 3000
"""The most graph nodes to visit between the output of one block and the input of the next."""


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
    """Whether the blocks are stacked, feed one another, and mix tokens, take turns with others that do, or
    save much."""
    runs: int
    """How often it ran in a step of the reference with gradients recorded."""
    parameters: frozenset[str]
    """The names of its parameters."""
    is_lone: bool = False
    """Whether it is the only one in its stack, so that it is unclear whether it is a block: another
    configuration may have more."""
    saves_more: bool = True
    """Whether autograd saves more in it than what it is given, and hands on first: checkpoints keep that."""


def is_layer(module: nn.Module) -> bool:
    """Return whether ``module`` is a ``GradientCheckpointingLayer``."""
    return is_layer_class(type(module))


def is_layer_class(kind: type) -> bool:
    """Return whether the instances of a class are checkpointing layers."""
    return issubclass(kind, GradientCheckpointingLayer)


def on_calls(before: Any, after: Any = None) -> list[Any]:
    """Have functions called before and after each call of any module, and return what ends that.

    They are hooks of all modules together, which a model does not see where it looks for those of its own.
    The second one gets the keyword arguments as well; older releases of torch pass them in no such way.
    """
    made = [register_module_forward_pre_hook(before)]
    if after is not None:
        made.append(register_module_forward_hook(after, with_kwargs=True))
    return made


def stacks(model: nn.Module) -> dict[nn.Module, int]:
    """Return the members of stacks, each with a number that is the same for members of the same stack.

    A stack is a list, a dictionary or a sequence of modules, or modules of one class whose names end in
    numbers, unless there are only two and the class has both names in its code: these are the two units of
    a head, say, and no settings make more of them. A list of lists is one stack. A module without
    submodules is not a member: it is a layer of the framework, not a block.
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
        numbered: defaultdict[tuple[str, type[nn.Module]], dict[str, nn.Module]] = defaultdict(dict)
        for name, child in children:
            if name[-1].isdigit():
                numbered[name.rstrip("0123456789"), type(child)][name] = child
        several = (group for group in numbered.values() if len(group) > 1)
        groups = (group for group in several if len(group) > 2 or not _are_written(group, module))
        return [each for group in groups for each in group.values()]
    return [child for _, child in children]


def _are_written(names: Collection[str], module: nn.Module) -> bool:
    """Return whether the code of a module's class has all these names of attributes."""
    members = (each for kind in type(module).__mro__ for each in vars(kind).values() if isfunction(each))
    codes = (each.__code__ for each in map(unwrap, members) if isfunction(each))
    return {name for code in codes for name in code.co_names}.issuperset(names)


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
    """
    chain = set(around.get(block, ()))
    own = [each for each in called if all(block in around[other] or other in chain for other in around[each])]
    bare = [each for each in own if not any(is_layer(other) for other in around[each] if other not in chain)]
    choice = bare or own or list(called)
    return min(choice, key=lambda each: called[each], default=None)


@dataclass(frozen=True)
class _ModuleCall:
    module: nn.Module
    taken: tuple[Tensor, ...]
    returned: tuple[Tensor, ...]


class BlockFinder:
    """Observes, while it is entered, one forward pass without checkpointing."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._stacks = stacks(model)
        candidates = {module for module in model.modules() if is_layer(module)} | set(self._stacks)
        self._around = containers(model, candidates)
        self._candidates = candidates
        self._called: dict[nn.Module, Counter[nn.Module]] = {each: Counter() for each in candidates}
        self._open: list[nn.Module] = []
        self._entered: set[nn.Module] = set()
        self._calls: list[_ModuleCall] = []
        self._mode = _Contractions(self._open)
        self._hooks: list[Any] = []
        self._linked: set[nn.Module] = set()
        self._saved: Counter[nn.Module | None] = Counter()
        """The bytes that were saved while each candidate ran; for None, all of them."""
        self._inner: dict[nn.Module, set[int | None]] = {each: set() for each in candidates}
        """The addresses of what was saved while it ran, without what it was given and hands on first."""
        self._names = {module: name for name, module in model.named_modules()}
        self._lists = {each: module for module in model.modules() for each in module.children()}

    def __enter__(self) -> BlockFinder:
        self._hooks = on_calls(self._before, self._after)
        self._mode.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._mode.__exit__(*raised)
        for hook in self._hooks:
            hook.remove()
        if raised[0] is None:
            # At once, since the backward pass frees the graph.
            self._linked = self._links()
        self._calls = []

    def blocks(self, trained: Collection[str]) -> tuple[Block, ...]:
        """Return the blocks, among whose parameters some have been ``trained``: have received a gradient."""
        trunk, lone = self._trunk(), self._lone()
        found = []
        for name, module in self._model.named_modules():
            inside = inside_of(module, self._called.get(module, Counter()), self._around)
            parameters = {f"{name}.{each}" for each, _ in module.named_parameters()}
            is_block = is_layer(module) or module in trunk or module in lone
            if is_block and inside is not None and not parameters.isdisjoint(trained):
                found.append(
                    Block(
                        name,
                        self._names[inside],
                        is_layer(module),
                        module in trunk,
                        self._called[module][inside],
                        frozenset(parameters),
                        module in lone,
                        bool(self._inner.get(module, True)),
                    )
                )
        return tuple(found)

    @property
    def stacked(self) -> frozenset[str]:
        """The names of the modules in stacks that feed one another, whether or not they mix tokens."""
        return frozenset(self._names[each] for each in self._linked)

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The stacks that feed one another, but are no trunk: what each is, and why it does not count."""
        trunk = self._trunk()
        found: dict[tuple[int, str], list[nn.Module]] = {}
        for group in self._groups(trunk):
            trunk |= group
            number = self._stacks[next(iter(group))]
            why = "share no class" if len(group) == 1 else f"save {self._share(group):.0%} of the bytes"
            found.setdefault((number, why), []).extend(group)
        return tuple(
            f"not counted, since they {why}: {', '.join(sorted(self._names[each] for each in group))} "
            f"({', '.join(sorted({type(each).__name__ for each in group}))})"
            for (_, why), group in found.items()
        )

    def note_saved(self, address: int, size: int) -> None:
        """Record that autograd saves so many bytes, which are at an address."""
        self._saved.update(dict.fromkeys((None, *self._open), size))
        for each in self._open:
            self._inner[each].add(address)

    def _before(self, module: nn.Module, _arguments: Any) -> None:
        # Without gradients, there is nothing to recompute. A module that this pass creates is in no block.
        for block in self._around.get(module, ()) if torch.is_grad_enabled() else ():
            if block is not module and (block in self._open or block not in self._entered):
                self._called[block][module] += 1
        if module in self._candidates:
            self._open.append(module)
            self._entered.add(module)

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if module in self._candidates:
            self._open.remove(module)
            if self._inner[module]:  # Tensors without storage are run where nobody notes what is saved.
                kept = [*tensors_in((args, kwargs)), *islice(tensors_in(output), 1)]
                self._inner[module].difference_update(address_of(each) for _, each in kept)
        if module in self._stacks:
            taken = tuple(each for _, each in tensors_in((args, kwargs)) if each.is_floating_point())
            returned = tuple(each for _, each in tensors_in(output) if each.is_floating_point())
            self._calls.append(_ModuleCall(module, taken, returned))

    def _trunk(self) -> set[nn.Module]:
        """Return the modules that are linked and mix tokens.

        Of nested ones, this is the innermost checkpointing layer, which covers everything inside it; without
        such a layer, the outermost one.
        """
        found: set[nn.Module] = set()
        for path in self._mode.paths:
            layers = [module for module in path if is_layer(module)]
            chosen = layers[-1:] or [module for module in path if module in self._linked][:1]
            found.update(module for module in chosen if module in self._linked)
        found |= self._siblings(found)
        for group in self._groups(found):
            if len(group) > 1 and self._share(group) >= _SHARE:
                found |= group
        return found

    def _groups(self, trunk: set[nn.Module]) -> Iterator[set[nn.Module]]:
        """Yield the linked modules of each stack that share a class or base and have parameters, outer first.

        What is in a layer or in the trunk, or holds any of these, is left out; meanwhile, the trunk may grow.
        """
        left: dict[int, list[nn.Module]] = {}
        for module in self._stacks:
            holds = any(is_layer(each) or each in trunk for each in module.modules())
            inside = any(is_layer(each) or each in trunk for each in self._around[module])
            if module in self._linked and not (holds or inside) and _size(module):
                left.setdefault(self._stacks[module], []).append(module)
        for members in left.values():
            while members:
                group = {members[0]}
                while more := {each for each in members if any(_are_kin(each, one) for one in group)} - group:
                    group |= more
                members = [each for each in members if each not in group]
                if not any(each in trunk for module in group for each in self._around[module]):
                    yield group

    def _share(self, group: set[nn.Module]) -> float:
        return sum(self._saved[each] for each in group) / max(self._saved[None], 1)

    def _siblings(self, trunk: set[nn.Module]) -> set[nn.Module]:
        """Return the linked modules that take turns in a list with others of a trunk, and are as large.

        A recurrent block may mix tokens without a contraction.
        """
        sizes: dict[nn.Module, list[int]] = {}
        for module in trunk:
            if isinstance(self._lists.get(module), nn.ModuleList):
                sizes.setdefault(self._lists[module], []).append(_size(module))
        return {
            module
            for module in self._linked - trunk
            if (others := sizes.get(self._lists[module])) and _size(module) >= _LARGE * min(others)
            if not any(is_layer(each) or each in trunk for each in module.modules())
        }

    def _lone(self) -> set[nn.Module]:
        """Return the outermost members of stacks that mix tokens and are not linked.

        Modules that contain a layer or a linked module, or are in one, are left out.
        """
        found: set[nn.Module] = set()
        for path in self._mode.paths:
            if not any(is_layer(module) or module in self._linked for module in path):
                found.update([module for module in path if module in self._stacks][:1])
        return found

    def _links(self) -> set[nn.Module]:
        linked: set[nn.Module] = set()
        by_stack: dict[int, list[_ModuleCall]] = {}
        for call in self._calls:
            by_stack.setdefault(self._stacks[call.module], []).append(call)
        for calls in by_stack.values():
            if len({call.module for call in calls}) > 1:
                for one, other in pairwise(calls):
                    if one.module is not other.module and self._are_alike(one, other) and _feeds(one, other):
                        linked |= {one.module, other.module}
        return linked

    def _are_alike(self, one: _ModuleCall, other: _ModuleCall) -> bool:
        """Return whether two calls of one stack are steps of the same kind, which keep the shape of a tensor.

        If lists are stacked in a list, the code between two of them may change it.
        """
        lists = {self._lists[one.module], self._lists[other.module]}
        if len(lists) > 1 and type(one.module) is type(other.module):
            return _keeps_shape(one) and _keeps_shape(other)
        return _keeps_shape(one, other)


def _are_kin(one: nn.Module, other: nn.Module) -> bool:
    """Return whether two modules have the same class, or share a base that is not one of the framework."""
    mine, yours = type(one), type(other)
    bases = {*mine.__mro__} & {*yours.__mro__}
    return mine is yours or any(not _FRAMEWORK.match(each.__module__) for each in bases)


def _size(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def _keeps_shape(*calls: _ModuleCall) -> bool:
    """Return whether all take and return a tensor of the same shape."""
    shapes = [
        {tuple(each.shape) for each in tensors} for call in calls for tensors in (call.taken, call.returned)
    ]
    return bool(set.intersection(*shapes))


def _feeds(one: _ModuleCall, other: _ModuleCall) -> bool:
    """Return whether an output of one is an input of the other, directly or after operations."""
    if any(output is each for output in one.returned for each in other.taken):
        return True
    wanted = {output.grad_fn for output in one.returned if output.grad_fn is not None}
    waiting = [each.grad_fn for each in other.taken if each.grad_fn is not None]
    seen = set(waiting)
    while waiting and len(seen) < _FARTHEST:
        node = waiting.pop(0)
        if node in wanted:
            return True
        nodes = [each for each, _ in node.next_functions if each is not None and each not in seen]
        seen.update(nodes)
        waiting += nodes
    return False


class _Contractions(TorchFunctionMode):  # type: ignore[misc]
    """Records the modules in which two activations are contracted with each other."""

    def __init__(self, around: list[nn.Module]) -> None:
        super().__init__()
        self.paths: set[tuple[nn.Module, ...]] = set()
        self._around = around
        # The tensors themselves: as long as they are alive, their ids stay unique.
        self._of_parameters: dict[int, Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self._around:
            first = _CONTRACTIONS.get(getattr(func, "__name__", ""))
            if first is not None and self._mixes(args[first:]):
                self.paths.add(tuple(self._around))
            self._follow(args, kwargs, result)
        return result

    def _mixes(self, arguments: tuple[Any, ...]) -> bool:
        listed = arguments and isinstance(arguments[0], list | tuple)
        operands = arguments[0] if listed else arguments
        return len(operands) > 1 and all(
            isinstance(each, Tensor) and each.requires_grad and not self._is_of_parameters(each)
            for each in operands[:2]
        )

    def _is_of_parameters(self, value: Tensor) -> bool:
        return isinstance(value, nn.Parameter) or id(value) in self._of_parameters

    def _follow(self, args: Any, kwargs: Any, result: Any) -> None:
        made = [
            each
            for each in (result if isinstance(result, list | tuple) else [result])
            if isinstance(each, Tensor) and each.requires_grad
        ]
        if made:
            sources = [each for each in _flat(args, kwargs) if each.requires_grad]
            if sources and all(self._is_of_parameters(each) for each in sources):
                self._of_parameters.update({id(each): each for each in made})


def _flat(args: Any, kwargs: Any) -> list[Tensor]:
    found = []
    for each in (*args, *(kwargs or {}).values()):
        found += [
            inner
            for inner in (each if isinstance(each, list | tuple) else (each,))
            if isinstance(inner, Tensor)
        ]
    return found
