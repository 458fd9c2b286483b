"""The names that an import statement binds, and what they are."""

from __future__ import annotations

from collections.abc import Iterator

from gclint.network.evaluation.values import ClassValue, External, Function, ModuleValue
from gclint.network.explaining.bases import bases_of
from gclint.network.explaining.facts import Fact
from gclint.network.model import Network
from gclint.source.outline import ImportStatement


def names_given(network: Network, statement: ImportStatement) -> Iterator[Fact]:
    """Yield a fact about each name that a statement binds."""
    place = network.file.path, statement.start
    for name in statement.names:
        for value in network.module.lookup(name.bound) or (None,):
            if isinstance(value, ClassValue):
                bases = bases_of(value.info)
                yield Fact(f"`{name.bound}` is a class", place, (bases,))
            elif isinstance(value, External):
                yield Fact(f"`{name.bound}` is {value.name}, whose code was not examined", place)
            elif isinstance(value, ModuleValue):
                yield Fact(f"`{name.bound}` is the module {value.name}", (value.module.file.path, 0))
            elif isinstance(value, Function):
                yield Fact(f"`{name.bound}` is a function", place)
            else:
                yield Fact(f"`{name.bound}` could not be resolved", place)
    if not statement.names:
        yield Fact("it binds no names", place)
