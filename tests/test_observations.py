"""What runs saw beside what the text says, with observations made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Evidence, Finding, InheritedDefect
from gclint.observations import Observations, Observed
from gclint.proof.provable import Reached
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.run.fix import fix
from gclint.settings import Settings
from gclint.verify.worker.cause import Cause

_MODEL = """\
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

class XLayer(GradientCheckpointingLayer):
    def forward(self, hidden_states, scale=1.0, first=None, other=None):
        return hidden_states + scale * first

class XModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([XLayer(config) for _ in range(2)])

    def forward(self, hidden_states, made):
        for layer in self.layers:
            hidden_states = layer(hidden_states, first=made["a"], other=made["b"])
        return hidden_states
"""
_CALL = 'layer(hidden_states, first=made["a"], other=made["b"])'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    path = tmp_path / "modeling_x.py"
    path.write_text(_MODEL)
    return Project(Settings(), [path])


def _seen(project: Project, *keywords: str, row: int = 18) -> Observed:
    (path,) = project.paths
    causes = frozenset((Cause.KEYWORD_ACTIVATION,))
    return Observed(
        path,
        row,
        row,
        "XLayer",
        path,
        keywords=frozenset(keywords),
        causes=causes,
        shown=frozenset(("GC003",)),
    )


def _findings(project: Project, *seen: Observed) -> tuple[Finding, ...]:
    project.observe(Observations(seen))
    return check(project, all_rules()).findings


def _fixed(project: Project, *, proves: bool = True, unsafe: bool = False) -> str:
    fix(project, all_rules(), unsafe=unsafe, proves=proves)
    return project.file(project.paths[0]).text


def test_what_lost_its_gradient_is_a_finding(project: Project) -> None:
    assert _findings(project) == ()
    (finding,) = _findings(project, _seen(project, "first"))
    assert (finding.code, finding.evidence) == ("GC003", Evidence.CONFIRMED)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.PROVABLE
    assert finding.fix.reason == "a run showed that `first` requires grad"


def test_nothing_is_wrong_with_what_lost_nothing(project: Project) -> None:
    assert _findings(project, replace(_seen(project, "first"), causes=frozenset())) == ()


def test_all_that_required_grad_moves_together(project: Project) -> None:
    _findings(project, _seen(project, "first", "other"))
    assert 'layer(hidden_states, 1.0, made["a"], made["b"])' in _fixed(project)


def test_what_rests_on_a_run_is_made_by_a_run_that_proves_it_only(project: Project) -> None:
    _findings(project, _seen(project, "first", "other"))
    assert _fixed(project, proves=False, unsafe=True) == _MODEL


def test_of_several_only_those_that_share_a_graph_are_at_fault(project: Project) -> None:
    seen = replace(_seen(project, "first", "other"), shared=frozenset(("other",)))
    (finding,) = _findings(project, seen)
    assert "`other` is passed" in finding.message


def test_what_cannot_be_passed_by_position_is_not_repaired(project: Project) -> None:
    (path,) = project.paths
    project.replace(path, _MODEL.replace("first=None, other", "*, first=None, other"))
    (finding,) = _findings(project, _seen(project, "first"))
    assert finding.fix is None
    assert "`first` can only be passed by keyword" in str(finding.remedy)


def test_what_was_seen_moves_along_with_the_text(project: Project) -> None:
    (path,) = project.paths
    project.observe(Observations([_seen(project, "first")]))
    project.replace(path, _MODEL.replace("class XLayer", "# One.\n# Two.\nclass XLayer"))
    (finding,) = check(project, all_rules()).findings
    assert project.file(path).position(finding.start).row == 20
    project.replace(path, _MODEL)
    (seen,) = project.observations.of(path)
    assert (seen.first, seen.last) == (18, 18)


def test_a_call_that_grows_is_the_same_call(project: Project) -> None:
    (path,) = project.paths
    project.observe(Observations([_seen(project, "first")]))
    lines = 'layer(\n                hidden_states,\n                first=made["a"],\n            )'
    project.replace(path, _MODEL.replace(_CALL, lines))
    (seen,) = project.observations.of(path)
    assert (seen.first, seen.last) == (18, 18)
    assert len(check(project, all_rules()).findings) == 1


_DYNAMIC = (
    _MODEL.replace("XLayer(GradientCheckpointingLayer)", "XLayer(nn.Module)")
    .replace("nn.ModuleList([XLayer(config) for _ in range(2)])", "make(config)")
    .replace(_CALL, "{call}")
)


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        ("layer(hidden_states, first=made)", True),
        ("getattr(self, 'x' + layer)(hidden_states, first=made)", True),
        ("self.norm(layer(hidden_states, first=made))", True),
        ("layer(self.scaled(hidden_states), first=made)", True),
        # Either may be what was seen.
        ("self.norm(layer(hidden_states))", False),
    ],
)
def test_blocks_that_only_a_run_has_seen_are_found(project: Project, call: str, is_found: bool) -> None:
    (path,) = project.paths
    project.replace(path, _DYNAMIC.format(call=call))
    keywords = ("first",) if "first" in call else ()
    seen = replace(_seen(project, *keywords), is_left_out=True, causes=frozenset())
    findings = _findings(project, seen)
    assert [(each.code, each.symbol) for each in findings] == [("GC001", "XLayer")] * is_found
    assert all(each.fix and each.fix.applicability is Applicability.PROVABLE for each in findings)


def test_blocks_that_nobody_saw_left_out_are_not_reported(project: Project) -> None:
    (path,) = project.paths
    project.replace(path, _DYNAMIC.format(call="layer(hidden_states)"))
    assert _findings(project, replace(_seen(project), causes=frozenset())) == ()


def test_what_was_seen_in_files_that_are_gone_says_nothing(project: Project) -> None:
    (path,) = project.paths
    project.replace(path, _DYNAMIC.format(call="layer(hidden_states)"))
    seen = replace(_seen(project), is_left_out=True, definition=path.with_name("gone.py"))
    assert _findings(project, seen) == ()


def test_what_no_run_came_to_keeps_nothing_else_from_being_proven(project: Project) -> None:
    (path,) = project.paths
    (seen,) = _findings(project, _seen(project, "first"))
    unseen = replace(seen, symbol="Other")
    reached = Reached(project, all_rules())
    assert reached.provable([seen, unseen]) == [seen]
    # Nor in the next pass, once that is repaired.
    assert reached.provable([unseen]) == []
    # By itself it is tried, and the proof has more to say than this.
    assert Reached(project, all_rules()).provable([unseen]) == [unseen]
    heir = InheritedDefect(path, "XLayer")
    assert reached.provable([seen, replace(unseen, inherited_by=(heir,))]) == [
        seen,
        replace(unseen, inherited_by=(heir,)),
    ]
    left = fix(project, [], unsafe=False)
    (refused,) = reached.judged(replace(left, findings=(unseen,))).findings
    assert "none of the classes that were run uses `Other`" in str(refused.remedy)
