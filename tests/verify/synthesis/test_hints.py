"""What hints make of the errors that they are there for; needs neither torch nor transformers."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from gclint.verify.worker.synthesis import hints
from gclint.verify.worker.synthesis.hints.failure import ForwardError
from gclint.verify.worker.synthesis.hints.table import HINTS, Hint, next_plan
from tests.verify.planted import FOLDER
from tests.verify.synthesis import recorded
from tests.verify.synthesis.recorded.case import Case, is_needed_by, name_of

_FOLDER = Path(str(hints.__file__)).parent
_MODULES = sorted({path.stem for path in _FOLDER.glob("*.py")} - {"__init__", "failure", "table"})


def _recorded() -> dict[str, tuple[Case, ...]]:
    """Return the cases of each hint, by its name."""
    return {
        f"{module}.{name}": cases
        for module in _MODULES
        for name, cases in import_module(f"{recorded.__name__}.{module}").CASES.items()
    }


_CASES = _recorded()
_each_case = pytest.mark.parametrize(
    ("hint", "case"),
    [
        pytest.param(hint, case, id=f"{name_of(hint)}-{number}")
        for hint in HINTS
        for number, case in enumerate(_CASES.get(name_of(hint), ()))
    ],
)


def test_every_hint_stands_in_the_table_once() -> None:
    modules = [import_module(f"{hints.__name__}.{name}") for name in _MODULES]
    written = {
        value
        for module in modules
        for name, value in inspect.getmembers(module, inspect.isfunction)
        if value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert set(HINTS) == written
    assert len(HINTS) == len(written)


def test_every_hint_has_a_recorded_case() -> None:
    assert set(_CASES) == {name_of(hint) for hint in HINTS}
    assert all(_CASES.values())


def test_every_hint_has_one_model_that_needs_it() -> None:
    models = {
        module: [node.name for node in ast.parse(_text(module)).body if isinstance(node, ast.ClassDef)]
        for module in _MODULES
    }
    found = {
        name_of(hint): [name for name in models[name_of(hint).partition(".")[0]] if is_needed_by(hint, name)]
        for hint in HINTS
    }
    assert {name: models for name, models in found.items() if len(models) != 1} == {}


def _text(module: str) -> str:
    return (FOLDER / "hints" / f"{module}.py").read_text(encoding="utf-8")


@_each_case
def test_a_hint_makes_the_plan_that_its_case_says(hint: Hint, case: Case) -> None:
    assert hint(case.situation(), case.failure()) == case.expected()


@_each_case
def test_a_hint_is_the_first_that_is_followed_for_its_case(hint: Hint, case: Case) -> None:
    if case.changes is not None:
        assert next_plan(case.situation(), case.failure(), []) == case.expected()


@_each_case
def test_a_hint_says_nothing_of_an_error_that_says_something_else(hint: Hint, case: Case) -> None:
    other = case.about("frobnicated")
    assert name_of(hint) == "inputs.without_labels" or hint(other.situation(), other.failure()) is None


@_each_case
def test_what_was_tried_is_not_proposed_again(hint: Hint, case: Case) -> None:
    expected = case.expected()
    assert expected is None or next_plan(case.situation(), case.failure(), [expected]) != expected


def test_an_error_that_says_nothing_leads_to_no_plan() -> None:
    case = Case("frobnicated", {})
    assert next_plan(case.situation(), case.failure(), []) is None


def test_a_failure_shows_the_lines_and_variables_that_an_error_came_through_innermost_first() -> None:
    def inner(width: int) -> None:
        raise ValueError("too wide")

    try:
        inner(width=3)
    except ValueError as error:
        failure = ForwardError(error, dict)
    assert failure.message == "too wide"
    assert failure.line.strip() == 'raise ValueError("too wide")'
    assert [line.strip() for _, line in failure.frames][1] == "inner(width=3)"
    assert failure.frames[0][0]["width"] == 3
    assert list(failure.words())[:4] == ["too", "wide", "raise", "ValueError"]


def test_a_failure_without_a_line_is_one() -> None:
    assert ForwardError(ValueError("x"), dict).line == ""


def _wordings(module: str) -> Iterator[str]:
    """Yield each wording of messages and lines that the hints of a module look for, as a pattern."""
    tree = ast.parse((_FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    named = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        for each, is_pattern in _looked_for(node):
            given = named.get(each.id) if isinstance(each, ast.Name) else each
            for one in given.elts if isinstance(given, ast.Tuple) else [given]:
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield from _alternatives(one.value if is_pattern else re.escape(one.value))


def _looked_for(node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what ``node`` looks for in an error, and whether it is a regular expression."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        if ast.unparse(node.comparators[0]) in ("failure.message", "failure.line", "line"):
            yield node.left, False
    elif isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        about = [ast.unparse(each) for each in node.args[1:2]]
        if called == "failure.numbers" or about in (["failure.message"], ["failure.line"]):
            yield node.args[0], True
        elif called == "map" and ast.unparse(node.args[0]) == "failure.numbers":
            yield node.args[1], True


def _alternatives(pattern: str) -> list[str]:
    """Return ``pattern`` once for each way through its alternatives."""
    starts, bars = [0], {0: [-1]}
    tokens = re.finditer(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]|[(|)]", pattern)
    for token in tokens:
        if token[0] == "(":
            starts.append(token.start() + 1)
            bars[starts[-1]] = [starts[-1] - 1]
        elif token[0] == "|":
            bars[starts[-1]].append(token.start())
        elif token[0] == ")":
            start = starts.pop()
            if len(bars[start]) > 1:
                return _split(pattern, start, token.start(), bars[start])
    return _split(pattern, 0, len(pattern), bars[0]) if len(bars[0]) > 1 else [pattern]


def _split(pattern: str, start: int, end: int, bars: list[int]) -> list[str]:
    kept = "?:" if pattern.startswith("?:", start) else ""
    pieces = [pattern[one + 1 : other] for one, other in zip(bars, [*bars[1:], end], strict=True)]
    pieces[0] = pieces[0].removeprefix(kept)
    ways = [_alternatives(pattern[:start] + kept + piece + pattern[end:]) for piece in pieces]
    return sorted({way for each in ways for way in each})


def test_alternatives_are_taken_apart() -> None:
    assert _alternatives(r"a (b|c\|)? [(|]|d") == [r"a (b)? [(|]", r"a (c\|)? [(|]", "d"]
    assert _alternatives(r"(?:x|y(1|2))") == ["(?:x)", "(?:y(1))", "(?:y(2))"]


@pytest.mark.parametrize("module", _MODULES)
def test_every_wording_is_that_of_a_recorded_case(module: str) -> None:
    cases = [case for name, cases in _CASES.items() if name.startswith(f"{module}.") for case in cases]
    texts = [case.message for case in cases] + [line for case in cases for line, _ in case.frames]
    wordings = list(_wordings(module))
    assert wordings
    assert [each for each in wordings if not any(re.search(each, text, re.I | re.S) for text in texts)] == []
