"""Which hints there are, and what they see of an error; needs neither torch nor transformers."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from gclint.verify.worker.synthesis import hints
from gclint.verify.worker.synthesis.hints.failure import ForwardError
from gclint.verify.worker.synthesis.hints.table import HINTS

_FOLDER = Path(str(hints.__file__)).parent
_MODULES = sorted({path.stem for path in _FOLDER.glob("*.py")} - {"__init__", "failure", "table"})


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
