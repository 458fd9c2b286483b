"""Builds and runs a class with one plan after another, until one of them works."""
