"""Which of torch's functions, methods and modules hand on the gradient of what they get."""

from __future__ import annotations

import re

PARAMETER = "torch.nn.Parameter"
"""The class of a tensor that is learned."""
_MAKING = re.compile(
    r"^(?:arange|zeros|ones|full|empty|tensor|as_tensor|linspace|rand|randn|randint|randperm|eye|arg\w+|is\w+"
    r"|one_hot|bucketize|meshgrid|bernoulli|unique|nonzero|finfo|iinfo|ne|eq|gt|lt|ge|le|logical_\w+|\w+_like"
    r"|Size|device|dtype|bool|int|long|float\d*|Generator)$"
)
_LEARNED = re.compile(
    r"^torch\.nn\.(?:Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|LayerNorm|RMSNorm|GroupNorm|BatchNorm\w+"
    r"|MultiheadAttention)$"
)
_CONSTANT_BUILTINS = frozenset(
    (
        "len",
        "range",
        "int",
        "float",
        "bool",
        "max",
        "min",
        "isinstance",
        "str",
        "hasattr",
        "any",
        "all",
        "type",
    )
)
KEEPING_BUILTINS = frozenset(("tuple", "list", "reversed", "sorted", "iter"))
"""Functions that return the items that they get."""
KEEPING_METHODS = frozenset(
    (
        "abs",
        "bfloat16",
        "chunk",
        "clamp",
        "clone",
        "contiguous",
        "cos",
        "cuda",
        "double",
        "exp",
        "expand",
        "expand_as",
        "flatten",
        "flip",
        "float",
        "gather",
        "half",
        "index_select",
        "log",
        "masked_fill",
        "mean",
        "moveaxis",
        "movedim",
        "narrow",
        "neg",
        "norm",
        "permute",
        "pow",
        "relu",
        "repeat",
        "repeat_interleave",
        "reshape",
        "roll",
        "select",
        "sigmoid",
        "sin",
        "softmax",
        "sqrt",
        "squeeze",
        "sum",
        "swapaxes",
        "t",
        "tanh",
        "to",
        "transpose",
        "type",
        "type_as",
        "unbind",
        "unflatten",
        "unsqueeze",
        "view",
        "view_as",
    )
)
"""Methods of tensors whose result has the gradient of the tensor alone."""
MIXING_METHODS = frozenset(
    ("add", "add_", "bmm", "div", "masked_scatter", "matmul", "mul", "mul_", "sub", "where")
)
"""Methods of tensors whose result has the gradient of the arguments too."""
SAME_ATTRIBUTES = frozenset(("T", "mT", "H", "mH", "real"))
"""Attributes of a tensor that are the tensor in another shape."""


def is_learned_module(name: str) -> bool:
    """Tell whether a class of torch's has parameters."""
    return _LEARNED.match(name) is not None


def makes_constants(name: str) -> bool:
    """Tell whether what a function from outside the project returns requires no grad, whatever it gets."""
    first, _, last = name.partition(".")
    if first == "torch":
        return _MAKING.match(name.rpartition(".")[2]) is not None
    return first in ("math", "numpy") or (not last and name in _CONSTANT_BUILTINS)


def hands_on(name: str) -> bool:
    """Tell whether a function or module from outside returns what it computes of its arguments."""
    return name.startswith("torch.")
