"""The ways in which one line is changed: those that break checkpointing, and those that only look so."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.verify.mutations.places import Block, Loop, ModelingFile, first_statement

Change = Callable[[ModelingFile, Block, Loop], "str | None"]
"""Returns the file with one line changed, or None where it has no such line."""

UNKNOWN = "-"
"""Stands for a failure whose cause is said not to be known."""


@dataclass(frozen=True)
class Kind:
    """One way to change a line."""

    name: str
    change: Change
    causes: tuple[str, ...] = ()
    """What a failure may be explained by; none for what is right."""
    words: str = ""
    """Something that the explanation has to say."""
    outcome: str = "failed"


def _in_block(*lines: str) -> Change:
    """Return a change that begins a block's ``forward`` with lines; ``X`` stands for its first argument."""

    def change(file: ModelingFile, block: Block, _loop: Loop) -> str | None:
        named = [line.replace("X", block.stream) for line in lines]
        return file.inserted(first_statement(block.forward), *named)

    return change


def _before_loop(*lines: str) -> Change:
    """Return a change that puts lines before the loop; ``X`` stands for what the call gets first."""

    def change(file: ModelingFile, _block: Block, loop: Loop) -> str | None:
        (stream,) = loop.call.args[:1]
        if not isinstance(stream, ast.Name) or not _has_flags(loop, lines):
            return None
        return file.inserted(loop.statement, *(line.replace("X", stream.id) for line in lines))

    return change


def _has_flags(loop: Loop, lines: Sequence[str]) -> bool:
    """Return whether the owner of a loop has the flag that lines read."""
    flag = "self.gradient_checkpointing"
    return flag not in " ".join(lines) or f"{flag} = " in ast.unparse(loop.owner)


def _in_module(line: str, *lines: str) -> Change:
    """Return a change that puts a line before the block's class, and lines into the block."""

    def change(file: ModelingFile, block: Block, loop: Loop) -> str | None:
        changed = _in_block(*lines)(file, block, loop)
        assert changed is not None
        again = ModelingFile(changed)
        (twin,) = [each for each in again.blocks if each.definition.name == block.definition.name]
        return again.inserted(twin.definition, line)

    return change


def _plain_base(file: ModelingFile, block: Block, _loop: Loop) -> str | None:
    (base,) = [each for each in block.definition.bases if getattr(each, "id", "") == _LAYER]
    return file.replaced(base, "nn.Module") if len(block.definition.bases) == 1 else None


def _stream_by_keyword(file: ModelingFile, block: Block, loop: Loop) -> str | None:
    first = loop.call.args[0]
    if len(loop.call.args) != 1:
        return None
    return file.replaced(first, f"{block.stream}={file.source(first)}")


def _cache_by_position(file: ModelingFile, block: Block, loop: Loop) -> str | None:
    """Pass everything up to the cache by position."""
    parameters = [each.arg for each in block.forward.args.args[1:]]
    caches = [each for each in parameters if each == "past_key_values"]
    keywords = {each.arg: file.source(each.value) for each in loop.call.keywords if each.arg}
    stars = [file.source(each.value) for each in loop.call.keywords if each.arg is None]
    if not caches or caches[0] not in keywords:
        return None
    until = parameters[: parameters.index(caches[0]) + 1]
    values = [file.source(each) for each in loop.call.args]
    values += [keywords.pop(name, "None") for name in until[len(values) :]]
    passed = [*values, *(f"{name}={value}" for name, value in keywords.items()), *(f"**{s}" for s in stars)]
    return file.replaced(loop.call, f"{loop.block}({', '.join(passed)})")


def _around_call(file: ModelingFile, _block: Block, loop: Loop) -> str | None:
    """Checkpoint a layer that is checkpointed already."""
    arguments = [file.source(each) for each in loop.call.args]
    arguments += [
        f"{each.arg}={file.source(each.value)}" if each.arg else f"**{file.source(each.value)}"
        for each in loop.call.keywords
    ]
    call = f"torch.utils.checkpoint.checkpoint({loop.block}, {', '.join(arguments)}, use_reentrant=False)"
    return _with_import(file.replaced(loop.call, call))


def _late_binding(file: ModelingFile, block: Block, loop: Loop) -> str | None:
    """Checkpoint a closure that looks the block up when it is recomputed."""
    plain = _plain_base(file, block, loop)
    if plain is None or not _has_flags(loop, ("self.gradient_checkpointing",)):
        return None
    again = ModelingFile(plain)
    twin = next(each for each in again.loops if each.method.lineno == loop.method.lineno)
    first = again.source(twin.call.args[0])
    others = [again.source(each) for each in twin.call.args[1:]]
    others += [
        f"{each.arg}={again.source(each.value)}" if each.arg else f"**{again.source(each.value)}"
        for each in twin.call.keywords
    ]
    call = f"(lambda stream: {loop.block}({', '.join(['stream', *others])}))"
    checkpoint = "torch.utils.checkpoint.checkpoint"
    checkpointed = f"{checkpoint}({call}, {first}, use_reentrant=False)"
    branch = f"({checkpointed} if self.gradient_checkpointing else {call}({first}))"
    return _with_import(again.replaced(twin.call, branch))


