"""Each hint is needed: ``fixtures/verify/hints`` has a model that runs with it, and does not without it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gclint.verify.worker.synthesis.hints import table  # noqa: E402
from gclint.verify.worker.synthesis.hints.failure import is_tensor  # noqa: E402
from gclint.verify.worker.tiny_model import NotSynthesisable  # noqa: E402
from tests.verify.planted import FOLDER  # noqa: E402
from tests.verify.synthesis.one_layer import first  # noqa: E402

_PACKAGE = "hints"


@pytest.fixture(autouse=True, scope="module")
def _hints() -> Iterator[None]:
    """Let the package of models be imported for a while."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]


def _model(hint: table.Hint) -> Any:
    """Return the model that a hint is needed for, which is called like it."""
    module = import_module(f"{_PACKAGE}.{hint.__module__.rpartition('.')[2]}")
    start = "".join(word.capitalize() for word in hint.__name__.split("_"))
    (found,) = [
        each
        for name, each in inspect.getmembers(module, inspect.isclass)
        if each.__module__ == module.__name__ and re.match(f"{start}(?![a-z])", name)
        if not name.endswith("Config")
    ]
    return found


def _name_of(hint: table.Hint) -> str:
    return f"{hint.__module__.rpartition('.')[2]}.{hint.__name__}"


@pytest.mark.parametrize("hint", table.HINTS, ids=_name_of)
def test_a_model_runs_with_a_hint_and_not_without(hint: table.Hint, monkeypatch: pytest.MonkeyPatch) -> None:
    model_class = _model(hint)
    first(model_class)
    others = tuple(each for each in table.HINTS if each is not hint)
    monkeypatch.setattr(table, "HINTS", others)
    with pytest.raises(NotSynthesisable):
        first(model_class)


def test_neither_a_type_of_numbers_nor_a_size_is_taken_for_a_tensor() -> None:
    assert is_tensor(torch.zeros(2))
    assert not any(map(is_tensor, (torch.float32, torch.Size([2]), torch, torch.Tensor, None)))
