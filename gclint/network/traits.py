"""Traits of a class: whether it is a token mixer, has parameters, keeps statistics or state."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from gclint.network.evaluation.body import nodes_in
from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.walk import dotted_name, structure, walk
from gclint.source.words import has_word

if TYPE_CHECKING:
    from gclint.network.evaluation.modules import Module

_MIXING_WORDS = frozenset(
    [
        "attention",
        "attentions",
        "attn",
        "attend",
        "mixer",
        "mamba",
        "ssm",
        "rnn",
        "lstm",
        "gru",
        "recurrent",
        "recurrence",
        "retention",
        "fourier",
        "fft",
        "wkv",
        "rglru",
        "deltanet",
        "hyena",
        "longconv",
    ]
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MIXING_CODE = re.compile(
    r"(?:\.(?:MultiheadAttention|LSTM|GRU|RNN|TransformerEncoderLayer|TransformerDecoderLayer)\b"
    r"|\b(?:MultiheadAttention|LSTM|GRU|RNN|TransformerEncoderLayer|TransformerDecoderLayer)\()"
    r"|\b(?:scaled_dot_product_attention|flash_attn\w*|selective_scan\w*|memory_efficient_attention"
    r"|attention_interface|eager_attention_forward|rfftn?|fftn?)\s*\("
)
_SOFTMAX = re.compile(r"\bsoftmax\s*\(")
_QUERY = re.compile(r"\b(?:q|query|queries|query_layer|query_states)\b")
_KEY = re.compile(r"\b(?:k|key|keys|key_layer|key_states)\b")
_LEARNED = re.compile(
    r"\b(?:Parameter|ParameterList|Linear|Bilinear|Conv\dd|ConvTranspose\dd|Conv1D|Embedding|EmbeddingBag|LSTM"
    r"|GRU|RNN|MultiheadAttention|LayerNorm|RMSNorm|GroupNorm|BatchNorm\w+)\s*\("
)
_STATISTICS = re.compile(
    r"(?<![A-Za-z])(?:Lazy)?(?:BatchNorm[123]d|SyncBatchNorm)\b|track_running_stats\s*=\s*True"
    r"|\b(?:batch_norm|spectral_norm)\s*\("
)
_TOP_LEVEL = re.compile(
    r"^(?:class[ \t]+|async[ \t]+def[ \t]+|def[ \t]+)?(\w+)[ \t]*(?=[(:=\[])", re.MULTILINE
)
_MODEL_BASE_NAME = re.compile(r"(\w+?)PreTrainedModel\b")
IN_PLACE = re.compile(r"(?!requires_grad_|_)\w+(?<!_)_")
"""Matches the names of methods that change a tensor in place."""
FILLING = frozenset(
    ("append", "appendleft", "clear", "extend", "insert", "pop", "popleft", "remove", "setdefault")
)
"""Methods that change a list, and methods of a dict that change an item."""


@remembered
def mixes_sequence(info: ClassInfo) -> bool:
    """Return whether the class is, or contains, attention or another token mixer."""
    return any(_is_mixer(part) for part in info.all_parts)


def _is_mixer(info: ClassInfo) -> bool:
    name = info.name
    # If a model is called "RecurrentX", all its classes contain the word: only the rest of the name counts.
    prefix = _family_prefix(info)
    if prefix and name.lower().startswith(prefix.lower()):
        name = name[len(prefix) :]
    if any(word.lower() in _MIXING_WORDS for word in _WORDS.findall(name)):
        return True
    for ancestor in info.mro:
        text = ancestor.text
        if _MIXING_CODE.search(text):
            return True
        if _SOFTMAX.search(text) and _QUERY.search(text) and _KEY.search(text):
            return True
    return False


def is_named_as_mixer(info: ClassInfo) -> bool:
    """Return whether a class is, by its name, a token mixer itself, not a layer around one."""
    words = _WORDS.findall(info.name)
    return bool(words) and words[-1].lower() in _MIXING_WORDS


@remembered
def _family_prefix(info: ClassInfo) -> str:
    names = [name for name in info.module.file.outline.classes if name.endswith("PreTrainedModel")]
    prefixes = [match[1] for name in names for match in (_MODEL_BASE_NAME.match(name),) if match]
    return max((p for p in prefixes if info.name.lower().startswith(p.lower())), key=len, default="")


@remembered
def is_learned(info: ClassInfo) -> bool:
    """Return whether the class has parameters, so that its output requires grad."""
    return any(_LEARNED.search(base.text) for part in info.all_parts for base in part.mro)


@remembered
def statistics_class(info: ClassInfo) -> str | None:
    """Return the name of the class or part that keeps running statistics, if any does."""
    for part in sorted(info.all_parts, key=lambda part: (part is not info, part.name)):
        if any(_STATISTICS.search(base.text) or _uses_statistics(base) for base in part.mro):
            return part.name
    return None


def _uses_statistics(info: ClassInfo) -> bool:
    """Return whether a class uses a table or function of its file that contains such layers."""
    names = _tables_with_statistics(info.module)
    definition = info.definition
    return any(has_word(info.file.outline.code, name, definition.header, definition.end) for name in names)


@remembered
def _tables_with_statistics(module: Module) -> frozenset[str]:
    """Return the module-level names, except classes, whose definitions mention such layers."""
    code = module.file.outline.code
    starts = [(match.start(), match[1]) for match in _TOP_LEVEL.finditer(code)]
    found: set[str] = set()
    for match in _STATISTICS.finditer(code):
        row = bisect_right(starts, (match.start(), "~")) - 1
        if row >= 0 and starts[row][1] not in module.classes:
            found.add(starts[row][1])
    return frozenset(found)


@remembered
def stores_on_self(info: ClassInfo) -> bool:
    """Return whether ``forward``, or a method it calls, assigns to ``self`` or fills a container in it."""
    return any(_stores_on(node, name) or _fills(node, name) for node, name in _forward_code(info))


@remembered
def changes_own_state(info: ClassInfo) -> bool:
    """Return whether each call of ``forward`` changes the state of the object: it counts or collects.

    An attribute that only stores the latest result does not count.
    """
    return any(
        _fills(node, name)
        or (isinstance(node, (cst.AugAssign, cst.Call)) and _stores_on(node, name))
        or (isinstance(node, cst.Assign) and _continues(node, name))
        for node, name in _forward_code(info)
    )


def forward_nodes(info: ClassInfo) -> Iterator[cst.CSTNode]:
    """Yield the nodes of ``forward``, and of the object's own methods that it calls."""
    return (node for node, _ in _forward_code(info))


