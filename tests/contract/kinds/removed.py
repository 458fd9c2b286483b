"""Methods that a fix removes, and that someone else calls."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tests.contract.kinds.models import Pair, pair

_NAME = "_set_gradient_checkpointing"
_OTHER = "_set_other_checkpointing"
_OTHER_METHOD = f"""\
def {_OTHER}(self, module, value=False):
    if isinstance(module, ToyEncoder):
        module.gradient_checkpointing = value"""
_CALLS = {
    "call": "$m.$n($m.encoder, True)",
    "call by keywords": "$m.$n(module=$m.encoder, value=True)",
    "call for each module": "for module in $m.modules():\n    $m.$n(module, True)",
    "call for each child": "for _, module in $m.named_children():\n    $m.$n(module, value=True)",
    "options": 'options = {"module": $m.encoder, "value": True}\n$m.$n(**options)',
    "alias": "enable = $m.$n\nenable($m.encoder, True)",
    "walrus": "(enable := $m.$n)($m.encoder, True)",
    "partial": "$m.apply(partial($m.$n, value=True))",
    "lambda": "$m.apply(lambda module: $m.$n(module, True))",
    "map": "list(map(partial($m.$n, value=True), $m.modules()))",
    "comprehension": "[$m.$n(module, True) for module in $m.modules()]",
    "inner function": "def enable(module):\n    $m.$n(module, True)\n\n$m.apply(enable)",
    "getattr": 'getattr($m, "$n")($m.encoder, True)',
    "getattr by parts": 'getattr($m, "$a" + "$z")($m.encoder, True)',
    "getattr by adjacent parts": 'getattr($m, "$a" "$z")($m.encoder, True)',
    "getattr by a format": 'what = "$z"\ngetattr($m, f"$a{what}")($m.encoder, True)',
    "getattr by format": 'getattr($m, "$a{}".format("$z"))($m.encoder, True)',
    "getattr by percent": 'getattr($m, "$a%s" % "$z")($m.encoder, True)',
    "getattr by join": 'getattr($m, "_".join($w))($m.encoder, True)',
    "getattr by replace": 'getattr($m, "$x".replace("-", "_"))($m.encoder, True)',
    "getattr by strip": 'getattr($m, " $n ".strip())($m.encoder, True)',
    "getattr by lower": 'getattr($m, "$u".lower())($m.encoder, True)',
    "getattr by a loop": 'for name in ("$n",):\n    getattr($m, name)($m.encoder, True)',
    "getattr by a table": 'names = {"enable": "$n"}\ngetattr($m, names["enable"])($m.encoder, True)',
    "getattr by dir": (
        'for name in dir(type($m)):\n    if name.startswith("$a") and name.endswith("$z"):\n'
        "        getattr($m, name)($m.encoder, True)"
    ),
    "methodcaller": 'methodcaller("$n", $m.encoder, True)($m)',
    "attrgetter": 'attrgetter("$n")($m)($m.encoder, True)',
    "class": "type($m).$n($m, $m.encoder, True)",
    "class by its attribute": "$m.__class__.$n($m, $m.encoder, True)",
    "vars of the class": 'vars(type($m))["$n"]($m, $m.encoder, True)',
    "dict of the class": 'type($m).__dict__["$n"]($m, $m.encoder, True)',
    "bound by get": "type($m).$n.__get__($m)($m.encoder, True)",
    "eval": 'eval("model.$n(model.encoder, True)", {"model": $m})',
    "signature": (
        'if "value" in inspect.signature($m.$n).parameters:\n    $m.encoder.gradient_checkpointing = True\n'
        "else:\n    raise TypeError"
    ),
    "name of the function": 'assert $m.$n.__qualname__ == "ToyModel.$n"',
    "question to the class": 'assert "$n" in vars(type($m))',
    "saved and restored": (
        "kept = $m.$n\ntry:\n    kept($m.encoder, True)\nfinally:\n    $m.enable_all = kept"
    ),
    "star": "given = [$m.encoder, True]\n$m.$n(*given)",
    "conditional": "enable = $m.$n if $m.training else (lambda *_: None)\nenable($m.encoder, True)",
}
"""How the method ``n`` of a model ``m`` is called: ``a`` and ``z`` are the parts of its name."""
_IMPORTS = {
    "partial(": "from functools import partial",
    "methodcaller(": "from operator import methodcaller",
    "attrgetter(": "from operator import attrgetter",
    "inspect.": "import inspect",
}
_WAY = {"name": "own method", "call": ["enable_all", []]}


def pairs() -> Iterator[Pair]:
    """Yield each call in a method, in a function and in a script; the twins call another method."""
    for name, text in _CALLS.items():
        for place in ("method", "function", "script"):
            both = (_slots(text, place, each) for each in (_NAME, _OTHER))
            ways = ({"name": "script"},) if place == "script" else (_WAY,)
            yield pair(f"{name} in a {place}", "old override", both, ways)


def _slots(text: str, place: str, method: str) -> dict[str, str]:
    model = "self" if place == "method" else "model"
    filled = _named(text.replace("$m", model), method)
    imports = "\n".join(line for word, line in _IMPORTS.items() if word in filled)
    body = textwrap.indent(filled, "    ")
    slots = {"model_methods": _OTHER_METHOD}
    if place == "method":
        enable = f"def enable_all(self):\n{body}"
        return {"model_methods": f"{_OTHER_METHOD}\n\n{enable}", "imports": imports}
    if place == "function":
        enable = "def enable_all(self):\n    enable(self)"
        function = f"def enable(model):\n{body}"
        return {"model_methods": f"{_OTHER_METHOD}\n\n{enable}", "imports": imports, "end": function}
    return {**slots, "train.py": f"{imports}\n\n\ndef prepare(model):\n{body}\n"}


def _named(text: str, method: str) -> str:
    words = repr(tuple(method.split("_"))).replace("'", '"')
    begin, end = method[:14], method[14:]
    for mark, value in (
        ("$n", method),
        ("$a", begin),
        ("$z", end),
        ("$w", words),
        ("$x", method.replace("_", "-")),
        ("$u", method.upper()),
    ):
        text = text.replace(mark, value)
    return text
