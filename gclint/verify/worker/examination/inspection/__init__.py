"""A close look at what a run does, what its checkpoints do again, and what has changed in between."""
