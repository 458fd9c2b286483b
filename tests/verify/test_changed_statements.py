"""Which statements a repair changes, and which of them a run came to."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from gclint.verify.changed_statements import changed_parts, changed_places
from gclint.verify.worker import importing
from gclint.verify.worker.protocol import SourcePlace

_BEFORE = '''\
class Layer(Module):
    def forward(self, x, flag=False):
        """Runs."""
        # A comment.
        if flag:
            y = first(x)
        elif x:
            y = second(x)
        else:
            y = third(
                x,
            )
        return y
'''


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("(Module)", "(Base)", []),
        ("# A comment.", "# Another one.", []),
        ('"""Runs."""', '"""Walks."""', []),
        ("first(x)", "first(x=x)", [(6, 6)]),
        ("                x,\n", "                x=x,\n", [(10, 12)]),
        # Its header is run with the function.
        ("flag=False", "flag=True", [(5, 12)]),
        ("elif x", "elif not x", [(7, 12)]),
        # What is taken out is in front of what follows.
        ("        elif x:\n            y = second(x)\n", "", [(5, 10)]),
        ("        return y\n", "        y += 1\n        return y\n", [(13, 13)]),
    ],
)
def test_statements_in_functions_that_are_changed(old: str, new: str, places: list[tuple[int, int]]) -> None:
    assert old in _BEFORE
    assert changed_places(_BEFORE, _BEFORE.replace(old, new)) == places


def test_a_text_that_is_not_python_has_no_places() -> None:
    assert changed_places(_BEFORE, "class:") == []


_TEXT = '''\
from __future__ import annotations

def run(x):
    """Runs."""
    if x == 1:
        y = "one"
    elif x == 2:
        y = "two"
    else:
        y = (lambda: "many")()
    try:
        for _ in range(x):
            y += "!"
    finally:
        y += "?"
    return y
'''


def _imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: Mapping[int, int]) -> ModuleType:
    path = tmp_path / "marked.py"
    path.write_text("")
    monkeypatch.setattr(importing, "executed", set())
    monkeypatch.setattr(importing, "_watchers", [])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "marked", raising=False)
    places = [SourcePlace(str(path), first, last) for first, last in lines.items()]
    importing.lay_over({str(path): _TEXT}, places)
    return importlib.import_module("marked")


@pytest.mark.parametrize(
    ("argument", "said", "lines"),
    [(1, "one!?", {5, 6, 13, 15}), (2, "two!!?", {5, 7, 8, 13, 15}), (0, "many?", {5, 7, 10, 15})],
)
def test_what_a_run_comes_to_is_noted_and_nothing_else_is_different(
    argument: int, said: str, lines: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {5: 10, 6: 6, 7: 10, 8: 8, 10: 10, 13: 13, 15: 15}
    module = _imported(tmp_path, monkeypatch, places)
    assert importing.executed == set()
    assert module.run(argument) == said
    assert {place.line for place in importing.executed_places(importing.executed)} == lines
    (covered,) = importing.coverage(importing.executed)
    assert {each.line for each in covered.missed}.isdisjoint(lines)
    assert module.run.__code__.co_firstlineno == 3
    assert module.run.__doc__ == "Runs."


@pytest.mark.parametrize(
    "deep", ["x = " + " + ".join(["1"] * 700), "\n".join("    " * n + "for _ in (1,):" for n in range(19))]
)
def test_code_that_is_nested_too_deeply_is_imported_all_the_same(
    deep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = deep if "\n" not in deep else f"{deep}\n{'    ' * 19}for _ in (1,): x = 1"
    body = "".join(f"        {line}\n" for line in inner.splitlines())
    text = f"class Block:\n    def forward(self):\n{body}        return 1\n"
    path = tmp_path / "marked.py"
    path.write_text(text)
    monkeypatch.setattr(importing, "_watchers", [])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "marked", raising=False)
    importing.lay_over({}, sources=[str(path)])
    assert importlib.import_module("marked").Block().forward() == 1
    (covered,) = importing.coverage(importing.all_executed())
    assert (covered.is_marked, covered.entered) == (False, ())


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("f(x) if a else g(x)", "f(x=x) if a else g(x)", [1]),
        ("f(x) if a else g(x)", "f(x) if a else g(x=x)", [1]),
        ("f(x) if a else g(x)", "g(x) if a else f(x)", [1]),
        ("f(x) if a else g(x)", "f(x) if not a else g(x)", [1]),
        ("a and f(x)", "a and f(x=x)", [1]),
        ("a and f(x)", "b and f(x)", [1]),
        ("lambda x: f(x)", "lambda x: f(x=x)", [1]),
        ("[f(x) for x in y]", "[f(x=x) for x in y]", [1]),
        ("{x: f(x) for x in y}", "{x: f(x) for x in y if x}", [1]),
        # What is executed with its statement is watched as a part of that.
        ("f(x if a else b)", "g(x if a else b)", []),
        ("f(x) and a", "f(x=x) and a", []),
        ("if a and b: f(x)", "if a and not b: f(x)", []),
        ("f(x) if a else g(x)", "# A comment.\nf(x) if a else g(x)", []),
    ],
)
def test_calls_that_need_not_be_executed_with_their_statement_are_found(
    before: str, after: str, lines: list[int]
) -> None:
    assert changed_parts(before, after) == lines
