"""Finds fixes that were interrupted while their files were written, and finishes or undoes them."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gclint.code.paths import printable, shown
from gclint.facts import PathResolver, read_bytes
from gclint.userfolder import UserFolder
from gclint.write.disk import stage, sync_folders
from gclint.write.journal import (
    Busy,
    JournalContent,
    Recorded,
    Unfinished,
    UnusableJournal,
    digest_of,
    glance,
    held,
)
from gclint.write.unfinished import journal_folder, journals, named

_BEFORE, _AFTER = 0, 1
_SECONDS_KEPT = 30 * 24 * 3600
"""How long a journal is kept whose files have all been deleted, or are on a disk that is not mounted."""


def refuse_unfinished(paths: Sequence[Path]) -> list[str]:
    """Make sure that no fix of the files at ``paths``, or of files in them, was interrupted.

    Returns:
        Notes on journals that nothing is done with.

    Raises:
        Unfinished: one was, or is being written right now.
    """
    notes: list[str] = []
    area = _Area(paths)
    for folder, name in _concerned(area, notes):
        with held(folder, name, to_recover=False) as record:
            torn = area.torn(record) if record.is_complete else []
            if torn:
                files = [each.target for unit in torn for each in unit]
                raise Unfinished(
                    "a fix was interrupted while it was being written, so these files may be inconsistent: "
                    f"{named(files)}; run 'gclint --fix {shown(files[0])}' to finish it"
                )
    return notes


def recover(paths: Sequence[Path]) -> list[str]:
    """Finish or undo what was interrupted, and return what was done, and notes on what was not.

    A file that was edited since then is left alone, and so are those that change with it.

    Raises:
        Unfinished: the user has something left to do.
    """
    done: list[str] = []
    for folder, name in _concerned(_Area(paths), done, is_sweeping=True):
        with held(folder, name, to_recover=True) as record:
            done += _recovered(folder.path / name, record)
    return done


def unclaimed(temporaries: Sequence[Path], paths: Sequence[Path]) -> list[Path]:
    """Return those of some temporary files that no journal is about, in a run with the given paths."""
    glances = [glanced for _, _, glanced in _all(paths) if isinstance(glanced, JournalContent)]
    known = {each.temporary for glanced in glances for each in glanced.files}
    return [each for each in temporaries if each not in known]


def _all(given: Sequence[Path]) -> Iterator[tuple[UserFolder, str, JournalContent | UnusableJournal]]:
    """Yield this user's journals, each with what it is about, or why that is not known."""
    names = journals()
    if not names:
        return
    try:
        folder = UserFolder(journal_folder(given))
    except OSError:
        return
    with folder:
        for name in names:
            try:
                yield folder, name, glance(folder, name)
            except UnusableJournal as error:
                yield folder, name, error


def _concerned(
    area: _Area, notes: list[str], *, is_sweeping: bool = False
) -> Iterator[tuple[UserFolder, str]]:
    """Yield the journals of this machine about files in an area.

    What is to be said of others is added to ``notes``. If it ``is_sweeping``, those that are of no use are
    removed.
    """
    for folder, name, glanced in _all(area.given):
        if isinstance(glanced, UnusableJournal):
            notes.append(f"note: {glanced}")
        elif is_sweeping and _is_garbage(folder, name, glanced):
            _sweep(folder, name, glanced)
        elif any(area.has(str(each.target)) for each in glanced.files):
            note = _note(area, folder, name)
            if note is None:
                yield folder, name
            elif note:
                notes.append(f"note: {note}")


def _note(area: _Area, folder: UserFolder, name: str) -> str | None:
    """Return what to tell about a journal that must not be followed, if anything; None if it may be."""
    try:
        with held(folder, name, to_recover=False) as record:
            if record.is_from_here:
                return None
            files = [each.target for unit in area.torn(record) for each in unit]
    except UnusableJournal as error:
        return str(error)
    if not files:
        return ""
    return (
        f"{shown(folder.path / name)}: a fix of {named(files)} was interrupted on "
        f"{printable(record.machine)}; run 'gclint --fix' there to finish it, or check the files with 'git "
        "status' and 'git diff', and delete this journal"
    )


