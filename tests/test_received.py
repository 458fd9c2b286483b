"""What blocks receive, as the interpreter records it, and what becomes of what is read by its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.model.attributes import new_spaces
from gclint.model.interpreter import Interpreter
from gclint.model.looking import is_only_looked_into
from gclint.model.reading import Members, Reading
from gclint.model.received import Received, records
from gclint.model.values import NEVER, Class
from gclint.settings import Settings

_MODEL = """\
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput, ModelOutput


class Solver:
    def __init__(self, step):
        self.step = step


class Layer(nn.Module):
    def forward(self, states, held=None):
        return states


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.bias = nn.Linear(4, 4)
        self.steps = 0
        self.register_buffer("table", torch.linspace(0, 1, 4))
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, states, past_key_values=None):
        {before}
        for layer in self.layers:
            states = layer(states, {held})
        return states

{after}
"""


def _received(
    folder: Path, *, held: str, before: str = "pass", after: str = "", model: str = _MODEL
) -> dict[str, Received]:
    path = folder / "modeling_toy.py"
    code = model.replace("{held}", held).replace("{before}", before).replace("{after}", after)
    path.write_text(code, encoding="utf-8")
    project = Project(Settings(), [path], [folder])
    file = project.file(path)
    found = records(project, [file], [(file, "Layer")])
    assert found.is_complete
    return {each.parameter: each for each in found.received}


@pytest.mark.parametrize("held", ["(self.bias(states),)", "{'bias': self.bias.weight * 2}", "[states]"])
def test_a_container_with_what_requires_grad_is_recorded(held: str, tmp_path: Path) -> None:
    assert _received(tmp_path, held=held)["held"].holds_gradients


@pytest.mark.parametrize("held", ["(self.table * 2,)", "(self.bias(states).detach(),)", "states"])
def test_other_containers_are_not(held: str, tmp_path: Path) -> None:
    assert not _received(tmp_path, held=held)["held"].holds_gradients


_PAIR = "(self.table, (self.bias(states),))"


@pytest.mark.parametrize(
    ("code", "taken"),
    [
        (f"found = (states,) + {_PAIR}", "found[0]"),
        (f"found = ((states,) if past_key_values else (states, states)) + {_PAIR}", "found[0]"),
        (f"found = ({_PAIR} + (states,))[2:]", "found[0]"),
        (f"found = tuple(each for each in [states * 1, {_PAIR}, None] if each is not None)", "found[0]"),
        (
            f"found = BaseModelOutput(last_hidden_state=states * 1, hidden_states={_PAIR})",
            "found[0]",
        ),
        (f"found = {_PAIR} if self.steps > 1 else states", "found"),
    ],
)
def test_what_comes_first_is_known(code: str, taken: str, tmp_path: Path) -> None:
    held = _received(tmp_path, held=taken, before=code)["held"]
    assert not held.is_pile


@pytest.mark.parametrize(
    ("code", "taken"),
    [
        (f"found = (states,) + {_PAIR}", "found[2]"),
        (f"found = {_PAIR} + (states,)", "found[1:][0]"),
        (f"found = tuple(each for each in [past_key_values, {_PAIR}] if each is not None)", "found[0]"),
        (f"found = BaseModelOutput(last_hidden_state=states * 1)\n        found[0] = {_PAIR}", "found[0]"),
        (
            f"found = BaseModelOutput(last_hidden_state=states * 1)\n"
            f"        found.last_hidden_state = {_PAIR}",
            "found[0]",
        ),
        (f"found = ModelOutput(kept={_PAIR}, last_hidden_state=states * 1)", "found[0]"),
        (
            f"one = (each for each in [states * 1, {_PAIR}])\n        next(one)\n        found = tuple(one)",
            "found[0]",
        ),
    ],
)
def test_what_may_come_first_is_not_forgotten(code: str, taken: str, tmp_path: Path) -> None:
    assert _received(tmp_path, held=taken, before=code)["held"].is_pile


_MIXING = "filled = torch.zeros(4)\n        filled[0] = self.bias(states)"


def test_what_is_put_into_others_counts_only_where_it_is_run(tmp_path: Path) -> None:
    other = f"    def other(self, states):\n        {_MIXING}\n        return filled\n"
    assert _received(tmp_path, held="(self.table,)", before=_MIXING)["held"].is_mixed
    assert not _received(tmp_path, held="(self.table,)", after=other)["held"].is_mixed
    kept = other.replace("return filled", "self.kept = filled")
    assert _received(tmp_path, held="(self.kept,)", after=kept)["held"].is_mixed


_LATER = {
    "a variable that an inner function reads is bound anew": """\
    def forward(self, states, past_key_values=None):
        kept = None
        def get():
            return kept
        get()
        kept = (self.bias(states),)
        for layer in self.layers:
            states = layer(states, get())
        return states
