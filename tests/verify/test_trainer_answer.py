"""What a trainer is told, from the rows of its set-ups; none of this needs torch."""

from __future__ import annotations

import pytest

from gclint.report.trainer import trainer_lines
from gclint.verify.worker.modes import Mode
from gclint.verify.worker.practices import (
    AS_IT_IS,
    FIND_UNUSED,
    LOST,
    NOTHING_RECOMPUTED,
    STATIC,
    TRAINER,
    WRONG,
    TrainerPractice,
    trainer_practices,
)
from gclint.verify.worker.protocol import ClassResult, SetUp, SetUpOutcome
from gclint.verify.worker.training.answer import answer

_PARALLEL = ((FIND_UNUSED, True), (STATIC, False))
_READY = "marked as ready twice"


def _own(mode: Mode, **more: object) -> TrainerPractice:
    return TrainerPractice(TRAINER, AS_IT_IS, mode, **more)  # type: ignore[arg-type]


def _row(name: str, outcome: SetUpOutcome = "works", symptom: str = "", **more: object) -> SetUp:
    known = {
        "message": "" if outcome == "works" else "it raises",
        "recomputed": 2,
        "blocks": 2,
        "saved_bytes": 100,
        **more,
    }
    return SetUp(TRAINER, name, "", outcome, symptom, **known)  # type: ignore[arg-type]


def _told(practices: tuple[TrainerPractice, ...], *failing: SetUp) -> tuple[str, str]:
    """Return the answer and the lines to write, where all set-ups work but some."""
    rows = {
        each.name: _row(each.name, saved_bytes=400 if each.mode == "plain" else 100) for each in practices
    }
    advice = answer(practices, list((rows | {each.name: each for each in failing}).values()))
    return advice.sentence, advice.setting


def test_names_are_spelled_out_and_none_is_tried_twice() -> None:
    frozen = trainer_practices(_own("reentrant"), is_frozen=True)
    assert [each.name for each in frozen] == [
        "as it is",
        "without checkpointing",
        "use_reentrant=False",
        "use_reentrant=True after model.enable_input_require_grads()",
    ]
    together = trainer_practices(_own("plain", options=_PARALLEL, ranks=2), is_frozen=False)
    assert [each.name for each in together] == [
        "as it is",
        "use_reentrant=False, ddp_find_unused_parameters=False",
        "use_reentrant=False, ddp_find_unused_parameters=True",
        "use_reentrant=True, ddp_find_unused_parameters=False",
        "use_reentrant=True, ddp_static_graph=True",
    ]
    switched = trainer_practices(_own("plain", switch=("model.save()",)), is_frozen=False)
    assert [each.name for each in switched] == ["as it is", "with checkpointing"]
    assert switched[1].lines() == ("model.save()",)


def test_the_lines_name_the_class_of_the_arguments() -> None:
    for each in trainer_practices(_own("reentrant", made_by="SFTConfig"), is_frozen=True):
        assert "SFTConfig(" in each.lines()


def test_a_run_that_works_is_fine() -> None:
    practices = trainer_practices(_own("non-reentrant"), is_frozen=False)
    assert _told(practices) == (
        "Your run is fine: 2 of 2 blocks are recomputed, all gradients are those without checkpointing, and "
        "a step keeps 75% less for its backward pass.",
        "",
    )
    some = trainer_practices(_own("non-reentrant", others=(("every_n_layers", "2"),)), is_frozen=False)
    sentence, _ = _told(some, _row(AS_IT_IS, recomputed=1))
    assert sentence.startswith(
        "Your run is right, but only 1 of 2 blocks are recomputed with `every_n_layers=2`"
    )


def test_a_run_without_checkpointing_is_told_how_to_switch_it_on() -> None:
    sentence, setting = _told(trainer_practices(_own("plain"), is_frozen=False))
    assert sentence == (
        "Your run is fine, and does not checkpoint. With checkpointing, a step would keep 75% less for its "
        "backward pass."
    )
    assert setting.splitlines() == [
        "TrainingArguments(",
        "    ...,",
        "    gradient_checkpointing=True,",
        '    gradient_checkpointing_kwargs={"use_reentrant": False},',
        ")",
    ]


