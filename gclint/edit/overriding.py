"""What a call runs in classes that inherit it, and may put other modules into its stack, in any file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from gclint.copies.generated import is_modular
from gclint.edit.users import subclasses_around
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.values import Values
from gclint.network.holders import held_classes
from gclint.network.model import Network
from gclint.network.runsite import RunSite

_LOOKING_UP = ("__getattr__", "__getattribute__")


def subclass_doubts(
    network: Network, site: RunSite, names: Collection[str], suits: Callable[[ClassInfo], bool]
) -> Iterator[str]:
    """Yield why a call may run something else in a subclass of its class, or by a special method of its own.

    Args:
        network: the file.
        site: the call.
        names: the attributes that hold what it runs.
        suits: tells whether objects of a class may be run there.
    """
    own = site.owner.mro
    yield from (each for info in own for each in _hiding(info, _LOOKING_UP))
    for subclass in subclasses_around(network, site.owner):
        if is_modular(subclass.file.path):
            continue  # In the file that is generated from it, its classes are others.
        for info in (each for each in subclass.mro if each not in own):
            yield from _hiding(info, (*_LOOKING_UP, *names))
        for info in held_classes(_run_in(subclass, site, names)):
            if info.is_module and not suits(info):
                yield f"in `{subclass.name}`, the call may run `{info.name}`, which takes other arguments"


def _hiding(info: ClassInfo, names: Collection[str]) -> Iterator[str]:
    """Yield where a class defines itself what else would be an attribute that is set."""
    for name in names:
        if info.definition.method(name) is not None:
            yield f"`{info.name}.{name}` may give other modules than those that are set"


def _run_in(subclass: ClassInfo, site: RunSite, names: Collection[str]) -> Values:
    """Return what a call may run if an object of another class has its method."""
    held = frozenset(value for name in names for value in subclass.attribute(name))
    definition = site.scope.body.definition
    if definition is None or site.scope.self_name is None:
        return held
    return held | subclass.scope(definition, site.scope.module).evaluate(site.receiver)
