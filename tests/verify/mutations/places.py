"""Where a modeling file can be changed: its blocks, and the loops that run them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.nodes import Text

_LAYER = "GradientCheckpointingLayer"


@dataclass(frozen=True)
class Block:
    """A checkpointing layer, and its ``forward``."""

    definition: ast.ClassDef
    forward: ast.FunctionDef

    @property
    def stream(self) -> str:
        """The name of the first argument."""
        return self.forward.args.args[1].arg


@dataclass(frozen=True)
class Loop:
    """A loop over blocks in a method of a model, with the call that runs a block."""

    owner: ast.ClassDef
    method: ast.FunctionDef
    statement: ast.For
    call: ast.Call

    @property
    def block(self) -> str:
        """The name of the variable that stands for a block."""
        assert isinstance(self.call.func, ast.Name)
        return self.call.func.id


class ModelingFile(Text):
    """The text of a modeling file, with what can be changed in it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._tree = ast.parse(text)

    @cached_property
    def blocks(self) -> list[Block]:
        """The checkpointing layers whose ``forward`` is their own."""
        return [
            Block(each, member)
            for each in self._classes
            if any(isinstance(base, ast.Name) and base.id == _LAYER for base in each.bases)
            for member in each.body
            if isinstance(member, ast.FunctionDef) and member.name == "forward" and len(member.args.args) > 1
        ]

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops over an attribute of ``self`` that call what they get from it once."""
        return [loop for owner in self._classes for loop in _loops_of(owner)]

    @property
    def _classes(self) -> list[ast.ClassDef]:
        return [each for each in self._tree.body if isinstance(each, ast.ClassDef)]

    def inserted(self, before: ast.stmt, *lines: str) -> str:
        """Return the file with lines in front of a statement, indented like it."""
        number = before.lineno - 1
        decorated = getattr(before, "decorator_list", None)
        if decorated:
            number = decorated[0].lineno - 1
        new = [" " * before.col_offset + line + "\n" for line in lines]
        return "".join([*self.lines[:number], *new, *self.lines[number:]])


def first_statement(function: ast.FunctionDef) -> ast.stmt:
    """Return the first statement of a function after its docstring."""
    first, *others = function.body
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return others[0] if is_docstring and others else first


def _loops_of(owner: ast.ClassDef) -> Iterator[Loop]:
    for method in owner.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        for statement in ast.walk(method):
            if isinstance(statement, ast.For) and "self." in ast.unparse(statement.iter):
                variables = {each.id for each in ast.walk(statement.target) if isinstance(each, ast.Name)}
                calls = [
                    each
                    for each in ast.walk(statement)
                    if isinstance(each, ast.Call)
                    and isinstance(each.func, ast.Name)
                    and each.func.id in variables
                ]
                if len(calls) == 1 and calls[0].args:
                    yield Loop(owner, method, statement, calls[0])
