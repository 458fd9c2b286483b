"""Hints: how to try again after an attempt failed, judged by its error."""
