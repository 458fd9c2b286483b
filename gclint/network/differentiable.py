"""Which functions, methods and modules of torch return values that require grad if their arguments do."""

from __future__ import annotations

import re

from gclint.code.names import names
from gclint.model.tensors import UNDIFFERENTIABLE

PARAMETER = "torch.nn.Parameter"
"""The class of parameters."""
PARAMETERS = frozenset(("torch.nn.ParameterList", "torch.nn.ParameterDict"))
"""The containers of parameters."""
_MAKING = UNDIFFERENTIABLE | {"Generator", "Size", "device", "dtype", "finfo", "iinfo"}
"""Functions of torch whose results require no grad, whatever they get."""
_LEARNED = re.compile(
    r"^torch\.nn\.(?:Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|LayerNorm|RMSNorm|GroupNorm|BatchNorm\w+"
    r"|MultiheadAttention)$"
)
_CONSTANT_BUILTINS = names("len range int float bool max min isinstance str hasattr any all type")
KEEPING_BUILTINS = names("tuple list reversed sorted iter")
"""Functions that return the items of their arguments."""
KEEPING_METHODS = names(
    """
    abs bfloat16 chunk clamp clone contiguous cos cuda double exp expand expand_as flatten flip
    float gather half index_select log masked_fill mean moveaxis movedim narrow neg norm permute pow
    relu repeat repeat_interleave reshape roll select sigmoid sin softmax sqrt squeeze sum swapaxes
    t tanh to transpose type type_as unbind unflatten unsqueeze view view_as
    """
)
"""Methods of tensors whose result requires grad if the tensor does."""
MIXING_METHODS = names("add add_ bmm div masked_scatter matmul mul mul_ sub where")
"""Methods of tensors whose result requires grad if the tensor or an argument does."""
SAME_ATTRIBUTES = names("T mT H mH real")
"""Attributes of a tensor that are the same tensor in another shape."""


def is_learned_module(name: str) -> bool:
    """Return whether a class of torch has parameters."""
    return _LEARNED.match(name) is not None


def makes_constants(name: str) -> bool:
    """Return whether the result of a function from outside the project never requires grad."""
    first, _, last = name.partition(".")
    if first == "torch":
        return name.rpartition(".")[2] in _MAKING
    return first in ("math", "numpy") or (not last and name in _CONSTANT_BUILTINS)


def hands_on(name: str) -> bool:
    """Return whether the result of a function or module from outside the project depends on its arguments."""
    return name.startswith("torch.")