def _with_import(text: str) -> str:
    return text.replace("\nimport torch\n", "\nimport torch\nimport torch.utils.checkpoint\n", 1)


def _override(file: ModelingFile, _block: Block, loop: Loop) -> str | None:
    if not any("PreTrainedModel" in ast.unparse(base) for base in loop.owner.bases):
        return None  # Nobody calls it there.
    return file.inserted(
        loop.method,
        "def _set_gradient_checkpointing(self, module=None, value=False, **kwargs): "
        "self.gradient_checkpointing = value",
    )


def _embeddings_in_place(file: ModelingFile, block: Block, loop: Loop) -> str | None:
    stream = file.source(loop.call.args[0])
    text = ast.unparse(loop.method)
    # What is computed from the embeddings may be changed.
    if f"{stream} = inputs_embeds\n" not in text or text.count("inputs_embeds = ") != 1:
        return None
    return _before_loop("X *= 1.5")(file, block, loop)


def _argument_dropped(name: str) -> Change:
    """Return a change that passes no ``name`` to the blocks while the model is checkpointed."""

    def change(file: ModelingFile, _block: Block, loop: Loop) -> str | None:
        found = [each for each in loop.call.keywords if each.arg == name]
        if not found or not _has_flags(loop, ("self.gradient_checkpointing",)):
            return None
        value = file.source(found[0].value)
        return file.replaced(found[0].value, f"(None if self.gradient_checkpointing else {value})")

    return change


_LAYER = "GradientCheckpointingLayer"
_RANDOM = ("random numbers",)
_STATE = ("state",)

DEFECTS = (
    Kind("plain base class", _plain_base, ("not a checkpointing layer",)),
    Kind("stream by keyword", _stream_by_keyword, ("keyword activation",)),
    Kind("cache by position", _cache_by_position, ("positional cache",)),
    Kind("numpy", _in_block("X = X * (1 + float(__import__('numpy').random.rand()))"), _RANDOM, "numpy"),
    Kind("python's random", _in_block("X = X * (1 + __import__('random').random())"), _RANDOM, "random"),
    Kind(
        "generator of the module",
        _in_module("_DRAWS = torch.Generator()", "X = X * (1 + float(torch.rand((), generator=_DRAWS)))"),
        _RANDOM,
    ),
    Kind(
        "numpy generator on self",
        _in_block(
            "self._draws = getattr(self, '_draws', None) or __import__('numpy').random.default_rng(0)",
            "X = X * (1 + self._draws.random())",
        ),
        (*_RANDOM, *_STATE),
    ),
    Kind(
        "counter on self",
        _in_block("self._runs = getattr(self, '_runs', 0) + 1", "X = X * self._runs"),
        _STATE,
        "_runs",
    ),
    Kind(
        "counter of the module",
        _in_module("_RUNS = []", "_RUNS.append(0); X = X * (1 + 0.1 * len(_RUNS))"),
        ("global state",),
    ),
    Kind(
        "counter of the class",
        _in_block("type(self)._runs = getattr(type(self), '_runs', 0) + 1; X = X * type(self)._runs"),
        ("global state", *_STATE),
    ),
    Kind(
        "kept from the last run",
        _in_block("X = X + getattr(self, '_last', 0)", "self._last = X.detach().mean()"),
        _STATE,
        "_last",
    ),
    Kind("argument changed in place", _in_block("X.data.mul_(1.25)"), ("changed argument",)),
    Kind(
        "argument changed in place under no_grad",
        _in_block("with torch.no_grad(): X.mul_(1.25)"),
        ("changed argument",),
    ),
    Kind(
        "branch on recorded gradients",
        _in_block("X = X * (1.0 if torch.is_grad_enabled() else 1.5)"),
        ("recorded gradients", "disagreement"),
    ),
    Kind(
        "branch on requires_grad",
        _in_block("X = X * 1.0", "X = X * (1.0 if X.requires_grad else 1.5)"),
        ("recorded gradients", "disagreement"),
    ),
    Kind(
        "detached while checkpointed",
        _before_loop("X = X.detach() if self.gradient_checkpointing else X"),
        ("detached", UNKNOWN),
    ),
    Kind(
        "detached in the block",
        _in_block("X = X.detach() if getattr(self, 'gradient_checkpointing', False) else X"),
        ("detached", UNKNOWN),
    ),
    Kind("mask forgotten", _argument_dropped("attention_mask"), ("other arguments", UNKNOWN)),
    Kind("positions forgotten", _argument_dropped("position_embeddings"), ("other arguments", UNKNOWN)),
    Kind(
        "scaled while checkpointed",
        _before_loop("X = X * 2 if self.gradient_checkpointing else X"),
        ("other forward pass", UNKNOWN),
    ),
    Kind(
        "checkpoint around the layer",
        _around_call,
        ("nested checkpoint", "nothing recomputed"),
        "checkpoint",
    ),
    Kind("late binding", _late_binding, ("late binding",)),
    Kind("old override", _override, ("switches",)),
    Kind(
        "embeddings changed in place",
        _embeddings_in_place,
        ("leaf",),
    ),
    Kind(
        "running mean",
        _in_block(
            "self._mean = getattr(self, '_mean', 0.0) * 0.9 + float(X.detach().mean()); X = X - self._mean"
        ),
        _STATE,
        "_mean",
    ),
    Kind(
        "clock",
        _in_block("X = X * (1 + (__import__('time').time_ns() % 1000) / 1000)"),
        (),
        "not reproducible",
        "not run",
    ),
    Kind(
        "entropy of the system",
        _in_block("X = X * (1 + __import__('os').urandom(1)[0] / 256)"),
        (),
        "not reproducible",
        "not run",
    ),
)
"""What breaks checkpointing."""

