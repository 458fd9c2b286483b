"""What a block computes without its cache, held against what it computes with one."""
