"""Makes inputs from the docstring and the annotations of ``forward``."""

from __future__ import annotations

import inspect
import math
import re
import sys
import typing
from functools import cache
from typing import Any

from gclint.verify.worker.synthesis.inputs.situation import Situation


def documented(situation: Situation, name: str) -> Any:
    """Return a value for the parameter ``name``, or None if nothing says what it is."""
    shape = documented_shape(situation, name)
    annotation = str(situation.parameters[name].annotation)
    text = entry(situation, name)
    if shape is None:
        if re.search("quer(y|ies)", name):
            return situation.floats(name, situation.batch, situation.plan.sizes.queries, situation.width())
        if "states" in name or "embeds" in name or "features" in name:
            return situation.floats(name, situation.batch, situation.length, situation.width())
        if "mask" in name:
            return situation.ones(situation.batch, situation.length)
        return 1 if re.search(r"\bint\b", annotation) or re.match(r"\s*\(`?int`?\b", text) else None
    if "mask" in name and len(shape) == 4 and "Long" not in annotation:
        # A mask with the shape of an image has values of its own, such as those of another image.
        return situation.floats(name, *shape)
    if "hidden_state" in name:
        # The docstring may call them integers, where it was copied from that of tokens.
        return situation.floats(name, *shape)
    if "mask" in name:
        return situation.ones(*shape, boolean="Bool" in annotation + text[:80])
    if (
        "Long" in annotation
        or "Int" in annotation
        or "LongTensor" in text[:80]
        or name.endswith(("ids", "codes"))
    ):
        return situation.integers(name, 0, 2, *shape)
    return situation.floats(name, *shape)


def documented_shape(situation: Situation, name: str) -> tuple[int, ...] | None:
    """Return the shape that the docstring gives for the parameter ``name``, or None if it gives none."""
    found = re.search(r"of shape\s+`?\(?`?\(([^)]{0,400})\)", entry(situation, name)[:400])
    if found is None:
        return None
    words = [word.strip(" `") for word in found.group(1).split(",")]
    return tuple(dimension(situation, word) for word in words if word)


def entry(situation: Situation, name: str) -> str:
    """Return the entry for the parameter ``name`` in the docstring of ``forward``, or an empty string."""
    return _entry(typing.cast(str, situation.model_class.forward.__doc__ or ""), name)


def layout(situation: Situation, name: str) -> str:
    """Return the entries for the parameter ``name`` in the docstrings of all classes in the file."""
    return _described(situation.model_class.__module__, name)


def _entry(text: str, name: str) -> str:
    found = re.search(
        rf"^[ \t]*{re.escape(name)}\s*(\(.*?)(?=^[ \t]*\w+ \(`|^[ \t]*Returns|^[ \t]*Example|\Z)",
        text,
        re.M | re.S,
    )
    return found.group(1) if found else ""


@cache
def _described(module: str, name: str) -> str:
    classes = [each for each in vars(sys.modules[module]).values() if inspect.isclass(each)]
    texts = [getattr(getattr(each, "forward", None), "__doc__", None) for each in classes]
    return "\n".join(_entry(text, name) for text in texts if text)


def dimension(situation: Situation, word: str) -> int:
    """Return the size that ``word`` stands for in a documented shape."""
    if "*" in word:
        return math.prod(dimension(situation, each.strip()) for each in word.split("*"))
    if word.isdecimal():
        return int(word)
    field = word.removeprefix("self.").removeprefix("config.")
    if field in ("batch_size", "batch", "bsz"):
        return situation.batch
    value = situation.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if re.search("width|height|image", field):
        return _side(situation, -1 if "width" in field else 0)
    if re.search("seq|len", field):
        return situation.length
    if re.search("hidden|dim|embed", field):
        return situation.width()
    return 2


def _side(situation: Situation, axis: int) -> int:
    size = situation.get("image_size", default=situation.plan.sizes.image)
    return int(size[axis] if isinstance(size, list | tuple) else size)
