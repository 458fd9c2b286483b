"""What gclint says, written down by place and kind, so that a rebuilding shows what it changes."""
