"""The contract of safe fixes, held against generated models that are really trained.

``python3 -m tests.contract --models 3000 --seed 0`` draws models, lets gclint make its safe fixes,
trains each repaired model before and after under two releases of transformers, and asserts the four promises.
"""
