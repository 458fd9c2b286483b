"""Finds fixes that were interrupted while their files were written, and finishes or undoes them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gclint.engine.disk import stage, sync_folders
from gclint.engine.journal import Busy, Record, Recorded, Unusable, digest_of, held
from gclint.engine.unfinished import journals_above
from gclint.facts import read_bytes
from gclint.source.paths import shown

_BEFORE, _AFTER = 0, 1
_NAMES_SHOWN = 5


class Unfinished(Exception):
    """A fix was interrupted, so files may be inconsistent; the message says what to do."""


def refuse_unfinished(paths: Iterable[Path]) -> None:
    """Make sure that no fix of the files at ``paths``, or of files beside them, was interrupted.

    Raises:
        Unfinished: one was, or is being written right now.
    """
    for journal in journals_above(paths):
        with _usable(journal, to_recover=False) as record:
            units = [unit for unit in record.units if record.is_complete and len(unit) > 1]
            if units:
                files = [each.target for unit in units for each in unit]
                raise Unfinished(
                    "a fix was interrupted while it was being written, so these files may be inconsistent: "
                    f"{_named(files)}; run 'gclint --fix {shown(files[0])}' to finish it"
                )


def recover(paths: Iterable[Path]) -> list[str]:
    """Finish or undo what was interrupted, and return what was done.

    A file that was edited since then is left alone, and so are those that change with it.

    Args:
        paths: files and folders; fixes in them, and in the folders that contain them, are considered.

    Raises:
        Unfinished: the user has something left to do.
    """
    done: list[str] = []
    for journal in journals_above(paths):
        with _usable(journal, to_recover=True) as record:
            done += _recovered(journal, record)
    return done


@contextlib.contextmanager
def _usable(journal: Path, *, to_recover: bool) -> Iterator[Record]:
    try:
        with held(journal, to_recover=to_recover) as record:
            yield record
    except (Busy, Unusable) as error:
        raise Unfinished(str(error)) from None


def _recovered(journal: Path, record: Record) -> list[str]:
    done = []
    try:
        for unit in record.units if record.is_complete else ():
            what = _settled(journal, unit)
            if what:
                done.append(f"{what} the interrupted fix of {_named([each.target for each in unit])}.")
    finally:
        for each in (each for unit in record.units for each in unit):
            with contextlib.suppress(OSError):
                each.temporary.unlink()
    for home in record.homes:
        with contextlib.suppress(FileNotFoundError):
            (home / journal.name).unlink()
    return done


def _settled(journal: Path, unit: Sequence[Recorded]) -> str | None:
    """Give all files of a unit their old content, or all their new one; return what was done."""
    if len(unit) == 1:
        return None
    states = [_state(each) for each in unit]
    if None in states:
        raise Unfinished(_conflict(journal, unit, states))
    if len(set(states)) == 1:
        return None
    why = ""
    for goal, what in ((_AFTER, "Finished"), (_BEFORE, "Undid")):
        try:
            _bring(unit, goal)
        except OSError as error:
            why = f"{shown(error.filename or unit[0].target)}: {error.strerror}"
        else:
            return what
    raise Unfinished(
        f"the interrupted fix of {_named([each.target for each in unit])} can be neither finished nor "
        f"undone ({why}); make these files writable, and run gclint again"
    )


def _bring(unit: Sequence[Recorded], goal: int) -> None:
    for each in unit:
        if _state(each) != goal:
            assert each.texts is not None
            stage(each.target, each.texts[goal], each.temporary)
            os.replace(each.temporary, each.target)  # noqa: PTH105 (as in disk)
    sync_folders({each.target.parent for each in unit})


def _state(each: Recorded) -> int | None:
    """Return whether a file has its old or its new content; None if neither, or if it cannot be read."""
    if os.path.realpath(each.target) != str(each.target):
        return None
    try:
        found = digest_of(read_bytes(each.target))
    except OSError:
        return None
    return each.digests.index(found) if found in each.digests else None


def _conflict(journal: Path, unit: Sequence[Recorded], states: Sequence[int | None]) -> str:
    by_state = {
        state: _named([each.target for each, own in zip(unit, states, strict=True) if own == state])
        for state in dict.fromkeys(states)
    }
    fixed = f"; fixed: {by_state[_AFTER]}" if _AFTER in by_state else ""
    unfixed = f"; not fixed: {by_state[_BEFORE]}" if _BEFORE in by_state else ""
    return (
        f"a fix was interrupted, and {by_state[None]} changed since then{fixed}{unfixed}. These files may "
        "be inconsistent, so gclint leaves them alone. Restore all of them, for example with 'git "
        f"checkout', or repair them by hand; then delete {shown(journal)} and run gclint again"
    )


def _named(paths: Sequence[Path]) -> str:
    names = [shown(path) for path in paths[:_NAMES_SHOWN]]
    more = len(paths) - len(names)
    return ", ".join([*names, *([f"and {more} more"] if more else [])])
