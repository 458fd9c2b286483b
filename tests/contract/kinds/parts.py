"""Parts of blocks that are chosen by a name, from a table or by a look-up."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.kinds.models import Pair, pair

_BODIES = {
    "counts": (
        (
            "super().__init__()\nself.calls = 0",
            "self.calls = self.calls + 1\nreturn states * (1 + 0.1 * self.calls)",
        ),
        ("super().__init__()\nself.calls = 0", "calls = self.calls + 1\nreturn states * (1 + 0.1 * calls)"),
    ),
    "keeps statistics": (
        ("super().__init__()\nself.norm = nn.BatchNorm1d(4)", "return self.norm(states)"),
        ("super().__init__()\nself.norm = nn.GroupNorm(1, 4)", "return self.norm(states)"),
    ),
    "draws": (
        ("super().__init__()", "return states * (1 + random.random())"),
        ("super().__init__()", "return states * (1 + torch.rand(()))"),
    ),
    "changes in place": (
        ("super().__init__()", "return states.mul_(1.5)"),
        ("super().__init__()", "return states.clone().mul_(1.5)"),
    ),
}
"""What a part does, and what it does without harm: its ``__init__`` and its ``forward``."""
_CALL = "states = self.part(states)"
_SELECTIONS: dict[str, tuple[str, str, str]] = {
    "a table": ('PARTS = {"toy": ToyPart}', 'self.part = PARTS["toy"](config)', _CALL),
    "the get of a table": (
        'PARTS = {"toy": ToyPart}',
        'self.part = PARTS.get("toy", nn.Identity)(config)',
        _CALL,
    ),
    "a table by a setting": (
        'PARTS = {"toy": ToyPart}',
        'self.part = PARTS[getattr(config, "part", "toy")](config)',
        _CALL,
    ),
    "a filled table": ('PARTS = {}\nPARTS["toy"] = ToyPart', 'self.part = PARTS["toy"](config)', _CALL),
    "a table made by a call": ("PARTS = dict(toy=ToyPart)", 'self.part = PARTS["toy"](config)', _CALL),
    "a table of makers": (
        'PARTS = {"toy": lambda config: ToyPart(config)}',
        'self.part = PARTS["toy"](config)',
        _CALL,
    ),
    "a list of classes": ("PARTS = [ToyPart]", "self.part = PARTS[0](config)", _CALL),
    "a registry": (
        "PARTS = {}\n\n\ndef register(name):\n    def add(each):\n        PARTS[name] = each\n"
        '        return each\n\n    return add\n\n\nregister("toy")(ToyPart)',
        'self.part = PARTS["toy"](config)',
        _CALL,
    ),
    "a function": (
        'PARTS = {"toy": ToyPart}\n\n\ndef make(name, config):\n    return PARTS[name](config)',
        'self.part = make("toy", config)',
        _CALL,
    ),
    "an enumeration": (
        "class Parts(Enum):\n    TOY = (ToyPart,)",
        'self.part = Parts["TOY"].value[0](config)',
        _CALL,
    ),
    "a namespace": ("PARTS = SimpleNamespace(toy=ToyPart)", "self.part = PARTS.toy(config)", _CALL),
    "the globals": ("", 'self.part = globals()["ToyPart"](config)', _CALL),
    "the module": ("", 'self.part = getattr(sys.modules[__name__], "ToyPart")(config)', _CALL),
    "a partial": ("", "self.part = partial(ToyPart, config)()", _CALL),
    "a class made by a call": ("", 'self.part = type("ToyMade", (ToyPart,), {})(config)', _CALL),
    "a conditional class": ("", "self.part = (ToyPart if config.num_layers else nn.Identity)(config)", _CALL),
    "setattr": ("", 'setattr(self, "part", ToyPart(config))', _CALL),
    "setattr in a loop": (
        "",
        'for name in ("part",):\n    setattr(self, name, ToyPart(config))',
        "states = self.part(states)",
    ),
    "add_module": ("", 'self.add_module("part", ToyPart(config))', _CALL),
    "a dict of modules": (
        "",
        'self.parts = nn.ModuleDict({"toy": ToyPart(config)})',
        'states = self.parts["toy"](states)',
    ),
    "a list of modules": (
        "",
        "self.parts = nn.ModuleList([ToyPart(config)])",
        "for part in self.parts:\n    states = part(states)",
    ),
    "a sequence": ("", "self.part = nn.Sequential(ToyPart(config))", _CALL),
    "getattr": ("", "self.part = ToyPart(config)", 'states = getattr(self, "part")(states)'),
    "getattr by a computed name": (
        "",
        "self.part_0 = ToyPart(config)",
        'for number in range(1):\n    states = getattr(self, f"part_{number}")(states)',
    ),
    "getattr by a kept name": (
        "",
        'self.part, self.chosen = ToyPart(config), "part"',
        "states = getattr(self, self.chosen)(states)",
    ),
    "the modules": ("", "self.part = ToyPart(config)", 'states = self._modules["part"](states)'),
    "a path": ("", "self.part = ToyPart(config)", 'states = self.get_submodule("part")(states)'),
    "an attrgetter": ("", "self.part = ToyPart(config)", 'states = attrgetter("part")(self)(states)'),
    "the named children": (
        "",
        "self.part = ToyPart(config)",
        'for name, child in self.named_children():\n    if name == "part":\n        states = child(states)',
    ),
    "a table of bound methods": (
        "",
        "self.part = ToyPart(config)",
        'states = {"toy": self.part.forward}["toy"](states)',
    ),
    "a module held in a tuple": ("", "self.held = (ToyPart(config),)", "states = self.held[0](states)"),
    "a match": (
        "",
        'match getattr(config, "part", "toy"):\n    case "toy":\n        self.part = ToyPart(config)\n'
        "    case _:\n        self.part = nn.Identity()",
        _CALL,
    ),
}
"""What stands before the blocks, how the part is made, and how it is run."""
_UNSEEN = frozenset(("a module held in a tuple",))
_IMPORTS = {
    "Enum)": "from enum import Enum",
    "partial(": "from functools import partial",
    "attrgetter(": "from operator import attrgetter",
    "SimpleNamespace(": "from types import SimpleNamespace",
    "random.random": "import random",
    "sys.modules": "import sys",
}


def pairs() -> Iterator[Pair]:
    """Yield each selection in the block and in its attention, with two of the bodies each."""
    for number, selection in enumerate(_SELECTIONS):
        for turn, place in enumerate(("layer", "attention")):
            for again in range(2):
                # Attention may change what it gets: the norm has made it anew.
                names = list(_BODIES)[: len(_BODIES) - turn]
                name = names[(number + turn + 2 * again) % len(names)]
                if selection in _UNSEEN and name == "keeps statistics":
                    continue  # Training shows no buffers of what is not registered.
                slots = (_slots(_SELECTIONS[selection], place, body) for body in _BODIES[name])
                yield pair(f"{selection} in the {place}, {name}", "plain block", slots)


def _slots(selection: tuple[str, str, str], place: str, body: tuple[str, str]) -> dict[str, str]:
    above, init, run = selection
    inner = [each.replace("\n", "\n        ") for each in body]
    part = (
        f"class ToyPart(nn.Module):\n    def __init__(self, config):\n        {inner[0]}\n\n"
        f"    def forward(self, states):\n        {inner[1]}\n\n\n"
    )
    text = part + f"{above}\n\n\n" * bool(above)
    body_of_all = text + init + run
    return {
        "imports": "\n".join(line for word, line in _IMPORTS.items() if word in body_of_all),
        "top": text,
        f"{place}_init": init,
        f"{place}_start": run,
    }