""",
    "a loop binds it": """\
    def forward(self, states, past_key_values=None):
        kept = None
        for layer in self.layers:
            states = layer(states, (lambda: kept)())
            kept = (states,)
        return states
""",
    "an inner function calls another one that reads it": """\
    def forward(self, states, past_key_values=None):
        kept = None
        def get():
            return kept
        def give():
            return get()
        give()
        kept = (self.bias(states),)
        for layer in self.layers:
            states = layer(states, give())
        return states
""",
    "another inner function assigns it": """\
    def forward(self, states, past_key_values=None):
        kept = None
        def get():
            return kept
        def put():
            nonlocal kept
            kept = (self.bias(states),)
        get()
        put()
        for layer in self.layers:
            states = layer(states, get())
        return states
""",
    "it is assigned in a loop that reads it": """\
    def forward(self, states, past_key_values=None):
        kept = None
        def get():
            return kept
        def put():
            nonlocal kept
            kept = (self.bias(states),)
        def run():
            last = None
            for _ in range(2):
                last = get()
                put()
            return last
        for layer in self.layers:
            states = layer(states, run())
        return states
""",
    "a function that was left assigns it": """\
    def forward(self, states, past_key_values=None):
        get, put = self.pair(states)
        for layer in self.layers:
            states = layer(states, get())
            put()
        return states

    def pair(self, states):
        kept = None
        def get():
            return kept
        def put():
            nonlocal kept
            kept = (self.bias(states),)
        return get, put
""",
    "it is bound once more to what it was before": """\
    def forward(self, states, past_key_values=None):
        kept = None
        def put():
            nonlocal kept
            kept = (self.bias(states),)
        put()
        kept = None
        put()
        for layer in self.layers:
            states = layer(states, kept)
        return states
""",
    "it is read before and after it is bound": """\
    def forward(self, states, past_key_values=None):
        kept = None
        def get():
            return kept
        def put():
            nonlocal kept
            kept = (self.bias(states),)
        def run():
            first = get()
            put()
            get()
            return first
        run()
        for layer in self.layers:
            states = layer(states, run())
        return states
""",
    "a circle of functions is entered at another place": """\
    def forward(self, states, past_key_values=None):
        kept = []
        self.even(kept, states)
        kept.append((self.bias(states),))
        for layer in self.layers:
            states = layer(states, self.odd(kept, states))
        return states

    def even(self, kept, states):
        if states.shape[0] > 2:
            return self.odd(kept, states)
        return kept[-1] if kept else None

    def odd(self, kept, states):
        return self.even(kept, states)
""",
    "a default value is another one in each round": """\
    def forward(self, states, past_key_values=None):
        kept = None
        for layer in self.layers:
            get = lambda held=kept: held
            states = layer(states, get())
            kept = (self.bias(states),)
        return states
""",
    "a module binds it anew while it is followed": """\
    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            states = layer(states, LATER)
        return states


STATE = None


def get():
    return STATE


EARLIER = get()
STATE = [nn.Parameter(torch.ones(2))]
LATER = get()
""",
    "an object is made once more with a list that has more": """\
    def forward(self, states, past_key_values=None):
        kept = []
        for layer in self.layers:
            states = layer(states, Solver(kept[-1] if kept else None).step)
            kept.append((self.bias(states),))
        return states
""",
    "a list is filled after it was read": """\
    def forward(self, states, past_key_values=None):
        kept = []
        self.last(kept)
        kept.append((self.bias(states),))
        for layer in self.layers:
            states = layer(states, self.last(kept))
        return states

    def last(self, kept):
        return kept[-1] if kept else None
""",
    "functions call each other": """\
    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            states = layer(states, self.even(states, states.shape[0]))
        return states

    def even(self, states, count):
        return None if count == 0 else self.odd(states, count - 1)

    def odd(self, states, count):
        return (self.bias(states),) if count == 0 else self.even(states, count - 1)
