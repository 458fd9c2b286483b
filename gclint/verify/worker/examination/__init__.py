"""Training steps with and without checkpointing, what happens in them, and what is wrong with it."""
