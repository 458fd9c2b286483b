"""Training steps with and without checkpointing, what happens in them, and what is wrong with it."""

from gclint.verify.worker.examination.examine import examine

__all__ = ["examine"]
