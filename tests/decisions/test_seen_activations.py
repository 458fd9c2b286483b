"""What runs have seen to require grad at a call, where the code does not show it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability
from gclint.observations import Observations, Observed
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from gclint.verify.worker.cause import Cause
from tests.decisions.toy import STACK, block, call, model, toy

_LAYER = "GC001"


def _fixes(
    folder: Path, text: str, kind: str = "ToyLayer", **seen: Any
) -> dict[tuple[str, str], Applicability | None]:
    """Return the fixes by their rules and symbols where a run has seen the call in a loop."""
    path = folder / "modeling_toy.py"
    path.write_text(text)
    row = 1 + text[: text.index("= layer(")].count("\n")
    project = Project(Settings(root=folder), [path])
    project.observe(Observations([Observed(path, row, row, kind, path, **seen)]))
    findings = check(project, all_rules()).findings
    return {(each.code, each.symbol): each.fix.applicability if each.fix else None for each in findings}


@pytest.mark.parametrize("name", ["memory", "past_key_values"])
@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("is_left_out", [True, False])
def test_what_blocks_share_will_lose_its_gradient_once_they_are_recomputed(
    tmp_path: Path, name: str, is_shared: bool, is_left_out: bool
) -> None:
    loop = f"for layer in self.layers:\n    hidden_states = layer(hidden_states, {name}={name})"
    takes = f"hidden_states, {name}=None"
    text = toy(block(takes=takes), model(loop, takes=takes))
    own = frozenset((name,))
    shared = own if is_shared else frozenset()
    fixes = _fixes(tmp_path, text, is_left_out=is_left_out, keywords=own, shared=shared)
    # A cache is dropped on purpose.
    if is_shared and is_left_out and name == "memory":
        assert fixes == {(_LAYER, "ToyLayer"): Applicability.PROVABLE}
    else:
        assert fixes == {(_LAYER, "ToyLayer"): Applicability.SAFE}


@pytest.mark.parametrize(
    ("causes", "codes"), [({Cause.CONTAINED_ACTIVATION}, {("GC103", "ToyLayer")}), ((), set())]
)
def test_what_is_passed_as_a_mask_may_be_a_container(
    tmp_path: Path, causes: Iterable[Cause], codes: set[tuple[str, str]]
) -> None:
    text = call("hidden_states, mask=mask")
    fixes = _fixes(tmp_path, text, causes=frozenset(causes), containers=frozenset(("mask",)))
    assert fixes.keys() == codes


def test_what_a_run_saw_of_one_kind_of_block_says_nothing_about_another(tmp_path: Path) -> None:
    takes, memory = "hidden_states, memory=None", frozenset(("memory",))
    loop = "for layer in self.layers:\n    hidden_states = layer(hidden_states, memory=memory)"
    init = f"{STACK}\nself.layers.append(ToyOther(config))"
    text = toy(block(takes=takes), block(name="ToyOther", takes=takes), model(loop, takes=takes, init=init))
    fixes = _fixes(tmp_path, text, "ToyOther", is_left_out=True, keywords=memory, shared=memory)
    assert fixes[_LAYER, "ToyLayer"] is Applicability.SAFE
    assert fixes[_LAYER, "ToyOther"] is Applicability.PROVABLE


@pytest.mark.parametrize(
    ("is_seen", "applicability"), [(True, Applicability.PROVABLE), (False, Applicability.SAFE)]
)
def test_what_was_seen_at_a_call_in_another_file_is_evidence_here(
    tmp_path: Path, is_seen: bool, applicability: Applicability
) -> None:
    takes, memory = "hidden_states, memory=None", frozenset(("memory",))
    loop = "for layer in self.layers:\n    hidden_states = layer(hidden_states, memory=memory)"
    user = toy(
        model(loop, takes=takes, name="OtherModel", supports="False"),
        imports="from modeling_toy import ToyLayer\n",
    )
    paths = [tmp_path / "modeling_toy.py", tmp_path / "modeling_user.py"]
    for path, text in zip(paths, (toy(block(takes=takes), model()), user), strict=True):
        path.write_text(text)
    project = Project(Settings(root=tmp_path), paths)
    here, there = project.paths
    row = 1 + user[: user.index("= layer(")].count("\n")
    if is_seen:
        facts: dict[str, Any] = {"is_left_out": True, "keywords": memory, "shared": memory}
        project.observe(Observations([Observed(there, row, row, "ToyLayer", here, **facts)]))
    fixes = [each.fix for each in check(project, all_rules()).findings if each.code == _LAYER]
    assert {each.applicability for each in fixes if each} == {applicability}
    # One repair puts the other file's call right as well.
    assert any(each.path == there for fix in fixes if fix for each in fix.repairs)
