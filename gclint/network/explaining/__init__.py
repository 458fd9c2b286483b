"""Describes how a place in the code is understood, from the same knowledge that rules use."""
