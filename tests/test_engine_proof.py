"""Repairs that are judged by runs, over messages made by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Edit, InheritedDefect, Repair, RepairKind
from gclint.proof.proving import Proof, prove
from gclint.report.proofs import reasons
from gclint.rule import all_rules
from gclint.run.fix import FixResult, fix
from gclint.settings import Settings
from gclint.verify.files import FileRun
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.modes import CHECKPOINTED
from gclint.verify.worker.protocol import (
    ClassResult,
    Cost,
    Environment,
    Failure,
    Fingerprint,
    InputEmbedding,
    Mode,
    Observation,
    ObservedSite,
    SourcePlace,
    Verdict,
)
from tests.toys import WordRule, replacing

_MODELING = Path("modeling_x.py")
_PLAIN = Fingerprint("default", "abc", 1.5, {"the gradient of weight": "abc"})
_SEEN = {"is_layer": False, "recomputed": False}
"""The defect of GC001 at a call site."""


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _site(**facts: object) -> ObservedSite:
    place = SourcePlace(str(_MODELING), 1, 1)
    # The word that the toy rule finds is the symbol of its findings.
    site = ObservedSite(place, "bad", place, is_layer=True, is_trunk=True, calls=2, recomputed=True)
    return replace(site, **facts)  # type: ignore[arg-type]


def _lost(*parameters: str, **facts: object) -> Observation:
    seen = Observation(
        "missing gradients", f"{len(parameters)} of 8 parameters receive no gradient", parameters
    )
    return replace(seen, **facts)  # type: ignore[arg-type]


def _verdict(*observations: Observation, mode: Mode = "reentrant", **facts: object) -> Verdict:
    return replace(Verdict("default", mode, observations, 8, (), ("layers.0",)), **facts)  # type: ignore[arg-type]


def _result(*verdicts: Verdict, site: ObservedSite | None = None, **facts: object) -> ClassResult:
    known = verdicts or (_verdict(),)
    is_failed = any(each.observations for each in known)
    result = ClassResult(
        "modeling_x.py",
        "Model",
        "failed" if is_failed else "passed",
        sites=(site or _site(),),
        fingerprints=(_PLAIN,),
        verdicts=known,
    )
    return replace(result, **facts)  # type: ignore[arg-type]


def _earlier(*verdicts: Verdict, site: ObservedSite | None = None, **facts: object) -> ClassResult:
    """Return what a class does that has the defect."""
    return _result(*(verdicts or (_verdict(),)), site=site or _site(**_SEEN), **facts)


def _not_run(name: str = "Model") -> ClassResult:
    return ClassResult(
        "modeling_x.py", name, "not run", reason="a configuration field is missing", category="configuration"
    )


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


def _proof(
    before: ClassResult, after: ClassResult, code: str = "GC001", device: str = "cpu", text: str = "bad\n"
) -> Proof:
    project, repaired = _repair(code, modeling_x=text)
    environment = Environment("3.11", "2.13", "5.23", device)
    runs = _Runs(FileRun((before,), environment=environment), FileRun((after,), environment=environment))
    (proof,) = prove(project, repaired, all_rules(), runs)
    return proof


def test_a_repair_that_runs_as_before_and_is_recomputed_is_proven() -> None:
    proof = _proof(_earlier(), _result())
    assert proof.obstacles == ()
    assert proof.paths == (_MODELING,)
    assert [finding.symbol for finding in proof.repairs] == ["bad"]


def test_the_repaired_text_is_run_and_nothing_is_written() -> None:
    project, repaired = _repair(modeling_x="bad\n", modeling_y="fine\n")
    runs = _Runs(FileRun((_earlier(),)), FileRun((_result(),)))
    prove(project, repaired, all_rules(), runs)
    assert runs.asked == [([_MODELING], {}), ([_MODELING], {_MODELING: "good\n"})]
    assert _MODELING.read_text() == "bad\n"


def test_other_numbers_without_checkpointing_refuse_it() -> None:
    other = replace(_PLAIN, digest="abd", parts={"the gradient of weight": "abd"})
    (obstacle,) = _proof(_earlier(), _result(fingerprints=(other,))).obstacles
    assert "computes different values without checkpointing: the gradient of weight" in obstacle
    loss = replace(_PLAIN, digest="abd", loss=1.25)
    (obstacle,) = _proof(_earlier(), _result(fingerprints=(loss,))).obstacles
    assert "the loss is 1.25 instead of 1.5" in obstacle
    (obstacle,) = _proof(_earlier(), _result(fingerprints=())).obstacles
    assert "ran without checkpointing before, and does not any more" in obstacle


def test_adapters_in_further_blocks_do_not_count_as_other_numbers() -> None:
    frozen = replace(_PLAIN, scenario="frozen base")
    more = replace(frozen, digest="abd", loss=2.0, parts={**frozen.parts, "the gradient of adapter": "a"})
    assert _proof(_earlier(fingerprints=(frozen,)), _result(fingerprints=(more,))).obstacles == ()
    assert _proof(
        _earlier(fingerprints=(_PLAIN,)), _result(fingerprints=(replace(more, scenario="default"),))
    ).obstacles


@pytest.mark.parametrize(
    ("found", "is_same"),
    [
        ([2.0, 0.0, 0.0, 1.0001, -0.5], True),
        # The norm is the same, and the values are others.
        ([2.0, 0.0, 0.0, -1.0, 0.5], False),
        ([2.1, 0.0, 0.0, 1.05, -0.525], False),
        ([2.0, 0.0, 1.0, 1.0, -0.5], False),
    ],
)
def test_where_bits_may_differ_values_decide(found: list[float], is_same: bool) -> None:
    name = "the gradient of weight"
    before = replace(_PLAIN, sketches={name: [2.0, 0.0, 0.0, 1.0, -0.5]})
    after = replace(_PLAIN, digest="abd", parts={name: "abd"}, sketches={name: found})
    proof = _proof(_earlier(fingerprints=(before,)), _result(fingerprints=(after,)), device="NVIDIA H100")
    assert (proof.obstacles == ()) is is_same
    assert _proof(_earlier(fingerprints=(before,)), _result(fingerprints=(after,))).obstacles


def test_what_is_missing_on_a_gpu_is_not_the_same() -> None:
    name = "the gradient of weight"
    before = replace(_PLAIN, sketches={name: [2.0, 0.0, 0.0, 1.0, -0.5]})
    after = replace(_PLAIN, digest="abd", parts={})
    proof = _proof(_earlier(fingerprints=(before,)), _result(fingerprints=(after,)), device="NVIDIA H100")
    assert name in proof.obstacles[0]


_FOUR = ("a", "b", "c", "d")
_WRONG = Observation("gradients", "2 of 8 parameters receive a wrong gradient", ("e", "f"))
_RAISES = Observation("error", "the forward pass raises ValueError: 3 is too many")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([_lost(*_FOUR)], [_lost(*_FOUR)], None),
        ([_lost(*_FOUR)], [_lost("a")], None),
        ([_lost(*_FOUR, cause=Cause.KEYWORD_ACTIVATION)], [_lost("a", cause=Cause.NO_INPUT_GRADIENT)], None),
        ([_lost("a")], [_lost(*_FOUR)], "Before, it was 1, without `b`, `c`, `d`"),
        ([_lost(*_FOUR)], [_lost(*_FOUR), _WRONG], "2 of 8 parameters receive a wrong gradient"),
        (
            [_lost(*_FOUR)],
            [_lost("e")],
            "1 of 8 parameters receive no gradient. Before, it was 4, without `e`",
        ),
        ([], [_lost("a")], "1 of 8 parameters receive no gradient. Before, the result was right"),
        ([], [_lost("a", cause=Cause.NO_INPUT_GRADIENT, explanation="Why.")], "no gradient. Why. Before,"),
        ([], [replace(_WRONG, check="buffers", cause=Cause.STATISTICS)], "Before, the result was right"),
        ([_WRONG], [replace(_WRONG, cause=Cause.DICTIONARY)], "Before, it had another cause"),
        ([_RAISES], [replace(_RAISES, message="the forward pass raises KeyError: 3")], "raises KeyError"),
        # What raised before trains now, and wrongly.
        ([_RAISES], [_WRONG], "wrong gradient. Before, the forward pass raises ValueError"),
    ],
)
def test_a_failure_is_known_only_if_one_as_grave_was_there(
    before: list[Observation], after: list[Observation], words: str | None
) -> None:
    obstacles = _proof(_earlier(_verdict(*before)), _result(_verdict(*after))).obstacles
    assert bool(obstacles) is (words is not None)
    if words is not None:
        assert words in obstacles[0]


@pytest.mark.parametrize("facts", [{"scenario": "cache"}, {"mode": "non-reentrant"}])
def test_a_failure_elsewhere_excuses_nothing(facts: dict[str, object]) -> None:
    failing = _verdict(_lost("a"))
    elsewhere = replace(failing, **facts)  # type: ignore[arg-type]
    passing = replace(elsewhere, observations=())
    assert _proof(_earlier(failing, elsewhere), _result(failing, elsewhere)).obstacles == ()
    assert _proof(_earlier(failing, passing), _result(failing, elsewhere)).obstacles
    (obstacle,) = _proof(_earlier(failing), _result(failing, elsewhere)).obstacles
    assert "It was not run there before" in obstacle


def test_a_failure_of_one_mode_names_the_other() -> None:
    right, wrong = _verdict(mode="non-reentrant"), _verdict(_lost("a"))
    (obstacle,) = _proof(_earlier(right, _verdict(recomputed=())), _result(right, wrong)).obstacles
    assert obstacle == (
        "Model, reentrant, default: 1 of 8 parameters receive no gradient. Before, nothing was recomputed "
        "there, and the result was right. Under non-reentrant checkpointing nothing is worse"
    )


def test_a_failure_of_several_classes_is_told_once() -> None:
    project, repaired = _repair(modeling_x="bad\n")
    classes = ("Model", "Head", "Other")
    before = FileRun(tuple(replace(_earlier(), name=name) for name in classes))
    after = FileRun(tuple(replace(_result(_verdict(_lost("a"))), name=name) for name in classes))
    (obstacle,) = prove(project, repaired, all_rules(), _Runs(before, after))[0].obstacles
    assert obstacle.startswith("Model (and 2 other classes), reentrant, default: 1 of 8")


def test_one_failure_in_many_scenarios_is_one_kind_of_objection() -> None:
    scenarios = ("default", "cache", "dropout")
    before = [_verdict(scenario=name, mode=mode) for name in scenarios for mode in CHECKPOINTED]
    lost = _lost("a", explanation="The same long explanation.")
    after = [replace(each, observations=(lost,)) for each in before]
    proof = _proof(_earlier(*before), _result(*after))
    assert len(proof.obstacles) == len(before)
    (line,) = reasons(proof, is_full=False)
    assert line.startswith(f"not proven: {proof.obstacles[0]} (and 5 more of this kind")
    assert list(reasons(proof)) == [f"not proven: {each}" for each in proof.obstacles]
    # Something else is told as well.
    other = replace(after[-1], observations=(replace(_WRONG, cause=Cause.STATE),))
    assert len(list(reasons(_proof(_earlier(*before), _result(*after[:-1], other)), is_full=False))) == 2


def test_a_failure_that_ended_the_process_counts() -> None:
    hang = Failure("time limit", "reentrant", "cache", "there was no end after 120 seconds")
    (obstacle,) = _proof(_earlier(), _result(failures=(hang,))).obstacles
    assert "Model, reentrant, cache: there was no end" in obstacle
    assert _proof(_earlier(failures=(hang,)), _result(failures=(hang,))).obstacles == ()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            [_verdict(), _verdict(scenario="cache")],
            [_verdict()],
            "cache: ran before, and does not any more",
        ),
        ([_verdict()], [_verdict(compared=7)], "7 parameters are compared, but 8 were before"),
        (
            [_verdict()],
            [_verdict(not_compared=("a",))],
            "`a` could be compared before, and cannot be any more",
        ),
        ([_verdict()], [_verdict(recomputed=())], "`layers.0` was recomputed before, and is not any more"),
        (
            [_verdict(saved_bytes=900)],
            [_verdict(saved_bytes=1250)],
            "1,250 bytes are kept for the backward pass",
        ),
        ([_verdict(_lost("a"), saved_bytes=9)], [_verdict(saved_bytes=1200)], None),
    ],
)
def test_what_was_run_and_recomputed_still_is(
    before: list[Verdict], after: list[Verdict], words: str | None
) -> None:
    costs = (Cost("plain", 1500, 0.1),)
    obstacles = _proof(_earlier(*before), _result(*after, costs=costs)).obstacles
    assert bool(obstacles) is (words is not None)
    if words is not None:
        assert words in obstacles[0]


def test_a_part_that_is_not_run_any_more_refuses_it() -> None:
    (obstacle,) = _proof(_earlier(), _result(not_covered=("the vision tower",))).obstacles
    assert obstacle == "Model: does not run `the vision tower` any more"


def test_a_class_that_is_gone_refuses_it() -> None:
    project, repaired = _repair(modeling_x="bad\n")
    before = FileRun((_earlier(), replace(_result(), name="Gone")))
    (proof,) = prove(project, repaired, all_rules(), _Runs(before, FileRun((_result(),))))
    assert proof.obstacles == ("Gone: was found before the repair and is not found any more",)


@pytest.mark.parametrize(
    ("code", "facts", "cause"),
    [
        ("GC001", {"recomputed": False}, None),
        ("GC001", {"is_layer": False}, None),
        ("GC002", {"positional_caches": ("past",), "rewritten_caches": ("Cache",)}, None),
        ("GC002", {"positional_caches": ("past",)}, Cause.POSITIONAL_CACHE),
        ("GC003", {"keyword_activations": ("hidden_states",)}, Cause.KEYWORD_ACTIVATION),
    ],
)
def test_a_defect_that_is_still_there_refuses_it(
    code: str, facts: dict[str, object], cause: Cause | None
) -> None:
    before = _earlier(site=_site(**facts), failures=() if cause is None else (_failing(cause),))
    assert _proof(before, _result(), code).obstacles == ()
    (obstacle,) = _proof(before, _result(site=_site(**facts)), code).obstacles
    assert "still has the defect" in obstacle


def _failing(cause: Cause, line: int = 1) -> Failure:
    places = (SourcePlace(str(_MODELING), line, line),)
    return Failure("gradients", "reentrant", "default", "wrong", places=places, cause=cause)


@pytest.mark.parametrize(
    ("code", "facts", "failures"),
    [
        # It is passed by keyword, and every parameter has its gradient.
        ("GC003", {"keyword_activations": ("hidden_states",)}, []),
        # Another call failed in this way, or this one in another.
        ("GC003", {"keyword_activations": ("hidden_states",)}, [_failing(Cause.KEYWORD_ACTIVATION, 7)]),
        ("GC003", {"keyword_activations": ("hidden_states",)}, [_failing(Cause.STATE)]),
        ("GC002", {"positional_caches": ("past",)}, []),
        ("GC002", {"positional_caches": ("past",)}, [_failing(Cause.POSITIONAL_CACHE, 7)]),
        # Something kept all classes from being trained.
        ("GC001", {"is_layer": False, "recomputed": None}, []),
    ],
)
def test_damage_that_no_run_showed_is_not_proven_to_be_gone(
    code: str, facts: dict[str, object], failures: list[Failure]
) -> None:
    before = _earlier(site=_site(**facts), failures=tuple(failures))
    (obstacle,) = _proof(before, _result(), code).obstacles
    assert obstacle == f"{code}: no run of `bad` showed the damage before the repair"


def test_damage_that_stays_refuses_it() -> None:
    """The call is repaired, and its gradients are as wrong as before."""
    failure = _failing(Cause.KEYWORD_ACTIVATION)
    before = _earlier(site=_site(keyword_activations=("hidden_states",)), failures=(failure,))
    (obstacle,) = _proof(before, _result(failures=(failure,)), "GC003").obstacles
    assert "Model, reentrant, default still fails in the way that the repair should prevent" in obstacle


def test_what_belongs_to_another_repair_is_proven_with_it() -> None:
    project, repaired = _repair(modeling_x="bad\n")
    (whole,) = repaired.applied
    own = whole.fix
    assert own is not None
    parts = tuple(Repair(part, _MODELING, 0, 3) for part in (RepairKind.BLOCK, RepairKind.CALL))
    whole = replace(whole, remedy=replace(own, repairs=parts))
    part = replace(whole, code="GC003", remedy=replace(own, repairs=parts[1:]))
    runs = _Runs(FileRun((_earlier(),)), FileRun((_result(),)))
    for applied, count in (((whole, part), 0), ((part,), 1)):
        proofs = prove(project, replace(repaired, applied=applied), all_rules(), runs)
        assert len(proofs[0].obstacles) == count


@pytest.mark.parametrize(
    ("left", "obstacle"),
    [
        ((), None),
        (("Model",), None),
        (("bad",), "GC114: bad, reentrant, default still fails in the way that the repair should prevent"),
        (
            ("Heir",),
            "GC114: Heir, reentrant, default still fails in the way that the repair should prevent",
        ),
        (
            ("bad", "Heir", "Model"),
            "GC114: bad, reentrant, default still fails in the way that the repair should prevent",
        ),
    ],
)
def test_a_defect_is_gone_in_the_class_that_it_names(left: tuple[str, ...], obstacle: str | None) -> None:
    failure = Failure("frozen base", "reentrant", "default", "lost", cause=Cause.NO_INPUT_GRADIENT)
    fed = InputEmbedding(SourcePlace(str(_MODELING), 1, 1), "bad", "embed", "")

    def run(name: str, failing: bool, *embeddings: InputEmbedding) -> ClassResult:
        verdict = _verdict(*[_lost("a", cause=failure.cause)] * failing)
        failures = (failure,) if failing else ()
        return _result(verdict, name=name, failures=failures, sites=(), embeddings=embeddings)

    # Another model has the repaired one inside, and a part of its own with the same defect.
    names = ("bad", "Heir", "Model")
    before = FileRun(tuple(run(name, True, fed) for name in names))
    after = FileRun(tuple(run(name, name in left, *[fed] * (name == "Heir")) for name in names))
    project, repaired = _repair("GC114", modeling_x="bad\n")
    (proof,) = prove(project, repaired, all_rules(), _Runs(before, after))
    assert [each for each in proof.obstacles if "still fails" in each] == ([obstacle] if obstacle else [])


def test_a_defect_that_nobody_has_seen_is_not_proven_to_be_gone() -> None:
    (obstacle,) = _proof(_result(), _result()).obstacles
    assert obstacle == "GC001: no run of `bad` showed the damage before the repair"
    # It may show in that no class comes to its blocks.
    failure = Failure("error", "reentrant", "default", "not supported", cause=Cause.NOT_A_LAYER)
    assert _proof(_result(sites=(), failures=(failure,)), _result()).obstacles == ()


@pytest.mark.parametrize(("other", "is_proven"), [("bad", True), ("awful", False)])
def test_only_a_block_that_was_not_recomputed_itself_could_not_show_its_damage(
    other: str, is_proven: bool
) -> None:
    _MODELING.write_text(f"a = bad\nb = {other}\n")
    project = Project(Settings(), [_MODELING])
    rules = (
        WordRule(r"(?<=a = )bad", replacing("good"), code="GC003"),
        WordRule(r"(?<=b = )(?!good)\w+", replacing("good"), code="GC001"),
    )
    repaired = fix(project, [*rules], unsafe=False)
    runs = _Runs(FileRun((_result(site=_site(recomputed=False)),)), FileRun((_result(),)))
    (proof,) = prove(project, repaired, all_rules(), runs)
    wanted = "GC003: no run of `bad` showed the damage before the repair"
    assert (wanted not in proof.obstacles) is is_proven


def test_a_rule_that_says_nothing_about_runs_is_not_proven() -> None:
    project, repaired = _repair("TOY1", modeling_x="bad\n")
    runs = _Runs(FileRun((_earlier(),)), FileRun((_result(),)))
    for rules in ((), [WordRule("bad", replacing("good"), code="TOY1")]):
        (obstacle,) = prove(project, repaired, rules, runs)[0].obstacles
        assert obstacle == "TOY1: no run can show whether `bad` is repaired"


def test_a_block_that_no_class_trains_is_not_proven() -> None:
    untrained, trained = _site(recomputed=None), _site()
    (obstacle,) = _proof(_earlier(), _result(site=untrained)).obstacles
    assert obstacle == "GC001: no run can show whether `bad` is repaired"
    # That another class runs it without training it says nothing.
    assert _proof(_earlier(), _result(sites=(untrained, trained))).obstacles == ()
    not_a_layer = _site(recomputed=None, is_layer=False)
    (obstacle,) = _proof(_earlier(), _result(sites=(not_a_layer, trained))).obstacles
    assert "still has the defect" in obstacle


def test_what_nobody_runs_is_not_proven() -> None:
    for after in (_result(site=_site(block="Other")), _result(site=_site(calls=0))):
        (obstacle,) = _proof(_earlier(), after).obstacles
        assert obstacle == "GC001: none of the classes that were run uses `bad`; what was run: Model"
    elsewhere = SourcePlace("/elsewhere/modeling_x.py", 1, 1)
    other = _site(place=elsewhere, definition=elsewhere)
    assert "none of the classes that were run" in _proof(_earlier(), _result(site=other)).obstacles[0]


def test_a_class_that_is_broken_by_itself_was_not_run() -> None:
    error = Failure("error", "plain", "default", "the model cannot run: it raises NameError")
    broken = ClassResult("modeling_x.py", "Model", "failed", failures=(error,))
    assert _proof(_earlier(), broken).obstacles[0] == (
        "Model: cannot be run any more: the model cannot run: it raises NameError"
    )
    obstacle, _ = _proof(broken, _result(), text="class Model:\n    bad = 1\n").obstacles
    assert obstacle.startswith("Model could not be run before (the model cannot run: it raises NameError)")


def test_the_true_reason_is_given_where_nothing_runs() -> None:
    obstacle = _proof(_not_run(), _not_run()).obstacles[0]
    assert obstacle == (
        "GC001: none of the classes that were run uses `bad`: Model could not be run "
        "(configuration: a configuration "
        "field is missing)"
    )
    project, repaired = _repair(modeling_x="bad\n")
    (obstacle,) = prove(project, repaired, all_rules(), _Runs(FileRun(), FileRun()))[0].obstacles
    assert "modeling_x.py has no class that supports gradient checkpointing" in obstacle


def test_a_class_that_cannot_be_switched_on_is_the_reason_where_no_other_runs() -> None:
    flagless = replace(_not_run(), category="no support flag", reason="the flag is not set")
    (obstacle,) = _proof(flagless, flagless, text="class Model:\n    bad = 1\n").obstacles
    assert obstacle == (
        "GC001: none of the classes that were run uses `bad`: Model could not be run (no support flag: "
        "the flag is not set)"
    )
    project, repaired = _repair(modeling_x="class Head:\n    bad = 1\n")
    runs = _Runs(
        FileRun((_earlier(), replace(flagless, name="Head"))),
        FileRun((_result(), replace(flagless, name="Head"))),
    )
    assert prove(project, repaired, all_rules(), runs)[0].obstacles == ()


_TWO_CLASSES = """
class Block:
    bad = 1

