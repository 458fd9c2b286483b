"""What is sent arrives as it was, and what is not known is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.estimates import Addition, MemoryEstimate, ModeEstimate, Saved
from gclint.verify.worker.protocol import ClassResult, Failure, SourcePlace, decode, encode
from tests.verify.command_line import Gclint, failing, write


@pytest.mark.parametrize("cause", [*Cause, None])
def test_a_failure_arrives_with_its_cause(cause: Cause | None) -> None:
    place = SourcePlace("modeling_x.py", 1, 2)
    failure = Failure("loss", "reentrant", "default", "it differs", ("a",), (place,), cause, "Because.")
    result = ClassResult("modeling_x.py", "Model", "failed", failures=(failure,))
    arrived = decode(encode(result))
    assert arrived == result
    assert isinstance(arrived, ClassResult)
    assert arrived.failures[0].cause is cause


def test_an_estimate_arrives_with_its_tensors_and_places() -> None:
    saved = Saved(
        "model.layers.*", SourcePlace("modeling_x.py", 1, 2), "checkpoint", (1, 8, 4), "float32", 2, 256
    )
    estimate = MemoryEstimate(
        "modeling_x.py",
        "Model",
        modes=(ModeEstimate("plain", 256, largest=(saved,)), ModeEstimate("reentrant", error="it raises")),
        additions=(Addition("reentrant", "model.layers", "Layer", 2, 128, (1, 8, 4), 128),),
    )
    arrived = decode(encode(estimate))
    assert arrived == estimate
    assert isinstance(arrived, MemoryEstimate)
    assert arrived.mode("reentrant") is None


def test_a_failure_in_words_is_what_was_seen_and_why() -> None:
    failure = Failure("loss", "reentrant", "default", "it differs")
    assert failure.text == "it differs"
    explained = Failure("loss", "reentrant", "default", "it differs", explanation="A block draws others.")
    assert explained.text == "it differs. A block draws others."


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            '"cause":"keyword activation"',
            '"cause":"gremlins"',
            "this version of gclint knows no cause 'gremlins'",
        ),
        (
            '"explanation":"The call passes `x` by keyword."',
            '"rule":"GC003"',
            "not a message of the verifier",
        ),
    ],
)
def test_results_of_another_version_are_refused_with_the_line(
    gclint: Gclint, old: str, new: str, complaint: str
) -> None:
    write("toy", failing("A"))
    gclint("--results", "results.jsonl")
    text = Path("results.jsonl").read_text()
    assert old in text
    Path("results.jsonl").write_text(text.replace(old, new))
    for arguments in (("merge", "results.jsonl"), ("--resume", "--results", "results.jsonl")):
        outcome = gclint(*arguments)
        assert outcome.status == 2
        assert outcome.err.startswith("Error: results.jsonl:4: this is not a result of gclint verify (")
        assert complaint in outcome.err
        assert "Traceback" not in outcome.err
