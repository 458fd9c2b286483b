"""The part that runs in the interpreter of the tree under test.

It needs only Python, torch and transformers: no other part of gclint, and none of its dependencies. The other
side imports only those of its modules that need nothing but Python, such as
:mod:`~gclint.verify.worker.protocol`, :mod:`~gclint.verify.worker.scenarios` and
:mod:`~gclint.verify.worker.vocabulary`.
"""
