"""What runs say about findings, over messages made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Edit, Evidence, Finding, Fix, Heir, Refusal
from gclint.proof.evidence import Hint, weigh
from gclint.rule import all_rules
from gclint.run.check import CheckResult
from gclint.settings import Settings
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Failure, InputEmbedding, Place, RunSite
from tests.toys import NO_FIX

_SOURCE = """\
class Block(nn.Module):
    def forward(self, hidden_states):
        return hidden_states

class Stack(nn.Module):
    def forward(self, hidden_states, past):
        for layer in self.layers:
            hidden_states = layer(
                hidden_states=hidden_states,
                past=past,
            )
        return hidden_states
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "modeling_x.py"
    path.write_text(_SOURCE)
    return path


def _place(path: Path, line: int, end_line: int | None = None) -> Place:
    return Place(str(path), line, end_line or line)


def _site(path: Path, recomputed: bool | None = True, calls: int = 2) -> RunSite:
    return RunSite(
        place=_place(path, 8, 11),
        block="Block",
        definition=_place(path, 1, 3),
        is_layer=True,
        is_trunk=True,
        calls=calls,
        recomputed=recomputed,
    )


def _finding(path: Path, code: str, words: str) -> Finding:
    start = _SOURCE.index(words)
    return Finding(code, "some-rule", "goes wrong", path, start, start + len(words), "Block", NO_FIX)


def _run(path: Path, *sites: RunSite, failures: tuple[Failure, ...] = ()) -> ClassResult:
    return ClassResult(str(path), "Model", "failed", failures=failures, sites=sites)


def _result(*findings: Finding, together: tuple[Finding, ...] = ()) -> CheckResult:
    return CheckResult(findings, (), 1, groups=(frozenset(together),) if together else ())


def _weigh(path: Path, run: ClassResult, *findings: Finding) -> tuple[Finding, ...]:
    return weigh(Project(Settings(), [path]), _result(*findings), [run], all_rules()).findings


def _evidence(path: Path, run: ClassResult, finding: Finding) -> Evidence | None:
    (weighed,) = _weigh(path, run, finding)
    return weighed.evidence


def test_a_block_that_is_not_recomputed_confirms_that_the_layer_is_missing(path: Path) -> None:
    finding = _finding(path, "GC001", "class Block")
    assert _evidence(path, _run(path, _site(path, recomputed=False)), finding) is Evidence.CONFIRMED
    assert _evidence(path, _run(path, _site(path)), finding) is Evidence.CONTRADICTED
    assert _evidence(path, _run(path, _site(path, recomputed=None)), finding) is None


def test_one_site_that_is_not_recomputed_is_enough(path: Path) -> None:
    sites = (_site(path), replace(_site(path), place=_place(path, 12), recomputed=False))
    assert _evidence(path, _run(path, *sites), _finding(path, "GC001", "class Block")) is Evidence.CONFIRMED


def test_recomputation_by_a_branch_confirms_and_contradicts_nothing(path: Path) -> None:
    path.write_text(_SOURCE.replace("layer(\n", "self._gradient_checkpointing_func(layer.__call__,\n"))
    finding = _finding(path, "GC001", "class Block")
    assert _evidence(path, _run(path, _site(path)), finding) is Evidence.UNSEEN


