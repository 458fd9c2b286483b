"""What runs have seen of calls: which class each runs, and whether it was recomputed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gclint.code.project import Project
from gclint.finding import (
    Applicability,
    Edit,
    Evidence,
    Finding,
    Fix,
    InheritedDefect,
    Refusal,
    Repair,
    RepairKind,
)
from gclint.observations import Observations, Observed
from gclint.proof.evidence import weigh
from gclint.proof.provable import Reached
from gclint.rule import all_rules
from gclint.run.check import LintResult, check
from gclint.run.fix import FixResult
from gclint.settings import Settings
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Failure, ObservedSite, SourcePlace
from tests.decisions import reports
from tests.decisions.outside import FILE
from tests.decisions.toy import PROTECTED, STACK, block, model, toy

_CALL = "hidden_states = layer(hidden_states, bias=self.up(hidden_states))"
_TAKES = "hidden_states, bias=None"
_LEFT_OUT: dict[str, Any] = {"is_left_out": True}
_LOST: dict[str, Any] = {"causes": frozenset((Cause.KEYWORD_ACTIVATION,))}


def _two(other: str, stack: str = STACK) -> str:
    """Write a file with a layer and another class, whose model has a stack."""
    call = _CALL if other == PROTECTED else "hidden_states = layer(hidden_states)"
    return toy(
        block(base=PROTECTED, takes=_TAKES),
        block(name="ToyOther", base=other, takes=_TAKES),
        model(
            f"for layer in self.layers:\n    {call}",
            init=f"{stack}\nself.up = nn.Linear(4, 4)",
        ),
    )


_MIXED = STACK.replace("ToyLayer(config)", "ToyLayer(config) if config.size else ToyOther(config)")


def _observed(folder: Path, text: str, block: str = "ToyOther", rows: int = 1, **facts: Any) -> list[Finding]:
    """Return what is found in a file in which a call of so many rows was seen to run a block."""
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    project = Project(Settings(), [path])
    row = text[: text.index("= layer(")].count("\n") + 1
    (known,) = project.paths
    project.observe(Observations([Observed(known, row, row + rows - 1, block, known, **facts)]))
    return list(check(project, all_rules()).findings)


@pytest.mark.parametrize(
    ("base", "facts", "code"), [("nn.Module", _LEFT_OUT, "GC001"), (PROTECTED, _LOST, "GC003")]
)
@pytest.mark.parametrize(
    ("stack", "applicability"), [(STACK, Applicability.PROVABLE), (_MIXED, Applicability.SAFE)]
)
def test_what_only_a_run_has_seen_is_repaired_by_a_proof_alone(
    tmp_path: Path, base: str, facts: dict[str, Any], code: str, stack: str, applicability: Applicability
) -> None:
    findings = _observed(tmp_path, _two(base, stack), **facts)
    (finding,) = (each for each in findings if each.code == code)
    assert finding.fix is not None
    assert finding.fix.applicability is applicability


def test_it_counts_which_class_a_run_has_seen(tmp_path: Path) -> None:
    assert _observed(tmp_path, _two("nn.Module"), "ToyAbsent", **_LEFT_OUT) == []


@pytest.mark.parametrize(("base", "is_found"), [("nn.Module", True), ("object", False)])
def test_what_is_no_module_is_not_a_block(tmp_path: Path, base: str, is_found: bool) -> None:
    assert bool(_observed(tmp_path, _two(base), **_LEFT_OUT)) is is_found


@pytest.mark.parametrize(("rows", "is_found"), [(1, True), (2, False)])
def test_a_call_that_begins_on_the_same_row_is_another_one(tmp_path: Path, rows: int, is_found: bool) -> None:
    assert bool(_observed(tmp_path, _two("nn.Module"), rows=rows, **_LEFT_OUT)) is is_found


@pytest.mark.parametrize(("shift", "is_found"), [(0, True), (1, False)])
def test_another_call_on_the_same_row_runs_other_blocks(tmp_path: Path, shift: int, is_found: bool) -> None:
    text = _two("nn.Module")
    line = next(each for each in text.splitlines() if "= layer(" in each)
    columns = (line.index("layer(") + shift, len(line))
    assert bool(_observed(tmp_path, text, columns=columns, **_LEFT_OUT)) is is_found


def test_columns_are_forgotten_where_a_line_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "modeling_toy.py"
    seen = Observations(Observed(path, row, row, "Toy", path, (0, 4)) for row in (1, 2))
    seen.follow(path, "f(x), g(x)\nf(x)\n", "f(x, y), g(x)\n# a comment\nf(x)\n")
    assert [(each.first, each.columns) for each in seen.of(path)] == [(1, ()), (3, (0, 4))]


def _site(path: Path, row: int, *, recomputed: bool | None) -> ObservedSite:
    """Return a call of a block that a run came to."""
    return ObservedSite(
        SourcePlace(str(path), row, row),
        "OtterLayer",
        SourcePlace(str(path), 6, 9),
        is_layer=True,
        is_trunk=True,
        calls=1,
        recomputed=recomputed,
    )


@pytest.mark.parametrize(
    ("recomputed", "evidence"),
    [
        ([True], Evidence.CONTRADICTED),
        ([True, True], Evidence.CONTRADICTED),
        # Of one it is not known.
        ([True, None], None),
        ([None, True], None),
        ([None], None),
        # One is wrong, whatever is known of the others.
        ([None, False], Evidence.CONFIRMED),
        ([True, False], Evidence.CONFIRMED),
    ],
)
def test_several_calls_of_a_block(
    tmp_path: Path, recomputed: list[bool | None], evidence: Evidence | None
) -> None:
    first = _row("class OtterLayer")
    sites = [(row, each) for row, each in enumerate(recomputed, start=first)]
    assert _said(tmp_path, *sites) is evidence


@pytest.mark.parametrize("others", [(), ("class OtterLayer",), ("class OtterLayer", "class OtterModel")])
def test_one_of_several_calls_is_a_checkpointed_one(tmp_path: Path, others: tuple[str, ...]) -> None:
    rows = [_row(each) for each in (*others, "supports_gradient_checkpointing")]
    assert _said(tmp_path, *((each, True) for each in rows)) is Evidence.UNSEEN


def _row(words: str) -> int:
    return reports.SAFE[: reports.SAFE.index(words)].count("\n") + 1


def _said(folder: Path, *seen: tuple[int, bool | None]) -> Evidence | None:
    """Return what is said of a class whose calls, on some rows, were recomputed or not."""
    path = folder / "modeling_otter.py"
    path.write_text(reports.SAFE, encoding="utf-8")
    start = reports.SAFE.index("class OtterLayer")
    finding = Finding("GC001", "a-rule", "goes wrong", path, start, start + 5, "OtterLayer", Refusal("no"))
    sites = tuple(_site(path, row, recomputed=each) for row, each in seen)
    run = ClassResult(str(path), "OtterModel", "failed", sites=sites)
    project = Project(Settings(), [path])
    (weighed,) = weigh(project, LintResult((finding,), (), 1, groups=()), [run], all_rules()).findings
    return weighed.evidence


def _about(path: Path, code: str, words: str, remedy: Fix | Refusal, **more: Any) -> Finding:
    """Return a finding about the class that some words are in."""
    start = reports.SAFE.index(words)
    return Finding(code, "a-rule", "goes wrong", path, start, start + 5, "OtterLayer", remedy, **more)


def _failure(cause: Cause, *places: SourcePlace) -> Failure:
    return Failure("gradients", "reentrant", "default", "goes wrong", places=places, cause=cause)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "modeling_otter.py"
    path.write_text(reports.SAFE, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("seen", "needs_run"), [((), False), (("class OtterLayer",), True), (("class OtterModel",), True)]
)
def test_a_fix_that_rests_on_a_run_in_one_of_its_parts_needs_one(
    path: Path, seen: tuple[str, ...], needs_run: bool
) -> None:
    both = ("class OtterLayer", "class OtterModel")
    findings = tuple(
        _about(
            path,
            "GC003",
            words,
            Fix("Repair", (Edit(path, row, row, "x"),), Applicability.SAFE),
            evidence=Evidence.CONFIRMED if words in seen else None,
        )
        for row, words in enumerate(both)
    )
    places = tuple(SourcePlace(str(path), _row(words), _row(words)) for words in both)
    failure = _failure(Cause.KEYWORD_ACTIVATION, *places)
    run = ClassResult(str(path), "OtterModel", "failed", failures=(failure,))
    weighed = weigh(Project(Settings(), [path]), LintResult(findings, (), 1, groups=()), [run], all_rules())
    (hint,) = weighed.hints_of(run, failure)
    assert hint.needs_run is needs_run


@pytest.mark.parametrize(("code", "others"), [("GC114", []), ("GC113", []), ("GC003", ["GC113"])])
def test_what_one_of_several_rules_has_found_is_not_found_again_by_another(
    path: Path, code: str, others: list[str]
) -> None:
    finding = _about(path, code, "class OtterModel", Refusal("no"))
    row = _row("class OtterModel")
    failure = _failure(Cause.NO_INPUT_GRADIENT, SourcePlace(str(path), row, row))
    run = ClassResult(str(path), "OtterModel", "failed", failures=(failure,))
    project = Project(Settings(), [path])
    weighed = weigh(project, LintResult((finding,), (), 1, groups=()), [run], all_rules()).findings
    assert sorted(each.code for each in weighed) == sorted([code, *others])


@pytest.mark.parametrize(
    ("row", "block", "is_confirmed"),
    [
        # In the class that inherits the defect, whatever it runs.
        ("self.attention =", "", True),
        # Elsewhere only if the class was run there.
        ("supports_gradient_checkpointing", "", False),
        ("supports_gradient_checkpointing", "SealLayer", True),
        ("supports_gradient_checkpointing", "OtterLayer", False),
    ],
)
@pytest.mark.parametrize("is_inherited", [True, False])
def test_a_failure_in_an_heir_is_about_its_base(
    path: Path, row: str, block: str, is_confirmed: bool, is_inherited: bool
) -> None:
    other = path.with_name("modeling_seal.py")
    third = path.with_name("modeling_zebra.py")
    for each in (other, third):
        each.write_text(reports.SAFE.replace("Otter", "Seal"), encoding="utf-8")
    inherited_by = (InheritedDefect(other if is_inherited else third, "SealLayer"),)
    finding = _about(path, "GC003", "class OtterLayer", Refusal("no"), inherited_by=inherited_by)
    place = SourcePlace(str(other), _row(row), _row(row))
    failure = _failure(Cause.KEYWORD_ACTIVATION, place)
    sites = (ObservedSite(place, block, SourcePlace(str(third), 1, 1), True, True, 0, None),) if block else ()
    run = ClassResult(str(other), "SealModel", "failed", failures=(failure,), sites=sites)
    project = Project(Settings(), [path])
    (weighed,) = weigh(project, LintResult((finding,), (), 1, groups=()), [run], all_rules()).findings
    assert (weighed.evidence is Evidence.CONFIRMED) is (is_confirmed and is_inherited)


@pytest.mark.parametrize(
    ("repairs", "is_made"),
    [
        (((1, 2),), True),
        # It repairs something else as well, or nothing else than the other one leaves to it.
        (((1, 2), (5, 6)), False),
        (((1, 2), (3, 4)), False),
        ((), False),
    ],
)
def test_a_repair_is_made_with_one_that_a_run_can_prove_if_it_is_a_part_of_that(
    path: Path, repairs: tuple[tuple[int, int], ...], is_made: bool
) -> None:
    project = Project(Settings(), [path])
    (known,) = project.paths
    row = _row("class OtterLayer")
    project.observe(
        Observations([Observed(known, row, row, "OtterLayer", known, shown=frozenset(("GC001",)))])
    )

    def fixed(symbol: str, *spans: tuple[int, int]) -> Finding:
        whole = tuple(Repair(RepairKind.CALL, known, *span) for span in spans)
        fix = Fix("Repair", (Edit(known, 0, 0, "#"),), Applicability.SAFE, repairs=whole)
        return replace(_about(known, "GC001", "class OtterLayer", fix), symbol=symbol)

    seen, other = fixed("OtterLayer", (1, 2), (3, 4)), fixed("SealLayer", *repairs)
    assert Reached(project, all_rules()).provable([seen, other]) == [seen, *([other] if is_made else [])]


@pytest.mark.parametrize(("is_here", "is_provable"), [(False, True), (True, False)])
def test_a_call_on_the_same_row_of_another_file_is_another_one(
    path: Path, is_here: bool, is_provable: bool
) -> None:
    other = path.with_name("modeling_seal.py")
    other.write_text(reports.SAFE, encoding="utf-8")
    project = Project(Settings(), [path, other])
    known, beside = project.paths
    row = _row("class OtterLayer")
    shown = Observed(beside, 1, 1, "OtterLayer", known, shown=frozenset(("GC001",)))
    silent = Observed(known if is_here else beside, row, row, "OtterLayer", known)
    project.observe(Observations([shown, silent]))
    fix = Fix("Repair", (Edit(known, 0, 0, "#"),), Applicability.SAFE)
    finding = _about(known, "GC001", "class OtterLayer", fix)
    (left,) = Reached(project, all_rules()).judged(FixResult((finding,), (), 1, (), {}, groups=())).findings
    assert (left.fix is not None) is is_provable
