"""Makes tiny models, and inputs for them, by rules.

It has four packages, each of which imports only those after it:

1. :mod:`attempts` builds and runs a class; if that fails, it asks for hints and tries again;
2. :mod:`hints` reads the error of a failed attempt and proposes another plan;
3. :mod:`inputs` makes inputs from the signature and the documentation of ``forward``, and the configuration;
4. :mod:`configurations` makes tiny configurations from configuration classes.
"""
