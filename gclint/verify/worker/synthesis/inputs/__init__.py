"""Inputs of a model, made from the signature of its ``forward``, its documentation and its configuration."""
