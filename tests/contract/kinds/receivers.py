"""What else receives the arguments of a call that a fix rewrites, or of one that it leaves as it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from tests.contract.kinds.models import Pair, pair

_CACHE, _STREAM, _PLAIN = "cache by position", "stream by keyword", "plain block"
_SAME = "(self, *args, **kwargs)", "return $f(self, *args, **kwargs)"
_NAMED_CACHE = (
    "(self, states, mask=None, past_key_values=None)",
    "return $f(self, states, mask, past_key_values)",
)
_NAMED = "(self, states, mask=None)", "return $f(self, states, mask)"
_WRAPPERS = {
    _CACHE: {
        "counts what comes by position": (
            "(self, *args, **kwargs)",
            "return $f(self, *args, **kwargs) * len(args)",
        ),
        "counts keywords": ("(self, *args, **kwargs)", "return $f(self, *args, **kwargs) + len(kwargs)"),
        "takes no keywords": ("(self, *args)", "return $f(self, *args)"),
        "has another name": ("(self, states, mask=None, cache=None)", "return $f(self, states, mask, cache)"),
        "takes positions only": (
            "(self, states, mask=None, past_key_values=None, /)",
            "return $f(self, states, mask, past_key_values)",
        ),
        "looks for a keyword": (
            "(self, *args, **kwargs)",
            'return $f(self, *args, **kwargs) * (2 if "past_key_values" in kwargs else 1)',
        ),
        "names another first": (
            "(self, states, mask, cache, *args, **kwargs)",
            "return $f(self, states, mask, cache, *args, **kwargs)",
        ),
        "hands on three": (
            "(self, *args, **kwargs)",
            "states, mask, cache = args\nreturn $f(self, states, mask, cache)",
        ),
    },
    _STREAM: {
        "counts what comes by position": (
            "(self, *args, **kwargs)",
            "return $f(self, *args, **kwargs) * (1 + len(args))",
        ),
        "reads a keyword": (
            "(self, *args, **kwargs)",
            'kwargs["states"] = kwargs["states"] * 2\nreturn $f(self, *args, **kwargs)',
        ),
        "takes a keyword out": (
            "(self, *args, **kwargs)",
            'states = kwargs.pop("states", 0)\nreturn $f(self, states, **kwargs)',
        ),
        "takes keywords only": ("(self, *, states, mask=None)", "return $f(self, states, mask)"),
        "has another order": ("(self, mask=None, states=None)", "return $f(self, states, mask)"),
        "drops positions": ("(self, *args, **kwargs)", "return $f(self, **kwargs)"),
        "has one more in front": (
            "(self, scale=1, *args, **kwargs)",
            "return $f(self, *args, **kwargs) * scale",
        ),
        "asks for keywords": (
            "(self, *args, **kwargs)",
            "return $f(self, *args, **kwargs) * (2 if kwargs else 1) * (1 if len(kwargs) > 1 else 3)",
        ),
    },
}
"""What a decorator puts in the place of a function ``f``."""
_MAKE = """\
def decorate(function):
    def wrapper$p:
$b

    return wrapper


"""
_MAKE_NAMED = _MAKE.replace("    def wrapper", "    @wraps(function)\n    def wrapper")
_FACTORY = """\
def decorate(times):
    def decorator(function):
        def wrapper$p:
$bb

        return wrapper

    return decorator


"""
_OF_CLASS = """\
class decorate:
    def __init__(self, function):
        self.function = function

    def __get__(self, owner, kind=None):
        function = self.function

        def wrapper$p:
$bb

        return wrapper if owner is None else MethodType(wrapper, owner)


"""
_TOOLS = """\
class Tools:
    @staticmethod
    def decorate(function):
        def wrapper$p:
$bb

        return wrapper


"""
_LAMBDA = "decorate = lambda function: (lambda self, *args, **kwargs: $l)\n\n\n"
_HANDS_ON = """\
def hands_on(function):
    @wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


