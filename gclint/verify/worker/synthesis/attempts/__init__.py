"""Attempts: building and running a class with one plan after another, until one of them works."""
