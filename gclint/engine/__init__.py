"""Runs rules over files, makes their fixes, and writes what changed."""