class Model:
    block = Block

class Head:
    def forward(self):
        return Block()

class Other:
    pass
"""


def test_a_class_that_leads_to_what_is_changed_has_to_run() -> None:
    project, repaired = _repair(modeling_x=_TWO_CLASSES)

    def proof(before: ClassResult, after: ClassResult) -> Proof:
        runs = _Runs(FileRun((_earlier(), before)), FileRun((_result(), after)))
        return prove(project, repaired, all_rules(), runs)[0]

    assert proof(_not_run("Other"), _not_run("Other")).obstacles == ()
    (obstacle,) = proof(_not_run("Head"), _not_run("Head")).obstacles
    assert obstacle == (
        "Head seems to use the changed code, but could not be run "
        "(configuration: a configuration field is missing)"
    )
    (obstacle,) = proof(_not_run("Head"), replace(_result(), name="Head")).obstacles
    assert obstacle.startswith(
        "Head could not be run before (configuration: a configuration field is missing)"
    )


_USER = """
from .modeling_x import Block

class Stack:
    def forward(self):
        return Block()

class Other:
    def forward(self):
        return None
"""


@pytest.mark.parametrize("made_of", [(), ("Stack",)])
def test_what_uses_the_changed_code_has_to_be_a_part_of_what_is_run(made_of: tuple[str, ...]) -> None:
    project, repaired = _repair(modeling_x="class Block:\n    bad = 1\n", modeling_y=_USER)
    parts = ("modeling_x.py::Block", *(f"modeling_y.py::{name}" for name in made_of))
    after = {_MODELING: FileRun((_result(made_of=parts),)), Path("modeling_y.py"): FileRun()}

    def run(paths: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, FileRun]:
        return after if texts else {**after, _MODELING: FileRun((_earlier(),))}

    (proof,) = prove(project, repaired, all_rules(), run)
    said = "`Stack` in modeling_y.py uses the changed code, but no class that was run contains one"
    assert proof.obstacles == (() if made_of else (said,))


def test_what_imports_the_changed_code_is_run_too() -> None:
    project, repaired = _repair(
        modeling_x="class Block:\n    bad = 1\n",
        modeling_y="from .modeling_x import Block as B\nclass Heir(B): pass\n",
        modeling_z="from . import modeling_y\nclass Model:\n    block = modeling_y.Heir\n",
        modeling_other="import torch\n",
    )
    user = Path("modeling_z.py")
    asked = []

    def run(paths: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, FileRun]:
        asked.append(set(paths))
        failing = _result(_verdict(_lost("a"))) if texts else _result()
        runs = {path: FileRun() for path in paths}
        return {**runs, _MODELING: FileRun((_result() if texts else _earlier(),)), user: FileRun((failing,))}

    (proof,) = prove(project, repaired, all_rules(), run)
    assert asked == [{_MODELING, Path("modeling_y.py"), user}] * 2
    assert "1 of 8 parameters receive no gradient" in proof.obstacles[0]


def test_what_was_seen_to_run_the_changed_code_is_run_too() -> None:
    project, repaired = _repair(modeling_x="class Block:\n    bad = 1\n", modeling_y="x = AutoModel\n")
    user = Path("modeling_y.py")
    runs = _Runs(FileRun((_earlier(),)), FileRun((_result(),)))
    prove(project, repaired, all_rules(), runs, {user: FileRun((_earlier(),)), _MODELING: FileRun()})
    assert set(runs.asked[0][0]) == {_MODELING, user}


def test_files_that_use_the_changed_code_and_are_not_given_are_named() -> None:
    Path("modeling_y.py").write_text(
        "from .modeling_x import Block\nclass M(PreTrainedModel):\n    block = Block\n"
    )
    project, repaired = _repair(modeling_x="class Block:\n    bad = 1\n")
    runs = _Runs(FileRun((_earlier(),)), FileRun((_result(),)))
    (proof,) = prove(project, repaired, all_rules(), runs)
    assert [path.name for path in proof.users_not_given] == ["modeling_y.py"]


_TWO_BRANCHES = """
def forward(x):
    if x:
        return bad(x)
    return bad(x + 1)
