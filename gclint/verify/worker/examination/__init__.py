"""Runs training steps with and without checkpointing, records what happens in them, and judges it."""

from gclint.verify.worker.examination.examine import examine

__all__ = ["examine"]
