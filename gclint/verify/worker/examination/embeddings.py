"""Finds the modules that feed the first blocks of a model, which ``get_input_embeddings`` should return."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from gclint.verify.worker.examination.block_calls import definition
from gclint.verify.worker.examination.model_under_test import ModelUnderTest, seed
from gclint.verify.worker.examination.tensors import requires_grad, tensors_in
from gclint.verify.worker.protocol import InputEmbedding
from gclint.verify.worker.scenarios import scenario_named

_SCENARIO = scenario_named("default")
_TRIED = 4
"""How many modules are tried for one block."""
_POSITIONS = re.compile(r"(^|[._])pos(?![a-z])|position", re.IGNORECASE)
"""The names of modules that embed positions: these feed a block too, but are not the input embeddings."""


def embeddings(under_test: ModelUnderTest, blocks: Iterable[str]) -> tuple[InputEmbedding, ...]:
    """Return what ``get_input_embeddings()`` should return, for each class in which a module feeds a block.

    The model is changed; ``blocks`` are those that are recomputed.
    """
    return _Feeding(under_test, tuple(blocks)).find()


class _Feeding:
    """Finds the modules whose output feeds the first blocks of a model with a frozen base."""

    def __init__(self, under_test: ModelUnderTest, blocks: tuple[str, ...]) -> None:
        self._under_test = under_test
        self._model = under_test.model
        self._names = {module: name for name, module in under_test.model.named_modules()}
        modules = dict(under_test.model.named_modules())
        members = {each: _within(modules[each]) for each in blocks}
        self._blocks = [
            modules[name]
            for name in blocks
            if not any(name != other and modules[name] in inside for other, inside in members.items())
        ]
        self._without_tensor: set[nn.Module] = set()
        """The modules whose output is not a single tensor."""
        self._requiring: list[nn.Module] = []
        """The modules whose output is made to require grad."""

    def find(self) -> tuple[InputEmbedding, ...]:
        self._under_test.prepare(_SCENARIO)
        before = self._modules_before()
        self._under_test.freeze(map(self._names.__getitem__, self._blocks))
        self._requiring = [module for module in self._hooked() if self._accepts_hook(module)]
        found: dict[type, InputEmbedding] = {}
        tried: set[nn.Module] = set()
        while without_grad := [each for each in self._without_input_grad() if each not in tried]:
            tried.add(without_grad[0])
            feeding = self._feeding(without_grad[0], before.get(without_grad[0], ()))
            if feeding is not None:
                owner, module = feeding
                found.setdefault(type(owner), self._embedding(owner, module))
                self._requiring.append(module)
        return tuple(found.values())

    def _accepts_hook(self, module: nn.Module) -> bool:
        """Return whether the model can be run once the output of a module requires grad."""
        try:
            self._forward(lambda *_: None, {module: _require_grad})
        except Exception:  # For example, an in-place operation on a leaf.
            return False
        return True

    def _hooked(self) -> list[nn.Module]:
        """Return the modules that ``enable_input_require_grads()`` sets a hook on."""
        before = {module: len(module._forward_hooks) for module in self._names}
        try:
            self._model.enable_input_require_grads()
        except (NotImplementedError, AttributeError):
            return []
        try:
            return [module for module, count in before.items() if len(module._forward_hooks) > count]
        finally:
            self._model.disable_input_require_grads()

    def _embedding(self, owner: Any, module: nn.Module) -> InputEmbedding:
        kind: Any = type(owner)
        present = _present(owner)
        path = None if present is None else self._path(owner, present)
        fails = present in self._without_tensor
        return InputEmbedding(definition(kind), kind.__name__, self._path(owner, module), path, fails)

    def _path(self, owner: nn.Module, module: nn.Module) -> str:
        """Return the path from a module to one inside it; empty if there is none."""
        prefix = f"{self._names[owner]}." if self._names[owner] else ""
        name = self._names.get(module, "")
        return name.removeprefix(prefix) if name.startswith(prefix) else ""

    def _feeding(self, block: nn.Module, before: Sequence[nn.Module]) -> tuple[Any, nn.Module] | None:
        """Return the module whose output should require grad for a block, and the model to return it."""
        for owner in self._owners(block):
            present = _present(owner)
            if isinstance(present, nn.Embedding):
                continue  # It embeds the tokens that users pass to the model.
            inside = [each for each in before if self._path(owner, each)]
            paths = {each: self._path(owner, each) for each in inside}
            inside.sort(
                key=lambda each: (
                    each not in _within(present),
                    _POSITIONS.search(paths[each]) is not None,
                    paths[each].count("."),
                )
            )
            for module in inside[:_TRIED]:
                if self._helps(owner, module, block):
                    return owner, module
        return None

    def _owners(self, block: nn.Module) -> list[Any]:
        """Return the models that a block is part of, the innermost first."""
        name = self._names[block]
        around = [
            module
            for module, own in self._names.items()
            if isinstance(module, PreTrainedModel) and (not own or name.startswith(f"{own}."))
        ]
        return around[::-1]

    def _helps(self, owner: Any, module: nn.Module, block: nn.Module) -> bool:
        """Return whether a block gets an input that requires grad if a model returns this module."""
        with _returning(type(owner), self._path(owner, module)):
            if module not in self._hooked():
                return False
        self._requiring.append(module)
        try:
            return block not in self._without_input_grad()
        except Exception:  # If the model raises, this is not the module.
            return False
        finally:
            self._requiring.pop()

    def _without_input_grad(self) -> list[nn.Module]:
        """Return the blocks without an input that requires grad, in the order of their first calls."""
        has_grad: dict[nn.Module, bool] = {}

        def observe(block: nn.Module, args: Any, kwargs: Any) -> None:
            has_grad.setdefault(block, any(requires_grad(each) for _, each in tensors_in((args, kwargs))))

        self._forward(observe, dict.fromkeys(self._requiring, _require_grad))
        return [block for block, requires in has_grad.items() if not requires]

    def _modules_before(self) -> dict[nn.Module, list[nn.Module]]:
        """Return the modules that computed the input of each block, in the order of their calls.

        Only those that return a single tensor, and neither are in a block nor contain one.
        """
        inside = {each for block in self._blocks for each in _within(block)}
        around = {each for each in self._names if not inside.isdisjoint(_within(each))}
        made: dict[nn.Module, Any] = {}
        inputs: dict[nn.Module, Any] = {}

        def note(module: nn.Module, _args: Any, output: Any) -> None:
            if not isinstance(output, Tensor):
                self._without_tensor.add(module)
            elif output.grad_fn is not None:
                made.setdefault(module, output.grad_fn)

        def observe(block: nn.Module, args: Any, kwargs: Any) -> None:
            nodes = (each.grad_fn for _, each in tensors_in((args, kwargs)) if each.grad_fn is not None)
            inputs.setdefault(block, next(nodes, None))

        for parameter in self._model.parameters():
            parameter.requires_grad_(parameter.is_floating_point())
        self._forward(observe, {each: note for each in self._names if each not in around})
        return {block: _computed_from(node, made) for block, node in inputs.items()}

    def _forward(self, observe: Callable[..., None], notes: Mapping[nn.Module, Callable[..., None]]) -> None:
        """Make a forward pass; ``observe`` is called before each block, and ``notes`` after other modules."""
        seed(0)
        inputs = self._under_test.inputs(_SCENARIO)
        handles = [each.register_forward_pre_hook(observe, with_kwargs=True) for each in self._blocks]
        handles += [module.register_forward_hook(note) for module, note in notes.items()]
        try:
            self._model(**inputs)
        finally:
            for handle in handles:
                handle.remove()


def _computed_from(node: Any, made: Mapping[nn.Module, Any]) -> list[nn.Module]:
    """Return the modules from whose output a graph node was computed."""
    waiting, seen = [node], {None}
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += [following for following, _ in each.next_functions]
    return [module for module, each in made.items() if each in seen]


def _require_grad(_module: nn.Module, _args: Any, output: Any) -> None:
    if isinstance(output, Tensor):
        output.requires_grad_(True)


def _within(module: nn.Module | None) -> set[nn.Module]:
    return set() if module is None else set(module.modules())


def _present(model: Any) -> nn.Module | None:
    """Return what ``get_input_embeddings()`` returns now."""
    try:
        found = model.get_input_embeddings()
    except Exception:  # If it raises, it returns nothing.
        return None
    return found if isinstance(found, nn.Module) else None


@contextmanager
def _returning(kind: type, path: str) -> Iterator[None]:
    """Make ``get_input_embeddings()`` of a class return another module."""
    own = vars(kind).get("get_input_embeddings")
    kind.get_input_embeddings = lambda self: attrgetter(path)(self)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if own is None:
            del kind.get_input_embeddings  # type: ignore[attr-defined]
        else:
            kind.get_input_embeddings = own  # type: ignore[attr-defined]
