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


def test_where_there_is_no_text_anything_may_be_defined(write: Write) -> None:
    module = write(_UNKNOWN)
    module.__file__ = f"{module.__file__}.gone"
    assert _reason(module) is None


@pytest.mark.parametrize(("is_imported", "is_own"), [(True, False), (False, True)])
def test_what_is_imported_says_what_is_defined_and_not_what_lies_on_the_disk(
    write: Write, is_imported: bool, is_own: bool
) -> None:
    defining = f"{_UNKNOWN}\n\ndef unused(helper):\n    pass\n"
    on_disk, imported = (_UNKNOWN, defining) if is_imported else (defining, _UNKNOWN)
    assert (_reason(write(on_disk, imported=imported)) is not None) is is_own


_BASE = """
import torch
from transformers import PretrainedConfig

class ToyConfig(PretrainedConfig):
    pass

class ToyModel:
    def part(self, states, *, scale=1):
        return states

    def forward(self):
        states, options = (1,), {{"size": 2}}
        {body}
"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("self.part(1, 2)", "this call passes all its arguments explicitly"),
        ("self.part(1, size=2)", "this call passes `size` explicitly"),
        # The configuration and the inputs may fill what is unpacked.
        ("self.part(2, *states)", None),
        ("self.part(1, **options)", None),
        ("self.part(**{'scale': 3})", None),
        ("self.part(1, scale=3, **options)", None),
        # Nothing counts arguments here.
        ("self.part(1 + '')", None),
        ("self.part(1) + ''", None),
        # The name of what is called is nowhere in the file.
        ("getattr(torch.nn, 'Iden' + 'tity')()(1, 2)", None),
        ("torch.nn.Identity()(1, 2)", "this call passes all its arguments explicitly"),
        ("self.missing", "no code sets an attribute `missing` on `ToyModel`"),
        ("self.scale", None),
        ("torch.missing", None),
        # That of a checkpoint may have it.
        ("ToyConfig().frobnicated", None),
        ("torch.nn.Identity().missing", None),
        ("missing = missing(1)", "every attempt failed on this line"),
        ("missing()", "`missing` is not defined in this file"),
        ("scale()", None),
        ("print(missing)", "`missing` is not defined in this file"),
        ("from torch import missing", "the installed library has no such name"),
        ("import missing", None),
        ("raise ImportError('missing', name='missing')", None),
        ("raise ModuleNotFoundError('missing', name='torch')", None),
        ("raise ValueError('missing')", None),
    ],
)
def test_only_what_the_code_shows_is_its_own_error(write: Write, body: str, reason: str | None) -> None:
    assert _reason(write(_BASE.format(body=body))) == reason


@pytest.mark.parametrize(
    "binding",
    [
        "helper = None",
        "model.helper = None",
        "def helper(): pass",
        "class helper: pass",
        "lambda helper: None",
        "dict(helper=None)",
        "import helper",
        "import helper.part",
        "from torch import part as helper",
        "from torch import *",
        "setattr(model, 'helper', None)",
        "'the helper of others'",
        "try: pass\nexcept ValueError as helper: pass",
        "match 1:\n    case helper: pass",
        "match []:\n    case [*helper]: pass",
    ],
)
def test_a_name_that_a_file_binds_anywhere_may_be_there(write: Write, binding: str) -> None:
    never = "\n".join(f"    {line}" for line in binding.splitlines())
    is_star = "*" in binding.partition("import")[2]
    text = f"{binding}\n{_UNKNOWN}" if is_star else f"{_UNKNOWN}\n\nif False:\n{never}\n"
    assert _reason(write(text)) is None


def test_a_name_may_be_set_in_the_file_of_a_base(write: Write) -> None:
    base = write("class Base:\n    def other(self):\n        self.factor = 1\n", "toys.modeling_base")
    text = "import sys\n\nclass ToyModel(sys.modules['toys.modeling_base'].Base):\n    def forward(self):\n"
    assert base.Base
    assert _reason(write(f"{text}        return self.factor\n")) is None
    found = _reason(write(f"{text}        return self.missing\n", "toys.modeling_again"))
    assert found == "no code sets an attribute `missing` on `ToyModel`"


def test_a_local_variable_may_be_there_if_another_attempt_fails_elsewhere(write: Write) -> None:
    module = write(_BASE.format(body="missing = missing(1)\n        states[9]"))

    def error(run: Callable[[], Any]) -> Exception:
        with pytest.raises(Exception) as caught:
            run()
        return caught.value

    model = module.ToyModel()
    same, other = [error(model.forward), error(model.forward)], error(lambda: model.part())
    assert own_error(same, module.ToyModel) is not None
    assert own_error([*same, ValueError("no shape")], module.ToyModel) is None
    assert own_error([*same, other], module.ToyModel) is None
