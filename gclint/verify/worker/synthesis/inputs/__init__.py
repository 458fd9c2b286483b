"""Inputs of a model, made from the signature and the documentation of ``forward``, and the configuration."""
