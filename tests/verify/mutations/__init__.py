"""Models of a release with one line changed, so that their checkpointing breaks, or only looks as if it did."""
