"""What runs say about findings, over messages made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Edit, Evidence, Finding, Fix, InheritedDefect, Refusal
from gclint.proof.evidence import Hint, weigh
from gclint.rule import all_rules
from gclint.run.check import LintResult
from gclint.settings import Settings
from gclint.verify.worker.branches import marked
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import (
    ClassResult,
    Coverage,
    Failure,
    InputEmbedding,
    ObservedSite,
    SourcePlace,
)
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


def _place(path: Path, line: int, end_line: int | None = None) -> SourcePlace:
    return SourcePlace(str(path), line, end_line or line)


def _site(path: Path, recomputed: bool | None = True, calls: int = 2) -> ObservedSite:
    return ObservedSite(
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


def _run(path: Path, *sites: ObservedSite, failures: tuple[Failure, ...] = ()) -> ClassResult:
    return ClassResult(str(path), "Model", "failed", failures=failures, sites=sites)


def _result(*findings: Finding, together: tuple[Finding, ...] = ()) -> LintResult:
    return LintResult(findings, (), 1, groups=(frozenset(together),) if together else ())


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
        _finding(path, "GC003", "hidden_states=hidden_states,"),
        inherited_by=(InheritedDefect(generated, "YBlock"),),
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
        assert (
            _evidence(path, run, replace(finding, inherited_by=(InheritedDefect(generated, symbol),)))
            is evidence
        )


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


def _hints(path: Path, failure: Failure, result: LintResult, *more: Path) -> tuple[Hint, ...]:
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
    copied = replace(finding, path=copy, remedy=_fix(Edit(copy, 0, 1, ""), unsafe=True))
    (hint,) = _hints(path, _failure(path), _result(both, copied, together=(both, copied)), other, copy)
    assert (set(hint.paths), hint.is_unsafe) == ({path, other, copy}, True)


def test_a_fix_at_one_of_two_places_repairs_a_part(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    fixed = replace(finding, remedy=_fix(Edit(path, 0, 1, "")))
    failure = replace(_failure(path), places=(_place(path, 8, 11), _place(path, 12)))
    # At the other place there is no finding, or one that has no fix.
    for others in ((), (replace(finding, start=_SOURCE.rindex("return")),)):
        (hint,) = _hints(path, failure, _result(fixed, *others))
        assert (hint.paths, hint.is_whole) == ((path,), False)


_TWO = """\
class Block(nn.Module):
    def forward(self, hidden_states, states=None):
        return hidden_states

class Stack(nn.Module):
    def forward(self, hidden_states, states):
        é, h = self.one(hidden_states, states), self.two(states, states=hidden_states)
        if hidden_states is None:
            h = self.one(hidden_states, states=states)
        h = self.one(h, states=states) if states is None else self.two(self.one(h, states=h), states)
        return h
