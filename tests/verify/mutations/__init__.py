"""Models of a release with one line changed, so that their checkpointing breaks, or only seems to."""
