"""What is found, and what becomes of it, does not hang on how Python code is written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gclint.engine.check import check
from gclint.engine.fix import fix
from gclint.rule import all_rules
from gclint.source.tokens import code_tokens
from tests.dresses import DRESSES
from tests.harness import Fixture, Workplace, load_fixtures

_FIXTURES = load_fixtures()


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("fixture", _FIXTURES, ids=lambda fixture: fixture.name)
def test_dress_changes_nothing(fixture: Fixture, dress: str, tmp_path: Path) -> None:
    dressed = _dressed(fixture.before, dress)
    if dressed == fixture.before:
        return
    place = Workplace.of({name: text.encode() for name, text in dressed.items()}, tmp_path)
    result = check(place.project, all_rules())
    assert result.problems == ()
    found = sorted(
        (place.name(each.path), each.code, each.fix.applicability.value if each.fix else "no fix")
        for each in result.findings
    )
    assert found == sorted((each.path, each.code, each.kind) for each in fixture.expectations)
    for unsafe, after in (False, fixture.fixed), (True, fixture.unsafe):
        place = Workplace.of({name: text.encode() for name, text in dressed.items()}, tmp_path)
        assert fix(place.project, all_rules(), unsafe=unsafe).problems == ()
        expected = _dressed(after, dress)
        for path in place.paths:
            made = place.project.file(path).text
            assert _code(made) == _code(expected[place.name(path)]), made


def _dressed(texts: object, dress: str) -> dict[str, str]:
    assert isinstance(texts, dict)
    return {name: DRESSES[dress](text) if name.endswith(".py") else text for name, text in texts.items()}


def _code(text: str) -> object:
    """Return what a text says; its tokens where the running Python is too old for it."""
    try:
        return ast.dump(ast.parse(text.replace("\r", "\n")), indent=1)
    except SyntaxError:
        return code_tokens(text)
