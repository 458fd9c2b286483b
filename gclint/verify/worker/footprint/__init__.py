"""Estimates the memory of a training step without using that memory.

A model of any size is built of tensors that have a shape and no content (:mod:`fake`), and trained for a step
in each mode. Hooks record what autograd saves (:mod:`kept`), and a meter in :mod:`fake` what is alive.
"""
