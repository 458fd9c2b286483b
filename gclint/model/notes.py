"""What code does to what outlives a call, and what of it is not known: by kinds, each at its place."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from gclint.code.file import SourceFile

_LONGEST = 60
_KEPT = 2048
"""Places are followed again and again, and what they are called is put together for each time."""


class Kind(str, Enum):
    """A kind of what a function does, or of what it may do."""

    INPUT = "changes an argument in place"
    STATE = "changes what its object holds"
    GLOBAL = "changes what a module holds"
    SHARED = "changes something else that all calls share"
    KEPT = "keeps an attribute that other code reads"
    MADE = "changes what was made at a place"
    RANDOM = "draws random numbers that are not torch's"
    GENERATOR = "draws random numbers with a generator of its own"
    GRADIENTS = "asks whether gradients are recorded"
    CALLBACK = "calls what it was given, for its effect alone"
    CONTAINER = "returns tensors in a container"
    DETACHED = "returns what requires no grad"
    PART = "changes a part of a module"
    LEAF = "changes the output of input embeddings"
    UNKNOWN = "does something of which not all is known"


class Root(NamedTuple):
    """What outlives a call: an argument, the object, a global, settings."""

    kind: Kind
    """What a change of it is."""
    what: str
    """Its name, or what it is, in words."""


@dataclass(frozen=True)
class Note:
    """Something that a function does to what outlives a call, or that is not known of it."""

    kind: Kind
    what: str
    """The name of what the kind is about; for what is not known, words that follow the function's name."""
    where: str
    """The name of the function."""
    file: SourceFile
    row: int
    """The line of the file; 0 if it is about the whole function."""


@lru_cache(maxsize=_KEPT)
def quoted(node: ast.AST) -> str:
    """Return code as a message quotes it: anew from its tree, and cut off where it is long."""
    code = ast.unparse(node)
    return code if len(code) <= _LONGEST else f"{code[: _LONGEST - 3]}..."
