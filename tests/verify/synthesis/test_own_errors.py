"""Errors of a model itself are told from those that other configurations and inputs may avoid."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("transformers")

from gclint.verify.worker.synthesis.attempts.own import own_error  # noqa: E402

Write = Callable[..., ModuleType]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module, and imports another text in its place if there is one."""

    def write(text: str, name: str = "toys.modeling_toy", imported: str = "") -> ModuleType:
        path = tmp_path / f"{name}.py"
        path.write_text(dedent(text), encoding="utf-8")
        text = dedent(imported or text)
        monkeypatch.setitem(linecache.cache, str(path), (len(text), None, text.splitlines(True), str(path)))
        module = ModuleType(name)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, path, "exec"), vars(module))
        return module

    return write


_UNKNOWN = """
class ToyModel:
    def forward(self):
        return helper(self)
"""


def _reason(module: ModuleType, run: Callable[[], Any] | None = None) -> str | None:
    """Return why an error cannot be avoided, which the model of a module raises."""
    with pytest.raises(Exception) as caught:
        (run or module.ToyModel().forward)()
    found = own_error([caught.value], module.ToyModel)
    return found.reason if found else None


@pytest.mark.parametrize("name", ["toys.modeling_toy", "modeling_toy", "toys.deep.modeling_toy"])
def test_a_name_that_a_file_does_not_define_is_its_own_error(write: Write, name: str) -> None:
    assert _reason(write(_UNKNOWN, name)) == "`helper` is not defined in this file"


@pytest.mark.parametrize(
    ("name", "is_own"), [("toys", True), ("toys.layers", True), ("toysmith", False), ("other", False)]
)
def test_what_lies_in_the_package_of_the_model_is_its_own_too(write: Write, name: str, is_own: bool) -> None:
    module, beside = write("class ToyModel:\n    pass\n"), write(_UNKNOWN, name)
    assert (_reason(module, beside.ToyModel().forward) is not None) is is_own


def test_a_name_that_an_error_does_not_give_is_not_known(write: Write) -> None:
    text = _UNKNOWN.replace("return helper(self)", 'raise NameError("no such layer")')
    assert _reason(write(text)) is None


@pytest.mark.parametrize(("is_imported", "is_own"), [(True, False), (False, True)])
def test_what_is_imported_says_what_is_defined_and_not_what_lies_on_the_disk(
    write: Write, is_imported: bool, is_own: bool
) -> None:
    defining = f"{_UNKNOWN}\n\ndef unused(helper):\n    pass\n"
    on_disk, imported = (_UNKNOWN, defining) if is_imported else (defining, _UNKNOWN)
    assert (_reason(write(on_disk, imported=imported)) is not None) is is_own
