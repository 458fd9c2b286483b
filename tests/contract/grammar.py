"""The shapes of models that people write, and which of them any linter should be able to repair."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

_ONCE_BROKEN = Path(__file__).with_name("once_broken.txt")
LIBRARY_SWITCHES = frozenset(("library", "enabled in init"))
"""Who turns checkpointing on: with these, the library's own method does, for every module with the flag."""

FEATURES: Mapping[str, Mapping[str, int]] = {
    "switch": {
        "library": 60,
        "enabled in init": 2,
        "true at construction": 4,
        "class attribute": 2,
        "config flag": 4,
        "config condition": 4,
        "config gradient_checkpointing": 4,
        "constructor argument": 4,
        "parent sets": 2,
        "script sets": 4,
        "script sets all": 3,
        "no support": 3,
        "own method": 3,
        "own enable": 3,
        "own enable and super": 2,
        "old override": 4,
        "old override by attribute": 2,
        "new override": 2,
        "forward argument": 2,
        "train override": 1,
        "property": 1,
    },
    "stack": {
        "comprehension": 30,
        "append": 5,
        "extend": 3,
        "local list": 5,
        "factory": 4,
        "dict of classes": 4,
        "conditional class": 3,
        "sequential": 4,
        "module dict": 2,
        "two stacks": 5,
        "two stacks and one branch": 3,
        "subclass replaces": 4,
        "stages": 3,
        "shared": 2,
        "clones": 2,
    },
    "loop": {
        "for": 30,
        "enumerate": 8,
        "index": 5,
        "slice": 4,
        "zip": 2,
        "while": 1,
    },
    "owner": {"encoder": 5, "model": 3, "pretrained encoder": 2},
    "checkpoint": {
        "none": 30,
        "func call": 40,
        "func forward": 6,
        "func bare": 8,
        "func partial": 8,
        "custom forward": 8,
        "custom forward tuple": 6,
        "torch": 8,
        "torch reentrant": 4,
        "torch non-reentrant": 4,
        "torch keywords": 3,
        "lambda": 3,
        "wrapper": 4,
        "wrapper elsewhere": 3,
        "helper": 4,
        "own func": 3,
    },
    "branch": {
        "if": 60,
        "negated": 4,
        "computed": 4,
        "conditional expression": 4,
        "every other": 4,
        "first half": 3,
        "continue": 4,
        "two loops": 3,
        "flag only": 4,
        "requires grad": 4,
        "grad enabled": 3,
        "getattr": 3,
        "run method": 4,
        "chosen function": 3,
        "nested ifs": 3,
        "cache guard": 3,
        "and not cache": 2,
    },
    "sides": {"same": 60, "no cache": 20, "no mask": 4, "swapped": 3, "tuple bias": 3, "detached": 2},
    "call": {"mixed": 50, "positional": 25, "keyword": 15, "shuffled": 10},
    "order": {"activations first": 70, "cache second": 20, "mask last": 10},
    "encoder": {
        "none": 60,
        "given by keyword": 10,
        "given by position": 10,
        "computed by keyword": 10,
        "computed by position": 10,
        "list": 2,
        "alias": 3,
    },
    "bias": {
        "none": 70,
        "before loop by keyword": 6,
        "before loop by position": 6,
        "getter by keyword": 4,
        "weight by keyword": 3,
        "per layer": 3,
        "carried by keyword": 4,
        "carried by position": 3,
        "is None": 4,
        "tuple": 3,
        "residual by keyword": 3,
        "dict": 2,
    },
    "rotary": {"none": 70, "tuple": 20, "tuple by position": 5, "learned tuple": 3},
    "extra": {"none": 60, "kwargs": 10, "flag": 12, "index": 6, "shared dict": 2},
    "returns": {
        "tensor": 40,
        "tuple": 25,
        "tuple with weights": 15,
        "unpacked": 10,
        "list": 4,
        "dict": 3,
        "output": 2,
        "tuple or tensor": 3,
    },
    "cache": {"none": 55, "past_key_values": 18, "past_key_value": 12, "layer_past": 8, "cache_params": 2},
    "cache_call": {"keyword": 60, "position": 25, "guarded position": 8, "per layer": 7},
    "state": {
        "none": 70,
        "dropout": 12,
        "batch norm": 4,
        "self assignment": 3,
        "appends": 2,
        "counter buffer": 2,
        "in place": 3,
        "random": 2,
        "part's state": 2,
        "python random": 2,
        "frozen part": 2,
        "grad switch": 2,
    },
    "block": {
        "module": 55,
        "local base": 6,
        "other file": 10,
        "base in other file": 6,
        "mixin": 3,
        "gcl": 15,
        "gcl base in other file": 3,
        "guarded import": 3,
    },
    "model_base": {"library": 70, "llama": 10, "own base": 15, "own base in other file": 5},
    "runner": {
        "none": 70,
        "free function": 5,
        "direct forward": 5,
        "script replaces forward": 4,
        "script replaces layer forward": 3,
        "script checkpoints": 3,
        "script wraps blocks": 3,
    },
    "names": {"usual": 70, "short": 30},
}
"""Each feature with its values, the simplest first, and how often each is drawn."""


