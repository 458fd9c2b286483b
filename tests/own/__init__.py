"""Tests of rules of the user's own."""
