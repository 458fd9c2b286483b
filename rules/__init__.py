"""The rules, one module each; packaged as ``gclint.rules``."""
