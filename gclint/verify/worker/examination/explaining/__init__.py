"""Explains failures: each suspected cause needs evidence from the run."""
