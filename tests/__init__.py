"""Tests of gclint, and the programs behind the README's two commands."""
