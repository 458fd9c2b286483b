"""Which errors of a model are its own, so that no other inputs would help."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import nn  # noqa: E402

from gclint.verify.worker.synthesis.attempts.own import own_error  # noqa: E402
from gclint.verify.worker.tiny_model import BrokenModel  # noqa: E402


class _Inner(nn.Module):  # type: ignore[misc]
    def forward(self, states: Any, mask: Any) -> Any:
        return states * mask


class _Model(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = _Inner()
        # Chosen by the configuration: its name is nowhere in this file.
        self.chosen = getattr(torch.nn, "Lin" + "ear")(2, 2)

    def lacks(self, states: Any, **kwargs: Any) -> Any:
        return self.inner(states)

    def has_more(self, states: Any, **kwargs: Any) -> Any:
        return self.inner(states, states, states)

    def passes_on(self, states: Any, **kwargs: Any) -> Any:
        return self.inner(states, **kwargs)

    def unpacks(self, *states: Any, **kwargs: Any) -> Any:
        return self.inner(*states)

    def names(self, states: Any, **kwargs: Any) -> Any:
        return self.inner(states, states, size=2)

    def unpacks_names(self, states: Any, **kwargs: Any) -> Any:
        return self.inner(states, states, **{"size": 2})

    def calls_another(self, states: Any, **kwargs: Any) -> Any:
        return self.inner(states, self.with_all(**kwargs), states)

    def with_all(self, **kwargs: Any) -> Any:
        return 1.0

    def calls_chosen(self, states: Any, **kwargs: Any) -> Any:
        return self.chosen(states, 2)

    def has_too_many(self, states: Any, **kwargs: Any) -> Any:
        return self.scaled(states, 1.0, 2.0)  # type: ignore[call-arg]

    def scaled(self, states: Any, by: float = 1.0) -> Any:
        return states * by

    def is_given_a_word(self, states: Any, **kwargs: Any) -> Any:
        return torch.add(states, "word")

    def indexes(self, states: Any, **kwargs: Any) -> Any:
        return self[0]  # type: ignore[call-arg]

    def __getitem__(self, index: int, other: int) -> Any:
        return index + other

    def adds(self, states: Any, **kwargs: Any) -> Any:
        return states + None


def _error(method: str, *arguments: Any, **keywords: Any) -> Exception:
    with pytest.raises((TypeError, UnboundLocalError)) as caught:
        getattr(_Model(), method)(*(arguments or (torch.ones(2),)), **keywords)
    return caught.value


_ALL, _NAMED = "passes all its arguments explicitly", "passes `size` explicitly"


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("lacks", _ALL),
        ("has_more", _ALL),
        ("has_too_many", _ALL),
        ("names", _NAMED),
        # The inputs decide what is passed.
        ("passes_on", None),
        ("unpacks", None),
        ("unpacks_names", None),
        # One of the calls on the line may be the one that failed.
        ("calls_another", None),
        # Another configuration chooses another class.
        ("calls_chosen", None),
        # Nothing about how many arguments there are, or no call.
        ("is_given_a_word", None),
        ("indexes", None),
        ("adds", None),
    ],
)
def test_a_call_that_never_works_is_the_models_own_error(method: str, reason: str | None) -> None:
    found = own_error([_error(method)], _Model)
    assert (None if found is None else found.reason) == (reason and f"this call {reason}")


def test_one_error_of_its_own_is_enough_and_the_line_is_named() -> None:
    found = own_error([_error("passes_on"), _error("adds"), _error("lacks")], _Model)
    assert isinstance(found, BrokenModel)
    assert str(found).startswith("TypeError: _Inner.forward() missing 1 required positional argument: 'mask'")
    assert found.place.path == __file__
    line = _Model.lacks.__code__.co_firstlineno + 1
    assert (found.place.line, found.place.end_line) == (line, line)