@pytest.mark.parametrize(
    ("symptom", "parameters", "words"),
    [
        (LOST, ("a", "b"), "Your run loses the gradients of 2 parameters, such as `a`: with "),
        (LOST, ("a",), "Your run loses the gradients of `a`: with "),
        (WRONG, ("a", "b"), "Your run trains on wrong gradients of 2 parameters, such as `a`: with "),
        (WRONG, ("buffer a",), "Your run does not update `a`, as without checkpointing: with "),
        (NOTHING_RECOMPUTED, (), "Your run saves no memory, since no block is recomputed: with "),
        ("ValueError", (), "Your run fails (ValueError): it raises: with "),
    ],
)
def test_what_happens_comes_first_and_then_why(symptom: str, parameters: tuple[str, ...], words: str) -> None:
    practices = trainer_practices(_own("reentrant"), is_frozen=True)
    sentence, setting = _told(practices, _row(AS_IT_IS, "fails", symptom, parameters=parameters))
    frozen = "`use_reentrant=True` and a frozen base, nothing that enters the blocks requires grad."
    assert sentence == f"{words}{frozen}"
    assert '{"use_reentrant": False}' in setting
    inputs = _row(practices[3].name, "fails", symptom)
    assert _told(practices, _row(AS_IT_IS, "fails", symptom, parameters=parameters), inputs)[0] == (
        f"{words}`use_reentrant=True`."
    )


def test_settings_of_which_any_other_value_helps_are_named_together() -> None:
    practices = trainer_practices(_own("reentrant", options=_PARALLEL, ranks=2), is_frozen=False)
    sentence, setting = _told(practices, _row(AS_IT_IS, "fails", _READY, message="it raises"))
    assert sentence == (
        "Your run fails (marked as ready twice): it raises: with `use_reentrant=True` and "
        "`ddp_find_unused_parameters=True`."
    )
    # The rest of it stays as it is.
    assert '"use_reentrant": False' in setting
    assert "ddp_find_unused_parameters=True" in setting


def test_where_nothing_works_that_checkpoints_it_is_switched_off() -> None:
    practices = trainer_practices(_own("non-reentrant"), is_frozen=False)
    failing = [
        _row(each.name, "fails", WRONG, parameters=("a",)) for each in practices if each.mode != "plain"
    ]
    sentence, setting = _told(practices, *failing)
    assert sentence.endswith("`a`. Of the ways to checkpoint that were tried, none works.")
    assert "gradient_checkpointing=False" in setting


def test_each_cell_says_how_it_is_known() -> None:
    practices = trainer_practices(_own("non-reentrant"), is_frozen=False)
    rows = (
        _row(AS_IT_IS),
        _row("without checkpointing", saved_bytes=400),
        _row("use_reentrant=True", "fails", LOST, parameters=("a", "b")),
        _row("one", "fails", "TypeError", message="it raises TypeError: " + "word " * 50),
        _row("two", "fails", _READY, message="it raises; without checkpointing as well"),
        _row("three", "not run", "known", message="it takes several processes"),
    )
    result = ClassResult("", "Model", "passed", setups=rows, advice=(answer(practices, rows),), notes=("a",))
    _, empty, head, *table, note = trainer_lines(result)
    assert (empty, note) == ("", "note: a")
    assert head.split() == ["set-up", "result", "kept", "for", "backward"]
    text = "\n".join(" ".join(each.split()) for each in table)
    assert "as it is works (ran) 100 B (ran), 75% less (computed)" in text
    assert "without checkpointing works (ran) 400 B (ran)" in text
    assert "use_reentrant=True loses the gradients of 2 parameters (ran) -" in text
    assert "one fails (ran): it raises TypeError: word" in text
    assert "…" in text
    assert "two fails (ran): marked as ready twice; without checkpointing as -\nwell" in text
    assert "three not run (known: it takes several processes) -" in text
