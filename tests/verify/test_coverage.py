"""Branches: which ones functions have, which of them were executed, and which of these matter."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from gclint.verify.worker.branches import ENTERED, EXECUTED, LEFT, marked
from gclint.verify.worker.coverage import listed, of_all, unreached
from gclint.verify.worker.protocol import ClassResult, Coverage, ObservedSite, SourcePlace

_PATH = "/models/modeling_x.py"


def _executed(text: str, call: str) -> tuple[set[int], ModuleType]:
    """Return the numbers of what a call executes of a text."""
    noted: set[int] = set()
    module = ModuleType("module")
    names = {EXECUTED: noted.add, ENTERED: noted.add, LEFT: noted.add}
    vars(module).update(names)
    exec(compile(marked(text, first=0).tree, "module", "exec"), vars(module))
    noted.clear()
    eval(call, vars(module))
    return noted, module


def _missed(text: str, call: str) -> list[tuple[int, str]]:
    noted, _ = _executed(text, call)
    return [(each.line, each.kind) for each in marked(text).missed(noted)]


_IF = "def f(x):\n    if x:\n        y = 1\n    else:\n        y = 2\n    return y\n"
_SHORT = "def f(x):\n    if x:\n        x = 1\n    return x\n"
_ELIF = "def f(x):\n    if x:\n        y = 1\n    elif x is None:\n        y = 2\n    return x\n"
_TRY = "def f(x):\n    try:\n        x()\n    except TypeError:\n        x = 1\n"
_MATCH = "def f(x):\n    match x:\n        case 1:\n            x = 2\n        case _:\n            x = 3\n"
_CALLED = "def g():\n    return 1 if g else 2\ndef f(x):\n    return g() if x else 0\n"
_LOOP_ELSE = "def f(x):\n    for y in x:\n        if y:\n            break\n    else:\n        return 1\n"
_TRY_ELSE = "def f(x):\n    try: x()\n    except TypeError:\n        0\n    else:\n        return 1\n"
_METHOD = "class C:\n    def f(self, x):\n        return [1 if each else 2 for each in x]\n"
_INNER = "def f(x):\n    def g():\n        if x:\n            return 1\n        return 2\n    return g()\n"
_NESTED = "def f(x):\n    if x:\n        if x > 1:\n            return 2\n    return 1\n"


@pytest.mark.parametrize(
    ("text", "call", "missed"),
    [
        (_IF, "f(1)", [(5, "else")]),
        (_IF, "f(0)", [(3, "body")]),
        (_SHORT, "f(1)", [(2, "else")]),
        (_SHORT, "f(0)", [(3, "body")]),
        # Of nested branches, the outer one says it.
        (_NESTED, "f(0)", [(3, "body")]),
        (_NESTED, "f(1)", [(2, "else"), (4, "body")]),
        (_ELIF, "f(1)", [(4, "else")]),
        ("def f(x):\n    return 1 if x else 2\n", "f(1)", [(2, "else")]),
        ("def f(x):\n    return 1 if x else 2\n", "f(0)", [(2, "body")]),
        # A condition has its branches; in it, only a call does something besides.
        ("def f(x):\n    return 1 if x or x is None else 2\n", "f(1)", [(2, "else")]),
        ("def f(x):\n    return 1 if x or len(x) else 2\n", "f(1)", [(2, "operand"), (2, "else")]),
        ("def f(x):\n    return x or x is None\n", "f(1)", [(2, "operand")]),
        ("def f(x):\n    return x or len(x)\n", "f(1)", [(2, "operand")]),
        ("def f(x):\n    return x and f(x - 1)\n", "f(1)", []),
        ("def f(x):\n    for i in range(x):\n        x = i\n", "f(0)", [(3, "body")]),
        ("def f(x):\n    while x:\n        x -= 1\n", "f(0)", [(3, "body")]),
        (_TRY, "f(len)", []),
        (_TRY, "f(list)", [(5, "body")]),
        (_MATCH, "f(1)", [(6, "body")]),
        # What was never called is missed where it would be called.
        (_CALLED, "f(0)", [(4, "body")]),
        ("def f(x):\n    return [str(y) for y in x if y]\n", "f([0])", [(2, "body")]),
        ("def f(x):\n    return {y: str(y) for y in x}\n", "f([])", [(2, "body")]),
        ("def f(x):\n    return [y for y in x if y]\n", "f([0])", [(2, "body")]),
        ("def f(x):\n    return [y for y in x if y]\n", "f([1])", [(2, "else")]),
        ("def f(x):\n    return [y for y in x if y]\n", "f([0, 1])", []),
        ("def f(x):\n    return [y for y in x]\n", "f([])", [(2, "body")]),
        (_LOOP_ELSE, "f([1])", [(3, "else"), (6, "else")]),
        (_LOOP_ELSE, "f([0, 1])", [(6, "else")]),
        (_LOOP_ELSE, "f([0])", [(4, "body")]),
        (_TRY_ELSE, "f(list)", [(4, "body")]),
        (_TRY_ELSE, "f(0)", [(6, "else")]),
        # What is never called has no branches that are missed.
        ("def f(x):\n    return lambda: 1 if x else 2\n", "f(0)", []),
        ("def f(x):\n    return (lambda: 1 if x else 2)()\n", "f(0)", [(2, "body")]),
        (_METHOD, "C().f([1])", [(3, "else")]),
        (_INNER, "f(0)", [(4, "body")]),
    ],
)
def test_a_branch_that_is_not_executed_is_missed(text: str, call: str, missed: list[tuple[int, str]]) -> None:
    assert _missed(text, call) == missed


def test_marks_change_neither_values_nor_lines() -> None:
    text = 'def f(x):\n    """Runs."""\n    return (x and str(x)) or (len if x == 0 else str)(())\n'
    _, module = _executed(text, "f(1)")
    assert (module.f(1), module.f(0), module.f(())) == ("1", 0, "()")
    assert (module.f.__doc__, module.f.__code__.co_firstlineno) == ("Runs.", 1)


_RELIED_ON = "import torch\nfrom transformers.utils import is_torch_npu_available\n\n"


@pytest.mark.parametrize(
    ("test", "body", "excuse"),
    [
        ("x", "raise ValueError", "it only raises"),
        ("x", "logger.warning(x)", "it only says something"),
        ("x.is_cuda", "x = 1", "it needs what no run here has: x.is_cuda"),
        ("x.device.type == 'mps'", "x = 1", "it needs what no run here has: x.device.type == 'mps'"),
        ("is_torch_npu_available()", "x = 1", "it needs what no run here has: is_torch_npu_available()"),
        ("y and torch.jit.is_tracing()", "x = 1", "it needs what no run here has: torch.jit.is_tracing()"),
        ("not self.training", "x = 1", "it is not executed in training"),
        # These may be reached all the same.
        ("self.training", "x = 1", ""),
        ("x.device.type != 'mps'", "x = 1", ""),
        ("y or x.is_cuda", "x = 1", ""),
        ("not x.is_cuda", "x = 1", ""),
        ("self.use_flash", "x = 1", ""),
        ("self.is_cuda", "x = 1", ""),
        ("self.kind == 'mps'", "x = 1", ""),
        ("self.is_torch_npu_available()", "x = 1", ""),
        ("x", "logger.info(f(x))", ""),
        ("output_attentions", "x = 1", ""),
        ("x", "logger.warning(x)\n        x = 1", ""),
        ("x", "x = logger.warning(x)", ""),
    ],
)
def test_what_need_not_be_executed_has_an_excuse(test: str, body: str, excuse: str) -> None:
    text = f"{_RELIED_ON}def f(self, x, y):\n    if {test}:\n        {body}\n    return x\n"
    (branch,) = [each for each in marked(text).branches if each.kind == "body"]
    assert branch.excuse == excuse


@pytest.mark.parametrize(
    ("before", "path", "is_excused"),
    [
        ("from transformers.utils import is_torch_npu_available", "modeling_toy.py", True),
        ("from ...utils import is_torch_npu_available", "lib/transformers/models/toy/modeling_toy.py", True),
        # A function of anybody else may ask for the length of a text.
        ("from ...utils import is_torch_npu_available", "lib/toys/models/toy/modeling_toy.py", False),
        ("from .utils import is_torch_npu_available", "modeling_toy.py", False),
        ("from toys import is_torch_npu_available", "modeling_toy.py", False),
        ("from toys.utils import *", "modeling_toy.py", False),
        ("def is_torch_npu_available():\n    return LONG", "modeling_toy.py", False),
        ("is_torch_npu_available = bool", "modeling_toy.py", False),
        (
            "try:\n    from transformers.utils import is_torch_npu_available\nexcept ImportError:\n"
            "    from toys import is_torch_npu_available",
            "modeling_toy.py",
            False,
        ),
    ],
)
def test_only_known_functions_excuse_a_branch(before: str, path: str, *, is_excused: bool) -> None:
    text = f"{before}\n\ndef f(x):\n    if is_torch_npu_available():\n        x = 1\n    return x\n"
    (branch,) = [each for each in marked(text, path).branches if each.kind == "body"]
    assert bool(branch.excuse) is is_excused


@pytest.mark.parametrize(
    ("test", "kinds"),
    [
        ("past_key_values is not None", {"body"}),
        ("x and self.layer_past", {"body"}),
        ("cache is None", {"else"}),
        ("use_cache", {"body"}),
        ("x or use_cache", set()),
        ("cache is y", set()),
        ("cached_masks is None", set()),
        ("cache", {"body"}),
    ],
)
def test_what_needs_a_cache_is_known(test: str, kinds: set[str]) -> None:
    text = f"def f(self, x, y, cache, use_cache):\n    if {test}:\n        x = 1\n    return x\n"
    assert {each.kind for each in marked(text).branches if each.needs_cache} == kinds


_MODEL = """\
def scaled(x, by=None):
    return x * by if by else x