"""
_DECORATED: dict[str, tuple[str, dict[str, str]]] = {
    "a decorator": (_MAKE, {"above_forward": "@decorate"}),
    "a decorator that wraps": (_MAKE_NAMED, {"above_forward": "@decorate"}),
    "a made decorator": (_FACTORY, {"above_forward": "@decorate(2)"}),
    "a descriptor": (_OF_CLASS, {"above_forward": "@decorate"}),
    "a decorator of a class": (_TOOLS, {"above_forward": "@Tools.decorate"}),
    "two decorators": (_MAKE + _HANDS_ON, {"above_forward": "@hands_on\n@decorate"}),
    "two decorators in turn": (_MAKE + _HANDS_ON, {"above_forward": "@decorate\n@hands_on"}),
    "a chosen decorator": (_MAKE, {"above_forward": "@(decorate if torch else None)"}),
    "a partial decorator": (_MAKE, {"above_forward": "@partial(decorate)"}),
    "a decorator in a lambda": (_MAKE, {"above_forward": "@(lambda function: decorate(function))"}),
    "an alias of a decorator": (_MAKE + "alias = decorate\n\n\n", {"above_forward": "@alias"}),
    "a decorator from elsewhere": ("", {"helpers.py": _MAKE_NAMED, "above_forward": "@decorate"}),
    "a decorator of a module": ("", {"helpers.py": _MAKE_NAMED, "above_forward": "@helpers.decorate"}),
    "a decorator in a table": (
        _MAKE + 'TABLE = {"usual": decorate}\n\n\n',
        {"above_forward": '@TABLE["usual"]'},
    ),
}
_REPLACED: dict[str, tuple[str, dict[str, str]]] = {
    "a call in the class": (_MAKE, {"layer_methods": "$n = decorate($n)"}),
    "a call behind the class": (_MAKE, {"below_layer": "ToyLayer.$n = decorate(ToyLayer.$n)\n\n\n"}),
    "setattr": (_MAKE, {"below_layer": 'setattr(ToyLayer, "$n", decorate(ToyLayer.$n))\n\n\n'}),
    "type's setattr": (
        _MAKE,
        {"below_layer": 'type.__setattr__(ToyLayer, "$n", decorate(ToyLayer.$n))\n\n\n'},
    ),
    "a function on the class": (
        _MAKE,
        {"below_layer": "def patch(kind):\n    kind.$n = decorate(kind.$n)\n\n\npatch(ToyLayer)\n\n\n"},
    ),
    "a class decorator": (
        _MAKE + "def patched(kind):\n    kind.$n = decorate(kind.$n)\n    return kind\n\n\n",
        {"above_layer": "@patched"},
    ),
    "its init": (_MAKE, {"layer_init": "self.$n = MethodType(decorate(ToyLayer.$n), self)"}),
    "setattr in its init": (
        _MAKE,
        {"layer_init": 'setattr(self, "$n", MethodType(decorate(ToyLayer.$n), self))'},
    ),
    "its dict": (_MAKE, {"layer_init": 'self.__dict__["$n"] = MethodType(decorate(ToyLayer.$n), self)'}),
    "the owner": (
        _MAKE,
        {
            "encoder_init": "for layer in self.layers:\n"
            "    layer.$n = MethodType(decorate(ToyLayer.$n), layer)"
        },
    ),
    "the model": (
        _MAKE,
        {
            "model_init": "for layer in self.encoder.layers:\n"
            "    layer.$n = MethodType(decorate(ToyLayer.$n), layer)"
        },
    ),
    "apply": (
        _MAKE
        + "def patch(module):\n    if isinstance(module, ToyLayer):\n"
        + "        module.$n = MethodType(decorate(ToyLayer.$n), module)\n\n\n",
        {"model_init": "self.apply(patch)"},
    ),
    "a base that is told": (
        _MAKE
        + "class Patching:\n    def __init_subclass__(cls, **kwargs):\n"
        + "        super().__init_subclass__(**kwargs)\n        cls.$n = decorate(cls.$n)\n\n\n",
        {"base": "Patching, GradientCheckpointingLayer"},
    ),
    "a metaclass": (
        _MAKE
        + "class Patching(type):\n    def __init__(cls, name, bases, members):\n"
        + "        super().__init__(name, bases, members)\n        cls.$n = decorate(cls.$n)\n\n\n",
        {"base": "GradientCheckpointingLayer, metaclass=Patching"},
    ),
    "a script": (
        "",
        {
            "train.py": "from types import MethodType\n\nfrom .modeling_toy import ToyLayer\n\n\n"
            + _MAKE
            + "def prepare(model):\n    for layer in model.encoder.layers:\n"
            "        layer.$n = MethodType(decorate(ToyLayer.$n), layer)\n"
        },
    ),
}
_DESCRIBE = "def describe(self, states, mask=None, past_key_values=None):\n    return states"
_IMPORTS = {
    "partial(": "from functools import partial",
    "wraps(": "from functools import wraps",
    "MethodType(": "from types import MethodType",
    "deepcopy(": "from copy import deepcopy",
}


def pairs() -> Iterator[Pair]:
    """Yield the pairs of all sorts of receivers."""
    yield from _decorated()
    yield from _replaced()
    yield from _stacked()
    yield from _ordered()
    yield from _indirect()


# -- what stands around the block's ``forward``

_INNER = ("wrapper", "inner", "decorated")
"""The names of what decorators return, so that no two models are the same."""


def _decorated() -> Iterator[Pair]:
    for number, (how, (make, slots)) in enumerate(_DECORATED.items()):
        for frame, wrappers in _WRAPPERS.items():
            for turn in range(3):
                name, wrapper = list(wrappers.items())[(number + turn) % len(wrappers)]
                same = (_SAME, _NAMED_CACHE if frame == _CACHE else _NAMED)[turn % 2]
                inner = make.replace("wrapper", _INNER[turn])
                others = {name: each.replace("wrapper", _INNER[turn]) for name, each in slots.items()}
                both = (_written(inner, others, each) for each in (wrapper, same))
                yield pair(f"{how} {name}, {frame}", frame, both)


def _replaced() -> Iterator[Pair]:
    for number, (how, (make, slots)) in enumerate(_REPLACED.items()):
        for frame, wrappers in _WRAPPERS.items():
            name, wrapper = list(wrappers.items())[number % len(wrappers)]
            both = (_written(make, slots, wrapper, method=each) for each in ("forward", "describe"))
            yield pair(f"replaced by {how} {name}, {frame}", frame, both)


def _written(
    make: str, slots: dict[str, str], wrapper: tuple[str, str], method: str = "forward"
) -> dict[str, str]:
    parameters, body = wrapper

    def filled(text: str) -> str:
        lines = body.replace("$f", "function")
        text = text.replace("$bb", textwrap.indent(lines, " " * 12)).replace(
            "$b", textwrap.indent(lines, " " * 8)
        )
        return text.replace("$p", parameters).replace("$n", method)

    done = {name: filled(text) for name, text in slots.items()}
    done["top"] = filled(make)
    if "helpers.py" in done:
        done["helpers.py"] = "from functools import wraps\n\n\n" + done["helpers.py"].rstrip() + "\n"
        is_module = "helpers." in done["above_forward"]
        done["local_imports"] = "from . import helpers" if is_module else "from .helpers import decorate"
    if method == "describe" or "$n" in str(slots):
        done["layer_methods"] = "\n\n".join(filter(None, (_DESCRIBE, done.get("layer_methods"))))
    return _with_imports(done)


def _with_imports(slots: dict[str, str]) -> dict[str, str]:
    text = "\n".join(value for name, value in slots.items() if not name.endswith(".py"))
    return {**slots, "imports": "\n".join(line for word, line in _IMPORTS.items() if word in text)}


# -- what else stands in the stack

_OTHER = """\
class ToyOther($k):
    def __init__(self, config, layer_idx=0):
        super().__init__()
        self.mlp = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, $p):
        return states + self.mlp(states).tanh() + (0 if mask is None else mask.mean())


