"""State outside of blocks: in helpers, settings, modules, threads, contexts, the environment and tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.contract.kinds.frames import placed
from tests.contract.kinds.models import Pair, pair

_PLACES = ("block", "part", "method", "function")


@dataclass(frozen=True)
class _Store:
    """Where a number is kept that everybody can reach."""

    read: str
    write: str
    """How the number ``$x`` is put there."""
    top: str = ""
    imports: str = ""
    init: str = ""
    """In the ``__init__`` of what runs it."""

    @property
    def is_own(self) -> bool:
        """Whether each block has its own."""
        return "self" in self.read and "self.config" not in self.read


_CLOCK = """\
class Clock:
    step = 0

    def put(self, number):
        self.step = number"""
_STORES = {
    "setting": _Store("self.config.step", "self.config.step = $x", init="self.config = config"),
    "setting by setattr": _Store(
        "self.config.step", 'setattr(self.config, "step", $x)', init="self.config = config"
    ),
    "setting by update": _Store(
        "self.config.step", 'self.config.update({"step": $x})', init="self.config = config"
    ),
    "vars of settings": _Store(
        "self.config.step", 'vars(self.config)["step"] = $x', init="self.config = config"
    ),
    "global dict": _Store('STATE["step"]', 'STATE["step"] = $x', 'STATE = {"step": 0}'),
    "global dict by update": _Store('STATE["step"]', "STATE.update(step=$x)", 'STATE = {"step": 0}'),
    "global dict by an alias": _Store(
        'STATE["step"]', 'state = STATE\nstate["step"] = $x', 'STATE = {"step": 0}'
    ),
    "global dict by its method": _Store(
        'STATE["step"]', 'STATE.__setitem__("step", $x)', 'STATE = {"step": 0}'
    ),
    "global dict by an operator": _Store(
        'STATE["step"]', 'operator.setitem(STATE, "step", $x)', 'STATE = {"step": 0}', "import operator"
    ),
    "nested global dict": _Store(
        'STATE["toy"]["step"]', 'STATE["toy"]["step"] = $x', 'STATE = {"toy": {"step": 0}}'
    ),
    "global list": _Store("STEPS[-1]", "STEPS[-1] = $x", "STEPS = [0]"),
    "growing global list": _Store("STEPS[-1]", "STEPS.append($x)", "STEPS = [0]"),
    "global deque": _Store(
        "STEPS[-1]", "STEPS.append($x)", "STEPS = deque([0])", "from collections import deque"
    ),
    "global namespace": _Store(
        "STATE.step",
        "STATE.step = $x",
        "STATE = SimpleNamespace(step=0)",
        "from types import SimpleNamespace",
    ),
    "class attribute": _Store("ToyState.step", "ToyState.step = $x", "class ToyState:\n    step = 0"),
    "class method": _Store(
        "ToyState.step",
        "ToyState.put($x)",
        _CLOCK.replace("Clock", "ToyState")
        .replace("self", "cls")
        .replace("    def", "    @classmethod\n    def"),
    ),
    "global object": _Store(
        "CLOCK.step",
        "CLOCK.put($x)",
        _CLOCK + "\n\n\nCLOCK = Clock()",
    ),
    "slots of a global object": _Store(
        "CLOCK[0]",
        "CLOCK[0] = $x",
        "class Clock:\n    step = 0\n\n    def __getitem__(self, _):\n        return self.step\n\n"
        "    def __setitem__(self, _, number):\n        self.step = number\n\n\nCLOCK = Clock()",
    ),
    "global statement": _Store(
        "STEP", "put_step($x)", "STEP = 0\n\n\ndef put_step(number):\n    global STEP\n    STEP = number"
    ),
    "globals": _Store("STEP", 'globals()["STEP"] = $x', "STEP = 0"),
    "module": _Store("STEP", "sys.modules[__name__].STEP = $x", "STEP = 0", "import sys"),
    "function attribute": _Store(
        "clock.step", "clock.step = $x", "def clock():\n    return clock.step\n\n\nclock.step = 0"
    ),
    "default argument": _Store("kept()[0]", "kept()[0] = $x", "def kept(held=[0]):\n    return held"),
    "closure": _Store(
        "CLOCK()",
        "CLOCK($x)",
        "def make_clock():\n    step = 0\n\n    def clock(number=None):\n        nonlocal step\n"
        "        if number is not None:\n            step = number\n        return step\n\n"
        "    return clock\n\n\n"
        "CLOCK = make_clock()",
    ),
    "cached function": _Store(
        "kept()[0]",
        "kept()[0] = $x",
        "@lru_cache\ndef kept():\n    return [0]",
        "from functools import lru_cache",
    ),
    "thread": _Store(
        "LOCAL.step", "LOCAL.step = $x", "LOCAL = threading.local()\nLOCAL.step = 0", "import threading"
    ),
    "thread by setattr": _Store(
        "LOCAL.step", 'setattr(LOCAL, "step", $x)', "LOCAL = threading.local()", "import threading"
    ),
    "vars of a thread": _Store(
        "LOCAL.step", 'LOCAL.__dict__["step"] = $x', "LOCAL = threading.local()", "import threading"
    ),
    "context": _Store(
        "STEP.get()",
        "STEP.set($x)",
        'STEP = ContextVar("STEP", default=0)',
        "from contextvars import ContextVar",
    ),
    "container in a context": _Store(
        'STEP.get()["step"]',
        'STEP.get()["step"] = $x',
        'STEP = ContextVar("STEP", default={"step": 0})',
        "from contextvars import ContextVar",
    ),
    "environment": _Store(
        'int(os.environ["TOY_STEP"])', 'os.environ["TOY_STEP"] = str($x)', imports="import os"
    ),
    "environment by putting": _Store(
        'int(os.environ.get("TOY_STEP", "0"))', "os.environ.update(TOY_STEP=str($x))", imports="import os"
    ),
    "imported environment": _Store(
        'int(environ["TOY_STEP"])', 'environ["TOY_STEP"] = str($x)', imports="from os import environ"
    ),
    "global tensor": _Store("STEP.item()", "STEP.fill_($x)", "STEP = torch.zeros(())"),
    "attribute of a global tensor": _Store(
        "STEP.step", "STEP.step = $x", "STEP = torch.zeros(())\nSTEP.step = 0"
    ),
    "attribute of a parameter": _Store(
        "self.scale.step",
        "self.scale.step = $x",
        init="self.scale = nn.Parameter(torch.ones(()))\nself.scale.step = 0",
    ),
    "vars of a parameter": _Store(
        'vars(self.scale)["step"]',
        'vars(self.scale)["step"] = $x',
        init="self.scale = nn.Parameter(torch.ones(()))\nself.scale.step = 0",
    ),
    "own vars": _Store('vars(self)["step"]', 'vars(self)["step"] = $x', init="self.step = 0"),
    "own setattr": _Store('getattr(self, "step")', 'setattr(self, "step", $x)', init="self.step = 0"),
    "own dict": _Store('self.held["step"]', 'self.held["step"] = $x', init='self.held = {"step": 0}'),
    "own object": _Store(
        "self.clock.step",
        "self.clock.put($x)",
        _CLOCK,
        init="self.clock = Clock()",
    ),
    "own property": _Store(
        "step_of(self)[0]",
        "step_of(self)[0] = $x",
        "def step_of(each):\n    return each.held",
        init="self.held = [0]",
    ),
}

_ON_TENSORS = {
    "attribute": ("$t.step = 2", "$t.step"),
    "attribute by setattr": ('setattr($t, "step", 2)', 'getattr($t, "step", 0)'),
    "attribute by vars": ('vars($t)["step"] = 2', 'vars($t).get("step", 0)'),
    "attribute by a dict": ('$t.__dict__["step"] = 2', '$t.__dict__["step"]'),
}
"""How a number is kept on a tensor, and read from it."""


def pairs() -> Iterator[Pair]:
    """Yield each store at two places: changed by blocks or only read, changed by the loop or before it."""
    for number, (name, store) in enumerate(_STORES.items()):
        places = _PLACES[:3] if "self" in store.read + store.write else _PLACES
        for turn in range(2):
            place = places[(number + turn) % len(places)]
            yield pair(f"{name} changed in a {place}", "plain block", _changed_by_blocks(store, place))
        if not store.is_own:
            place = places[(number + 2) % len(places)]
            yield pair(
                f"{name} changed by the loop, read in a {place}",
                "plain block",
                _changed_by_loop(store, place),
            )
    for number, (name, (write, read)) in enumerate(_ON_TENSORS.items()):
        for turn, tensor in enumerate(("mask", "states")):
            place = ("block", "method", "function")[(number + turn) % 3]
            yield pair(
                f"{name} of {tensor} read in a {place}",
                "plain block",
                _on_tensor(write, read, tensor, place),
            )


def _on_tensor(write: str, read: str, tensor: str, place: str) -> Iterator[dict[str, str]]:
    """Yield the number on what the blocks get, which checkpointing may copy without it; and on their own."""
    use = f"states = states * (1 + 0.1 * {read})"
    given = placed(place, [use.replace("$t", tensor)])
    yield {**given, "loop": f"{write.replace('$t', tensor)}\nstates = layer(<<arguments>>)"}
    yield placed(place, [f"own = {tensor} * 2", write.replace("$t", "own"), use.replace("$t", "own")])


def _use(store: _Store) -> str:
    return f"states = states * (1 + 0.1 * {store.read})"


def _changed_by_blocks(store: _Store, place: str) -> Iterator[dict[str, str]]:
    change = store.write.replace("$x", f"{store.read} + 1")
    for lines in ([change, _use(store)], [_use(store)]):
        yield {**_common(store, place), **_merged(store, placed(place, lines))}


def _changed_by_loop(store: _Store, place: str) -> Iterator[dict[str, str]]:
    common = {**_common(store, place), **_merged(store, placed(place, [_use(store)]))}
    change = store.write.replace("$x", f"{store.read} + 1")
    yield {**common, "loop": f"{change}\nstates = layer(<<arguments>>)"}
    yield {**common, "before_loop": change}


def _common(store: _Store, place: str) -> dict[str, str]:
    init = {"attention_init" if place == "part" else "layer_init": store.init}
    # Each step begins anew, in whichever model.
    start = "" if store.is_own else store.write.replace("$x", "0")
    return {"imports": store.imports, **init, "model_start": start}


def _merged(store: _Store, slots: dict[str, str]) -> dict[str, str]:
    top = f"{store.top}\n\n\n" * bool(store.top)
    return {**slots, "top": top + slots.get("top", "")}
