"""What terms, and what a project defines, tell by themselves."""

from __future__ import annotations

from functools import cache

from gclint.code.packages import LIBRARY
from gclint.network.cacheless.terms import Term, constant_of
from gclint.network.evaluation.values import ClassValue, EvaluatedExternal, ModuleValue, Values

_RANDOM = ("dropout", "rand", "bernoulli", "multinomial", "normal", "poisson", "gumbel", "rrelu", "attention")
"""What the names of torch's operations contain that draw random numbers."""
_SPECIAL = frozenset(("constant", "cache", "marks", "extent", "tuple", "list", "dict", "many", "unbound"))
"""Operations of terms with which something else is done than with what is not known."""


def is_mixed(term: Term) -> bool:
    """Tell whether a value may be one of several things with which the same is done in different ways."""
    return term.op == "either" and any(
        each.op in _SPECIAL or is_mixed(each) for each in term.args[1:] if isinstance(each, Term)
    )


def leaves_out_new(index: Term) -> bool:
    """Tell whether an index leaves out as many of the last entries as another tensor has: the new ones."""
    if index.op != "slice":
        return False
    lower, upper, step = index.terms()
    return (
        constant_of(lower) is None is constant_of(step)
        and upper.op == "operation"
        and upper.args[0] == "USub"
        and all(map(is_length, upper.terms()))
    )


def takes_first(index: Term) -> bool:
    """Tell whether an index takes no more than the first entries, as many as another tensor has."""
    for each in index.terms():
        if each.op == "slice":
            lower, upper, step = each.terms()
            if constant_of(lower) is None is constant_of(step) and (
                constant_of(upper) is None or is_length(upper)
            ):
                continue
        if constant_of(each) is not Ellipsis:
            return False
    return True


def is_length(term: Term) -> bool:
    """Tell whether a value is an extent of a tensor."""
    if term.op == "either":
        return all(map(is_length, term.args[1:]))  # type: ignore[arg-type]
    base = term.args[0] if term.op == "item" else None
    return (isinstance(base, Term) and base.op == "attribute" and base.args[1] == "shape") or (
        term.op == "read" and term.args[0] == "size"
    )


def slice_of(index: Term) -> slice | None:
    """Return a slice whose ends are known."""
    if index.op != "slice":
        return None
    ends = [constant_of(each) for each in index.terms()]
    return None if any(not (each is None or isinstance(each, int)) for each in ends) else slice(*ends)


def full_name(value: object) -> str:
    """Return the full name of a class or function of another package, or of a class of the library."""
    if isinstance(value, ClassValue):
        module = value.info.module
        return (
            f"{LIBRARY}.{module.file.path.stem}.{value.info.name}" if module.is_library else value.info.name
        )
    return getattr(value, "name", "")


def is_known(name: str, known_names: frozenset[str]) -> bool:
    """Tell whether a full name, or one without the package that it is imported in, is one of these."""
    return name in _endings(known_names)


@cache
def _endings(names: frozenset[str]) -> frozenset[str]:
    parts = [name.split(".") for name in names]
    return frozenset(".".join(each[start:]) for each in parts for start in range(len(each)))


def is_random(name: str) -> bool:
    """Tell whether an operation of torch may draw random numbers."""
    return any(word in name for word in _RANDOM)


def members_of(kinds: Values, name: str) -> Values:
    """Return what modules and classes have under a name."""
    found: set[object] = set()
    for each in kinds:
        if isinstance(each, EvaluatedExternal):
            found.add(EvaluatedExternal(f"{each.name}.{name}"))
        elif isinstance(each, ModuleValue):
            found |= each.module.member(name, each.name)
        elif isinstance(each, ClassValue):
            found |= each.info.class_attribute(name)
    return frozenset(found)  # type: ignore[arg-type]


def undoes(index: Term, before: Term) -> bool:
    """Tell whether an index takes away the dimension that another has just added: ``x[:, None][:, 0]``."""
    added, taken = _dimensions(before), _dimensions(index)
    place = next((number for number, each in enumerate(added) if not _is_whole(each)), len(added))
    others = (*added[place + 1 :], *taken[:place], *taken[place + 1 :])
    return (
        place < min(len(added), len(taken))
        and constant_of(added[place]) is None
        and taken[place].args == ("int", 0)  # False is another index.
        and all(map(_is_whole, others))
    )


def _dimensions(index: Term) -> tuple[Term, ...]:
    return tuple(index.terms()) if index.op == "tuple" else (index,)


def _is_whole(index: Term) -> bool:
    return index.op == "slice" and all(constant_of(each) is None for each in index.terms())