"""
_PARAMETERS = {
    _CACHE: (
        "states, mask=None, cache=None",
        "states, mask=None, past_key_values=None, /",
        "states, mask=None, *caches",
    ),
    _STREAM: (
        "mask=None, states=None",
        "*, states, mask=None",
        "scale=None, states=None, mask=None",
        "*, mask=None, states",
    ),
}
_FITTING = {_CACHE: "states, mask=None, past_key_values=None", _STREAM: "states, mask=None"}
_FILLED = {
    "append": "self.layers.append(ToyOther(config))",
    "insert": "self.layers.insert(0, ToyOther(config))",
    "extend": "self.layers.extend([ToyOther(config)])",
    "augmented": "self.layers += [ToyOther(config)]",
    "item": "self.layers[0] = ToyOther(config)",
    "setitem": "self.layers.__setitem__(0, ToyOther(config))",
    "modules": 'self.layers._modules["0"] = ToyOther(config)',
    "add_module": 'self.layers.add_module("0", ToyOther(config))',
    "register_module": 'self.layers.register_module("0", ToyOther(config))',
    "setattr": 'setattr(self.layers, "0", ToyOther(config))',
    "alias": "layers = self.layers\nlayers[0] = ToyOther(config)",
    "loop": "for index in (0,):\n    self.layers[index] = ToyOther(config)",
    "comprehension": (
        "self.layers = nn.ModuleList([(ToyOther if index else ToyLayer)(config) for index in range(2)])"
    ),
    "table": (
        'kinds = {"a": ToyLayer, "b": ToyOther}\n'
        'self.layers = nn.ModuleList([kinds[each](config) for each in "ab"])'
    ),
    "list": (
        "layers = [ToyLayer(config)]\nlayers.append(ToyOther(config))\nself.layers = nn.ModuleList(layers)"
    ),
    "added": "self.layers = self.layers + nn.ModuleList([ToyOther(config)])",
    "map": "self.layers = nn.ModuleList(map(lambda kind: kind(config), (ToyLayer, ToyOther)))",
    "function": (
        "def make(index):\n    return ToyOther(config) if index else ToyLayer(config)\n\n"
        "self.layers = nn.ModuleList([make(index) for index in range(2)])"
    ),
    "replaced": "def replace(layers):\n    layers[0] = ToyOther(config)\n\nreplace(self.layers)",
    "getattr": 'getattr(self, "layers").append(ToyOther(config))',
    "class": "self.layers[0].mlp2 = None\nself.layers[0].__class__ = ToyOther",
    "update": 'self.layers._modules.update({"0": ToyOther(config)})',
    "set_submodule": 'self.set_submodule("layers.0", ToyOther(config))',
    "named": (
        "for name, _ in list(self.layers.named_children())[:1]:\n"
        "    setattr(self.layers, name, ToyOther(config))"
    ),
    "starred": "self.layers = nn.ModuleList([*self.layers, ToyOther(config)])",
    "walrus": "self.layers.append(other := ToyOther(config))\nother.train()",
    "setdefault": 'self.layers._modules.setdefault("7", ToyOther(config))',
    "deep copy": "other = deepcopy(ToyOther(config))\nself.layers.append(other)",
    "partial": "make = partial(ToyOther, config)\nself.layers.append(make())",
    "star": "self.layers.extend(map(ToyOther, [config]))",
    "bound": "add = self.layers.append\nadd(ToyOther(config))",
}
_FROM_MODEL = ("append", "item", "setattr", "alias", "set_submodule", "modules", "function", "replaced")
_KINDS = ("GradientCheckpointingLayer", "nn.Module")


def _stacked() -> Iterator[Pair]:
    for number, (how, text) in enumerate(_FILLED.items()):
        for frame, others in _PARAMETERS.items():
            parameters, kind = others[number % len(others)], _KINDS[number // 3 % 2]
            slots = {"encoder_init": text}
            both = ({**slots, "below_layer": _other(kind, each)} for each in (parameters, _FITTING[frame]))
            yield pair(f"{how} by its init, {frame}", frame, map(_with_imports, both))
            if how in _FROM_MODEL:
                # A `set_submodule` takes the path from the module that has it.
                inner = text.replace("self.layers", "self.encoder.layers").replace(
                    '"layers.', '"encoder.layers.'
                )
                both = (
                    {"model_init": inner, "below_layer": _other(kind, each)}
                    for each in (parameters, _FITTING[frame])
                )
                yield pair(f"{how} by the model, {frame}", frame, map(_with_imports, both))
                script = text.replace("self.layers", "model.encoder.layers").replace("self.set", "model.set")
                script = script.replace('"layers.', '"encoder.layers.').replace("(config)", "(model.config)")
                body = textwrap.indent(script, "    ")
                both = (
                    {
                        "train.py": "from torch import nn\n\n"
                        "from .modeling_toy import ToyLayer, ToyOther\n\n\n"
                        f"def prepare(model):\n{body}\n",
                        "below_layer": _other(kind, each),
                    }
                    for each in (parameters, _FITTING[frame])
                )
                yield pair(f"{how} by a script, {frame}", frame, map(_with_imports, both))


def _other(kind: str, parameters: str) -> str:
    return _OTHER.replace("$k", kind).replace("$p", parameters)


# -- in which order arguments are evaluated

_COUNTING = """\
class Counting:
    def __init__(self):
        self.count = 0

    def __getitem__(self, index):
        self.count += 1
        return self.count * 0.5 + index * 0

    def __add__(self, other):
        return self[0] + other

    def __neg__(self):
        return self[0]

    def __bool__(self):
        self.count += 1
        return self.count % 2 == 0

    def __lt__(self, other):
        self.count += 1
        return self.count % 2 == 0

    @property
    def now(self):
        return self[0]

    def __getattr__(self, name):
        return self[0]


