"""Notes for readers of an estimate."""

from __future__ import annotations

from collections.abc import Iterator

from gclint.verify.worker.estimates import Question
from gclint.verify.worker.footprint.building import Trainee
from gclint.verify.worker.footprint.step import Structure


def notes(trainee: Trainee, question: Question, structure: Structure) -> Iterator[str]:
    """Yield remarks on what the numbers do not show."""
    if question.config is None and not question.fields and question.layers is None:
        yield f"The sizes are the defaults of {type(trainee.config).__name__}."
    if question.sequence is not None and not trainee.reads_text:
        yield "The model reads no tokens, so --seq changes nothing; its inputs follow from the configuration."
    positions = trainee.positions
    if trainee.reads_text and positions is not None and trainee.situation.plan.length > positions:
        yield f"The configuration allows {positions:,} positions, and this sequence is longer."
    if structure.has_chosen:
        yield "Choices that depend on computed values, such as experts, are assumed to be even."
    if structure.has_decided:
        yield "Conditions on computed values, such as whether one is infinite, are assumed to be false."
    if not structure.blocks:
        yield "No stack of blocks was found in this model, so single blocks are not listed."
    yield (
        "All parameters are trained, without a cache and without dropout of attention weights. Tensors are "
        "counted as torch's CPU kernels keep them, without workspaces and fragmentation."
    )