@dataclass(frozen=True)
class Shape:
    """What a generated model looks like; every default is the simplest."""

    switch: str = "library"
    stack: str = "comprehension"
    loop: str = "for"
    owner: str = "encoder"
    checkpoint: str = "none"
    branch: str = "if"
    sides: str = "same"
    call: str = "mixed"
    order: str = "activations first"
    encoder: str = "none"
    bias: str = "none"
    rotary: str = "none"
    extra: str = "none"
    returns: str = "tensor"
    cache: str = "none"
    cache_call: str = "keyword"
    state: str = "none"
    block: str = "module"
    model_base: str = "library"
    runner: str = "none"
    names: str = "usual"

    @property
    def special(self) -> dict[str, str]:
        """The features that are not the simplest."""
        return {name: value for name, value in asdict(self).items() if value != next(iter(FEATURES[name]))}

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.special.items()) or "the simplest"

    @property
    def is_layer(self) -> bool:
        """Whether the block is a checkpointing layer already."""
        return self.block.startswith("gcl")

    @property
    def is_carried(self) -> bool:
        return self.bias.startswith("carried")


def draw(seed: int, number: int) -> Shape:
    """Return the model of that number in the sequence that ``seed`` begins."""
    source = random.Random(f"{seed}/{number}")
    # Most features at their simplest leave few that can hide each other; some models have many.
    keep = source.choice((0.15, 0.3, 0.3, 0.6, 1.0))
    chosen = {}
    for name, values in FEATURES.items():
        simplest = next(iter(values))
        # A legacy branch is what most of the contract is about.
        is_drawn = name == "checkpoint" or source.random() < keep
        chosen[name] = source.choices(list(values), list(values.values()))[0] if is_drawn else simplest
    return settled(Shape(**chosen))


def shape_of(text: str) -> Shape:
    """Return the shape that is printed so, such as ``switch=no support, stack=append``.

    Raises:
        ValueError: there is no such feature, or no such value of it.
    """
    features = dict(each.strip().split("=", 1) for each in text.split(",") if "=" in each)
    unknown = [name for name, value in features.items() if value not in FEATURES.get(name, ())]
    if unknown:
        raise ValueError(f"there is no such value of {', '.join(unknown)}")
    return settled(Shape(**features))


def once_broken() -> list[Shape]:
    """Return the models on which a safe fix once broke a promise."""
    lines = _ONCE_BROKEN.read_text(encoding="utf-8").splitlines()
    return [shape_of(line) for line in lines if not line.startswith("#")]


_NEEDS_BRANCH = frozenset(FEATURES["switch"]) - {
    "library",
    "enabled in init",
    "no support",
    "own enable and super",
    "new override",
}


def settled(shape: Shape) -> Shape:
    """Return the shape without what does not go together, which makes a model that runs."""
    while True:
        changes = dict(_contradictions(shape))
        if not changes:
            return shape
        shape = replace(shape, **changes)


def _contradictions(shape: Shape) -> Iterator[tuple[str, str]]:
    """Yield features with the simpler value that they must have."""
    wanted: dict[str, str] = {}
    if shape.is_layer:
        wanted["checkpoint"] = "none"
    if shape.runner == "script replaces forward" and shape.owner == "model":
        wanted["owner"] = "encoder"
    if shape.stack in ("stages", "shared"):
        wanted["cache"] = "none"
    if shape.checkpoint == "none":
        wanted |= {"branch": "if", "sides": "same"}
        if shape.switch in _NEEDS_BRANCH:
            wanted["switch"] = "library"
    if shape.stack == "sequential":
        simplest = (
            "encoder",
            "bias",
            "rotary",
            "extra",
            "cache",
            "returns",
            "call",
            "loop",
            "sides",
            "runner",
        )
        wanted |= {name: next(iter(FEATURES[name])) for name in simplest}
        if shape.branch not in ("if", "negated", "computed", "conditional expression", "flag only"):
            wanted["branch"] = "if"
        if shape.checkpoint in ("torch keywords", "func partial", "custom forward tuple", "func forward"):
            wanted["checkpoint"] = "func call"
    if shape.stack in ("shared", "module dict", "two stacks", "two stacks and one branch", "stages"):
        wanted["loop"] = "for"
    if shape.stack == "shared" and shape.branch in ("two loops",):
        wanted["branch"] = "if"
    if shape.loop == "while" and shape.branch in ("continue", "two loops"):
        wanted["branch"] = "if"
    if shape.stack in ("two stacks", "two stacks and one branch", "stages", "module dict", "shared"):
        wanted["runner"] = "none"
    if shape.is_carried:
        wanted["returns"] = "tensor"
        if shape.stack == "stages":
            wanted["bias"] = "none"
    no_tuple = shape.returns in ("tensor", "dict", "tuple or tensor") and not shape.is_carried
    if shape.checkpoint == "custom forward tuple" and no_tuple:
        wanted["returns"] = "tuple"
    if shape.cache == "none":
        wanted |= {"cache_call": "keyword"}
        if shape.order == "cache second":
            wanted["order"] = "activations first"
        if shape.branch in ("cache guard", "and not cache"):
            wanted["branch"] = "if"
        if shape.sides == "no cache":
            wanted["sides"] = "same"
    if shape.sides == "tuple bias" and shape.bias not in (
        "before loop by keyword",
        "before loop by position",
    ):
        wanted["sides"] = "same"
    if shape.sides == "swapped" and shape.bias == "none":
        wanted["sides"] = "same"
    if shape.branch == "run method" and shape.checkpoint in ("custom forward", "lambda"):
        wanted["branch"] = "if"
    if shape.checkpoint == "helper" and shape.branch in (
        "run method",
        "chosen function",
        "conditional expression",
    ):
        wanted["branch"] = "if"
    if shape.owner == "model" and shape.switch == "parent sets":
        wanted["switch"] = "true at construction"
    if shape.runner == "free function" and shape.returns in ("dict", "output"):
        wanted["runner"] = "none"
    if shape.runner == "script wraps blocks" and shape.stack not in ("comprehension", "append", "factory"):
        wanted["runner"] = "none"
    for name, value in wanted.items():
        if getattr(shape, name) != value:
            yield name, value


assert [each.name for each in fields(Shape)] == list(FEATURES)