"""
_ORDERED: dict[str, tuple[str, str, str]] = {
    "a property": ("counting = Counting()", "mask * counting.now", "states * counting.now"),
    "an own getattr": ("counting = Counting()", "mask * counting.times", "states * counting.times"),
    "an item": ("counting = Counting()", "mask * counting[0]", "states * counting[0]"),
    "an operator": ("counting = Counting()", "mask * (counting + 1)", "states * (counting + 1)"),
    "a sign": ("counting = Counting()", "mask * -counting", "states * -counting"),
    "a condition": (
        "counting = Counting()",
        "mask if counting else mask * 2",
        "states if counting else states * 2",
    ),
    "a comparison": ("counting = Counting()", "mask * (counting < 1)", "states * (counting < 1)"),
    "a method": (
        "counting = Counting()",
        "mask * counting.__getitem__(0)",
        "states * counting.__getitem__(0)",
    ),
    "a property of the owner": ("", "mask * self.now", "states * self.now"),
    "a nonlocal name": (
        "def next_mask():\n    nonlocal states\n    states = states * 2\n    return mask\n",
        "next_mask()",
        "states",
    ),
    "a change in place": ("states = states + 0", "mask + states.detach().mul_(2).sum()", "states * 1.0"),
    "a popped item": ("values = [2.0, 3.0] * 9", "mask * values.pop()", "states * values.pop()"),
    "an iterator": ("values = iter([2.0, 3.0] * 9)", "mask * next(values)", "states * next(values)"),
    "a walrus": ("", "(mask := mask * 2)", "states + mask.mean()"),
    "a list that is filled": ("seen = []", "mask * (seen.append(1) or 1)", "states * len(seen)"),
}


_LOCAL = "nonlocal states\n    states", "others"
_PLAINLY = re.compile("mask := |(?<=mul)_")
"""What is otherwise in the twins, whose states are always a plain name."""


def _ordered() -> Iterator[Pair]:
    now = "@property\ndef now(self):\n    return counting_all[0]"
    for how, (first, mask, states) in _ORDERED.items():
        both = (
            {
                "before_loop": before,
                "arguments": f"mask={one}, states={other}",
                "arguments repaired": f"{other}, mask={one}",
                "top": _COUNTING if "ounting" in before else "counting_all = None\n\n\n",
                "encoder_methods": "",
            }
            for before, one, other in (
                (first, mask, states),
                (first.replace(*_LOCAL), _PLAINLY.sub("", mask), "states"),
            )
        )
        if "owner" in how:
            both = (
                {**each, "top": _COUNTING + "counting_all = Counting()\n\n\n", "encoder_methods": now}
                for each in both
            )
        yield pair(f"{how} in the arguments", _STREAM, both)


# -- calls that are not written as such

_CALLS = {
    "a partial": "run = partial(layer, mask=mask)\nstates = run($s)",
    "its call": "states = layer.__call__($s, mask=mask)",
    "an alias": "run = layer\nstates = run($s, mask=mask)",
    "a bound method": "run = layer.__call__\nstates = run($s, mask=mask)",
    "an inner function": (
        "def run(each, states):\n    return each($s, mask=mask)\n\nstates = run(layer, states)"
    ),
    "a comprehension": "(states,) = [layer($s, mask=mask) for states in [states]]",
    "a conditional": "states = layer($s, mask=mask) if mask is not None else layer($s)",
    "a wrapped call": "states = torch.utils._pytree.tree_map(lambda each: each, layer($s, mask=mask))",
}


def _indirect() -> Iterator[Pair]:
    for how, loop in _CALLS.items():
        both = ({"loop": loop.replace("$s", given)} for given in ("states=states", "states"))
        yield pair(f"called by {how}", _PLAIN, map(_with_imports, both))
