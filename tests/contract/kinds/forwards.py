"""Forwards of blocks that are replaced, by descriptors and otherwise, so that the base class sees none."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tests.contract.kinds.models import Pair, pair

_PATCHES = {
    "function": (
        "def patched(self, states, mask=None):\n"
        "    states = states + self.attention(self.norm1(states), mask)\n"
        "    return states + self.mlp(states).tanh() * 2\n\n\n",
        "patched",
    ),
    "lambda": (
        "patched = lambda self, states, mask=None: self.attention(self.norm1(states), mask) * 2\n\n\n",
        "patched",
    ),
    "method of another class": (
        "class ToyPatch:\n    def run(self, states, mask=None):\n"
        "        return states + self.attention(self.norm1(states), mask) * 2\n\n\n",
        "ToyPatch.run",
    ),
    "made function": (
        "def make(scale):\n    def patched(self, states, mask=None):\n"
        "        return states + self.attention(self.norm1(states), mask) * scale\n\n"
        "    return patched\n\n\n",
        "make(2)",
    ),
}
"""What stands before the blocks, and what takes the place of ``forward``."""
_OF_OBJECTS = {
    "attribute": "layer.forward = $b",
    "setattr": 'setattr(layer, "forward", $b)',
    "setattr by a computed name": 'setattr(layer, "for" + "ward", $b)',
    "setattr in a loop": 'for name in ("forward",):\n    setattr(layer, name, $b)',
    "item of the dict": 'layer.__dict__["forward"] = $b',
    "item of the vars": 'vars(layer)["forward"] = $b',
    "update of the vars": "vars(layer).update(forward=$b)",
    "object's setattr": 'object.__setattr__(layer, "forward", $b)',
    "own setattr": 'layer.__setattr__("forward", $b)',
    "partial": "layer.forward = partial($p, layer)",
    "lambda": "layer.forward = lambda *args, layer=layer: ($p)(layer, *args)",
    "bound by get": "layer.forward = ($p).__get__(layer)",
    "two targets": "layer.forward, done = $b, True",
    "chained targets": "layer.forward = layer.run = $b",
    "walrus": "[setattr(layer, 'forward', bound := $b)]",
}
"""How an object's is replaced: by ``p``, or by ``b`` that is bound to it."""
_WHERE = {
    "in its init": "$s",
    "by the loop of the owner": "for layer in self.layers:\n$i",
    "by a comprehension": "def patch(layer):\n$i\n\n[patch(layer) for layer in self.layers]",
    "by apply": "def patch(layer):\n    if isinstance(layer, ToyLayer):\n$ii\n\nself.layers.apply(patch)",
}
_OF_CLASSES = {
    "attribute of the class": "ToyLayer.forward = $p",
    "setattr of the class": 'setattr(ToyLayer, "forward", $p)',
    "setattr by a table": 'for name, value in {"forward": $p}.items():\n    setattr(ToyLayer, name, value)',
    "type's setattr": 'type.__setattr__(ToyLayer, "forward", $p)',
    "a function on the class": "def patch(each):\n    each.forward = $p\n\n\npatch(ToyLayer)",
    "a loop over classes": "for each in (ToyLayer,):\n    each.forward = $p",
    "an alias of the class": "Alias = ToyLayer\nAlias.forward = $p",
    "the class by its name": 'globals()["ToyLayer"].forward = $p',
    "a mock": 'mock.patch.object(ToyLayer, "forward", $p).start()',
    "a property of the class": "ToyLayer.forward = property(lambda self: partial($p, self))",
    "an attribute in a condition": 'if not hasattr(ToyLayer, "patched"):\n    ToyLayer.forward = $p',
    "an attribute in a try": "try:\n    ToyLayer.forward = $p\nexcept AttributeError:\n    pass",
}
"""How the forward of the class is replaced, behind it."""
_DECORATED = {
    "a decorator of the class": (
        "def patches(each):\n    each.forward = $p\n    return each\n\n\n",
        "@patches",
    ),
    "a decorator by setattr": (
        'def patches(each):\n    setattr(each, "forward", $p)\n    return each\n\n\n',
        "@patches",
    ),
    "a decorator with arguments": (
        "def patches(name):\n    def patch(each):\n        setattr(each, name, $p)\n        return each\n\n"
        "    return patch\n\n\n",
        '@patches("forward")',
    ),
}
_IN_BODY = {
    "a descriptor": ("", "forward = Replaced($p)"),
    "a property": ("", "@property\ndef forward(self):\n    return partial($p, self)"),
    "a property by a call": ("", "forward = property(lambda self: partial($p, self))"),
    "a cached property": ("", "@cached_property\ndef forward(self):\n    return partial($p, self)"),
    "an own getattribute": (
        "",
        'def __getattribute__(self, name):\n    if name == "forward":\n        return partial($p, self)\n'
        "    return super().__getattribute__(name)",
    ),
    "an own call": ("", "def __call__(self, *args):\n    return ($p)(self, *args)"),
}
_DESCRIPTOR = """\
class Replaced:
    def __init__(self, function):
        self.function = function

    def __get__(self, owner, kind=None):
        return partial(self.function, owner)


"""
_DESCRIBE = "def describe(self, states, mask=None):\n    return states"
_IMPORTS = {
    "partial(": "from functools import partial",
    "cached_property": "from functools import cached_property",
    "MethodType(": "from types import MethodType",
    "mock.": "from unittest import mock",
}


