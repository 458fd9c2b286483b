"""Methods that Python calls by itself are followed where it calls them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import block, model, toy
from tests.toy_models import applicability, only_fix

_BEFORE = """
SEEN = []


def tick(x=1):
    SEEN.append(1)
    return x


def calm(x=1):
    return x


"""
_MIXED = "return hidden_states + self.attention(hidden_states)"
_USES = {
    ("__bool__", "True"): (
        "if (own,)[0]:\n    pass",
        "while not own:\n    pass",
        "assert own",
        "y = 1 if same(own) else 2",
        "y = own and 1",
        "y = [1 for _ in (1,) if own]",
        "y = any([own])",
        "y = list(filter(None, [own]))",
        "match 1:\n    case y if own:\n        pass",
    ),
    ("__len__", "1"): ("y = len(own)", "if own:\n    pass"),
    ("__getitem__", "1"): ("y = own[0]", "y, z = own"),
    ("__setitem__", "None"): ("own[0] = 1",),
    ("__delitem__", "None"): ("del own[0]",),
    ("__iter__", "iter([1])"): (
        "for y in own:\n    pass",
        "y = [*own]",
        "(y,) = own",
        "y = []\ny.extend(own)",
        "y = same(*own)",
    ),
    ("__next__", "1"): ("y = next(own)",),
    ("__contains__", "True"): ("y = 1 not in own",),
    ("__eq__", "True"): (
        "y = 1 == own",
        "y = (own, 1) == (1, 1)",
        "y = 1 in [own]",
        "match own:\n    case 1:\n        pass",
    ),
    ("__lt__", "True"): ("y = 1 < 2 if own < 1 else 2", "y = sorted([own, own])"),
    ("__hash__", "1"): ("y = {own: 1}", "y = {own}", "y = {1: 2}.get(own)", "d = {}\nd[own] = 1"),
    ("__index__", "0"): ("y = [1, 2][own]", "y = [1, 2][own:]", "y = hidden_states.select(own, 0)"),
    ("__add__", "1"): ("y = own + 1",),
    ("__rmul__", "1"): ("y = 1.0 * own",),
    ("__iadd__", "1"): ("own += 1",),
    ("__neg__", "1"): ("y = -own",),
    ("__float__", "1.0"): ("y = float(own)",),
    ("__format__", "''"): ("y = f'{own}'", "y = '{}'.format(own)"),
    ("__repr__", "''"): ("y = f'{[own]!r}'", "y = '%s' % (own,)"),
    ("__call__", "1"): ("y = own(1)", "y = sorted([1, 2], key=own)"),
    ("__getattr__", "1"): ("y = own.other", "y = hasattr(own, 'other')"),
    ("__setattr__", "None"): ("own.other = 1", "setattr(own, 'other', 1)"),
    ("__delattr__", "None"): ("del own.other",),
    ("__del__", "None"): ("y = 1",),
    ("__copy__", "1"): ("import copy\ny = copy.copy(own)",),
}
"""What calls a method of ``own``, by its name and what it gives."""
_CLASSES = {
    "a property's setter": (
        "class Own:\n    @property\n    def x(self):\n        return 1\n\n"
        "    @x.setter\n    def x(self, value):\n        T()\n",
        "own = Own()\nown.x = 1",
    ),
    "a property's deleter": (
        "class Own:\n    @property\n    def x(self):\n        return 1\n\n"
        "    @x.deleter\n    def x(self):\n        T()\n",
        "own = Own()\ndel own.x",
    ),
    "a descriptor's setter": (
        "class Held:\n    def __set__(self, owner, value):\n        T()\n\n\nclass Own:\n    x = Held()\n",
        "own = Own()\nown.x = 1",
    ),
    "an item of a class": (
        "class Own:\n    def __class_getitem__(cls, key):\n        return T(cls)\n",
        "y = Own[int]",
    ),
    "a class of its base": (
        "class Own:\n    def __init_subclass__(cls):\n        T()\n",
        "class Inner(Own):\n    pass",
    ),
    "a name in a class": (
        "class Own:\n    def __set_name__(self, owner, name):\n        T()\n",
        "class Inner:\n    x = Own()",
    ),
    "a field that is compared": (
        "import dataclasses\n\n\nclass Held:\n    def __eq__(self, other):\n        return T(True)\n\n\n"
        "@dataclasses.dataclass\nclass Own:\n    def __init__(self):\n        self.held = Held()\n",
        "y = Own() == Own()",
    ),
}
_NOT_FOLLOWED = {
    "a metaclass that makes objects": (
        "class Kind(type):\n    def __call__(cls):\n        SEEN.append(1)\n\n\n"
        "class Own(metaclass=Kind):\n    pass\n",
        "y = Own()",
    ),
    "a metaclass that knows its objects": (
        "class Kind(type):\n    def __instancecheck__(cls, each):\n        SEEN.append(1)\n\n\n"
        "class Own(metaclass=Kind):\n    pass\n",
        "y = isinstance(mask, Own)",
    ),
    "a metaclass with items": (
        "class Kind(type):\n    def __iter__(cls):\n        SEEN.append(1)\n        yield 1\n\n\n"
        "class Own(metaclass=Kind):\n    pass\n",
        "y = list(Own)",
    ),
    "a class that makes its objects": (
        "class Own:\n    def __new__(cls):\n        SEEN.append(1)\n        return object.__new__(cls)\n",
        "y = Own()",
    ),
    "reads of all attributes": (
        "class Own:\n    x = 1\n\n    def __getattribute__(self, name):\n        SEEN.append(1)\n"
        "        return object.__getattribute__(self, name)\n",
        "y = Own().x",
    ),
    "a tensor of its own": (
        "class Own(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, *given):\n"
        "        SEEN.append(1)\n        return super().__torch_function__(*given)\n",
        "y = hidden_states.as_subclass(Own) + 1",
    ),
}


def _applicability(before: str, body: str, folder: Path) -> Applicability:
    same = "def same(x, *more):\n    return x\n\n\n"
    layer = block(f"{textwrap.dedent(body)}\n{_MIXED}")
    return applicability(folder, toy(_BEFORE + same + before + "\n\n", layer, model()))


def _with_method(name: str, result: str, function: str) -> str:
    return f"class Own:\n    def {name}(self, *given):\n        return {function}({result})\n"


@pytest.mark.parametrize(("method", "use"), [(each, use) for each, uses in _USES.items() for use in uses])
def test_what_a_method_does_is_a_doubt(method: tuple[str, str], use: str, tmp_path: Path) -> None:
    before = _with_method(*method, "tick")
    assert _applicability(before, f"own = Own()\n{use}", tmp_path) is Applicability.UNSAFE


@pytest.mark.parametrize("method", _USES)
def test_a_method_that_does_nothing_is_none(method: tuple[str, str], tmp_path: Path) -> None:
    uses = [f"own = Own()\n{use}" for use in _USES[method]]
    assert _applicability(_with_method(*method, "calm"), "\n".join(uses), tmp_path) is Applicability.SAFE


@pytest.mark.parametrize("name", _CLASSES)
def test_what_a_class_does_is_a_doubt_alone(name: str, tmp_path: Path) -> None:
    before, body = _CLASSES[name]
    found = [_applicability(before.replace("T(", f"{each}("), body, tmp_path) for each in ("tick", "calm")]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


@pytest.mark.parametrize("name", _NOT_FOLLOWED)
def test_what_is_not_followed_is_a_doubt(name: str, tmp_path: Path) -> None:
    assert _applicability(*_NOT_FOLLOWED[name], tmp_path) is Applicability.UNSAFE


def test_what_a_class_has_itself_is_found_before_a_base_that_is_not_known(tmp_path: Path) -> None:
    own = _with_method("__getitem__", "1", "tick").replace("class Own", "class Own(made_elsewhere())")
    layer = block(f"y = OWN[0]\n{_MIXED}")
    text = toy(f"from elsewhere import made_elsewhere\n{_BEFORE}{own}\n\nOWN = Own()\n\n\n", layer, model())
    assert "`tick` changes" in (only_fix(tmp_path, text).reason or "")


def test_a_kept_generator_is_used_up(tmp_path: Path) -> None:
    before = "def numbers():\n    yield 1\n\n\nNUMBERS = numbers()\n"
    assert _applicability(before, "for y in NUMBERS:\n    break", tmp_path) is Applicability.UNSAFE
