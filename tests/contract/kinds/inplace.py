"""Changes in place through an alias of what all blocks share."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.kinds.frames import placed
from tests.contract.kinds.models import Pair

_PLACES = ("block", "part", "method", "function")
FORMS = {
    "method": "$v.mul_(2)",
    "augmented": "$v *= 2",
    "item": "$v[0] = $v[0] * 2",
    "slice": "$v[:, :, 1:] += 1",
    "ellipsis": "$v[..., 0] = 1",
    "part": "part = $v[0]\npart += 1",
    "view": "$v.view(-1).mul_(2)",
    "reshape": "$v.reshape(2, -1).mul_(2)",
    "transpose": "$v.transpose(0, 1).add_(1)",
    "flatten": "$v.flatten().mul_(2)",
    "squeeze": "$v.squeeze(1).mul_(2)",
    "unsqueeze": "torch.unsqueeze($v, 0).mul_(2)",
    "narrow": "torch.narrow($v, 0, 0, 1).add_(1)",
    "chunk": "first, _ = $v.chunk(2)\nfirst.add_(1)",
    "unbind": "for row in torch.unbind($v):\n    row.mul_(2)",
    "starred": "first, *rest = $v\nrest[0].add_(1)",
    "nested targets": "(first, second), third = torch.split($v, 1), 0\nsecond.add_(1)",
    "diagonal": "$v.diagonal(dim1=0, dim2=2).add_(1)",
    "property mT": "$v.mT.mul_(2)",
    "detach": "$v.detach().mul_(2)",
    "data": "$v.data.mul_(2)",
    "conversion to": "$v.to(states.dtype).mul_(2)",
    "conversion float": "$v.float().mul_(2)",
    "conversion contiguous": "$v.contiguous().mul_(2)",
    "conversion type_as": "$v.type_as(states).mul_(2)",
    "as_tensor": "torch.as_tensor($v).mul_(2)",
    "numpy": "$v.numpy().__imul__(2)",
    "from numpy": "torch.from_numpy($v.numpy()).mul_(2)",
    "conditional": "chosen = $v if states.dim() == 3 else torch.zeros_like($v)\nchosen.mul_(2)",
    "boolean or": "chosen = None or $v\nchosen.mul_(2)",
    "boolean and": "chosen = states.dim() == 3 and $v\nchosen.mul_(2)",
    "walrus": "(other := $v).mul_(2)",
    "list": "for each in [$v]:\n    each.mul_(2)",
    "dict": 'held = {"mask": $v}\nheld["mask"].mul_(2)',
    "dict values": 'for each in {"mask": $v}.values():\n    each.mul_(2)',
    "zip": "for row, _ in zip($v, states):\n    row.mul_(2)",
    "enumerate": "for _, row in enumerate($v):\n    row.mul_(2)",
    "reversed": "for each in reversed([$v]):\n    each.mul_(2)",
    "comprehension": "[each.mul_(2) for each in ($v,)]",
    "next": "next(iter([$v])).mul_(2)",
    "lambda": "(lambda each: each.mul_(2))($v)",
    "inner function": "def double(each):\n    each.mul_(2)\n\ndouble($v)",
    "returned argument": "def same(each):\n    return each\n\nsame($v).mul_(2)",
    "identity module": "nn.Identity()($v).mul_(2)",
    "out": "torch.mul($v, 2, out=$v)",
    "out of a part": "torch.add($v[0], 1, out=$v[0])",
    "copy_": "$v.copy_($v * 2)",
    "setitem": "$v.__setitem__(0, 1.0)",
    "index_put_": "$v.index_put_((torch.tensor(0),), torch.tensor(1.0))",
    "masked_fill_": "$v.masked_fill_($v > 0, 0.25)",
    "functional flag": "nn.functional.leaky_relu($v, 2.0, True)",
    "functional name": "torch.relu_($v)",
    "getattr": 'getattr($v, "mul_")(2)',
    "bound method": "double = $v.mul_\ndouble(2)",
    "class method": "torch.Tensor.mul_($v, 2)",
    "map": "list(map(torch.Tensor.neg_, [$v]))",
    "foreach": "torch._foreach_mul_([$v], 2)",
    "context": "with torch.no_grad():\n    $v.mul_(2)",
    "match": "match $v:\n    case other:\n        other.mul_(2)",
    "try": "try:\n    other = $v\nfinally:\n    pass\nother.mul_(2)",
    "broadcast": "torch.broadcast_tensors($v, $v)[0].mul_(2)",
    "movedim": "torch.movedim($v, 0, 1).add_(1)",
    "expand_as": "$v.expand_as($v).mul_(2)",
    "set data": "$v.data = $v.data * 2",
    "swapaxes": "$v.swapaxes(0, 2).mul_(2)",
}
"""How what is called ``v`` is changed."""


def pairs() -> Iterator[Pair]:
    """Yield each form at two of the places: of the mask that all blocks get, and of a copy of it."""
    for number, (form, text) in enumerate(FORMS.items()):
        for place in (_PLACES[number % 4], _PLACES[(number + 1 + number // 4 % 3) % 4]):
            yield Pair(
                f"{form} in a {place}",
                "plain block",
                placed(place, _changed(text, "mask", "own = mask")),
                placed(place, _changed(text, "own", "own = mask.clone()")),
            )


def _changed(text: str, changed: str, start: str) -> list[str]:
    return [start, *text.replace("$v", changed).split("\n"), "states = states + own.mean()"]
