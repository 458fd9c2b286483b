"""What recomputing a block repeats or does otherwise, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from gclint.code.file import SourceFile
from gclint.code.paths import shown
from gclint.code.remembered import remembered
from gclint.model.attributes import spaces_of
from gclint.model.notes import Kind, Note
from gclint.model.recomputation import unknowns
from gclint.network.evaluation.classes import ClassInfo
from gclint.wording import listed

_WORDS: Mapping[Kind, str] = {
    Kind.INPUT: "changes `{}` in place, which recomputation repeats",
    Kind.STATE: "changes the state of {}, which recomputation repeats",
    Kind.GLOBAL: "changes the global `{}`, which recomputation repeats",
    Kind.SHARED: "changes {}, which recomputation repeats",
    Kind.KEPT: (
        "keeps `{}` for others, and losses computed from it have no gradient under reentrant checkpointing"
    ),
    Kind.RANDOM: "draws random numbers that are not torch's, so recomputation draws different ones",
    Kind.GENERATOR: (
        "draws random numbers with a `generator` of its own, whose state checkpointing does not restore, "
        "so recomputation draws different ones"
    ),
    Kind.GRADIENTS: (
        "uses `{}`, which needs gradients to be enabled, but reentrant checkpointing disables them in the "
        "forward pass"
    ),
    Kind.CALLBACK: "calls `{}`, which recomputation repeats",
    Kind.CONTAINER: "returns {}, whose tensors receive no gradient under reentrant checkpointing",
    Kind.DETACHED: "returns {}, and reentrant checkpointing makes it require one",
    Kind.UNKNOWN: "{}",
}
"""What the kinds of notes say, behind the name of a function."""
_REENTRANT = frozenset((Kind.KEPT, Kind.GRADIENTS, Kind.CONTAINER, Kind.DETACHED))
"""What matters under reentrant checkpointing alone."""


def recomputation_doubts(info: ClassInfo) -> list[str]:
    """Return what is known to go wrong if a block is recomputed that was not, or in one mode only."""
    notes = [each for each in recomputation_notes(info) if each.kind is not Kind.UNKNOWN]
    if stores_on_self(info):  # That is said of it anyway.
        notes = [each for each in notes if not _is_own_state(info, each)]
    return list(_said(info, notes))


def changed_in_place(info: ClassInfo, names: Collection[str]) -> list[str]:
    """Return where a block changes arguments in place, as reentrant checkpointing forbids by position."""
    notes = (each for each in recomputation_notes(info) if each.kind is Kind.INPUT and each.what in names)
    return list(_said(info, notes))


def classes_run(info: ClassInfo) -> set[ClassInfo]:
    """Return the class of a block and those of its parts, each with its bases."""
    return {base for part in (info, *info.all_parts) for base in part.mro}


def unknown_doubts(info: ClassInfo) -> list[str]:
    """Return what is not known to be right if a block is recomputed."""
    return list(_said(info, (each for each in recomputation_notes(info) if each.kind is Kind.UNKNOWN)))


def reentrant_doubts(info: ClassInfo) -> list[str]:
    """Return where a layer loses gradients under reentrant checkpointing, whatever it is given."""
    return list(_said(info, (each for each in recomputation_notes(info) if each.kind in _REENTRANT)))


def all_doubts(info: ClassInfo) -> list[str]:
    """Return all that is not the same if a block is recomputed, or not known to be."""
    return list(_said(info, recomputation_notes(info)))


def stores_on_self(info: ClassInfo) -> bool:
    """Return whether a method of a block's own that ``forward`` runs changes what the block holds."""
    return any(_is_own_state(info, each) for each in recomputation_notes(info))


def _is_own_state(info: ClassInfo, note: Note) -> bool:
    return note.kind is Kind.STATE and note.where.partition(".")[0] in {each.name for each in info.mro}


@remembered
def recomputation_notes(info: ClassInfo) -> tuple[Note, ...]:
    """Return what a block does that is not the same, or not known to be, if it is done once more."""
    return unknowns(spaces_of(info.module.library.project), info.file, info.name)


def _said(info: ClassInfo, notes: Iterable[Note]) -> Iterator[str]:
    """Yield what notes say, each cause with all of its lines."""
    found: dict[tuple[str, SourceFile], list[Note]] = {}
    for note in notes:
        clause = f"`{note.where}` {_WORDS[note.kind].format(note.what)}"
        found.setdefault((clause, note.file), []).append(note)
    for (clause, _), several in found.items():
        yield f"{clause}{_place(several, info)}"


def _place(notes: list[Note], info: ClassInfo) -> str:
    """Return in which lines notes are made, which are of one file."""
    rows = [str(row) for row in sorted({each.row for each in notes}) if row]
    if not rows:
        return ""
    file = notes[0].file
    lines = f"line {rows[0]}" if len(rows) == 1 else f"lines {listed(rows)}"
    return f" ({lines}{'' if file is info.file else f' of {shown(file.path)}'})"
