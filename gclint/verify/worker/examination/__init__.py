"""Runs training steps with and without checkpointing, records what happens in them, and judges it."""
