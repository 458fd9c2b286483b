"""Finds what each additional block adds with checkpointing: its boundary, and anything else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gclint.verify.worker.estimates import Addition, Saved
from gclint.verify.worker.footprint.kept import OTHERS, Kept, Record, storage_of
from gclint.verify.worker.footprint.meter import Alive
from gclint.verify.worker.modes import Mode

_NUMBER = re.compile(r"\.\d+(?=\.|$)")


def additions(mode: Mode, records: Sequence[Record], kept: Kept) -> list[Addition]:
    """Return what each additional block of each stack adds in a checkpointed mode."""
    stacks: dict[tuple[str, str], list[str]] = {}
    for name in dict.fromkeys(kept.order):
        stacks.setdefault((re.sub(r"\.\d+$", "", name), kept.kinds[name]), []).append(name)
    found = (_addition(mode, stack, kind, blocks, records, kept) for (stack, kind), blocks in stacks.items())
    return [each for each in found if each is not None]


def _addition(
    mode: Mode, stack: str, kind: str, blocks: list[str], records: Sequence[Record], kept: Kept
) -> Addition | None:
    # The first block also keeps what all blocks share.
    inner = blocks[1:]
    if not inner or any(name not in kept.boundaries for name in inner):
        return None
    owners = kept.boundary_owners()
    own: dict[str, int] = {}
    extras: dict[str, list[Saved]] = {}
    for name in inner:
        # What follows the last one does not belong to it.
        is_last = name == blocks[-1]
        mine = [each for each in records if owners.get(storage_of(each.tensor), each.block) == name]
        beside = [each for each in mine if storage_of(each.tensor) not in owners]
        own[name] = sum(each.size for each in mine) - sum(each.size for each in beside)
        beside = [each for each in beside if not (is_last and each.is_after)]
        alive = [each for each in kept.others if each.block == name and not is_last]
        extras[name] = [*saved(beside), *_elsewhere(alive)]
    # What only one of several blocks keeps is shared by the later ones.
    times = Counter(each for listed in extras.values() for each in listed)
    again = {
        name: tuple(each for each in listed if times[each] > 1 or len(inner) == 1)
        for name, listed in extras.items()
    }
    sizes = {name: own[name] + sum(each.size for each in again[name]) for name in inner}
    most = max(sizes, key=lambda name: sizes[name])
    boundary = kept.boundaries[most]
    if not sizes[most]:
        return None
    return Addition(
        mode,
        stack,
        kind,
        len(blocks),
        boundary.untyped_storage().nbytes(),
        tuple(boundary.shape),
        sizes[most],
        again[most],
        recomputed=all(name in kept.checkpointed for name in blocks),
    )


def saved(records: Iterable[Record]) -> tuple[Saved, ...]:
    """Return records of the same line and shape together, the largest first."""
    groups: dict[Any, list[Record]] = {}
    for each in records:
        module = _NUMBER.sub(".*", each.module)
        key = (module, each.place, each.keeper, tuple(each.tensor.shape), str(each.tensor.dtype))
        groups.setdefault(key, []).append(each)
    found = [
        Saved(
            module, place, keeper, shape, dtype.removeprefix("torch."), len(same), sum(e.size for e in same)
        )
        for (module, place, keeper, shape, dtype), same in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.size))


def _elsewhere(alive: Iterable[Alive]) -> Iterator[Saved]:
    """Yield what neither autograd nor a checkpoint keeps."""
    for each in alive:
        dtype = str(each.dtype).removeprefix("torch.")
        yield Saved(_NUMBER.sub(".*", each.module), None, OTHERS, each.shape, dtype, 1, each.size)
