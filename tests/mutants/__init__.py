"""Mutants of gclint: what one small change in its code does to its tests."""