def pairs() -> Iterator[Pair]:
    """Yield each way with one of the patches; the twins replace another method, that nothing runs."""
    for name, slots in _ways():
        turn = sum(map(ord, name)) % len(_PATCHES)
        patch, (above, function) = list(_PATCHES.items())[turn]
        yield pair(f"{name}, {patch}", "legacy branch", _both(slots, above, function))


def _ways() -> Iterator[tuple[str, dict[str, str]]]:
    for number, (how, text) in enumerate(_OF_OBJECTS.items()):
        for where, frame in _WHERE.items():
            lines = frame.replace("$s", text.replace("layer", "self"))
            lines = lines.replace("$ii", textwrap.indent(text, " " * 8))
            lines = lines.replace("$i", textwrap.indent(text, " " * 4))
            yield f"{how} {where}", {"layer_init" if "$s" in frame else "encoder_init": lines}
        script = "def prepare(model):\n    for layer in model.encoder.layers:\n" + textwrap.indent(
            text, " " * 8
        )
        if number % 2 == 0:
            yield f"{how} by a script", {"train.py": script}
    for how, text in _OF_CLASSES.items():
        yield how, {"below_layer": f"{text}\n\n\n"}
        if "globals()" not in text:
            yield (
                f"{how} by a script",
                {"train.py": f"{text}\n\n\ndef prepare(model):\n    model.train(model.training)"},
            )
    for how, (above, decorator) in _DECORATED.items():
        yield how, {"above_layer": above + decorator}
    for how, (above, body) in _IN_BODY.items():
        yield how, {"above_layer": above, "layer_methods": body}
    for how, text in _OF_CLASSES.items():
        inner = textwrap.indent(text, "    ")
        yield f"{how} in a function", {"below_layer": f"def patch_all():\n{inner}\n\n\npatch_all()\n\n\n"}


def _both(slots: dict[str, str], above: str, function: str) -> Iterator[dict[str, str]]:
    for replaced in ("forward", "describe"):
        filled = {
            name: text.replace("$b", "MethodType($p, layer)" if "self" not in name else "")
            for name, text in slots.items()
        }
        if "layer_init" in slots:
            filled["layer_init"] = slots["layer_init"].replace("$b", "MethodType($p, self)")
        filled = {name: text.replace("$p", function) for name, text in filled.items()}
        if replaced == "describe":
            filled = {
                name: text.replace("forward", "describe")
                .replace('"for" + "ward"', '"de" + "scribe"')
                .replace("__call__", "called")
                for name, text in filled.items()
            }
        yield _complete(filled, above)


def _complete(filled: dict[str, str], above: str) -> dict[str, str]:
    body = "\n".join(filled.values())
    imports = "\n".join(line for word, line in _IMPORTS.items() if word in body or word in _helpers(body))
    methods = [_DESCRIBE, filled.get("layer_methods", "")]
    done = {
        **filled,
        "layer_methods": "\n\n".join(each for each in methods if each),
        "imports": imports,
        "top": above + _helpers(body),
    }
    if "train.py" in filled:
        taken = "from .modeling_toy import ToyLayer\n\n\n" if "ToyLayer" in body else ""
        done["train.py"] = f"{imports}\n\n{taken}{above}{filled['train.py']}\n"
        done["top"] = ""
    return done


def _helpers(body: str) -> str:
    return _DESCRIPTOR if "Replaced(" in body else ""