def _forward_code(info: ClassInfo) -> Iterator[tuple[cst.CSTNode, str | None]]:
    """Yield the same, each node with the name of ``self`` there."""
    waiting, seen = ["forward"], set[str]()
    while waiting:
        method = waiting.pop()
        found = info.find_method(method)
        if method in seen or found is None:
            continue
        seen.add(method)
        scope = info.scope(found[1], found[0].module)
        pieces = [] if scope.body is None else scope.body.pieces()
        for node in nodes_in(pieces):
            yield node, scope.self_name
            if isinstance(node, cst.Call):
                holder, _, called = (dotted_name(node.func) or "").rpartition(".")
                if holder == scope.self_name:
                    waiting.append(called)


def _fills(node: cst.CSTNode, name: str | None) -> bool:
    """Return whether a call changes a list or dict in an attribute of ``name``."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in FILLING
        and _is_part_of(name, node.func.value)
    )


def _continues(node: cst.Assign, name: str | None) -> bool:
    """Return whether an attribute of ``name`` is computed from its old value."""
    read = {structure(each) for each in walk(node.value) if isinstance(each, cst.Attribute)}
    return any(
        _is_part_of(name, target) and (isinstance(target, cst.Subscript) or structure(target) in read)
        for each in node.targets
        for target in _targets(each.target)
    )


def _stores_on(node: cst.CSTNode, name: str | None) -> bool:
    """Return whether a statement sets an attribute of ``name``, or a call changes one in place."""
    if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.For)):
        return any(map(partial(_is_part_of, name), _targets(node.target)))
    if isinstance(node, cst.AnnAssign):
        return node.value is not None and _is_part_of(name, node.target)
    if isinstance(node, cst.AsName):
        return any(map(partial(_is_part_of, name), _targets(node.name)))
    if isinstance(node, cst.Call) and dotted_name(node.func) == "setattr" and node.args:
        return dotted_name(node.args[0].value) == name
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and IN_PLACE.fullmatch(node.func.attr.value) is not None
        and _is_part_of(name, node.func.value)
    )


def _targets(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a target, or the items of a tuple target."""
    if isinstance(node, (cst.Tuple, cst.List)):
        for element in node.elements:
            yield from _targets(element.value)
    else:
        yield node


def _is_part_of(name: str | None, node: cst.CSTNode) -> bool:
    """Return whether an expression is an attribute of ``name``, at any depth, or an item of one."""
    if not isinstance(node, (cst.Attribute, cst.Subscript)):
        return False
    holder = node.value
    if isinstance(holder, cst.Call) and dotted_name(holder.func) == "type" and len(holder.args) == 1:
        holder = holder.args[0].value  # An attribute of `type(self)`.
    return (isinstance(holder, cst.Name) and holder.value == name) or _is_part_of(name, holder)
