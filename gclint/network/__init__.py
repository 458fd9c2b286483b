"""The meaning of the code: stacks of blocks, the calls that run them, and where gradients flow."""
