"""Trains a class in the set-ups of the table of practices.

A group's module says how a model is made ready (:class:`~.group.Group`), :mod:`.taken` takes the steps in a
fork, :mod:`.judgement` compares them with those without checkpointing, and :mod:`.training` goes through what
was asked for.
"""

from gclint.verify.worker.training.training import trained

__all__ = ["trained"]