""",
    "functions call each other, and the end comes last": """\
    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            states = layer(states, self.odd(states, states.shape[0]))
        return states

    def even(self, states, count):
        for _ in range(count):
            return self.odd(states, count - 1)
        return (self.bias(states),)

    def odd(self, states, count):
        for _ in range(count):
            return self.even(states, count - 1)
        return None
""",
    "three functions call each other in a circle": """\
    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            states = layer(states, self.first(states, states.shape[0]))
        return states

    def first(self, states, count):
        return self.second(states, count - 1) if count else None

    def second(self, states, count):
        return self.third(states, count - 1) if count else self.first(states, count)

    def third(self, states, count):
        return self.second(states, count - 1) if count else (self.bias(states),)
""",
    "an attribute is set after it was read": """\
    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            states = layer(states, self.get())
            self.kept = (states,)
        return states

    def get(self):
        return getattr(self, "kept", None)
""",
    "a block returns a list that is filled later": """\
    def forward(self, states, past_key_values=None):
        kept = []
        for layer in self.layers:
            states = layer(states, self.wrap(kept))
            kept.append(states)
        return states

    def wrap(self, kept):
        return (kept, None)
""",
    "a method that is called assigns an attribute": """\
    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            self.kept = None
            self.put(states)
            states = layer(states, self.kept)
        return states

    def put(self, states):
        self.kept = (self.bias(states),)
""",
    "a method that is called again assigns an attribute once more": """\
    def forward(self, states, past_key_values=None):
        self.put(states)
        self.kept = None
        if self.config.is_kept:
            self.put(states)
        for layer in self.layers:
            states = layer(states, self.kept)
        return states

    def put(self, states):
        self.kept = (self.bias(states),)
""",
    "an inner function assigns an attribute": """\
    def forward(self, states, past_key_values=None):
        def put():
            self.kept = (self.bias(states),)
        self.kept = None
        self.run(put)
        for layer in self.layers:
            states = layer(states, self.kept)
        return states

    def run(self, function):
        function()
""",
    "a method that calls itself assigns an attribute": """\
    def forward(self, states, past_key_values=None):
        return self.step(states, 0)

    def step(self, states, count):
        self.kept = None
        if count < 1:
            self.step(states, 1)
        for layer in self.layers:
            states = layer(states, self.kept)
        self.kept = (self.bias(states),)
        return states
""",
    "a default value is that of the definition": """\
    def forward(self, states, past_key_values=None):
        kept = (self.bias(states),)
        def get(held=kept):
            return held
        kept = None
        for layer in self.layers:
            states = layer(states, get())
        return states
""",
    "a default value is that of a definition which was left": """\
    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            states = layer(states, self.pick(states)())
        return states

    def pick(self, states):
        if states.shape[0] > 1:
            kept = (self.bias(states),)
            return lambda held=kept: held
        return lambda: None
""",
    "a function passes it on to the place where it is read": """\
    def forward(self, states, past_key_values=None):
        return self.run(states, 9, None, None, None, None, None, None, None, (self.bias(states),))

    def run(self, states, count, a, b, c, d, e, f, g, h):
        if count == 0:
            return states
        for layer in self.layers:
            states = layer(states, a)
        return self.run(states, count - 1, b, c, d, e, f, g, h, None)
""",
    "an inner function binds it and fails": """\
    def forward(self, states, past_key_values=None):
        kept = None
        def put():
            nonlocal kept
            kept = (self.bias(states),)
            raise ValueError
        try:
            put()
            kept = None
        except ValueError:
            pass
        for layer in self.layers:
            states = layer(states, kept)
        return states
""",
    "a comprehension binds it": """\
    def forward(self, states, past_key_values=None):
        kept = None
        [kept := (self.bias(states),) for _ in range(2)]
        for layer in self.layers:
            states = layer(states, kept)
        return states