class _Area:
    """The given files and folders, with all that is in them."""

    def __init__(self, given: Sequence[Path]) -> None:
        self.given = given
        places = PathResolver()
        self._known = {str(places.location(path)): True for path in given}
        """Whether paths are in the area."""

    def torn(self, record: JournalContent) -> list[Sequence[Recorded]]:
        """Return the units of which a file is here, and not all files are as before, or all fixed."""
        here = (unit for unit in record.units if any(self.has(str(each.target)) for each in unit))
        return [unit for unit in here if not _is_whole(unit)]

    def has(self, target: str) -> bool:
        """Return whether a file is among them."""
        passed, at = [], target
        while at not in self._known and (above := os.path.split(at)[0]) != at:
            passed.append(at)
            at = above
        self._known.update(dict.fromkeys(passed, self._known.get(at, False)))
        return self._known.get(target, False)


def _is_garbage(folder: UserFolder, name: str, glanced: JournalContent) -> bool:
    """Return whether a journal was cut off before it names any file, or its files have long been deleted."""
    if not glanced.units:
        return True
    with contextlib.suppress(OSError):
        age = time.time() - folder.status(name).st_mtime
        return age > _SECONDS_KEPT and not any(os.path.lexists(each.target) for each in glanced.files)
    return False


def _sweep(folder: UserFolder, name: str, glanced: JournalContent) -> None:
    """Remove a journal, unless its run is still at work, or it is another machine's."""
    with contextlib.suppress(Busy, UnusableJournal), held(folder, name, to_recover=True) as record:
        is_same = [each.target for each in glanced.files] == [each.target for each in record.files]
        if not is_same or (record.units and not record.is_from_here):
            raise Busy


def _recovered(journal: Path, record: JournalContent) -> list[str]:
    done = []
    try:
        for unit in record.units if record.is_complete else ():
            what = _settled(journal, unit)
            if what:
                done.append(f"{what} the interrupted fix of {named([each.target for each in unit])}.")
    finally:
        for each in record.files:
            _discard(each.temporary)
    return done


def _discard(temporary: Path) -> None:
    """Remove a temporary file; anything else in its place is left alone."""
    with contextlib.suppress(OSError):
        if _is_direct(temporary) and stat.S_ISREG(temporary.lstat().st_mode):
            temporary.unlink()


def _settled(journal: Path, unit: Sequence[Recorded]) -> str | None:
    """Give all files of a unit their old content, or all their new one; return what was done."""
    if _is_whole(unit):
        return None
    states = [_state(each) for each in unit]
    if None in states:
        raise Unfinished(_conflict(journal, unit, states))
    why = ""
    for goal, what in ((_AFTER, "Finished"), (_BEFORE, "Undid")):
        try:
            _bring(unit, goal)
        except OSError as error:
            why = f"{shown(error.filename or unit[0].target)}: {error.strerror}"
        else:
            return what
    raise Unfinished(
        f"the interrupted fix of {named([each.target for each in unit])} can be neither finished nor "
        f"undone ({why}); make these files writable, and run gclint again"
    )


def _is_whole(unit: Sequence[Recorded]) -> bool:
    """Return whether all files of a unit have their old content, or all their new one."""
    if len(unit) == 1:
        return True
    states = {_state(each) for each in unit}
    return None not in states and len(states) == 1


def _bring(unit: Sequence[Recorded], goal: int) -> None:
    for each in unit:
        if _state(each) != goal:
            assert each.texts is not None
            stage(each.target, each.texts[goal], each.temporary)
            os.replace(each.temporary, each.target)  # noqa: PTH105 (as in disk)
    sync_folders({each.target.parent for each in unit})


def _is_direct(path: Path) -> bool:
    """Return whether no link leads to a path."""
    return os.path.realpath(path) == str(path)


def _state(each: Recorded) -> int | None:
    """Return whether a file has its old or its new content; None if neither, or if it cannot be read."""
    if not _is_direct(each.target):
        return None
    try:
        found = digest_of(read_bytes(each.target))
    except OSError:
        return None
    return each.digests.index(found) if found in each.digests else None


def _conflict(journal: Path, unit: Sequence[Recorded], states: Sequence[int | None]) -> str:
    by_state = {
        state: named([each.target for each, own in zip(unit, states, strict=True) if own == state])
        for state in dict.fromkeys(states)
    }
    fixed = f"; fixed: {by_state[_AFTER]}" if _AFTER in by_state else ""
    unfixed = f"; not fixed: {by_state[_BEFORE]}" if _BEFORE in by_state else ""
    return (
        f"a fix was interrupted, and {by_state[None]} changed since then{fixed}{unfixed}. These files may "
        "be inconsistent, so gclint leaves them alone. Restore all of them, for example with 'git "
        f"checkout', or repair them by hand; then delete {shown(journal)} and run gclint again"
    )
