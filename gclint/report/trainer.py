"""The answer to whether a trainer's run is fine, as text: a sentence, the lines to write, and a table."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gclint.code.paths import printable
from gclint.report.printing import binary_size
from gclint.verify.worker.practices import AS_IT_IS, BUFFER, KNOWN, OFF, WRONG
from gclint.verify.worker.protocol import ClassResult, SetUp
from gclint.verify.worker.training.answer import loses, saved_share
from gclint.wording import counted

_WIDTH = 130
_NAME, _LONGEST = 30, 120
_ALSO = "; without checkpointing as well"


def trainer_lines(result: ClassResult) -> Iterator[str]:
    """Yield the answer, the code of a setting that has run and works, and what each set-up showed."""
    for advice in result.advice:
        yield printable(advice.sentence)
        if advice.setting:
            yield "Write:" if result.outcome != "passed" else "To switch it on, write:"
            yield from (f"    {line}" for line in advice.setting.splitlines())
    yield ""
    yield from _table(result)
    yield from (f"note: {printable(each)}" for each in result.notes)


def _table(result: ClassResult) -> Iterator[str]:
    own, *others = result.setups
    without = next((each for each in others if each.name == OFF), own)
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("set-up", min_width=_NAME)
    table.add_column("result", overflow="fold")
    table.add_column("kept for backward", no_wrap=True)
    for row in result.setups:
        table.add_row(*(Text(printable(each)) for each in (row.name, _fate(row), _kept(row, without))))
    stream = StringIO()
    Console(file=stream, width=_WIDTH, color_system=None).print(table)
    yield from (line.rstrip() for line in stream.getvalue().splitlines())


def _fate(row: SetUp) -> str:
    """Return what became of a set-up, and how that is known."""
    if row.outcome == "not run":
        how = f"{KNOWN}: " if row.symptom == KNOWN else ""
        return f"not run ({how}{_cut(row.message)})"
    if row.outcome == "works":
        return f"works (ran){f': {row.message}' if row.message else ''}"
    if loses(row):
        return f"loses the gradients of {counted(len(row.parameters), 'parameter')} (ran)"
    if row.symptom == WRONG:
        kind = "buffers" if row.parameters[0].startswith(BUFFER) else "gradients"
        return f"wrong {kind}: {len(row.parameters)} (ran)"
    # The answer has the message of its own setting; exceptions are called by their class.
    is_clear = row.name == AS_IT_IS or row.symptom.islower()
    also = _ALSO if row.message.endswith(_ALSO) else ""
    return f"fails (ran): {row.symptom if is_clear else _cut(row.message)}{also}"


def _cut(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST].rpartition(' ')[0]} …"


def _kept(row: SetUp, without: SetUp) -> str:
    """Return what a step keeps for its backward pass."""
    if row.saved_bytes is None or row.outcome != "works":
        return "-"
    share = saved_share(row, without)
    less = "" if row is without or share is None else f", {share:.0%} less (computed)"
    return f"{binary_size(row.saved_bytes)} (ran){less}"