RIGHT = (
    Kind("dropout of torch", _in_block("X = nn.functional.dropout(X, 0.1, training=True)"), outcome="passed"),
    Kind("noise of torch", _in_block("X = X + 0.01 * torch.randn_like(X)"), outcome="passed"),
    Kind(
        "noise before the loop",
        _before_loop("X = X * (1 + 0.1 * __import__('random').random())"),
        outcome="passed",
    ),
    Kind("constant on self", _in_block("self._width = X.shape[-1]"), outcome="passed"),
    Kind("same value on self", _in_block("self._last_shape = tuple(X.shape)"), outcome="passed"),
    Kind("copy changed in place", _in_block("X = X.clone().mul_(1.25)"), outcome="passed"),
    Kind("result changed in place", _in_block("X = X * 1.0", "X *= 1.25"), outcome="passed"),
    Kind("branch on training", _in_block("X = X * (1.25 if self.training else 1.0)"), outcome="passed"),
    Kind("branch on the shape", _in_block("X = X * (1.25 if X.shape[0] > 1 else 1.0)"), outcome="passed"),
    Kind(
        "branch on the data",
        _in_block("X = X * (1.25 if float(X.detach().sum()) > 0 else 0.75)"),
        outcome="passed",
    ),
    Kind(
        "no gradient for a part",
        _in_block("with torch.no_grad(): scale = X.abs().mean() + 1", "X = X / scale"),
        outcome="passed",
    ),
    Kind("double precision", _in_block("X = X.double().mul(1.5).to(X.dtype)"), outcome="passed"),
    Kind("huge scale", _before_loop("X = X * 1e4"), outcome="passed"),
    Kind("tiny scale", _before_loop("X = X * 1e-4"), outcome="passed"),
    Kind(
        "counter that nobody reads",
        _in_module("_CALLS = __import__('itertools').count()", "next(_CALLS)"),
        outcome="passed",
    ),
    Kind(
        "memo of a constant",
        _in_module("_MEMO = {}", "X = X * _MEMO.setdefault(X.shape[-1], 1.25)"),
        outcome="passed",
    ),
    Kind("list of arguments", _in_block("X = torch.stack([X, X]).mean(0)"), outcome="passed"),
    Kind(
        "context manager",
        _in_block("with torch.autograd.profiler.record_function('block'): X = X * 1.25"),
        outcome="passed",
    ),
    Kind(
        "hook that reads",
        _in_block("X.requires_grad and X.register_hook(lambda gradient: None)"),
        outcome="passed",
    ),
    Kind(
        "gradient scaled by a hook",
        _before_loop("X.requires_grad and X.register_hook(lambda gradient: gradient * 2)"),
        outcome="passed",
    ),
    Kind(
        "own generator made anew",
        _in_block("X = X * (1 + torch.rand((), generator=torch.Generator().manual_seed(3)))"),
        outcome="passed",
    ),
    Kind(
        "buffer made on the way",
        _in_block("mask = torch.ones(X.shape[-1], device=X.device)", "X = X * mask"),
        outcome="passed",
    ),
)
"""What is right, and may look wrong."""