def unused(x):
    return x if x else 1

class Block:
    def __init__(self, kind):
        self.kind = 1 if kind else 2

    def forward(self, x):
        if len(x) > 8:
            x = scaled(x, 2)
        return scaled(x)

class Model:
    def forward(self, x, mask=None, kept=None, other=None):
        if mask is not None:
            x = x + mask
        for block in self.blocks:
            if kept is not None:
                kept.append(x)
            x = block(x)
        y = x
        if y:
            y = 2
        if other:
            other = 1
        return y, unused(other)
"""


def _result(
    *missed: int, entered: tuple[int, ...] = (1, 4, 8, 11, 17), inside: tuple[int, ...] = (1, 11)
) -> ClassResult:
    branches = [each for each in marked(_MODEL).branches if each.line in missed and each.kind != "function"]
    place, block = SourcePlace(_PATH, 23, 23), SourcePlace(_PATH, 7, 14)
    site = ObservedSite(place, "Block", block, is_layer=True, is_trunk=True, calls=2, recomputed=True)
    within = tuple(each for each in branches if each.function in inside)
    coverage = (Coverage(_PATH, False, entered, tuple(branches)), Coverage(_PATH, True, inside, within))
    return ClassResult(_PATH, "Model", "passed", sites=(site,), coverage=coverage)


def _parts(*results: ClassResult) -> dict[int, str]:
    return {each.branch.line: each.part for each in unreached(results, lambda path: _MODEL)}


def test_a_branch_matters_in_a_block_in_what_it_calls_and_behind_its_loop() -> None:
    assert _parts(_result(2, 5, 9, 13, 19, 22, 26, 28)) == {
        2: "inside",
        5: "elsewhere",
        9: "elsewhere",  # It runs before any step.
        13: "inside",
        19: "elsewhere",
        22: "around",
        26: "around",
        28: "elsewhere",
    }


def test_what_another_class_has_reached_is_reached() -> None:
    assert 13 in _parts(_result(13), _result(13, 22))
    assert 13 not in _parts(_result(13, 22), _result(22))
    assert 22 in _parts(_result(13, 22), _result(22))
    # One that has not run the function has not reached it.
    assert 13 in _parts(_result(13), _result(entered=(17,), inside=()))


def test_what_is_executed_outside_of_blocks_is_not_reached_inside() -> None:
    outside = _result(2)
    where, _ = outside.coverage
    everywhere = replace(where, missed=())
    result = replace(outside, coverage=(everywhere, outside.coverage[1]))
    assert _parts(result) == {2: "inside"}


def test_what_only_other_blocks_use_does_not_matter() -> None:
    text = f"{_MODEL}\nclass Other:\n    def forward(self, x):\n        return 1 if x else 2\n"
    line = text.count("\n") - 1
    (branch,) = [each for each in marked(text).branches if each.function == line and each.kind == "else"]
    result = _result(13)
    site = replace(result.sites[0], block="Other")
    covered = replace(result.coverage[1], entered=(1, 11, line), missed=(*result.coverage[1].missed, branch))
    both = replace(result, sites=(*result.sites, site), coverage=(result.coverage[0], covered))

    def lines(block: str) -> set[int]:
        found = unreached([both], lambda path: text, lambda site: site.block == block)
        return {each.branch.line for each in found if each.part == "inside"}

    assert (lines("Block"), lines("Other")) == ({13}, {branch.line})


def test_a_summary_counts_each_branch_once() -> None:
    results = []
    for result in (_result(13, 22), _result(13), _result(13, 22)):
        found = unreached([result], lambda path: _MODEL)
        results.append(ClassResult(**{**vars(result), "unreached": tuple(found)}))
    assert listed(of_all(results)) == "modeling_x.py:13"
    assert listed(results[0].unreached, 1) == "modeling_x.py:13 and 1 more"
