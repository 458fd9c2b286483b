"""Traits of a class: whether it is a token mixer, has parameters, keeps statistics or state."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gclint.code.names import names
from gclint.code.project import reachable
from gclint.code.remembered import remembered
from gclint.code.tree import DEFINITIONS
from gclint.code.walk import FUNCTIONS, called_name, is_constant, last_name, text_of, walk
from gclint.network.evaluation.body import Body
from gclint.network.evaluation.classes import ClassInfo, may_have, words_of
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.signature import listed_parameters
from gclint.network.evaluation.values import NOTHING, EvaluatedExternal

_MIXING_WORDS = names(
    """
    attention attentions attn attend mixer mamba ssm rnn lstm gru recurrent recurrence retention fourier fft
    wkv rglru deltanet hyena longconv
    """
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MIXING_LAYERS = names("MultiheadAttention LSTM GRU RNN TransformerEncoderLayer TransformerDecoderLayer")
_MIXING_FUNCTION = re.compile(
    r"scaled_dot_product_attention|flash_attn\w*|selective_scan\w*|memory_efficient_attention"
    r"|attention_interface|eager_attention_forward|rfftn?|fftn?"
)
_QUERIES = names("q query queries query_layer query_states")
_KEYS = names("k key keys key_layer key_states")
_LEARNED = re.compile(
    r"Parameter|ParameterList|Linear|Bilinear|Conv\dd|ConvTranspose\dd|Conv1D|Embedding|EmbeddingBag|LSTM"
    r"|GRU|RNN|MultiheadAttention|LayerNorm|RMSNorm|GroupNorm|BatchNorm\w+"
)
_WITH_STATISTICS = re.compile(r"(?:[\w.]*[\d_.])?(?:Lazy)?(?:BatchNorm[123]d|SyncBatchNorm)")
_MAKING_STATISTICS = names("batch_norm spectral_norm")
_TRACKING = "track_running_stats"
_ABOUT_STATISTICS = ("BatchNorm", _TRACKING, *_MAKING_STATISTICS)
"""What a text contains that keeps statistics."""
_MODEL_BASE_NAME = re.compile(r"(\w+?)PreTrainedModel\b")


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
    return any(map(_mixes_itself, info.mro))


@remembered
def _mixes_itself(info: ClassInfo) -> bool:
    """Return whether a class's own code mixes tokens."""
    words, called = words_of(info.definition), _called(info)
    if not _MIXING_LAYERS.isdisjoint(words) or any(map(_MIXING_FUNCTION.fullmatch, called)):
        return True
    if any(_ends_with_mixer(each) and _is_class_of_others(info, each) for each in called):
        return True
    return "softmax" in called and not _QUERIES.isdisjoint(words) and not _KEYS.isdisjoint(words)


@remembered
def _called(info: ClassInfo) -> frozenset[str]:
    """Return the names of what a class's code calls or defines, without the objects they belong to."""
    return frozenset(filter(None, map(_called_name, info.nodes)))


def _called_name(node: ast.AST) -> str | None:
    return node.name if isinstance(node, DEFINITIONS) else called_name(node)


def _is_class_of_others(info: ClassInfo, name: str) -> bool:
    """Return whether a name is that of a class of which only the name is known."""
    values = info.module.lookup(name) if name[:1].isupper() else NOTHING
    return bool(values) and all(isinstance(each, EvaluatedExternal) for each in values)


def is_named_as_mixer(info: ClassInfo) -> bool:
    """Return whether a class is, by its name, a token mixer itself, not a layer around one."""
    return _ends_with_mixer(info.name)


def _ends_with_mixer(name: str) -> bool:
    words = _WORDS.findall(name)
    return bool(words) and words[-1].lower() in _MIXING_WORDS


@remembered
def _family_prefix(info: ClassInfo) -> str:
    names = [name for name in info.module.file.outline.classes if name.endswith("PreTrainedModel")]
    prefixes = [match[1] for name in names for match in (_MODEL_BASE_NAME.match(name),) if match]
    return max((p for p in prefixes if info.name.lower().startswith(p.lower())), key=len, default="")


@remembered
def is_learned(info: ClassInfo) -> bool:
    """Return whether the class has parameters, so that its output requires grad."""
    classes = (base for part in info.all_parts for base in part.mro)
    return any(_is_learned_layer(base.module, name) for base in classes for name in _called(base))


def _is_learned_layer(module: ModuleInfo, name: str) -> bool:
    """Return whether a layer has parameters, by its name or those of its bases outside of the project."""
    own = module.classes.get(name)
    bases = () if own is None else own.external_bases
    return any(_LEARNED.fullmatch(each.rpartition(".")[2]) for each in (name, *bases))


@remembered
def statistics_class(info: ClassInfo) -> str | None:
    """Return the name of the class or part that keeps running statistics, if any does."""
    # Each once, before it is asked which of them it is.
    if not any(map(_is_about_statistics, reachable([info], _parts_and_bases))):
        return None
    for part in sorted(info.all_parts, key=lambda part: (part is not info, part.name)):
        if any(map(_is_about_statistics, part.mro)):
            return part.name
    return None


def _parts_and_bases(info: ClassInfo) -> Iterator[ClassInfo]:
    yield from info.own_parts
    yield from (base for base in info.bases if isinstance(base, ClassInfo))


@remembered
def _is_about_statistics(info: ClassInfo) -> bool:
    """Return whether a class's own code has to do with layers that keep statistics."""
    return _has_statistics(info) or _uses_statistics(info)


def _has_statistics(info: ClassInfo) -> bool:
    """Return whether a class's own code mentions layers that keep statistics."""
    return may_have(info.definition, _ABOUT_STATISTICS) and any(map(_keeps_statistics, info.nodes))


def _keeps_statistics(node: ast.AST) -> bool:
    """Return whether a node names a layer that keeps statistics, makes one, or asks for statistics."""
    if isinstance(node, ast.arguments):
        settings = [(arg.arg, default) for arg, _, default in listed_parameters(node)]
    elif isinstance(node, ast.keyword):
        settings = [(node.arg or "", node.value)]
    elif isinstance(node, ast.Assign):
        settings = [(last_name(target), node.value) for target in node.targets]
    else:
        called = _called_name(node)
        words = filter(None, (called, last_name(node), text_of(node)))
        return called in _MAKING_STATISTICS or any(_WITH_STATISTICS.fullmatch(each) for each in words)
    return any(
        name == _TRACKING and value is not None and is_constant(value, True) for name, value in settings
    )


def _uses_statistics(info: ClassInfo) -> bool:
    """Return whether a class uses a table or function of its file that contains such layers."""
    tables = _tables_with_statistics(info.module)
    return bool(tables) and not tables.isdisjoint(words_of(info.definition))


@remembered
def _tables_with_statistics(module: ModuleInfo) -> frozenset[str]:
    """Return the module-level names, except classes, whose definitions mention such layers."""
    tree, text = module.file.tree, module.file.text
    if tree is None or not any(each in text for each in _ABOUT_STATISTICS):
        return frozenset()
    found: set[str] = set()
    for statement in tree.module.body:
        if not isinstance(statement, ast.ClassDef) and any(map(_keeps_statistics, walk(statement))):
            if isinstance(statement, FUNCTIONS):
                found.add(statement.name)
            else:
                body = Body(module.file, [statement])
                found |= body.bindings.keys() | body.functions.keys()
    return frozenset(found)
