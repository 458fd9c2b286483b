"""The dynamic verifier: trains each model for a moment, with and without checkpointing, and compares."""
