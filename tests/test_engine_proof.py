"""Repairs that are judged by runs, over messages made by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gclint.engine.fix import FixResult, fix
from gclint.engine.proof import Proof, prove
from gclint.finding import Edit, Heir
from gclint.rule import all_rules
from gclint.settings import Settings
from gclint.source.project import Project
from gclint.verify.files import FileRun
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Failure, Fingerprint, Place, RunSite
from tests.toys import WordRule, replacing

_MODELING = Path("modeling_x.py")
_PLAIN = Fingerprint("default", "abc", 1.5, {"weight": 2.0})
_LOST = Failure("gradients", "reentrant", "default", "a gradient is lost")


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _site(**facts: object) -> RunSite:
    place = Place(str(_MODELING), 1, 1)
    # The word that the toy rule finds is the symbol of its findings.
    site = RunSite(place, "bad", place, is_layer=True, is_trunk=True, calls=2, recomputed=True)
    return replace(site, **facts)  # type: ignore[arg-type]


def _result(*failures: Failure, site: RunSite | None = None, plain: Fingerprint = _PLAIN) -> ClassResult:
    return ClassResult(
        "modeling_x.py",
        "Model",
        "failed" if failures else "passed",
        failures=failures,
        sites=(site or _site(),),
        fingerprints=(plain,),
    )


def _not_run() -> ClassResult:
    return ClassResult("modeling_x.py", "Model", "not run", reason="a configuration field is missing")


class _Runs:
    """Gives files these results, and remembers what was asked for."""

    def __init__(self, before: FileRun, after: FileRun) -> None:
        self.asked: list[tuple[list[Path], dict[Path, str]]] = []
        self._before, self._after = before, after

    def __call__(self, paths: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, FileRun]:
        self.asked.append((list(paths), dict(texts)))
        return dict.fromkeys(paths, self._after if texts else self._before)


def _repair(code: str = "GC001", **texts: str) -> tuple[Project, FixResult]:
    paths = [Path(f"{name}.py") for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    project = Project(Settings(), paths)
    return project, fix(project, [WordRule("bad", replacing("good"), code=code)], unsafe=False)


def _proof(before: ClassResult, after: ClassResult, code: str = "GC001", device: str = "cpu") -> Proof:
    project, repaired = _repair(code, modeling_x="bad\n")
    (proof,) = prove(
        project,
        repaired,
        all_rules(),
        _Runs(FileRun((before,), device=device), FileRun((after,), device=device)),
    )
    return proof


def test_a_repair_that_runs_as_before_and_is_recomputed_is_proven() -> None:
    proof = _proof(_result(site=_site(recomputed=False)), _result())
    assert proof.obstacles == ()
    assert proof.paths == (_MODELING,)
    assert [finding.symbol for finding in proof.repairs] == ["bad"]


def test_the_repaired_text_is_run_and_nothing_is_written() -> None:
    project, repaired = _repair(modeling_x="bad\n", modeling_y="fine\n")
    runs = _Runs(FileRun((_result(),)), FileRun((_result(),)))
    prove(project, repaired, all_rules(), runs)
    assert runs.asked == [([_MODELING], {}), ([_MODELING], {_MODELING: "good\n"})]
    assert _MODELING.read_text() == "bad\n"


def test_other_numbers_without_checkpointing_refuse_it() -> None:
    other = replace(_PLAIN, digest="abd", norms={"weight": 2.0000001})
    assert "the gradients of weight are different" in _proof(_result(), _result(plain=other)).obstacles[0]
    loss = replace(_PLAIN, digest="abd", loss=1.25)
    assert "the loss is 1.25 instead of 1.5" in _proof(_result(), _result(plain=loss)).obstacles[0]


def test_where_bits_may_differ_norms_decide() -> None:
    near = replace(_PLAIN, digest="abd", norms={"weight": 2.0000001})
    assert _proof(_result(), _result(plain=near), device="NVIDIA H100").obstacles == ()
    far = replace(_PLAIN, digest="abd", norms={"weight": 2.1})
    assert _proof(_result(), _result(plain=far), device="NVIDIA H100").obstacles
    fewer = replace(_PLAIN, digest="abd", norms={})
    assert _proof(_result(), _result(plain=fewer), device="NVIDIA H100").obstacles


def test_a_new_failure_refuses_it_and_an_old_one_does_not() -> None:
    assert _proof(_result(_LOST), _result(_LOST)).obstacles == ()
    (obstacle,) = _proof(_result(), _result(_LOST)).obstacles
    assert "Model, reentrant, default: a gradient is lost" in obstacle
    elsewhere = replace(_LOST, scenario="cache")
    assert _proof(_result(_LOST), _result(_LOST, elsewhere)).obstacles


def test_what_only_recomputation_shows_of_other_parts_does_not_speak_against_it() -> None:
    hook = replace(_LOST, check="frozen base", cause=Cause.NO_INPUT_GRADIENT)
    assert _proof(_result(), _result(hook)).obstacles == ()
    assert _proof(_result(), _result(replace(hook, cause=Cause.KEYWORD_ACTIVATION))).obstacles


def test_statistics_are_accepted_from_who_has_asked_for_unsafe_fixes() -> None:
    twice = replace(_LOST, check="buffers", cause=Cause.STATISTICS)
    assert _proof(_result(), _result(twice)).obstacles
    _MODELING.write_text("bad\n")
    project = Project(Settings(), [_MODELING])
    rule = WordRule("bad", replacing("good"), code="GC001", unsafe=True)
    repaired = fix(project, [rule], unsafe=True)
    runs = _Runs(FileRun((_result(),)), FileRun((_result(twice),)))
    assert prove(project, repaired, all_rules(), runs)[0].obstacles == ()


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("GC001", {"recomputed": False}),
        ("GC001", {"is_layer": False}),
        ("GC002", {"positional_caches": ("past",)}),
        ("GC003", {"keyword_activations": ("hidden_states",)}),
    ],
)
def test_a_defect_that_is_still_there_refuses_it(code: str, facts: dict[str, object]) -> None:
    assert _proof(_result(), _result(), code).obstacles == ()
    (obstacle,) = _proof(_result(), _result(site=_site(**facts)), code).obstacles
    assert "still has the defect" in obstacle


def test_a_rule_that_says_nothing_about_runs_is_not_proven() -> None:
    project, repaired = _repair("TOY1", modeling_x="bad\n")
    runs = _Runs(FileRun((_result(),)), FileRun((_result(),)))
    for rules in ((), [WordRule("bad", replacing("good"), code="TOY1")]):
        (obstacle,) = prove(project, repaired, rules, runs)[0].obstacles
        assert obstacle == "TOY1: no run can show whether `bad` is repaired"


def test_what_nobody_runs_is_not_proven() -> None:
    for after in (_result(site=_site(block="Other")), _result(site=_site(calls=0))):
        (obstacle,) = _proof(_result(), after).obstacles
        assert "no model that could be run runs `bad`" in obstacle
    assert _proof(_not_run(), replace(_not_run(), sites=())).obstacles


def test_the_run_of_what_is_generated_proves_the_repair_of_its_source() -> None:
    project, repaired = _repair(modeling_x="bad\n")
    applied = tuple(replace(each, heirs=(Heir(_MODELING, "Heir"),)) for each in repaired.applied)
    repaired = replace(repaired, applied=applied)
    run = FileRun((_result(site=_site(block="Heir")),))
    assert prove(project, repaired, all_rules(), _Runs(run, run))[0].obstacles == ()


def test_a_model_that_runs_no_more_refuses_it() -> None:
    assert (
        "cannot be run any more: a configuration field is missing"
        in _proof(_result(), _not_run()).obstacles[0]
    )


def test_a_file_that_cannot_be_imported_any_more_refuses_it() -> None:
    project, repaired = _repair(modeling_x="bad\n")
    broken = FileRun(problem="NameError: name 'Base' is not defined")
    (proof,) = prove(project, repaired, all_rules(), _Runs(FileRun((_result(),)), broken))
    assert proof.obstacles[0] == "NameError: name 'Base' is not defined"


def test_a_comment_needs_no_run_of_a_block() -> None:
    assert _proof(_not_run(), _not_run(), "GC000").obstacles == ()


def test_a_modular_file_goes_with_what_is_generated_from_it() -> None:
    project, repaired = _repair(modular_x="bad\n", modeling_x="bad\n")
    runs = _Runs(FileRun((_result(),)), FileRun((_result(_LOST),)))
    (proof,) = prove(project, repaired, all_rules(), runs)
    assert set(proof.paths) == {Path("modular_x.py"), _MODELING}
    assert proof.obstacles
    assert runs.asked[0][0] == [_MODELING]


def test_files_that_one_fix_changes_stand_or_fall_together() -> None:
    def both(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        edit = Edit(path, *match.span(), "good")
        other = Path("modeling_a.py")
        return (edit, Edit(other, 0, 3, "Bad")) if path != other else (edit,)

    for name, text in {"modeling_x": "bad\n", "modeling_a": "xyz; bad\n"}.items():
        Path(f"{name}.py").write_text(text)
    project = Project(Settings(), [Path("modeling_a.py"), _MODELING])
    rule = WordRule("bad", both, code="GC001")
    # The file's own fix comes first, and is remembered when another one joins the files.
    repaired = fix(project, [rule], unsafe=False)
    (proof,) = prove(project, repaired, all_rules(), _Runs(FileRun((_result(),)), FileRun((_result(),))))
    assert set(proof.paths) == {_MODELING, Path("modeling_a.py")}
    assert {finding.path.name for finding in proof.repairs} == {"modeling_x.py", "modeling_a.py"}


def test_a_modular_file_alone_is_not_proven() -> None:
    project, repaired = _repair(modular_x="bad\n")
    (proof,) = prove(project, repaired, all_rules(), _Runs(FileRun(), FileRun()))
    assert "generated" in proof.obstacles[0]


def test_files_that_import_from_a_refused_one_are_run_again_without_it() -> None:
    project, repaired = _repair(modeling_x="bad\n", modeling_y="bad\n", modeling_z="bad\n")
    second = Path("modeling_y.py")
    project.consult(project.file(second), _MODELING)
    asked: list[list[Path]] = []

    def run(paths: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, FileRun]:
        asked.append(list(paths))
        good = FileRun((_result(),))
        failures = {_MODELING: (_LOST,), second: () if _MODELING in texts else (_LOST,)}
        return (
            {path: FileRun((_result(*failures.get(path, ()) if texts else ()),)) for path in paths}
            if texts
            else dict.fromkeys(paths, good)
        )

    proofs = prove(project, repaired, all_rules(), run)
    assert {proof.paths[0]: bool(proof.obstacles) for proof in proofs} == {
        _MODELING: True,
        second: True,
        Path("modeling_z.py"): False,
    }
    assert asked[2] == [second]
