"""What a class of a model is like: does it mix a sequence, learn, keep statistics or state?"""

from __future__ import annotations

import re

from gclint.network.evaluation.classes import ClassInfo, remembered

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
    r"nn\.(?:MultiheadAttention|LSTM|GRU|RNN|TransformerEncoderLayer|TransformerDecoderLayer)\b"
    r"|\b(?:scaled_dot_product_attention|flash_attn\w*|selective_scan\w*|memory_efficient_attention"
    r"|attention_interface|eager_attention_forward|rfftn?|fftn?)\s*\("
)
_SOFTMAX = re.compile(r"\bsoftmax\s*\(")
_QUERY = re.compile(r"\b(?:q|query|queries|query_layer|query_states)\b")
_KEY = re.compile(r"\b(?:k|key|keys|key_layer|key_states)\b")
_LEARNED = re.compile(
    r"\bnn\.(?:Parameter|ParameterList|Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|MultiheadAttention"
    r"|LayerNorm|RMSNorm|GroupNorm|BatchNorm\w+)\s*\(|\bConv1D\s*\("
)
_STATISTICS = re.compile(
    r"(?<![A-Za-z])(?:BatchNorm[123]d|SyncBatchNorm)\s*\(|track_running_stats\s*=\s*True"
)
_MODEL_BASE_NAME = re.compile(r"(\w+?)PreTrainedModel\b")
_SELF_STORE = re.compile(
    r"^[ \t]*self\.[\w.]+(?:\[[^\]\n]*\])?[ \t]*(?::[^=\n]+|[-+*/@&|^%]|//|\*\*)?=(?!=)"
    r"|(?<![\w.])self\.[\w.]+\.(?:add_|copy_|mul_|sub_|div_|zero_|fill_)\(",
    re.MULTILINE,
)
_SELF_CALL = re.compile(r"\bself\.(\w+)\(")


@remembered
def mixes_sequence(info: ClassInfo) -> bool:
    """Tell whether the class is built of attention or another mixer of sequence positions."""
    return any(_is_mixer(part) for part in info.all_parts)


def _is_mixer(info: ClassInfo) -> bool:
    name = info.name
    # In a family called "RecurrentX" every class has the word; only what follows says anything.
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
    """Tell whether a class is, by its name, the mixer itself and not a layer built around one."""
    words = _WORDS.findall(info.name)
    return bool(words) and words[-1].lower() in _MIXING_WORDS


@remembered
def _family_prefix(info: ClassInfo) -> str:
    names = [name for name in info.module.file.outline.classes if name.endswith("PreTrainedModel")]
    prefixes = [match[1] for name in names for match in (_MODEL_BASE_NAME.match(name),) if match]
    return max((p for p in prefixes if info.name.lower().startswith(p.lower())), key=len, default="")


@remembered
def is_learned(info: ClassInfo) -> bool:
    """Tell whether the class has parameters, so that what it returns carries gradient."""
    return any(_LEARNED.search(base.text) for part in info.all_parts for base in part.mro)


@remembered
def statistics_class(info: ClassInfo) -> str | None:
    """Return the name of the class, or of the part of it, that keeps running statistics."""
    for part in sorted(info.all_parts, key=lambda part: (part is not info, part.name)):
        if any(_STATISTICS.search(base.text) for base in part.mro):
            return part.name
    return None


@remembered
def stores_on_self(info: ClassInfo) -> bool:
    """Tell whether ``forward``, or a method that it calls, assigns to the object itself."""
    waiting, seen = ["forward"], set[str]()
    while waiting:
        name = waiting.pop()
        found = info.find_method(name)
        if name in seen or found is None:
            continue
        seen.add(name)
        text = found[1].text
        if _SELF_STORE.search(text):
            return True
        waiting.extend(_SELF_CALL.findall(text))
    return False
