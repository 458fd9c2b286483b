"""Evaluates names, expressions and classes; the modules are mutually recursive by nature."""
