"""The loops that run the blocks of generated models, with their legacy branches, as text."""

from __future__ import annotations

import textwrap

from tests.contract.arguments import (
    by_keyword,
    by_position,
    checkpointed_values,
    names_of,
    plain_arguments,
)
from tests.contract.grammar import Shape

_TORCH = "torch.utils.checkpoint.checkpoint"
LIBRARY_FUNCTION = "self._gradient_checkpointing_func"
_CUSTOM_FORWARD = """\
def create_custom_forward(module):
    def custom_forward(*inputs):
        return {returned}

    return custom_forward
"""


def loop(shape: Shape, stack: str, checkpoint: str) -> list[str]:
    """Return the statements that run a stack.

    Args:
        shape: the model's.
        stack: the attribute of ``self`` that holds the blocks.
        checkpoint: the form of the checkpointed call, or ``none``.
    """
    if shape.stack == "sequential":
        return _branch(shape, _Calls(shape, f"self.{stack}", checkpoint), "")
    header, item = _header(shape, stack)
    calls = _Calls(shape, item, checkpoint)
    if shape.branch == "two loops" and checkpoint != "none":
        body = [f"if {condition(shape)}:"]
        for call in (calls.checkpointed, calls.plain):
            inner = [*calls.helpers(call), *calls.assigned(call), *calls.rest]
            body += _indented([header, *_indented(inner), *_step(shape)])
            body += ["else:"] * (call == calls.checkpointed)
        return [*_while_start(shape), *body]
    inner = [*_branch(shape, calls, header), *calls.rest]
    return [*_while_start(shape), *_before(shape, checkpoint), header, *_indented(inner), *_step(shape)]


def before_sequential(shape: Shape, checkpoint: str) -> list[str]:
    """Return what stands before a stack that is called as a whole."""
    return _before(shape, checkpoint)


def condition(shape: Shape) -> str:
    """Return when the model checkpoints."""
    flag = {
        "config condition": "self.config.use_checkpoint",
        "forward argument": "use_checkpoint",
    }.get(shape.switch, "self.gradient_checkpointing")
    extra = {
        "every other": " and index % 2 == 0",
        "first half": " and index < 2",
        "requires grad": f" and {names_of(shape).stream}.requires_grad",
        "grad enabled": " and torch.is_grad_enabled()",
        "and not cache": " and not use_cache",
    }.get(shape.branch, "")
    if shape.branch == "flag only":
        return flag
    if shape.branch == "getattr" and flag == "self.gradient_checkpointing":
        flag = 'getattr(self, "gradient_checkpointing", False)'
    return f"{flag} and self.training{extra}"


def methods(shape: Shape, checkpoint: str) -> list[str]:
    """Return the further methods of the class that has the loop."""
    lines: list[str] = []
    if checkpoint == "helper":
        lines += ["", "def _checkpoint_function(self):", f"    return {LIBRARY_FUNCTION}"]
    if shape.branch == "run method" and checkpoint != "none":
        calls = _Calls(shape, "module", checkpoint)
        function = calls.checkpointed.partition("(")[0]
        is_wrapped = "__call__" in calls.checkpointed
        target = "module.__call__" if is_wrapped else "module"
        lines += ["", "def _run(self, module, *inputs):", f"    if {condition(shape)}:"]
        lines += [f"        return {function}({target}, *inputs)", "    return module(*inputs)"]
    return lines


class _Calls:
    """The calls of one block."""

    def __init__(self, shape: Shape, item: str, checkpoint: str) -> None:
        self._shape, self._item, self._form = shape, item, checkpoint
        runner = f"{item}.forward" if shape.runner == "direct forward" else item
        self.plain = f"{runner}({plain_arguments(shape)})"
        self.checkpointed = self._checkpointed()

    @property
    def rest(self) -> list[str]:
        """What is done with the result behind the branch."""
        stream = names_of(self._shape).stream
        first = f"{stream} = layer_outputs[0]"
        has_attentions = self._shape.returns == "tuple with weights"
        keep = ["attentions = attentions + (layer_outputs[1],)"] * has_attentions
        if self._shape.extra == "flag" and has_attentions:
            keep = ["if output_attentions:", *_indented(keep)]
        if self._shape.is_carried:
            return []
        return {
            "tuple": [first],
            "tuple with weights": [first, *keep],
            "list": [first],
            "tuple or tensor": [
                f"{stream} = layer_outputs[0] if isinstance(layer_outputs, tuple) else layer_outputs"
            ],
        }.get(self._shape.returns, [])

    def assigned(self, call: str) -> list[str]:
        """Return the statement that keeps what a call returns."""
        stream = names_of(self._shape).stream
        if self._shape.is_carried:
            return [f"{stream}, position_bias = {call}"]
        form = {
            "tensor": f"{stream} = {call}",
            "unpacked": f"{stream}, weights = {call}",
            "dict": f'{stream} = {call}["hidden_states"]',
            "output": f"{stream} = {call}.last_hidden_state",
        }.get(self._shape.returns, f"layer_outputs = {call}")
        return [form]

    def helpers(self, call: str) -> list[str]:
        """Return the functions that a call needs before it."""
        if call.startswith("checkpoint_function"):
            return ["checkpoint_function = self._checkpoint_function()"]
        if "create_custom_forward" not in call:
            return []
        late = ", output_attentions" * (self._shape.extra == "flag" and self._shape.call != "positional")
        returned = f"module(*inputs{late})"
        if self._form == "custom forward tuple":
            returned = f"tuple({returned})"
        return ["", *_CUSTOM_FORWARD.format(returned=returned).splitlines(), ""]

    def _checkpointed(self) -> str:
        shape, item = self._shape, self._item
        values = checkpointed_values(shape)
        if self._form.startswith("custom forward") and shape.extra == "flag" and shape.call != "positional":
            values = [each for each in values if each[0].kind != "flag"]
        extra = ", **kwargs" * (shape.extra == "kwargs")
        positional = by_position(values) + (
            extra if self._form not in ("wrapper", "wrapper elsewhere") else ""
        )
        late = plain_arguments(shape, "states")
        custom = f"create_custom_forward({item}), {positional}"
        stream = values[0][1]
        return {
            "none": self.plain,
            "func call": f"{LIBRARY_FUNCTION}({item}.__call__, {positional})",
            "func forward": f"{LIBRARY_FUNCTION}({item}.forward, {positional})",
            "func bare": f"{LIBRARY_FUNCTION}({item}, {positional})",
            "func partial": f"{LIBRARY_FUNCTION}(partial({item}.__call__, {by_keyword(values)}), {stream})",
            "custom forward": f"{LIBRARY_FUNCTION}({custom})",
            "custom forward tuple": f"{_TORCH}({custom})",
            "torch": f"{_TORCH}({item}, {positional})",
            "torch reentrant": f"{_TORCH}({item}, {positional}, use_reentrant=True)",
            "torch non-reentrant": f"{_TORCH}({item}, {positional}, use_reentrant=False)",
            "torch keywords": f"{_TORCH}({item}, {stream}, {by_keyword(values)}, use_reentrant=False)",
            "lambda": f"{_TORCH}(lambda states: {item}({late}), {stream}, use_reentrant=False)",
            "wrapper": f"run_checkpointed({item}, {positional})",
            "wrapper elsewhere": f"run_checkpointed({item}, {positional})",
            "helper": f"checkpoint_function({item}.__call__, {positional})",
            "own func": f"self.checkpoint_func({item}, {positional})",
        }[self._form]


