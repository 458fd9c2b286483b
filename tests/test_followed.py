"""Every expression that Python evaluates in a block is followed, whatever it stands in."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import block, model, toy
from tests.toy_models import applicability

_BEFORE = """
import functools

SEEN = []


def tick(x=1):
    SEEN.append(1)
    return x


def calm(x=1):
    return x


def same(x, *more, **options):
    return x


def keeping(x):
    return same


class Own:
    def __init__(self, a=1):
        self.a = a


class Keeper:
    @property
    def quiet(self):
        return calm(Own)

    @property
    def loud(self):
        return tick(Own)


"""
_MIXED = "return hidden_states + self.attention(hidden_states)"
_TRY = "try:\n    {}\nexcept ValueError:\n    pass"
_PLACES = {
    "AnnAssign.annotation": "class Inner:\n    x: T() = 1",
    "AnnAssign.target": "d = {}\nd[T()]: int",
    "AnnAssign.value": "y: int = T()",
    "Assert.msg": _TRY.format("assert mask is None, T()"),
    "Assert.test": "assert T()",
    "Assign.targets": "d = {}\nd[T()] = 1",
    "Assign.value": "y = T()",
    "Attribute.value": "y = same(Own(), T()).a",
    "AugAssign.target": "d = [1]\nd[T(0)] += 1",
    "AugAssign.value": "y = 1\ny += T()",
    "BinOp.left": "y = T() + 1",
    "BinOp.right": "y = 1 + T()",
    "BoolOp.values": "y = mask is None and T()",
    "Call.args": "same(1, T())",
    "Call.func": "same(same, T())(1)",
    "ClassDef.bases": "class Inner(same(Own, T())):\n    pass",
    "ClassDef.decorator_list": "@keeping(T())\nclass Inner:\n    pass",
    "Compare.comparators": "y = 1 < 2 < T()",
    "Compare.left": "y = T() < 2",
    "Delete.targets": "d = {1: 2}\nz = 1\ndel (z, d[T()])",
    "Dict.keys": "y = {T(): 1}",
    "Dict.values": "y = {**{1: T()}}",
    "DictComp.key": "y = {T(): 1 for a in (1, 2)}",
    "DictComp.value": "y = {a: T() for a in (1, 2)}",
    "ExceptHandler.type": "try:\n    int('x')\nexcept same(ValueError, T()):\n    pass",
    "Expr.value": "T()",
    "For.iter": "for a in (T(),):\n    pass",
    "For.target": "d = {}\nfor d[T()] in (1, 2):\n    pass",
    "FormattedValue.format_spec": "y = f'{1:{T()}}'",
    "FormattedValue.value": "y = f'{T()!r}'",
    "FunctionDef.decorator_list": "@functools.wraps(same(same, T()))\ndef g():\n    return 1",
    "FunctionDef.returns": "def g() -> T():\n    return 1",
    "GeneratorExp.elt": "y = list(T() for a in (1, 2))",
    "If.test": "if T():\n    pass",
    "IfExp.body": "y = T() if mask is None else 1",
    "IfExp.orelse": "y = 1 if mask is None else T()",
    "IfExp.test": "y = 1 if T() else 2",
    "JoinedStr.values": "y = f'1{T()}'",
    "Lambda.body": "g = lambda: T()\ng()",
    "List.elts": "y = [T()]",
    "ListComp.elt": "y = [T() for a in (1, 2)]",
    "Match.subject": "match T():\n    case 1:\n        pass",
    "MatchClass.cls": "k = Keeper()\nmatch mask:\n    case k.quiet(a=1):\n        pass",
    "MatchMapping.keys": "k = Keeper()\nmatch {}:\n    case {k.quiet: 1}:\n        pass",
    "MatchValue.value": "k = Keeper()\nmatch 1:\n    case k.quiet:\n        pass",
    "NamedExpr.value": "same((y := T()))",
    "Raise.cause": _TRY.format("raise ValueError(1) from Own(T())"),
    "Raise.exc": _TRY.format("raise ValueError(T())"),
    "Return.value": "if mask is not None:\n    return T(hidden_states)",
    "Set.elts": "y = {T()}",
    "SetComp.elt": "y = {T() for a in (1, 2)}",
    "Slice.lower": "y = hidden_states[:, T():]",
    "Slice.step": "y = [1, 2][::T()]",
    "Slice.upper": "y = [1, 2][:T()]",
    "Starred.value": "a, *b = [*(T(), 1)]",
    "Subscript.slice": "y = [1, 2][T()]",
    "Subscript.value": "y = same([1], T())[0]",
    "Tuple.elts": "y = (1, T())",
    "UnaryOp.operand": "y = not T()",
    "While.test": "while T() > 3:\n    pass",
    "arg.annotation": "def g(x: T()):\n    return x",
    "arguments.defaults": "class Inner:\n    def f(self, x=T()):\n        return x",
    "arguments.kw_defaults": "def g(*, x=T()):\n    return x",
    "comprehension.ifs": "y = [1 for a in (1, 2) if a if T()]",
    "comprehension.iter": "y = [b for a in (1, 2) for b in (T(),)]",
    "comprehension.target": "d = {}\ny = [1 for d[T()] in (1, 2)]",
    "keyword.value": "same(1, x=T())",
    "match_case.guard": "match 1:\n    case y if T():\n        pass",
    "withitem.context_expr": "with torch.autocast('cpu', enabled=T()):\n    pass",
    "withitem.optional_vars": "d = {}\nwith torch.no_grad() as d[T()]:\n    pass",
}
"""Code for each field of Python's syntax that holds an expression, by the name of the field."""
_DOUBTED = frozenset(
    (
        # What defers its body, or runs in an event loop, is a doubt of its own.
        "AsyncFor",
        "AsyncFunctionDef",
        "AsyncWith",
        "Await",
        "Yield",
        "YieldFrom",
        # They say what something is, and run nothing.
        "Expression",
        "FunctionType",
        # Statements and expressions of later releases of Python are doubts as a whole.
        "Interpolation",
        "TemplateStr",
        "TypeAlias",
        "TypeVar",
        "ParamSpec",
        "TypeVarTuple",
    )
)
_NAMES_ONLY = frozenset(("NamedExpr.target",))


def _fields() -> Iterator[str]:
    """Yield the fields that hold expressions, as Python's own documentation of its syntax has them."""
    for name, kind in vars(ast).items():
        if not (isinstance(kind, type) and issubclass(kind, ast.AST)) or name in _DOUBTED:
            continue
        for form in re.findall(rf"\b{name}\(([^)]*)\)", kind.__doc__ or ""):
            yield from (f"{name}.{field}" for field in re.findall(r"\bexpr[?*]? (\w+)", form))


def _applicability(body: str, folder: Path) -> Applicability:
    layer = block(f"{textwrap.dedent(body)}\n{_MIXED}")
    return applicability(folder, toy(_BEFORE, layer, model()))


def test_there_is_code_for_each_field_that_holds_an_expression() -> None:
    assert set(_fields()) - _PLACES.keys() == _NAMES_ONLY


@pytest.mark.parametrize("place", _PLACES)
def test_what_it_does_is_a_doubt(place: str, tmp_path: Path) -> None:
    body = _PLACES[place].replace("T(", "tick(").replace("quiet", "loud")
    assert _applicability(body, tmp_path) is Applicability.UNSAFE


def test_what_does_nothing_is_none(tmp_path: Path) -> None:
    body = "\n".join(each.replace("T(", "calm(") for each in _PLACES.values())
    assert _applicability(body, tmp_path) is Applicability.SAFE