def test_keyword_activation_is_judged_by_what_lost_its_gradient(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    carried = replace(_site(path), keyword_activations=("hidden_states",))
    assert _evidence(path, _run(path, carried), finding) is Evidence.UNSEEN
    run = _run(path, carried, failures=(_failure(path),))
    assert _evidence(path, run, finding) is Evidence.CONFIRMED
    assert _evidence(path, _run(path, _site(path)), finding) is Evidence.CONTRADICTED


def test_cache_that_never_came_contradicts_nothing(path: Path) -> None:
    finding = _finding(path, "GC002", "past=past")
    passed = replace(_site(path), positional_caches=("past",))
    assert _evidence(path, _run(path, passed), finding) is Evidence.UNSEEN
    written = replace(passed, rewritten_caches=("DynamicCache",))
    assert _evidence(path, _run(path, written), finding) is Evidence.CONFIRMED
    assert _evidence(path, _run(path, _site(path)), finding) is None


def test_a_site_that_was_not_run_says_nothing(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    assert _evidence(path, _run(path, _site(path, calls=0)), finding) is None


def test_other_places_and_other_files_say_nothing(path: Path, tmp_path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    elsewhere = replace(_site(path), place=_place(path, 12, 13))
    assert _evidence(path, _run(path, elsewhere), finding) is None
    other = tmp_path / "modeling_y.py"
    other.write_text(_SOURCE)
    assert _evidence(path, _run(other, _site(other)), finding) is None


def test_only_failures_at_the_rows_of_a_finding_confirm_it(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    failure = _failure(path)
    run = _run(path, _site(path), failures=(failure,))
    assert _evidence(path, run, finding) is Evidence.CONFIRMED
    for place in (_place(path, 1, 3), _place(path, 12)):
        run = _run(path, _site(path), failures=(replace(failure, places=(place,)),))
        # The failure is a finding of its own then.
        (weighed,) = (each for each in _weigh(path, run, finding) if each.message == finding.message)
        assert weighed.evidence is Evidence.CONTRADICTED


def test_another_call_in_the_file_of_an_heir_confirms_nothing(path: Path, tmp_path: Path) -> None:
    generated = tmp_path / "modeling_y.py"
    generated.write_text(_SOURCE)
    finding = replace(
        _finding(path, "GC003", "hidden_states=hidden_states,"), heirs=(Heir(generated, "YBlock"),)
    )
    failure = replace(_failure(path), places=(_place(generated, 8, 11),))
    site = replace(_site(generated), block="YBlock", keyword_activations=("hidden_states",))
    run = _run(generated, site, failures=(failure,))
    assert _weigh(path, run, finding)[0].evidence is Evidence.CONFIRMED
    other = _run(generated, replace(site, block="ZBlock"), failures=(failure,))
    assert _weigh(path, other, finding)[0].evidence is None


def test_a_frozen_base_does_not_confirm_that_the_hook_raises(path: Path) -> None:
    finding = replace(_finding(path, "GC113", "class Block"), symbol="Stack")
    fed = InputEmbedding(_place(path, 5), "Stack", "embed", fails=True)
    lost = replace(_failure(path, Cause.NO_INPUT_GRADIENT), places=())
    for failure, evidence in ((lost, None), (replace(lost, cause=Cause.HOOK), Evidence.CONFIRMED)):
        run = replace(_run(path, failures=(failure,)), embeddings=(fed,))
        assert _evidence(path, run, finding) is evidence


def test_what_is_generated_speaks_for_its_source(path: Path, tmp_path: Path) -> None:
    generated = tmp_path / "modeling_y.py"
    generated.write_text(_SOURCE)
    finding = _finding(path, "GC001", "class Block")
    site = replace(_site(generated, recomputed=False), block="YBlock")
    run = _run(generated, site)
    assert _evidence(path, run, finding) is None
    for symbol, evidence in (("YBlock", Evidence.CONFIRMED), ("Other", None)):
        assert _evidence(path, run, replace(finding, heirs=(Heir(generated, symbol),))) is evidence


def _failure(path: Path, cause: Cause | None = Cause.KEYWORD_ACTIVATION) -> Failure:
    places = (_place(path, 8, 11),)
    return Failure(
        "gradients", "reentrant", "default", "37 gradients are lost", (), places, cause, "By keyword."
    )


def test_failure_that_no_finding_speaks_of_becomes_one(path: Path) -> None:
    run = _run(path, _site(path), failures=(_failure(path), replace(_failure(path), scenario="cache")))
    (seen,) = _weigh(path, run)
    assert (seen.code, seen.name) == ("GC003", "keyword-activation")
    assert seen.message == "37 gradients are lost. By keyword."
    assert (seen.evidence, seen.symbol, seen.path) == (Evidence.CONFIRMED, "Block", path)
    assert _SOURCE[seen.start : seen.end] == "hidden_states = layer("
    assert isinstance(seen.remedy, Refusal)


def test_failure_is_not_reported_beside_the_finding_of_it(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    assert len(_weigh(path, _run(path, _site(path), failures=(_failure(path),)), finding)) == 1
    # A finding of a missing layer stands at the class, far from the place of the failure.
    missing = _finding(path, "GC001", "class Block")
    run = _run(path, _site(path, recomputed=False), failures=(_failure(path, Cause.NOT_A_LAYER),))
    assert len(_weigh(path, run, missing)) == 1


def test_failures_elsewhere_or_that_no_rule_repairs_are_no_findings(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "modeling_y.py"
    other.write_text(_SOURCE)
    assert _weigh(path, _run(path, failures=(_failure(other),))) == ()
    for cause in (Cause.STATISTICS, None):
        assert _weigh(path, _run(path, failures=(_failure(path, cause),))) == ()


def test_comments_suppress_what_only_a_run_has_seen(path: Path) -> None:
    text = _SOURCE.replace(
        "            hidden_states = layer(",
        "            # gclint: ignore[GC003]\n            hidden_states = layer(",
    )
    path.write_text(text)
    failure = replace(_failure(path), places=(_place(path, 9, 12),))
    assert _weigh(path, _run(path, failures=(failure,))) == ()


def _fix(*edits: Edit, unsafe: bool = False) -> Fix:
    if unsafe:
        return Fix("Repair", edits, Applicability.UNSAFE, "callers break")
    return Fix("Repair", edits)


def _hints(path: Path, failure: Failure, result: CheckResult, *more: Path) -> tuple[Hint, ...]:
    project = Project(Settings(), [path, *more])
    run = _run(path, _site(path), failures=(failure,))
    return weigh(project, result, [run], all_rules()).hints_of(run, failure)


def test_a_failure_is_repaired_by_the_fix_of_the_finding_at_its_place(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    safe = replace(finding, remedy=_fix(Edit(path, 0, 1, "")))
    assert _hints(path, _failure(path), _result(safe)) == (
        Hint("GC003", (path,), is_unsafe=False, is_whole=True),
    )
    # A finding of the class stands far from the place of the failure.
    layer = replace(_finding(path, "GC001", "class Block"), remedy=_fix(Edit(path, 0, 1, ""), unsafe=True))
    (hint,) = _hints(path, _failure(path, Cause.NOT_A_LAYER), _result(safe, layer))
    assert (hint.code, hint.is_unsafe) == ("GC001", True)


def test_nothing_repairs_a_failure_where_no_finding_has_a_fix(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    fixed = replace(finding, remedy=_fix(Edit(path, 0, 1, "")))
    # There is none; it has no fix; it is elsewhere; it is of another rule; nobody repairs such a failure.
    elsewhere = replace(fixed, start=0, end=1)
    for result in (_result(), _result(finding), _result(elsewhere), _result(replace(fixed, code="GC002"))):
        assert _hints(path, _failure(path), result) == ()
    assert _hints(path, _failure(path, Cause.STATISTICS), _result(fixed)) == ()


def test_a_fix_that_needs_further_files_names_them(path: Path, tmp_path: Path) -> None:
    other, copy = tmp_path / "modeling_y.py", tmp_path / "modeling_z.py"
    for each in (other, copy):
        each.write_text(_SOURCE)
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    both = replace(finding, remedy=_fix(Edit(path, 0, 1, ""), Edit(other, 0, 1, "")))
    (hint,) = _hints(path, _failure(path), _result(both), other)
    assert hint.paths == (path, other)
    # What holds the same code is repaired together with it, or not at all.
    twin = replace(finding, path=copy, remedy=_fix(Edit(copy, 0, 1, ""), unsafe=True))
    (hint,) = _hints(path, _failure(path), _result(both, twin, together=(both, twin)), other, copy)
    assert (set(hint.paths), hint.is_unsafe) == ({path, other, copy}, True)


def test_a_fix_at_one_of_two_places_repairs_a_part(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    fixed = replace(finding, remedy=_fix(Edit(path, 0, 1, "")))
    failure = replace(_failure(path), places=(_place(path, 8, 11), _place(path, 12)))
    # At the other place there is no finding, or one that has no fix.
    for others in ((), (replace(finding, start=_SOURCE.rindex("return")),)):
        (hint,) = _hints(path, failure, _result(fixed, *others))
        assert (hint.paths, hint.is_whole) == ((path,), False)
