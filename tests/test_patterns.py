"""Nothing takes for ever: every pattern is linear, and so is a run over a file that goes on and on."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.environment import PROJECT
from tests.patterns import Used, all_patterns, too_slow

_SECONDS = 20
"""Of CPU time for a run; one that is linear needs one or two."""
_MANY = 8000
_HEAD = "import torch\nfrom torch import nn\nfrom transformers import PreTrainedModel\n\n\n"
_MODEL = """\
class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 4)

    def forward(self, hidden_states):
        return hidden_states


class Model(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([Layer(config) for _ in range(3)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
_LOOP = _MODEL[_MODEL.index("        for layer") : _MODEL.index("            hidden_states = layer")]
_LOOP += "            hidden_states = layer(hidden_states)\n"
_CALL = _LOOP[_LOOP.rindex("            hidden_states") :]
_STACK = "        self.layers = nn.ModuleList([Layer(config) for _ in range(3)])\n"


def _repeated(line: str, count: int = _MANY) -> str:
    return "".join(line.format(number, number + 1) for number in range(count))


_TEXTS: dict[str, Callable[[], str]] = {
    "inner functions": lambda: "def f():\n" + _repeated("    def g{}():\n        pass\n") + _MODEL,
    "inner classes": lambda: "class C:\n" + _repeated("    class I{}:\n        pass\n", 2000) + _MODEL,
    "classes": lambda: _MODEL + _repeated("class C{}(nn.Module):\n    pass\n"),
    "a long line of bases": lambda: (
        "class C0(nn.Module):\n    pass\n" + _repeated("class C{1}(C{0}):\n    pass\n", 2000) + _MODEL
    ),
    "methods": lambda: _MODEL + _repeated("    def m{}(self):\n        pass\n"),
    "loops": lambda: _MODEL.replace(_LOOP, _LOOP * 400),
    "calls in one loop": lambda: _MODEL.replace(_CALL, _CALL * 2000),
    "stacks": lambda: _MODEL.replace(_STACK, _STACK + _repeated(_STACK.replace("layers", "s{}"), 400)),
    "attributes": lambda: _MODEL.replace(_STACK, _STACK + _repeated("        self.a{} = nn.Linear(4, 4)\n")),
    "statements": lambda: _MODEL.replace(_LOOP, _repeated("        x{} = hidden_states\n") + _LOOP),
    "imports": lambda: _repeated("from a{} import b{}\n") + _MODEL,
    "decorators": lambda: "@decorator\n" * 50_000 + _MODEL,
    "comments": lambda: "# a comment\n" * 100_000 + _MODEL,
    "a long line": lambda: "x = [" + "self.a, " * 15_000 + "]\n" + _MODEL,
    "copies of copies": lambda: (
        "# Copied from transformers.models.a.modeling_a.A with " + "A->AA," * 50 + "\n" + _MODEL
    ),
    "comments about copies": lambda: (
        "# Copied from transformers.models.a.modeling_a.A with (A+)+$->B\n" * _MANY + _MODEL
    ),
    "one comment about copies": lambda: "# " + "Copied from transformers. " * 5000 + "\n" + _MODEL,
    "suppressions": lambda: _MODEL + "x = 1  # gclint: ignore[GC001]\n" * 4000,
    "a ruler in a header": lambda: _MODEL.replace(
        "class Layer(nn.Module):", "class Layer(  # " + "-" * 5000 + "\n    a(b(c(d(nn.Module)))),\n):"
    ),
    "many rulers in a header": lambda: _MODEL.replace(
        "class Layer(nn.Module):", "class Layer(\n" + f"    # {'=' * 76}\n" * 1000 + "    nn.Module,\n):"
    ),
}


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))


_QUICK = ("inner functions", "classes", "a ruler in a header")


@pytest.mark.parametrize(
    "name", [*_QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in _TEXTS if name not in _QUICK)]
)
def test_a_file_that_goes_on_and_on_is_checked_in_time(tmp_path: Path, name: str) -> None:
    path = tmp_path / "modeling_x.py"
    path.write_text(_HEAD + _TEXTS[name](), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "gclint", "--diff", "--unsafe-fixes", path],
        cwd=PROJECT,
        capture_output=True,
        preexec_fn=_limit,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr


def test_all_patterns_are_found() -> None:
    patterns = {used.pattern for used in all_patterns()}
    assert len(patterns) > 150
    assert r"\bModuleList\b|\bSequential\(\s*\*" in patterns
    # Made of others, and of a name.
    assert any("(?P<string>" in pattern and "(?P<join>" in pattern for pattern in patterns)
    assert r"auto|cpu|cuda(:\d+)?" in patterns


@pytest.mark.parametrize(
    ("pattern", "method"),
    [(r"\s*x", "search"), (r"(.*,)*\]", "match")],
)
def test_a_pattern_that_is_not_linear_is_noticed(pattern: str, method: str) -> None:
    # These take minutes.
    assert too_slow(Used("here", pattern, 0, frozenset((method,))), seconds=0) is not None


# What is quadratic shows on long texts only.
@pytest.mark.slow
def test_every_pattern_is_linear() -> None:
    slow = {used.place: found for used in all_patterns() for found in [too_slow(used)] if found}
    assert slow == {}
