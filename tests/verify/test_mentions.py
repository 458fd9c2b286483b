"""How near to a line something is read: what is only written to is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.verify.worker.protocol import SourcePlace

pytestmark = pytest.mark.torch

_CODE = """
def helper(states):
    return states * further()

def further():
    return scale

def other():
    return elsewhere

def forward(self, states):
    log.append(states)
    self.kept.seen = states
    self.table[first] = 1  # comment
    total += 1
    near = getattr(self, "_hidden", 0)
    return helper(states) * self.read
"""


@pytest.mark.parametrize(
    ("word", "nearness"),
    [
        ("read", "ON_LINE"),
        ("_hidden", "IN_FUNCTION"),
        ("first", "IN_FUNCTION"),
        ("scale", "IN_CALLED"),
        ("elsewhere", "ELSEWHERE"),
        ("log", "ELSEWHERE"),
        ("kept", "ELSEWHERE"),
        ("seen", "ELSEWHERE"),
        ("table", "ELSEWHERE"),
        ("total", "ELSEWHERE"),
        ("comment", "ELSEWHERE"),
    ],
)
def test_what_is_read_is_found_as_near_as_it_is(tmp_path: Path, word: str, nearness: str) -> None:
    from gclint.verify.worker.examination.explaining import mentions

    file = tmp_path / "modeling_toy.py"
    file.write_text(_CODE, encoding="utf-8")
    last = len(_CODE.splitlines())
    assert mentions.nearness((word,), (SourcePlace(str(file), last, last),)) == getattr(mentions, nearness)


def test_a_function_of_another_file_is_followed(tmp_path: Path) -> None:
    from gclint.verify.worker.examination.explaining.mentions import ELSEWHERE, IN_CALLED, nearness

    file, beside = tmp_path / "modeling_toy.py", tmp_path / "helpers.py"
    file.write_text("def forward(self, states):\n    return scaled(states)\n", encoding="utf-8")
    beside.write_text("def scaled(states):\n    return states * count\n", encoding="utf-8")
    stack = (SourcePlace(str(file), 2, 2),)
    assert nearness(("count",), stack, str(beside)) == IN_CALLED
    assert nearness(("count",), stack) == ELSEWHERE


_DECIDED = """
def forward(self, states):
    is_long = states.shape[1] > 9
    if self.training:
        if is_long:
            states = checkpoint(self.layer, states)
        else:
            states = self.layer(states)
    try:
        states = self.fast(states)
    except ValueError:
        states = self.slow(states)
    except Exception:
        states = self.slow(states)
    return self.norm(states)
"""


def _decided(tmp_path: Path, number: int) -> SourcePlace:
    path = tmp_path / "modeling_toy.py"
    path.write_text(_DECIDED, encoding="utf-8")
    return SourcePlace(str(path), number, number)


@pytest.mark.parametrize(
    ("number", "condition"),
    [(6, "states.shape[1] > 9"), (8, "states.shape[1] > 9"), (5, "self.training"), (15, "")],
)
def test_what_decides_about_a_line_is_the_innermost_condition(
    tmp_path: Path, number: int, condition: str
) -> None:
    from gclint.verify.worker.examination.explaining.mentions import condition_of

    assert condition_of(_decided(tmp_path, number)) == condition


def test_only_handlers_of_any_exception_catch_one_of_torch(tmp_path: Path) -> None:
    from gclint.verify.worker.examination.explaining.mentions import handler_of

    handler = handler_of(_decided(tmp_path, 10))
    assert handler is not None
    assert handler.line == 13
    assert handler_of(_decided(tmp_path, 15)) is None


def test_what_a_line_calls_has_a_name_only_if_it_is_called_there(tmp_path: Path) -> None:
    from gclint.verify.worker.examination.explaining.mentions import called_at

    assert called_at(_decided(tmp_path, 6)) == {"checkpoint"}
    assert called_at(_decided(tmp_path, 8)) == {"layer"}