"""


def test_what_is_changed_has_to_be_run() -> None:
    one, other = SourcePlace("modeling_x.py", 4, 4), SourcePlace("modeling_x.py", 5, 5)
    both = _result(executed=(one, other))
    assert _proof(_earlier(), both, text=_TWO_BRANCHES).obstacles == ()
    (obstacle,) = _proof(_earlier(), _result(executed=(one,)), text=_TWO_BRANCHES).obstacles
    assert obstacle == (
        "no class that was run reaches the changed code of modeling_x.py on line 5 of the repaired text"
    )


def test_the_run_of_what_is_generated_proves_the_repair_of_its_source() -> None:
    project, repaired = _repair(modeling_x="bad\n")
    applied = tuple(
        replace(each, inherited_by=(InheritedDefect(_MODELING, "Heir"),)) for each in repaired.applied
    )
    repaired = replace(repaired, applied=applied)
    before = FileRun((_earlier(site=_site(block="Heir", **_SEEN)),))
    after = FileRun((_result(site=_site(block="Heir")),))
    assert prove(project, repaired, all_rules(), _Runs(before, after))[0].obstacles == ()


def test_a_model_that_runs_no_more_refuses_it() -> None:
    assert (
        "cannot be run any more: configuration: a configuration field is missing"
        in _proof(_earlier(), _not_run()).obstacles[0]
    )


def test_a_file_that_cannot_be_imported_any_more_refuses_it() -> None:
    project, repaired = _repair(modeling_x="bad\n")
    broken = FileRun(problem="NameError: name 'Base' is not defined")
    (proof,) = prove(project, repaired, all_rules(), _Runs(FileRun((_result(),)), broken))
    assert proof.obstacles[0] == "modeling_x.py cannot be run: NameError: name 'Base' is not defined"


def test_a_comment_needs_no_run_of_a_block() -> None:
    assert _proof(_not_run(), _not_run(), "GC000").obstacles == ()


def test_a_modular_file_goes_with_what_is_generated_from_it() -> None:
    project, repaired = _repair(modular_x="bad\n", modeling_x="bad\n")
    runs = _Runs(FileRun((_result(),)), FileRun((_result(_verdict(_lost("a"))),)))
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
    (proof,) = prove(project, repaired, all_rules(), _Runs(FileRun((_earlier(),)), FileRun((_result(),))))
    assert set(proof.paths) == {_MODELING, Path("modeling_a.py")}
    assert {finding.path.name for finding in proof.repairs} == {"modeling_x.py", "modeling_a.py"}


def test_a_modular_file_alone_is_not_proven() -> None:
    project, repaired = _repair(modular_x="bad\n")
    (proof,) = prove(project, repaired, all_rules(), _Runs(FileRun(), FileRun()))
    assert "generated" in proof.obstacles[0]


def test_files_that_import_from_a_refused_one_are_run_again_without_it() -> None:
    project, repaired = _repair(
        modeling_x="bad\n", modeling_y="from .modeling_x import bad\n", modeling_z="bad\n"
    )
    second = Path("modeling_y.py")
    asked: list[set[Path]] = []

    def run(paths: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, FileRun]:
        asked.append(set(paths))
        failing = {_MODELING} if _MODELING in texts else {second} if texts else set()
        runs = {}
        for path in paths:
            place = SourcePlace(str(path), 1, 1)
            site = _site(place=place, definition=place, **({} if texts else _SEEN))
            verdict = _verdict(*[_lost("a")] * (path in failing))
            runs[path] = FileRun((_result(verdict, site=site),))
        return runs

    proofs = prove(project, repaired, all_rules(), run)
    assert {proof.paths[0]: bool(proof.obstacles) for proof in proofs} == {
        _MODELING: True,
        second: True,
        Path("modeling_z.py"): False,
    }
    assert asked[2] == {second}
