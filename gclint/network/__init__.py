"""What the code means: stacks of blocks, the calls that run them, and how arguments reach them."""
