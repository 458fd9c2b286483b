"""Names of attributes that code singles out by how they begin and end."""

from __future__ import annotations

import ast

import pytest

from gclint.model.looking import is_singled_out

_LOOP = "for name in dir(model):\n"
_READ = "    getattr(model, name)()"


@pytest.mark.parametrize(
    ("code", "is_so"),
    [
        (f'{_LOOP}    if name.startswith("_set") and name.endswith("ing"):\n    {_READ}', True),
        (f'{_LOOP}    if not name.startswith("_set"):\n        continue\n{_READ}', True),
        (
            f'{_LOOP}    if not name.startswith("_set") or name.startswith("__"):\n        continue\n{_READ}',
            True,
        ),
        (f'{_LOOP}    if name.startswith("_get"):\n    {_READ}', False),
        (f'{_LOOP}    if name.startswith("_"):\n        continue\n{_READ}', False),
        (f'{_LOOP}    if name.startswith("__"):\n        continue\n{_READ}', False),
        (f'for name in [name for name in vars(model) if not name.startswith("_")]:\n{_READ}', False),
    ],
)
def test_only_what_is_let_pass_is_singled_out(code: str, is_so: bool) -> None:
    tree = ast.parse(code)
    (asked,) = (
        node.args[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr"
    )
    assert is_singled_out(tree, asked, "_set_gradient_checkpointing") is is_so
