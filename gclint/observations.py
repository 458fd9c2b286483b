"""What runs of models have observed of calls in the source: a second source of knowledge besides the code.

This needs neither torch nor the verifier. In a plain lint run, there are no observations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from gclint.verify.worker.cause import Cause

_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True)
class Observed:
    """What one call did with blocks of one class, over all runs; names are those of parameters."""

    path: Path
    """The path that identifies the file of the call."""
    first: int
    """The row, from 1, on which the call begins in the current text."""
    last: int
    block: str
    """The name of the block's class."""
    definition: Path
    """The file that defines it."""
    columns: tuple[int, ...] = ()
    """Where the call begins and ends within its rows, from 0 in bytes; empty where that is not known."""
    is_left_out: bool = False
    """Whether its blocks feed one another and are not recomputed with checkpointing."""
    keywords: frozenset[str] = frozenset()
    """The parameters that received tensors that require grad by keyword."""
    containers: frozenset[str] = frozenset()
    """The parameters that received containers of tensors that require grad."""
    shared: frozenset[str] = frozenset()
    """Those of them that received tensors of the same graph in several calls."""
    causes: frozenset[Cause] = frozenset()
    """The causes of failures at the call."""
    shown: frozenset[str] = frozenset()
    """The codes of the rules whose damage runs have shown there."""

    @property
    def losing(self) -> frozenset[str]:
        """The parameters that lose their gradient because they are passed by keyword, as runs have shown."""
        return self._at_fault(self.keywords) if Cause.KEYWORD_ACTIVATION in self.causes else frozenset()

    @property
    def about_to_lose(self) -> frozenset[str]:
        """The shared parameters, which will lose their gradients when the blocks become recomputed."""
        return self.keywords & self.shared if self.is_left_out else frozenset()

    @property
    def losing_inside(self) -> frozenset[str]:
        """The parameters whose containers hold tensors that lose their gradients, as runs have shown."""
        return self._at_fault(self.containers) if Cause.CONTAINED_ACTIVATION in self.causes else frozenset()

    def _at_fault(self, names: frozenset[str]) -> frozenset[str]:
        return names & self.shared or names


@dataclass(frozen=True)
class Feeding:
    """A module that feeds the first block of a model, but is not returned by ``get_input_embeddings()``."""

    path: Path
    """The path that identifies the file of the model's class."""
    model: str
    """The name of the class."""
    module: str
    """The path of attributes from the model to the module, such as ``embeddings.projection``."""
    present: str | None
    """The path to the returned module, empty if it is not in the model; None if nothing is returned."""
    fails: bool
    """Whether the output of that module is not a single tensor, so that the hook on it raises."""


class Observations:
    """All observations, by file; their rows are updated when a file is edited."""

    def __init__(
        self,
        seen: Iterable[Observed] = (),
        feeding: Iterable[Feeding] = (),
        changed: Iterable[tuple[Path, int]] = (),
    ) -> None:
        """Store the observations of calls, models and lines.

        A line that has ``changed`` a leaf that requires grad in place is named by its file and row, from 1.
        """
        self._feeding = tuple(feeding)
        self._changed: dict[Path, frozenset[int]] = {}
        for path, row in changed:
            self._changed[path] = self.changed(path) | {row}
        self._by_path: dict[Path, list[Observed]] = {}
        for each in seen:
            self._by_path.setdefault(each.path, []).append(each)

    def of(self, path: Path) -> tuple[Observed, ...]:
        """Return the observations of calls in the file at ``path``."""
        return tuple(self._by_path.get(path, ()))

    def feeding(self, path: Path) -> tuple[Feeding, ...]:
        """Return the observations of models in the file at ``path``."""
        return tuple(each for each in self._feeding if each.path == path)

    def changed(self, path: Path) -> frozenset[int]:
        """Return the rows of the file at ``path`` on which a leaf that requires grad was changed."""
        return self._changed.get(path, frozenset())

    def follow(self, path: Path, before: str, after: str) -> None:
        """Update the observations of a file whose text has changed."""
        if path in self._by_path or self.changed(path):
            old_lines, new_lines = map(_LINE_END.split, (before, after))
            rows = {1 + old: 1 + new for old, new in _pairs(old_lines, new_lines)}

            def stays(row: int) -> bool:
                return old_lines[row - 1] == new_lines[rows[row] - 1]

            self._by_path[path] = [
                replace(
                    each,
                    first=rows[each.first],
                    last=rows[each.last],
                    # Within a line that has changed, it may be elsewhere.
                    columns=each.columns if stays(each.first) and stays(each.last) else (),
                )
                for each in self._by_path.get(path, [])
            ]
            self._changed[path] = frozenset(rows[row] for row in self.changed(path))


def _pairs(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs of corresponding rows of two texts; a replaced range keeps its first and last row."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for _, old, old_end, new, new_end in matcher.get_opcodes():
        for row in range(old, old_end):
            # The last row of a replaced range corresponds to the last row of its replacement.
            is_last = row == old_end - 1 and row > old
            yield row, max(new, new_end - 1) if is_last else min(new + row - old, max(new, new_end - 1))
