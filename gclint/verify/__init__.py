"""The dynamic verifier: trains each model for a few steps, with and without checkpointing, and compares."""
