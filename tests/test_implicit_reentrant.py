"""Where `use_reentrant` can be passed: to what is surely torch's function, behind its other arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.edit.edits import edited
from gclint.finding import Fix, Refusal
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings

_IMPORT = "from torch.utils.checkpoint import checkpoint\n"
_PLAIN = "\n\ndef plain(function, *args):\n    return function(*args)\n"
_PASSED = ", use_reentrant=True"


def _remedy(folder: Path, text: str) -> tuple[Fix | Refusal | None, str]:
    """Return the remedy of the only finding, and the text after it."""
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    compile(text, path, "exec", dont_inherit=True)
    rules = [rule for rule in all_rules() if "GC404" in rule.codes]
    result = check(Project(Settings(), [path]), rules)
    (finding,) = result.findings
    after = edited(text, finding.edits)
    compile(after, path, "exec", dont_inherit=True)
    return finding.remedy, after


_OF_CLASS = """
class Net:
    kind = checkpoint

    def __init__(self, run=checkpoint):
        self.run = run

    def go(self, net, x):
        {}


Net().go(1, 2)
"""
_INSIDE = """
def make(call):
    def run(net, x):
        return {}(net, x)

    return run


make(checkpoint)(1, 2)
"""
_TEXT = "\n\ndef run(net, x):\n    return checkpoint(net, x)\n\n\n{}()['checkpoint'] = plain\n"
_PATH = """
import torch


def run(net, x, {}=torch):
    return torch.utils.checkpoint.checkpoint(net, x)


run(1, 2)
"""
_CALLED = {
    "a parameter": (
        "def run(net, x, call):\n    return call(net, x)\n\n\nrun(1, 2, checkpoint)\n",
        "def run(net, x, call):\n    return checkpoint(net, x)\n\n\nrun(1, 2, checkpoint)\n",
    ),
    "a parameter with a default": (
        "def run(net, x, call=checkpoint):\n    return call(net, x)\n\n\nrun(1, 2)\n",
        "def run(net, x, call=checkpoint):\n    return checkpoint(net, x)\n\n\nrun(1, 2)\n",
    ),
    "an attribute": (
        _OF_CLASS.format("return self.run(net, x)"),
        _OF_CLASS.format("return checkpoint(net, x)"),
    ),
    "a variable for an attribute": (
        _OF_CLASS.format("run = self.run\n        return run(net, x)"),
        _OF_CLASS.format("run = checkpoint\n        return run(net, x)"),
    ),
    "a parameter of an outer function": (_INSIDE.format("call"), _INSIDE.format("checkpoint")),
    "a name that a text gives": (_TEXT.format("globals"), _TEXT.format("table")),
    "a parameter with the name of a package": (_PATH.format("torch"), _PATH.format("other")),
}


@pytest.mark.parametrize("name", _CALLED)
def test_the_argument_is_passed_to_nothing_else(name: str, tmp_path: Path) -> None:
    other, torchs = (f"{_IMPORT}{_PLAIN}\n\n{each}" for each in _CALLED[name])
    remedy, after = _remedy(tmp_path, other)
    assert isinstance(remedy, Refusal)
    assert "something else" in remedy.reason
    assert after == other
    assert _remedy(tmp_path, torchs)[1].count(_PASSED) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("checkpoint(net, x)", f"checkpoint(net, x{_PASSED})"),
        ("checkpoint(net, x, )", f"checkpoint(net, x{_PASSED}, )"),
        ("checkpoint(\n    net,\n    x,  # input\n)", f"checkpoint(\n    net,\n    x{_PASSED},  # input\n)"),
        ("checkpoint(net, x  # )\n)", f"checkpoint(net, x{_PASSED}  # )\n)"),
        ("checkpoint(net, (x))", f"checkpoint(net, (x){_PASSED})"),
        ("checkpoint(net, ((x) ), )", f"checkpoint(net, ((x) ){_PASSED}, )"),
        ("checkpoint(net, *(x))", f"checkpoint(net, *(x){_PASSED})"),
        ("checkpoint(net, preserve_rng_state=(x))", f"checkpoint(net, preserve_rng_state=(x){_PASSED})"),
        ("checkpoint(net, \\\n    x \\\n)", f"checkpoint(net, \\\n    x{_PASSED} \\\n)"),
        ("checkpoint(y for y in x)", "checkpoint(y for y in x)"),
        ("checkpoint()", "checkpoint()"),
    ],
)
def test_the_argument_stands_behind_the_others(before: str, after: str, tmp_path: Path) -> None:
    around = f"{_IMPORT}\n\ndef run(net, x):\n    return {{}}\n"
    assert _remedy(tmp_path, around.format(before))[1] == around.format(after)


def test_a_name_of_an_import_may_be_something_else_elsewhere(tmp_path: Path) -> None:
    elsewhere = f"{_IMPORT}\n\ndef load(torch):\n    checkpoint = torch.load('a')\n    return checkpoint\n"
    text = f"{elsewhere}\n\ndef run(net, x):\n    return checkpoint(net, x)\n"
    assert _remedy(tmp_path, text)[1].count(_PASSED) == 1
    with_global = text.replace("checkpoint = torch", "global checkpoint\n    checkpoint = torch")
    path = tmp_path / "train.py"
    path.write_text(with_global, encoding="utf-8")
    rules = [rule for rule in all_rules() if "GC404" in rule.codes]
    assert not [each for each in check(Project(Settings(), [path]), rules).findings if each.fix]
