"""Trains a class in the set-ups of the table of practices.

A group's module says how a model is prepared (:class:`~.group.Group`), :mod:`.practice_run` runs the steps in
a fork, :mod:`.judgement` compares them with those without checkpointing, and :mod:`.training` runs all
practices that were requested.
"""
