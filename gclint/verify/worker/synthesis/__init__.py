"""Tiny models and inputs for them, made by rule.

Four rooms, each of which imports only those after it, none of which imports one before it:

1. :mod:`attempts` builds a class, runs it, and asks for hints and tries again where it fails;
2. :mod:`hints` reads the error of a failed attempt and proposes another plan;
3. :mod:`inputs` makes inputs from the signature and the documentation of ``forward``, and the configuration;
4. :mod:`configurations` makes tiny configurations from configuration classes.
"""
