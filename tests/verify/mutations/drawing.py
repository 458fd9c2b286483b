"""Which model gets which change: drawn with a seed, each model once."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.verify.mutations.kinds import Kind
from tests.verify.mutations.places import ModelingFile

_RESULT = re.compile(r"(\S+/(modeling_\w+\.py)) (\w+): passed$", re.MULTILINE)


@dataclass(frozen=True)
class Mutation:
    """A model with a changed line."""

    kind: Kind
    path: Path
    text: str
    model_class: str


def passing_classes(snapshot: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the classes that pass as they are, by the files below ``models``."""
    found: dict[str, list[str]] = {}
    for path, _, name in _RESULT.findall(snapshot.read_text(encoding="utf-8")):
        found.setdefault(path, []).append(name)
    return {path: tuple(names) for path, names in found.items()}


def draw(
    kinds: Sequence[Kind], models: Path, passing: Mapping[str, Sequence[str]], each: int, seed: int
) -> list[Mutation]:
    """Return ``each`` mutations of every kind, as far as there are models to change so.

    Args:
        kinds: the ways to change a line.
        models: the folder of the models.
        passing: the classes that pass as they are, by file.
        each: how many of a kind.
        seed: of the drawing.
    """
    generator = random.Random(seed)
    left = sorted(passing)
    drawn = []
    # What suits few models chooses first.
    for kind in kinds:
        generator.shuffle(left)
        made = []
        for mutation in _mutations(kind, models, left, passing):
            made.append(mutation)
            if len(made) == each:
                break
        used = {str(each.path.relative_to(models)) for each in made}
        left = sorted(name for name in left if name not in used)
        drawn += made
    return drawn


def _mutations(
    kind: Kind, models: Path, names: Sequence[str], passing: Mapping[str, Sequence[str]]
) -> Iterator[Mutation]:
    for name in names:
        path = models / name
        file = ModelingFile(path.read_text(encoding="utf-8"))
        # With one of each there is no doubt that the loop runs the block.
        if len(file.blocks) != 1 or len(file.loops) != 1:
            continue
        text = kind.change(file, file.blocks[0], file.loops[0])
        if text is None:
            continue
        compile(text, str(path), "exec")
        owner = file.loops[0].owner.name
        classes = passing[name]
        yield Mutation(kind, path, text, owner if owner in classes else min(classes, key=len))
