"""When the two sides of a legacy branch are the same code, and when they are not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Finding, Refusal
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.toy_models import IMPORTS, LAYERS, model


def _finding(folder: Path, checkpointed: str, plain: str) -> Finding:
    """Return what GC001 finds in a model whose loop holds such a branch."""
    sides = (textwrap.indent(side, " " * 8) for side in (checkpointed, plain))
    condition = "if self.gradient_checkpointing and self.training:"
    loop = "for layer in self.layers:\n    {}\n{}\n    else:\n{}".format(condition, *sides)
    path = folder / "modeling_toy.py"
    text = f"{IMPORTS}from torch.utils.checkpoint import checkpoint\n{LAYERS}\n\n{model(loop=loop)}"
    path.write_text(text, encoding="utf-8")
    rules = [rule for rule in all_rules() if "GC001" in rule.codes]
    (finding,) = check(Project(Settings(), [path]), rules).findings
    return finding


def _calls(one: str, other: str) -> tuple[str, str]:
    return (
        f"hidden_states = checkpoint(layer.__call__, hidden_states, {one})",
        f"hidden_states = layer(hidden_states, {other})",
    )


_ALIKE = [
    ("mask", "mask"),
    ("mask", "(mask)"),
    ("mask+1", "mask + 1"),
    ("mask + 1", "(  # one\n    mask  # two\n    + 1\n)"),
    ("mask + 1", "mask \\\n + 1"),
    ("'# b' 'c'", "('# b'  # why\n    'c')"),
    ("f(mask, 1)", "f(\n    mask,\n    1,  # one\n)"),
    ("f'{mask }'", "f'{mask}'"),
    ("rf'{mask}'", 'f"{mask}"'),
    ("mask[1:]", "mask[ 1: ]"),
]
_DIFFERENT = [
    ('"#local"', '"#global"'),
    ("'a  b'", "'a b'"),
    ("'a, )'", "'a)'"),
    ("'( a'", "'(a'"),
    ("'a'", "b'a'"),
    ("'it\"s'", "'it\"z'"),
    ("'a' '# b'", "'a' '# c'"),
    ("f'{mask }!'", "f'{mask} !'"),
    ("f'{mask = }'", "f'{mask=}'"),
    ("f'{mask!r}'", "f'{mask!s}'"),
    (r"rf'{mask}\n'", r"f'{mask}\n'"),
    ("f'{mask}  #1'", "f'{mask}  #2'"),
    ("(mask,)", "(mask)"),
    ("mask[1:]", "mask[:1]"),
    ("f(*mask)", "f(mask)"),
    ("f(**mask)", "f(*mask)"),
]


@pytest.mark.parametrize(("one", "other"), _ALIKE)
def test_layout_of_what_is_passed_makes_no_difference(one: str, other: str, tmp_path: Path) -> None:
    assert _finding(tmp_path, *_calls(one, other)).fix is not None


@pytest.mark.parametrize(("one", "other"), _DIFFERENT)
def test_everything_else_that_is_passed_does(one: str, other: str, tmp_path: Path) -> None:
    finding = _finding(tmp_path, *_calls(one, other))
    words = f"`mask` gets `{one}` in the checkpointed call, but `{other}` in the plain one"
    assert isinstance(finding.remedy, Refusal)
    assert words.replace("`(mask)`", "`mask`") in finding.remedy.reason


@pytest.mark.parametrize(("one", "other"), _ALIKE)
def test_layout_of_other_statements_makes_no_difference(one: str, other: str, tmp_path: Path) -> None:
    sides = zip(_calls("mask", "mask"), (one, other), strict=True)
    assert _finding(tmp_path, *(f"{call}\nmask = {value}" for call, value in sides)).fix is not None


@pytest.mark.parametrize(("one", "other"), _DIFFERENT)
def test_everything_else_in_other_statements_does(one: str, other: str, tmp_path: Path) -> None:
    sides = zip(_calls("mask", "mask"), (one, other), strict=True)
    finding = _finding(tmp_path, *(f"{call}\nmask = {value}" for call, value in sides))
    assert isinstance(finding.remedy, Refusal)
    assert "its two sides differ: `" in finding.remedy.reason
