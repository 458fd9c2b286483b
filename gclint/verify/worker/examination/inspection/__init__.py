"""Inspects what a run does, what its checkpoints recompute, and what has changed in between."""