def _branch(shape: Shape, calls: _Calls, header: str) -> list[str]:
    """Return the statements that call a block, whichever way."""
    plain, checkpointed = calls.assigned(calls.plain), calls.assigned(calls.checkpointed)
    helpers = calls.helpers(calls.checkpointed)
    test = condition(shape)
    if calls.plain == calls.checkpointed:
        return plain
    if shape.branch == "negated":
        return _if(f"not ({test})", plain, [*helpers, *checkpointed])
    if shape.branch == "computed":
        return _if("use_checkpointing", [*helpers, *checkpointed], plain)
    if shape.branch == "conditional expression":
        inline = calls.assigned(f"({calls.checkpointed} if {test} else {calls.plain})")
        return [*helpers, *inline]
    if shape.branch == "continue" and header and not calls.rest:
        return [f"if {test}:", *_indented([*helpers, *checkpointed, "continue"]), *plain]
    if shape.branch == "run method":
        item = calls.plain.partition("(")[0].removesuffix(".forward")
        return calls.assigned(f"self._run({item}, {by_position(checkpointed_values(shape))})")
    if shape.branch == "chosen function" and "__call__, " in calls.checkpointed:
        function = calls.checkpointed.partition("(")[0]
        item = calls.plain.partition("(")[0].removesuffix(".forward")
        values = by_position(checkpointed_values(shape))
        return [
            f"run = partial({function}, {item}.__call__) if {test} else {item}",
            *calls.assigned(f"run({values})"),
        ]
    if shape.branch == "nested ifs":
        flag = test.partition(" and ")[0]
        return _if("self.training", _if(flag, [*helpers, *checkpointed], plain), plain)
    return _if(test, [*helpers, *checkpointed], plain)


def _if(test: str, one: list[str], other: list[str]) -> list[str]:
    return [f"if {test}:", *_indented(one), "else:", *_indented(other)]


def _before(shape: Shape, checkpoint: str) -> list[str]:
    if checkpoint == "none":
        return []
    return [f"use_checkpointing = {condition(shape)}"] * (shape.branch == "computed")


def _header(shape: Shape, stack: str) -> tuple[str, str]:
    """Return the loop's first line, and the code for its block."""
    item = names_of(shape).item
    if shape.stack == "shared":
        return "for index in range(self.config.num_layers):", f"self.{stack}"
    if shape.stack == "module dict":
        return f"for index, {item} in enumerate(self.{stack}.values()):", item
    needs_index = (
        shape.branch in ("every other", "first half")
        or shape.extra == "index"
        or shape.cache_call == "per layer"
    )
    kind = "enumerate" if needs_index and shape.loop in ("for", "slice", "zip") else shape.loop
    return {
        "for": (f"for {item} in self.{stack}:", item),
        "enumerate": (f"for index, {item} in enumerate(self.{stack}):", item),
        "index": (f"for index in range(len(self.{stack})):", f"self.{stack}[index]"),
        "slice": (f"for {item} in self.{stack}[: self.config.num_layers]:", item),
        "zip": (f"for {item}, number in zip(self.{stack}, range(99)):", item),
        "while": (f"while index < len(self.{stack}):", f"self.{stack}[index]"),
    }[kind]


def _while_start(shape: Shape) -> list[str]:
    return ["index = 0"] * (shape.loop == "while" and shape.stack not in ("shared", "module dict"))


def _step(shape: Shape) -> list[str]:
    is_while = shape.loop == "while" and shape.stack not in ("shared", "module dict", "sequential")
    return ["    index += 1"] * is_while


def _indented(lines: list[str]) -> list[str]:
    return textwrap.indent("\n".join(lines), "    ").split("\n")
