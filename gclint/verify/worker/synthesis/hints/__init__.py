"""Hints: how to try again after an attempt failed, told from its error."""
