"""What a terminal shows of a run: a row for each class, what is running, and how far it is."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from gclint.report.progress_table import LiveTable, show_results
from gclint.verify.run import ReceivedMessage
from gclint.verify.worker.protocol import (
    ClassResult,
    Cost,
    Discovered,
    Failure,
    Message,
    Progress,
    Unusable,
)

_COSTS = (
    Cost("plain", 300 * 1024, 0.1),
    Cost("non-reentrant", 75 * 1024, 0.1),
    Cost("reentrant", 100 * 1024, 0.1),
)


def _console() -> Console:
    return Console(file=StringIO(), width=140, height=20, color_system=None)


def _lines(table: LiveTable) -> list[str]:
    console = _console()
    with console.capture() as captured:
        console.print(table)
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def _shown(*messages: Message, sources: int) -> list[str]:
    table = LiveTable(_console())
    table.expect(sources)
    for message in messages:
        table.take(ReceivedMessage(message, None))
    return _lines(table)


def _result(name: str, **more: object) -> ClassResult:
    return ClassResult("/toys/modeling_toy.py", name, **{"outcome": "passed", **more})  # type: ignore[arg-type]


def test_a_class_has_a_row_with_its_outcome_in_each_mode() -> None:
    failure = Failure("gradients", "reentrant", "default", "they differ")
    source = "/toys/modeling_toy.py"
    _, passed, failed, not_run, *_ = _shown(
        Discovered(source, ("Good", "Bad", "Unknown")),
        _result("Good", blocks=4, recomputed=4, costs=_COSTS, seconds=1.25),
        _result("Bad", outcome="failed", blocks=4, recomputed=2, failures=(failure, failure)),
        _result("Unknown", outcome="not run"),
        sources=1,
    )
    assert passed == "modeling_toy.py Good passed ok ok 4/4 300 KiB > 100 KiB 1.2 s"
    assert failed == "modeling_toy.py Bad failed ok 2 failed 2/4 - 0.0 s"
    assert not_run == "modeling_toy.py Unknown not run not run not run - - 0.0 s"


def test_what_is_running_is_shown_until_it_is_done() -> None:
    source = "/toys/modeling_toy.py"
    begun = Progress(source, "Good", "cache", "reentrant", "the backward pass")
    before = _shown(Discovered(source, ("Good",)), begun, sources=1)
    assert "Good: the backward pass (reentrant, cache)" in before
    after = _shown(Discovered(source, ("Good",)), begun, _result("Good"), sources=1)
    assert not any("the backward pass" in line for line in after)


def test_the_bar_counts_files_and_classes() -> None:
    messages: list[Message] = [
        Discovered("/toys/modeling_empty.py", ()),
        Unusable("it cannot be imported", "/toys/modeling_broken.py"),
        Discovered("/toys/modeling_toy.py", ("A", "B")),
        _result("A"),
        _result("B"),
    ]
    assert _shown(*messages[:4], sources=4)[-1].startswith("1 classes")
    assert " 2/4 files" in _shown(*messages[:4], sources=4)[-1]
    assert " 3/4 files" in _shown(*messages, sources=4)[-1]


def test_of_many_results_those_that_did_not_pass_are_left() -> None:
    results = [_result(f"Class{number}") for number in range(100)]
    stream = StringIO()
    show_results(stream, [*results, _result("Bad", outcome="failed")])
    assert "Bad" in stream.getvalue()
    assert "Class7" not in stream.getvalue()
    show_results(stream, results[:10])
    assert "Class7" in stream.getvalue()
