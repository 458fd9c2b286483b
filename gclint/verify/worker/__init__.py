"""The part that runs in the interpreter of the tree under test.

It needs Python, torch and transformers, and nothing else: no other part of gclint, and none of what
gclint depends on. The other side imports nothing of it but :mod:`~gclint.verify.worker.protocol`,
:mod:`~gclint.verify.worker.scenarios` and :mod:`~gclint.verify.worker.vocabulary`.
"""
