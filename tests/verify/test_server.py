"""The worker's server: what it says of sources and classes, whatever happens in them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.estimates import EstimateRequest, MemoryEstimate
from gclint.verify.worker.protocol import (
    ClassResult,
    Discovered,
    Environment,
    Failure,
    Finished,
    Message,
    ObservedSite,
    Progress,
    Request,
    Source,
    SourcePlace,
    Unusable,
)
from gclint.verify.worker.server import serve
from tests.verify.stand_in import StandIn

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


def _source(folder: Path, text: str, name: str = "modeling_toy") -> Source:
    path = folder / f"{name}.py"
    path.write_text(dedent(text))
    return Source(str(path), f"{folder.name}_package.{name}", str(folder))


def _serve(*sources: Source, program: StandIn | None = None, **settings: Any) -> list[Message]:
    messages: list[Message] = []
    serve(Request(sources, **settings), messages.append, program or StandIn())
    return messages


def _results(messages: Sequence[Message]) -> dict[str, ClassResult]:
    return {message.name: message for message in messages if isinstance(message, ClassResult)}


def _run_body(folder: Path, body: str, **settings: Any) -> ClassResult:
    """Return the result of a class whose examination has the given body."""
    text = "import ctypes, os, signal, sys\n\nclass Toy:\n    @staticmethod\n    def run(watch, known):\n"
    lines = "".join(f"        {line}\n" for line in dedent(body).strip().splitlines())
    return _results(_serve(_source(folder, text + lines), **settings))["Toy"]


def test_everything_that_is_run_is_told_in_order(tmp_path: Path) -> None:
    source = _source(
        tmp_path,
        """
        class Second:
            run = staticmethod(lambda watch, known: watch.begin("default", "plain", "the forward pass"))

        class First:
            run = staticmethod(lambda watch, known: None)
        """,
    )
    environment, *messages = _serve(source)
    assert isinstance(environment, Environment)
    assert (environment.torch, environment.transformers, environment.device) == ("2.13.0", "5.23.0", "cpu")
    assert [replace(each, seconds=0.0) if isinstance(each, ClassResult) else each for each in messages] == [
        Discovered(source.path, ("Second", "First")),
        Progress(source.path, "Second", "default", "plain", "the forward pass"),
        ClassResult(source.path, "Second", "passed", notes=("cpu",)),
        ClassResult(source.path, "First", "passed", notes=("cpu",)),
        Finished(),
    ]


def test_only_the_wanted_classes_are_run(tmp_path: Path) -> None:
    source = _source(tmp_path, "class A:\n    run = print\n\nclass B:\n    run = print\n")
    messages = _serve(replace(source, only=("B",)))
    assert Discovered(source.path, ("B",)) in messages
    assert list(_results(messages)) == ["B"]


def test_a_class_that_dies_costs_no_other_anything(tmp_path: Path) -> None:
    source = _source(
        tmp_path,
        """
        import os

        class Dying:
            run = staticmethod(lambda watch, known: os.abort())

        class Living:
            run = staticmethod(lambda watch, known: None)
        """,
    )
    results = _results(_serve(source))
    assert results["Living"].outcome == "passed"
    assert (results["Dying"].outcome, results["Dying"].category) == ("not run", "crash")
    assert results["Dying"].reason == (
        "there was an abort, as of a failed assertion in native code (SIGABRT) before the first step"
    )


def test_what_dies_without_checkpointing_is_not_run_with_its_reason(tmp_path: Path) -> None:
    result = _run_body(
        tmp_path,
        """
        watch.begin("default", "plain", "the forward pass")
        sys.exit(3)
        """,
    )
    assert (result.outcome, result.category, result.failures) == ("not run", "exit", ())
    assert result.reason == (
        "there was a call of sys.exit(3) during the forward pass (without checkpointing, default), on line 7"
    )


@pytest.mark.parametrize(
    ("deed", "check"),
    [
        ("ctypes.string_at(0)", "crash"),
        ("sys.exit(3)", "exit"),
        ("os._exit(0)", "exit"),
        ("bytearray(40_000_000_000)", "memory limit"),
        ("while True: pass", "time limit"),
    ],
)
def test_what_dies_in_a_checkpointed_step_has_failed_there(tmp_path: Path, deed: str, check: str) -> None:
    result = _run_body(
        tmp_path,
        f"""
        watch.begin("cache", "plain", "the backward pass")
        watch.begin("cache", "non-reentrant", "the backward pass")
        {deed}
        """,
        seconds=0.3,
        gigabytes=1.0,
    )
    assert (result.outcome, result.reason, result.category) == ("failed", None, None)
    (failure,) = result.failures
    assert (failure.check, failure.mode, failure.scenario) == (check, "non-reentrant", "cache")
    assert "during the backward pass (non-reentrant checkpointing, cache)" in failure.message
    if deed != "os._exit(0)":
        assert failure.places == (SourcePlace(result.source, 8, 8),)


def test_a_class_that_is_slow_in_every_mode_has_not_failed(tmp_path: Path) -> None:
    result = _run_body(
        tmp_path,
        """
        import time
        watch.begin("default", "plain", "the forward pass")
        while time.process_time() < 0.3: pass
        watch.begin("default", "reentrant", "the forward pass")
        while True: pass
        """,
        seconds=0.6,
    )
    assert (result.outcome, result.category, result.failures) == ("not run", "time limit", ())


@pytest.mark.parametrize("deed", ["os.kill(os.getpid(), signal.SIGKILL)", "raise KeyError('gclint')"])
def test_a_death_that_is_not_the_models_doing_is_no_failure(tmp_path: Path, deed: str) -> None:
    result = _run_body(
        tmp_path,
        f"""
        watch.begin("default", "reentrant", "the backward pass")
        {deed}
        """,
    )
    assert (result.outcome, result.failures) == ("not run", ())
    assert result.category in ("killed", "verifier")


def test_what_was_known_before_the_death_is_kept_and_explains_it(tmp_path: Path) -> None:
    place = "SourcePlace(known.source, 5, 6)"
    result = _run_body(
        tmp_path,
        f"""
        from dataclasses import replace
        from gclint.verify.worker.protocol import Failure, SourcePlace, ObservedSite
        site = ObservedSite({place}, "Block", {place}, True, True, 2, True, keyword_activations=("memory",))
        failure = Failure("gradients", "non-reentrant", "default", "they differ")
        watch.known(replace(known, sites=(site,), failures=(failure,)))
        watch.begin("default", "plain", "the backward pass")
        watch.begin("default", "reentrant", "the backward pass")
        while True: pass
        """,
        seconds=0.3,
    )
    place_of_site = SourcePlace(result.source, 5, 6)
    assert result.sites == (
        ObservedSite(
            place_of_site, "Block", place_of_site, True, True, 2, True, keyword_activations=("memory",)
        ),
    )
    known, death = result.failures
    assert known == Failure("gradients", "non-reentrant", "default", "they differ")
    expected = ("time limit", Cause.KEYWORD_ACTIVATION, (place_of_site,))
    assert (death.check, death.cause, death.places) == expected
    assert death.message.startswith("there was no end within 0.3 s of CPU time during the backward pass")
    assert death.explanation == "Tensors that require grad are passed by keyword: memory."


def test_a_failure_stays_one_when_a_plain_step_dies_later(tmp_path: Path) -> None:
    result = _run_body(
        tmp_path,
        """
        from dataclasses import replace
        from gclint.verify.worker.protocol import Failure
        failure = Failure("gradients", "non-reentrant", "default", "they differ")
        watch.known(replace(known, failures=(failure,)))
        watch.begin("cache", "plain", "the forward pass")
        os._exit(1)
        """,
    )
    assert (result.outcome, len(result.failures), result.is_cut_short) == ("failed", 1, True)
    assert "status 1 during the forward pass (without checkpointing, cache)" in result.notes[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import no_such_library",
            "it cannot be imported: ModuleNotFoundError: No module named 'no_such_library'",
        ),
        ("import os\nos._exit(0)", "it cannot be imported: there was an exit of the process with status 0"),
        ("import sys\nsys.exit(0)", "it cannot be imported: there was a call of sys.exit(0)"),
        ("x = 1\nif x\n", "it cannot be imported: SyntaxError: expected ':' ({path}:2:5)"),
        ("x = 1\n  y = 2\n", "it cannot be imported: IndentationError: unexpected indent ({path}:2:"),
        ("\n1 / 0\n", "it cannot be imported: ZeroDivisionError: division by zero ({path}:2)"),
        (
            "\nimport json\njson.loads('{')",
            "it cannot be imported: json.decoder.JSONDecodeError: Expecting property name",
        ),
    ],
)
def test_a_source_that_cannot_be_imported_is_told_and_the_next_is_run(
    tmp_path: Path, text: str, message: str
) -> None:
    broken = _source(tmp_path, text, "modeling_broken")
    whole = _source(tmp_path, "class Toy:\n    run = print\n")
    messages = _serve(broken, whole)
    (unusable,) = [each for each in messages if isinstance(each, Unusable)]
    assert unusable.source == broken.path
    assert unusable.message.startswith(message.format(path=broken.path))
    assert "json" not in text or unusable.message.endswith("), from line 3")
    assert _results(messages)["Toy"].outcome == "passed"


def test_classes_that_are_left_when_their_source_dies_are_not_run(tmp_path: Path) -> None:
    body = "os.kill(os.getppid(), signal.SIGKILL)"
    result = _run_body(tmp_path, body)
    assert (result.outcome, result.category) == ("not run", "killed")
    assert result.reason
    assert "in the process that runs the classes of this file" in result.reason


def test_each_gpu_has_one_process_at_a_time(tmp_path: Path) -> None:
    sources = [_source(tmp_path, "class Toy:\n    run = print\n", f"modeling_{name}") for name in "abcd"]
    messages = _serve(*sources, program=StandIn(["cuda:0", "cuda:1"]), device="auto", jobs=8)
    used = {note for each in messages if isinstance(each, ClassResult) for note in each.notes}
    assert used <= {"cuda:0", "cuda:1"}


@pytest.mark.parametrize(
    ("program", "device", "message"),
    [
        (StandIn(problem="torch is not installed"), "cpu", "torch is not installed"),
        (StandIn(), "nothing", "there is no device 'nothing'"),
    ],
)
def test_a_worker_that_cannot_work_says_why(program: StandIn, device: str, message: str) -> None:
    assert _serve(program=program, device=device) == [Unusable(message)]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Fine", None),
        ("Gone", "there is no model class 'Gone'"),
        ("Killed", "SIGKILL"),
        ("Raising", "ValueError: no"),
    ],
)
def test_a_question_is_answered_whatever_the_model_does(
    tmp_path: Path, name: str, complaint: str | None
) -> None:
    source = _source(
        tmp_path,
        """
        import os, signal

        class Fine:
            run = staticmethod(lambda watch, known: None)

        class Killed:
            run = staticmethod(lambda watch, known: os.kill(os.getpid(), signal.SIGKILL))

        class Raising:
            @staticmethod
            def run(watch, known):
                raise ValueError("no")
        """,
    )
    *_, answer, done = _serve(source, question=EstimateRequest(name, batch=3))
    assert done == Finished()
    if complaint is None:
        assert answer == MemoryEstimate(source.path, name, batch=3)
    else:
        assert isinstance(answer, Unusable)
        assert complaint in answer.message
