"""Tiny models and inputs for them, made by rule.

The rules read the configuration class (:mod:`fields`, :mod:`configuration`) and the signature and the
documentation of ``forward`` (:mod:`inputs`), and learn from the errors of attempts (:mod:`repair`).
"""

from gclint.verify.worker.synthesis.search import specimens

__all__ = ["specimens"]