""",
}


@pytest.mark.parametrize("code", _LATER.values(), ids=list(_LATER))
def test_what_becomes_more_after_it_was_read_is_read_anew(code: str, tmp_path: Path) -> None:
    start = _MODEL.index("    def forward(self, states, past_key_values")
    assert _received(tmp_path, held="", model=_MODEL[:start] + code)["held"].holds_gradients


def test_objects_of_inner_functions_are_followed_to_the_end(tmp_path: Path) -> None:
    code = "def step(at):\n            return at * states\n        solver = Solver(step)"
    assert not _received(tmp_path, held="solver.step(0)", before=code)["held"].is_pile


@pytest.mark.parametrize(
    ("use", "is_only_looked_into_"),
    [("p = p[0]", True), ("p(1)", False), ("return p", False), ("p.__call__(1)", False), ("q = p", False)],
)
def test_what_is_read_by_name_may_be_called(use: str, is_only_looked_into_: bool) -> None:
    tree = ast.parse(f"def f(p, n):\n    p = getattr(p, n)\n    {use}\n")
    (read,) = (each for each in ast.walk(tree) if isinstance(each, ast.Call) and len(each.args) == 2)
    assert is_only_looked_into(tree, read) == is_only_looked_into_


def test_a_recursion_without_end_is_not_called_followed(tmp_path: Path) -> None:
    code = """\
    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            states = layer(states, self.turn(states, states.shape[0])[0])
        return states

    def turn(self, states, count):
        if count == 0:
            return (None, None, None, None, None, None, None, (self.bias(states),))
        found = self.turn(states, count - 1)
        return (found[1], found[2], found[3], found[4], found[5], found[6], found[7], None)
"""
    path = tmp_path / "modeling_toy.py"
    start = _MODEL.index("    def forward(self, states, past_key_values")
    path.write_text(_MODEL[:start] + code, encoding="utf-8")
    project = Project(Settings(), [path], [tmp_path])
    file = project.file(path)
    assert not records(project, [file], [(file, "Layer")]).is_complete


def test_functions_around_themselves_have_an_end(tmp_path: Path) -> None:
    wrapping = """\
import functools
import torch.utils.checkpoint


def wrap(modules):
    for each in modules:
        each.forward = functools.partial(torch.utils.checkpoint.checkpoint, each.forward)
"""
    stack = "        self.layers = nn.ModuleList([Layer() for _ in range(2)])\n"
    model = _MODEL.replace(stack, f"{stack}        wrap(self.layers)\n")
    _received(tmp_path, held="None", model=f"{wrapping}\n\n{model}")


def test_a_set_that_gets_more_is_asked_anew() -> None:
    held, reading = Members(), Reading(0)
    held.add("known")
    with reading.begun():
        assert "other" not in held
    assert not held.add("known")
    assert reading.holds(0)
    assert held.add("other")
    assert not reading.holds(0)


_WRAPPER = """

class Wrapped(nn.Module):
    def __init__(self, inner, other=None):
        super().__init__()
        self.inner = inner
        self.other = other

    def forward(self, states):
        return self.inner(states) + self.other(states)

"""
_WRAPPINGS = {
    "in a loop": "layer.norm = Wrapped(layer.norm, layer)\n            layer.linear = Wrapped(layer.norm)",
    "twice": "layer.norm = Wrapped(Wrapped(layer.norm))",
    "the layer": "layer.norm = Wrapped(layer.norm, layer)",
    "by name": "setattr(layer, 'norm', Wrapped(getattr(layer, 'norm')))",
    "in a tuple": "layer.norm = Wrapped((layer.norm, layer.linear))",
    "a method": "layer.norm = Wrapped(layer.norm.forward)",
}


@pytest.mark.parametrize("wrapping", _WRAPPINGS)
def test_what_wraps_itself_again_and_again_is_few_objects(tmp_path: Path, wrapping: str) -> None:
    path = tmp_path / "modeling_toy.py"
    layer = "    def __init__(self):\n        super().__init__()\n        self.norm = nn.LayerNorm(4)\n"
    layer += "        self.linear = nn.Linear(4, 4)\n\n    def forward(self, states, held=None):\n"
    text = _MODEL.replace("    def forward(self, states, held=None):\n", layer, 1)
    loop = f"        for layer in self.layers:\n            {_WRAPPINGS[wrapping]}\n"
    text = text.replace(
        "\n    def forward(self, states, past", f"{loop}\n    def forward(self, states, past"
    ).replace("{held}", "held")
    text = text.replace("{before}", "pass").replace("{after}", _WRAPPER)
    path.write_text(text, encoding="utf-8")
    project = Project(Settings(), [path], [tmp_path])
    spaces = new_spaces(project)
    space = spaces.of(project.file(path))
    reader = Interpreter(spaces, is_quiet=True)
    (encoder,) = (space.value("Encoder") or NEVER).things
    assert isinstance(encoder, Class)
    for _ in range(20):
        version = spaces.version
        reader.make_anyhow(encoder, space.frame)
    assert spaces.version == version
    wrapped = {each for each in spaces.objects.values() if each.kind.node.name == "Wrapped"}
    assert 0 < len(wrapped) < 6
