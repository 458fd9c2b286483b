"""What the code around blocks does to what they got, or asks of them, before they are recomputed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from tests.contract.kinds.inplace import FORMS
from tests.contract.kinds.models import Pair, pair

_PLACES = ("loop", "behind", "model", "method", "list")
_CALL = "states = layer(states, mask)"
_COUNTED = {"target": "index, layer", "stack": "enumerate(self.layers)"}
_IMPORT = "from transformers.modeling_layers import GradientCheckpointingLayer as Base"
_OTHERS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "output that is a view": (
        {"layer_end": "states = states.view(states.shape)", "loop": f"{_CALL}\nstates += 1"},
        {"layer_end": "states = states.view(states.shape)", "loop": f"{_CALL}\nstates = states + 1"},
    ),
    "output that is the input": (
        {"layer_start": "if self.layer_idx == 1:\n    return states", "loop": f"{_CALL}\nstates += 1"},
        {"layer_start": "if self.layer_idx == 1:\n    return states * 1", "loop": f"{_CALL}\nstates += 1"},
    ),
    "weights": (
        {"loop": f"{_CALL}\nlayer.mlp.weight.data = layer.mlp.weight.data * 2"},
        {"loop": f"{_CALL}\nscaled = layer.mlp.weight.data * 2"},
    ),
    "attribute of an argument": (
        {
            "top": "class Notes:\n    number = 0\n\n",
            "parameters": ", notes=None",
            "layer_start": "states = states * (1 + 0.1 * notes.number)",
            "before_loop": "notes = Notes()",
            "loop": "notes.number += 1\nstates = layer(states, mask, notes)",
        },
        {
            "top": "class Notes:\n    number = 0\n\n",
            "parameters": ", notes=None",
            "layer_start": "states = states * (1 + 0.1 * notes)",
            "before_loop": "notes = Notes()",
            "loop": "notes.number += 1\nstates = layer(states, mask, notes.number)",
        },
    ),
    "a shallow copy": (
        {"imports": "import copy", "loop": f"{_CALL}\ncopy.copy(layer).mlp.weight.data.mul_(1.5)"},
        {"imports": "import copy", "loop": f"{_CALL}\ncopy.deepcopy(layer).mlp.weight.data.mul_(1.5)"},
    ),
    "a method of torch": (
        {"loop": f"{_CALL}\nlayer._apply(lambda each: each * 1.5)"},
        {"loop": f"{_CALL}\nnn.Linear(2, 2)._apply(lambda each: each * 1.5)"},
    ),
    "memory": (
        {"loop": f"{_CALL}\nlayer.mlp.weight.untyped_storage().fill_(0)"},
        {"loop": f"{_CALL}\ntorch.ones(2).untyped_storage().fill_(0)"},
    ),
    "code in a text": (
        {
            "layer_init": "self.scale = 1.0",
            "layer_start": "states = states * self.scale",
            "loop": f'{_CALL}\nexec("layer.scale = 2.0")',
        },
        {"loop": f'{_CALL}\nscale = "layer.scale = 2.0"'},
    ),
    "settings that are updated": (
        {
            "layer_init": "self.held_config = config",
            "layer_start": "states = states * getattr(self.held_config, 'scale', 1.0)",
            "loop": f'{_CALL}\nself.config.update({{"scale": 2.0}})',
        },
        {
            "layer_init": "self.held_config = config",
            "layer_start": "states = states * getattr(self.held_config, 'scale', 1.0)",
            "loop": f'{_CALL}\ndict(a=1).update({{"scale": 2.0}})',
        },
    ),
    "iterator": (
        {
            "parameters": ", notes=None",
            "layer_start": "states = states * (1 + 0.1 * next(notes))",
            "before_loop": "notes = iter(range(100))",
            "loop": "states = layer(states, mask, notes)",
        },
        {
            "parameters": ", notes=None",
            "layer_start": "states = states * (1 + 0.1 * notes)",
            "before_loop": "notes = iter(range(100))",
            "loop": "states = layer(states, mask, next(notes))",
        },
    ),
    "no gradients in some layers": (
        {**_COUNTED, "loop": f"with torch.set_grad_enabled(index > 0):\n    {_CALL}"},
        {**_COUNTED, "loop": f"with torch.set_grad_enabled(True):\n    {_CALL}"},
    ),
    "detached in between": (
        {**_COUNTED, "loop": f"if index == 1:\n    states = states.detach()\n{_CALL}"},
        {**_COUNTED, "loop": f"if index == 1:\n    other = states.detach()\n{_CALL}"},
    ),
    "gradients of gradients": (
        {
            "before_loop": "before = states",
            "after_loop": (
                "(slope,) = torch.autograd.grad(states.sum(), before, create_graph=True)\n"
                "states = states + slope"
            ),
        },
        {"before_loop": "before = states", "after_loop": "states = states + before"},
    ),
    "backward in between": (
        {"after_loop": "states.pow(2).mean().backward(retain_graph=True)"},
        {"after_loop": "penalty = states.pow(2).mean()"},
    ),
    "transform": (
        {
            "after_loop": (
                "slope = torch.func.grad(lambda each: self.layers[0](each[None]).sum())\n"
                "states = states + slope(states[0])[None]"
            )
        },
        {
            "after_loop": (
                "slope = torch.func.grad(lambda each: each[None].sum())\n"
                "states = states + slope(states[0])[None]"
            )
        },
    ),
    "error that ends the stack": (
        {
            "layer_start": "if self.layer_idx == 1:\n    raise StopIteration",
            "loop": "try:\n    states = layer(states, mask)\nexcept StopIteration:\n    break",
        },
        {**_COUNTED, "loop": f"if index == 1:\n    break\n{_CALL}"},
    ),
    "class of a layer": (
        {"imports": _IMPORT, "loop": f"{_CALL}\nif isinstance(layer, Base):\n    states = states * 2"},
        {"imports": _IMPORT, "loop": f"{_CALL}\nif isinstance(layer, nn.Module):\n    states = states * 2"},
    ),
    "bases of a layer": (
        {"loop": f"{_CALL}\nstates = states * len(type(layer).__mro__)"},
        {"loop": f"{_CALL}\nstates = states * len(type(layer).__name__)"},
    ),
    "attribute of a layer": (
        {"loop": f'{_CALL}\nif hasattr(layer, "gradient_checkpointing"):\n    states = states * 2'},
        {"loop": f'{_CALL}\nif hasattr(layer, "attention"):\n    states = states * 2'},
    ),
}
"""What does harm otherwise, and what does not although it looks alike."""


def pairs() -> Iterator[Pair]:
    """Yield each form of a change at two places around the blocks, and what else does harm there."""
    for number, (form, text) in enumerate(FORMS.items()):
        for place in (_PLACES[number % 5], _PLACES[(number + 1 + number // 5 % 4) % 5]):
            yield pair(
                f"{form} in a {place}",
                "plain block",
                [_placed(place, text, start) for start in ("own = $m", "own = $m.clone()")],
            )
    for name, both in _OTHERS.items():
        yield pair(name, "plain block", both)


def _placed(place: str, text: str, start: str) -> dict[str, str]:
    """Return the slots with a change of what begins as the mask, or as a copy of it."""
    change = f"{start}\n{text}".replace("$v", "own")
    around = f"{_CALL}\n{change}".replace("$m", "mask")
    if place == "behind":
        return {"after_loop": change.replace("$m", "mask")}
    if place == "model":
        return {"run": f"states = self.encoder(states, mask)\n{change}".replace("$m", "mask")}
    if place == "method":
        body = textwrap.indent(change.replace("$m", "mask"), "    ")
        return {
            "loop": f"{_CALL}\nself.prepare(states, mask)",
            "encoder_methods": f"def prepare(self, states, mask):\n{body}",
        }
    if place == "list":
        return {"before_loop": "kept = [mask]", "loop": f"{_CALL}\n{change}".replace("$m", "kept[-1]")}
    return {"loop": around}
