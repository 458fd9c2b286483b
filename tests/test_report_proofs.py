"""What people read about repairs that were run."""

from __future__ import annotations

from pathlib import Path

from gclint.finding import Applicability, Finding, Fix, Refusal
from gclint.proof.proving import Proof
from gclint.report.proofs import proof_lines
from gclint.verify.files import FileRun
from gclint.verify.worker.protocol import ClassResult, Cost, Failure, Outcome
from tests.toys import NO_FIX

_PATH = Path("modeling_x.py")
_NOTHING = Failure("recomputation", "reentrant", "default", "nothing is recomputed")


def _run(*failures: Failure, recomputed: int, saved: int) -> dict[Path, FileRun]:
    costs = (Cost("plain", 900, 0.1), Cost("non-reentrant", saved, 0.1))
    outcome: Outcome = "failed" if failures else "passed"
    result = ClassResult(
        str(_PATH),
        "Model",
        outcome,
        failures=failures,
        blocks=4,
        recomputed=recomputed,
        costs=costs,
        scenarios=("default", "cache"),
    )
    return {_PATH: FileRun((result,))}


def _text(*obstacles: str, remedy: Fix | Refusal = NO_FIX) -> str:
    finding = Finding("GC001", "some-rule", "goes wrong", _PATH, 0, 1, "Block", remedy)
    before, after = _run(_NOTHING, recomputed=0, saved=900), _run(recomputed=4, saved=300)
    proof = Proof((_PATH,), (finding,), before, after, obstacles)
    return "".join(f"{line}\n" for line in proof_lines([proof], shows_runs=True))


def test_a_proven_repair_is_shown_before_and_after() -> None:
    assert _text() == (
        "modeling_x.py: repaired; proven by Model in 2 scenarios\n"
        "    Model: failed before, passed after; recomputes 0 of 4 blocks before, 4 of 4 after; "
        "keeps 900 bytes before, 300 after\n"
        "        before, reentrant, default: nothing is recomputed\n"
    )


def test_a_refused_repair_says_why() -> None:
    first, second, *_ = _text("a gradient is lost").splitlines()
    assert (first, second) == ("modeling_x.py: not repaired", "    not proven: a gradient is lost")


def test_an_unsafe_repair_still_says_why_it_is_one() -> None:
    assert "    unsafe GC001 of Block: callers break\n" in _text(
        remedy=Fix("Repair", (), Applicability.UNSAFE, "callers break")
    )


def test_a_class_that_is_not_run_says_why() -> None:
    result = ClassResult(str(_PATH), "Model", "not run", reason="no numbers", category="inputs")
    runs = {_PATH: FileRun((result,))}
    lines = list(proof_lines([Proof((_PATH,), (), runs, runs, ("nothing is proven",))], shows_runs=True))
    assert lines[-1] == "    Model is not run (inputs): no numbers"


def test_what_could_not_be_run_is_named() -> None:
    runs = _run(recomputed=4, saved=300)
    users = tuple(Path(f"modeling_{name}.py") for name in "abcd")
    lines = list(proof_lines([Proof((_PATH,), (), runs, runs, (), users)], shows_runs=False))
    assert lines[1] == (
        "    not run, because not given: modeling_a.py, modeling_b.py, modeling_c.py and 1 more "
        "(they import the changed code)"
    )


def test_a_repair_that_needs_no_run_is_not_said_to_be_run() -> None:
    (line,) = proof_lines([Proof((_PATH,), (), {}, {}, ())], shows_runs=False)
    assert line == "modeling_x.py: repaired; no run needed"
