"""What runs saw of calls in the source: a second source beside the text, for those who read that.

It needs neither torch nor the verifier: a run of the linter has none, and asks it in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Protocol

from gclint.verify.worker.cause import Cause


@dataclass(frozen=True)
class Observed:
    """What one call did with blocks of one class, over all runs; each name is that of a parameter."""

    path: Path
    """The file of the call, by its identity."""
    first: int
    """The row in which the call begins, in the text as it is now; rows count from 1."""
    last: int
    block: str
    """The name of the block's class."""
    definition: Path
    """The file that defines it."""
    is_left_out: bool = False
    """Whether its blocks feed one another, and checkpointing does not recompute them."""
    keywords: frozenset[str] = frozenset()
    """What was passed by keyword and required grad."""
    containers: frozenset[str] = frozenset()
    """What held tensors that require grad."""
    shared: frozenset[str] = frozenset()
    """What several calls were passed of one graph, in either of these ways."""
    causes: frozenset[Cause] = frozenset()
    """What failures at the call come from."""

    @property
    def losing(self) -> frozenset[str]:
        """What is passed by keyword and, as runs have shown, gets no gradient or a wrong one."""
        return self._at_fault(self.keywords) if Cause.KEYWORD_ACTIVATION in self.causes else frozenset()

    @property
    def about_to_lose(self) -> frozenset[str]:
        """What is shared, and so will lose its gradient as soon as the blocks are recomputed."""
        return self.keywords & self.shared if self.is_left_out else frozenset()

    @property
    def losing_inside(self) -> frozenset[str]:
        """What holds tensors that, as runs have shown, get no gradient or a wrong one."""
        return self._at_fault(self.containers) if Cause.CONTAINED_ACTIVATION in self.causes else frozenset()

    def _at_fault(self, names: frozenset[str]) -> frozenset[str]:
        return names & self.shared or names


@dataclass(frozen=True)
class Feeding:
    """A module that feeds the first block of a model, and is not what ``get_input_embeddings()`` returns."""

    path: Path
    """The file of the model's class, by its identity."""
    model: str
    """The name of the class."""
    module: str
    """The way from the model to the module, such as ``embeddings.projection``."""
    present: str | None
    """The way to what is returned now, empty for what is outside of the model; None where nothing is."""
    fails: bool
    """Whether that returns something other than one tensor, so that the hook on it raises."""


@dataclass(frozen=True)
class Changed:
    """A line that changes in place what had to stay as it is, since it requires grad."""

    path: Path
    """The file, by its identity."""
    row: int
    """In the text as it is now; rows count from 1."""


class Text(Protocol):
    """A file's text."""

    @property
    def path(self) -> Path:
        """The path that identifies the file."""

    @property
    def line_starts(self) -> Sequence[int]:
        """The offset at which each line begins."""

    def line(self, row: int) -> str:
        """Return the text of a row, which counts from 1."""


class Observations:
    """What runs saw, by file; it moves along with the text while that is edited."""

    def __init__(
        self,
        seen: Iterable[Observed] = (),
        feeding: Iterable[Feeding] = (),
        changed: Iterable[Changed] = (),
    ) -> None:
        """Know what was seen of calls, of models, and of lines."""
        self._feeding = tuple(feeding)
        self._changed = tuple(changed)
        self._by_path: dict[Path, list[Observed]] = {}
        for each in seen:
            self._by_path.setdefault(each.path, []).append(each)

    def of(self, path: Path) -> tuple[Observed, ...]:
        """Return what was seen of the calls in the file at ``path``."""
        return tuple(self._by_path.get(path, ()))

    def feeding(self, path: Path) -> tuple[Feeding, ...]:
        """Return what was seen of the models in the file at ``path``."""
        return tuple(each for each in self._feeding if each.path == path)

    def changed(self, path: Path) -> frozenset[int]:
        """Return the rows of the file at ``path`` in which a leaf that requires grad was changed."""
        return frozenset(each.row for each in self._changed if each.path == path)

    def follow(self, before: Text, after: Text) -> None:
        """Let what was seen in a file be found in another text of it."""
        if before.path in self._by_path or self.changed(before.path):
            rows = {1 + old: 1 + new for old, new in _pairs(_lines(before), _lines(after))}
            seen = self._by_path.get(before.path, [])
            self._by_path[before.path] = [
                replace(each, first=rows[each.first], last=rows[each.last]) for each in seen
            ]
            self._changed = tuple(
                replace(each, row=rows[each.row]) if each.path == before.path else each
                for each in self._changed
            )


def _lines(text: Text) -> list[str]:
    return [text.line(row) for row in range(1, len(text.line_starts) + 1)]


def _pairs(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the rows of a text with those of another one; what is replaced begins and ends where it did."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for _, old, old_end, new, new_end in matcher.get_opcodes():
        for row in range(old, old_end):
            # The last row of what is replaced stays the last one.
            is_last = row == old_end - 1 and row > old
            yield row, max(new, new_end - 1) if is_last else min(new + row - old, max(new, new_end - 1))
