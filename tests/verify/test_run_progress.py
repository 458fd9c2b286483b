"""What a terminal shows of a run: what is running, and how far it is."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from gclint.report.run_progress import RunProgress
from gclint.verify.run import ReceivedMessage
from gclint.verify.worker.protocol import (
    ClassResult,
    Discovered,
    Message,
    Progress,
    Unusable,
)


def _console() -> Console:
    return Console(file=StringIO(), width=140, height=20, color_system=None)


def _lines(table: RunProgress) -> list[str]:
    console = _console()
    with console.capture() as captured:
        console.print(table)
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def _shown(*messages: Message, sources: int) -> list[str]:
    table = RunProgress(_console())
    table.expect(sources)
    for message in messages:
        table.take(ReceivedMessage(message, None))
    return _lines(table)


def _result(name: str, **more: object) -> ClassResult:
    return ClassResult("/toys/modeling_toy.py", name, **{"outcome": "passed", **more})  # type: ignore[arg-type]


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
