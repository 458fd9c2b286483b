"""What requires grad and is passed by keyword, where reentrant checkpointing gives it no gradient."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.kinds.models import Pair, pair

_PARAMETERS = {
    "a plain name": ("bias", ", bias=None"),
    "a name of numbers": ("soft_ids", ", soft_ids=None"),
    "a name of a flag": ("use_bias", ", use_bias=None"),
    "another annotation": ("bias", ', bias: "Bias" = None'),
}
"""What receives it, and how that is declared."""
_ZEROS = "value = torch.zeros_like(states)\n"
_FORMS = {
    "computed": "value = $v * 2",
    "as a tensor": "value = torch.as_tensor($v)",
    "one of a grid": 'value = torch.meshgrid($v[0, 0], $v[0, 0], indexing="ij")[0].mean()',
    "added": f"{_ZEROS}value += $v",
    "put into an item": f"{_ZEROS}value[0] = $v[0]",
    "put into a slice": f"{_ZEROS}value[:, :, 1:] = $v[:, :, 1:]",
    "copied": f"{_ZEROS}value.copy_($v)",
    "added by a method": f"{_ZEROS}value.add_($v)",
    "added by a special method": f"{_ZEROS}value.__setitem__(0, $v[0])",
    "added through a view": f"{_ZEROS}value.view(-1).add_($v.view(-1))",
    "added through another name": f"{_ZEROS}other = value\nother += $v",
    "added by a name": f'{_ZEROS}getattr(value, "add_")($v)',
    "put at an index": f"{_ZEROS}value.index_put_((torch.tensor(0),), $v[0])",
    "scattered": f"{_ZEROS}value.masked_scatter_(states > 0, $v)",
    "added by a function": f"{_ZEROS}def put(each):\n    each.add_($v)\nput(value)",
    "kept": "self.held = $v\nvalue = self.held",
    "kept by a name": 'setattr(self, "held", $v)\nvalue = self.held',
    "kept in settings": "self.config.held = $v\nvalue = self.config.held",
    "in a list": "held = [states.detach()]\nheld[0] = $v\nvalue = held[0]",
    "in a dict": 'held = {"a": states.detach()}\nheld.update(a=$v)\nvalue = held["a"]',
    "by a generator": "def all_of():\n    yield $v\nvalue = next(all_of())",
    "by a default": "def get(each=$v):\n    return each\nvalue = get()",
    "by a match": "match ($v,):\n    case (value,):\n        pass",
    "by a star": "first, *rest = (states.detach(), $v)\nvalue = rest[0]",
    "on one way": "value = states.detach()\nif states.dim() == 3:\n    value = $v",
    "values of the highest": "value = $v.topk(2, dim=-1).values.mean(-1, keepdim=True)",
}
"""How what is called ``v`` comes to be the value."""
_WAYS = {
    "as it is": "states = layer(states, mask, $p=value)",
    "in an updated dict": "options = {}\noptions.update($p=value)\nstates = layer(states, mask, **options)",
    "in a filled dict": 'options = {}\noptions["$p"] = value\nstates = layer(states, mask, **options)',
    "in a partial function": "run = partial(layer, mask=mask, $p=value)\nstates = run(states)",
}
"""How it is passed."""


def pairs() -> Iterator[Pair]:
    """Yield each form under each name, and each way under each name: with gradients, and detached."""
    for parameter in _PARAMETERS:
        for form, text in _FORMS.items():
            slots = (_slots(parameter, text, each, "as it is") for each in ("source", "source.detach()"))
            yield pair(f"{form}, {parameter}", "plain block", slots)
        for way in list(_WAYS)[1:]:
            slots = (
                _slots(parameter, _FORMS["computed"], each, way) for each in ("source", "source.detach()")
            )
            yield pair(f"{way}, {parameter}", "plain block", slots)


def _slots(parameter: str, form: str, value: str, way: str) -> dict[str, str]:
    name, declared = _PARAMETERS[parameter]
    return {
        "imports": "from functools import partial",
        "top": "Bias = torch.Tensor\n\n",
        "parameters": declared,
        "layer_start": f"states = states + {name}",
        "encoder_init": "self.project = nn.Linear(config.hidden_size, config.hidden_size)",
        "before_loop": f"source = self.project(states)\n{form.replace('$v', value)}",
        "loop": _WAYS[way].replace("$p", name),
    }
