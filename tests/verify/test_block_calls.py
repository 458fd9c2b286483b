"""Where a call is written, as far as the interpreter knows it."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def test_where_the_interpreter_knows_only_the_first_line_of_a_call_that_is_its_place() -> None:
    from gclint.verify.worker.examination.block_calls import _span

    # As in Python 3.10.
    code: Any = SimpleNamespace(co_code=b"")
    frame: Any = SimpleNamespace(f_lasti=4, f_lineno=7)
    assert _span(code, frame) == (7, 7, ())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows only the first line")
def test_a_call_on_several_lines_has_all_of_them() -> None:
    from gclint.verify.worker.examination.block_calls import _span

    frame = inspect.currentframe()
    assert frame is not None
    start = frame.f_lineno
    found = _span(
        frame.f_code,
        frame,
    )
    assert found == (start + 1, start + 4, (12, 5))


_MODULE = """\
import torch


class ToyLayer(torch.nn.Module):
    def forward(self, hidden_states):
        return hidden_states


class ToyOther(torch.nn.Module):
    pass
"""


def test_class_is_where_the_text_that_was_imported_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gclint.verify.worker.examination.block_calls import definition, source_lines
    from gclint.verify.worker.protocol import SourcePlace

    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "modeling_placed.py"
    path.write_text(_MODULE, encoding="utf-8")
    module = importlib.import_module("modeling_placed")
    try:
        assert source_lines(str(path)) == _MODULE.splitlines(keepends=True)
        assert definition(module.ToyLayer) == SourcePlace(str(path), 4, 6)
        assert definition(module.ToyOther) == SourcePlace(str(path), 9, 10)
    finally:
        del sys.modules["modeling_placed"]