"""
_CALLS = {
    "first": "self.one(hidden_states, states)",
    "second": "self.two(states, states=hidden_states)",
    "never": "self.one(hidden_states, states=states)",
    "never this arm": "self.one(h, states=states)",
    "outer": "self.two(self.one(h, states=h), states)",
    "inner": "self.one(h, states=h)",
}


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "modeling_two.py"
    path.write_text(_TWO, encoding="utf-8")
    return path


def _called(path: Path, call: str, *, tells_columns: bool = True, by_keyword: bool = False) -> ObservedSite:
    """Return a call of the file as a run saw it."""
    before, _, _ = _TWO.partition(_CALLS[call])
    row, line = before.count("\n") + 1, before.rpartition("\n")[2]
    start = len(line.encode())
    columns = (start, start + len(_CALLS[call])) if tells_columns else ()
    place = SourcePlace(str(path), row, row, columns)
    block = "Two" if _CALLS[call].startswith("self.two") else "One"
    site = ObservedSite(place, block, SourcePlace(str(path), 1, 3), True, True, calls=1, recomputed=True)
    return replace(site, keyword_activations=("states",) if by_keyword else ())


def _flagged(path: Path, call: str, argument: str) -> Finding:
    start = _TWO.index(argument, _TWO.index(_CALLS[call]))
    symbol = "Two" if _CALLS[call].startswith("self.two") else "One"
    return Finding("GC003", "a-rule", "goes wrong", path, start, start + len(argument), symbol, NO_FIX)


def _covered(path: Path) -> tuple[Coverage, ...]:
    """Return what is executed if nothing is None."""
    branches = marked(_TWO).branches
    missed = tuple(each for each in branches if (each.line, each.kind) in ((9, "body"), (10, "body")))
    assert len(missed) == 2
    return (Coverage(str(path), False, (2, 6), missed),)


def test_calls_on_one_line_are_told_apart_by_their_columns(two: Path) -> None:
    first, second = _called(two, "first"), _called(two, "second", by_keyword=True)
    finding = _flagged(two, "second", "states=hidden_states")
    assert _evidence(two, _run(two, first, second), finding) is Evidence.UNSEEN
    assert _evidence(two, _run(two, first), finding) is None
    lost = replace(_failure(two), places=(second.place,))
    assert _evidence(two, _run(two, first, second, failures=(lost,)), finding) is Evidence.CONFIRMED
    other = replace(_failure(two), places=(first.place,))
    weighed = _weigh(two, _run(two, first, second, failures=(other,)), finding)
    assert [each.evidence for each in weighed if each.message == "goes wrong"] == [Evidence.UNSEEN]


def test_the_call_in_an_argument_of_another_one_is_the_flagged_one(two: Path) -> None:
    inner, outer = _called(two, "inner"), _called(two, "outer", by_keyword=True)
    finding = _flagged(two, "inner", "states=h")
    assert _evidence(two, _run(two, outer, inner), finding) is Evidence.CONTRADICTED
    of_outer = _flagged(two, "outer", "states)")
    assert _evidence(two, _run(two, outer, inner), of_outer) is Evidence.UNSEEN


def test_where_columns_are_not_known_another_block_on_the_line_decides_nothing(two: Path) -> None:
    first = _called(two, "first", tells_columns=False)
    second = _called(two, "second", tells_columns=False, by_keyword=True)
    finding = _flagged(two, "second", "states=hidden_states")
    assert _evidence(two, _run(two, first), finding) is None
    lost = replace(_failure(two), places=(first.place,))
    assert _weigh(two, _run(two, first, failures=(lost,)), finding)[0].evidence is None
    assert _evidence(two, _run(two, replace(second, block="Other"), second), finding) is Evidence.UNSEEN


@pytest.mark.parametrize(
    ("call", "argument", "is_run"),
    [
        ("second", "states=hidden_states", True),
        ("never", "states=states", False),
        ("never this arm", "states=states", False),
        ("inner", "states=h", True),
    ],
)
def test_a_flagged_call_that_no_run_came_to_is_not_run(
    two: Path, call: str, argument: str, is_run: bool
) -> None:
    run = replace(_run(two, _called(two, "outer")), coverage=_covered(two))
    evidence = _evidence(two, run, _flagged(two, call, argument))
    assert (evidence is Evidence.NOT_RUN) is not is_run
    # One class that comes to it is enough.
    whole = replace(run, coverage=(replace(_covered(two)[0], missed=()),))
    (weighed,) = weigh(
        Project(Settings(), [two]), _result(_flagged(two, call, argument)), [run, whole], all_rules()
    ).findings
    assert weighed.evidence is not Evidence.NOT_RUN
    # Of a file that is nested too deeply, and of a class whose process died, nothing is known.
    for unknown in ((Coverage(str(two), False, (), (), is_marked=False),), ()):
        blind = replace(_run(two), coverage=unknown)
        assert _evidence(two, blind, _flagged(two, call, argument)) is None
    none = replace(_run(two), outcome="not run", category="reference")
    assert _evidence(two, none, _flagged(two, call, argument)) is Evidence.NOT_RUN


def test_the_calls_of_a_class_that_no_run_came_to_are_not_run(two: Path) -> None:
    finding = replace(_flagged(two, "first", "states"), code="GC001", symbol="Block", start=6, end=11)
    (covered,) = _covered(two)
    for entered, evidence in (((6,), Evidence.NOT_RUN), ((2, 6), None)):
        run = replace(_run(two), coverage=(replace(covered, entered=entered),))
        assert _evidence(two, run, finding) is evidence
    # Only what is said of calls can be not run.
    assert _evidence(two, run, replace(finding, code="GC113")) is None
