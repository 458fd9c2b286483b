"""In which ways a checkpointed call and the plain one beside it do not do the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gclint.code.tokens import one_line
from gclint.code.walk import (
    FUNCTIONS,
    Arg,
    children,
    dotted_name,
    is_alike,
    structure,
    walk,
)
from gclint.code.walk import is_constant as is_literal
from gclint.edit.branch import LegacyBranch, functions_used_outside
from gclint.network.activation import is_constant, is_guarded
from gclint.network.binding import Binding, bind
from gclint.network.evaluation.signature import Parameters, Signature, function_signature
from gclint.network.returned import returns_tuples
from gclint.network.runsite import RunSite
from gclint.releases import EVER_NEUTRALISED, Releases
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS


@dataclass(frozen=True)
class ParameterSource:
    """What a parameter gets from a call, or has as its default."""

    node: ast.expr
    code: str
    """Its code, on one line."""
    arg: Arg | None = None
    """The argument of the call."""

    def is_same(self, other: ParameterSource) -> bool:
        """Return whether both are the same code."""
        return structure(self.node) == structure(other.node)

    @property
    def is_off(self) -> bool:
        """Whether it is None, False or an empty tuple."""
        is_empty = isinstance(self.node, ast.Tuple) and not self.node.elts
        return is_empty or is_literal(self.node, None, False)


@dataclass(frozen=True)
class BranchDifference:
    """A way in which the two sides of a branch do not do the same."""

    description: str
    one_is_silent: bool = False
    """Whether one call merely leaves out what the other passes, so that `forward`'s default rules."""
    argument: Arg | None = None
    """What the checkpointed call passes where the plain one passes something else."""
    parameter: str | None = None
    """What gets something else, where `forward` does: a parameter, or what one call alone passes."""
    is_cache_off: bool = False
    """Whether the checkpointed call only keeps a cache away that the base class of some release would not."""
    received: tuple[ParameterSource | None, ParameterSource | None] = (None, None)
    """What the parameter gets from the checkpointed call and from the plain one, defaults included."""
    is_certain: bool = True
    """Whether no unpacked mapping may pass what seems to be left out."""


def differences(branch: LegacyBranch, releases: Releases) -> list[BranchDifference]:
    """Return in which ways the two sides do not do the same.

    They do the same when all but the calls of blocks is the same code, and every parameter of
    ``forward`` gets the same from both calls, or one of the known differences: a cache that is off
    while checkpointing, as the base class of all ``releases`` has it.
    """
    sides = _Sides(branch, releases)
    checkpointed, guards = split_side(branch.checkpointed_side)
    plain = branch.plain_side
    if guards and branch.negated:
        return [BranchDifference("its checkpointed side begins with statements of its own")]
    needed = functions_used_outside(branch)
    if needed:
        return [BranchDifference(f"`{needed[0]}`, which it defines, is used after it")]
    if len(checkpointed) != len(plain):
        return [BranchDifference("its two sides contain different statements")]
    return [
        each for one, other in zip(checkpointed, plain, strict=True) for each in sides.compare(one, other)
    ]


def split_side(body: Sequence[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Split the checkpointed side into what does the work and the guards that stand before it.

    Definitions of helper functions belong to neither: they go with the call that uses them.
    """
    work: list[ast.stmt] = []
    guards: list[ast.stmt] = []
    for position, statement in enumerate(body):
        if isinstance(statement, FUNCTIONS):
            continue
        if not work and len(guards) == position and _switches_cache_off(statement):
            guards.append(statement)
        else:
            work.append(statement)
    return work, guards


def _switches_cache_off(statement: ast.stmt) -> bool:
    """Return whether a statement assigns to caches, and to nothing else."""
    assigned = (node for node in walk(statement) if isinstance(node, ast.Assign))
    targets = [target for node in assigned for target in node.targets]
    return bool(targets) and all(
        isinstance(each, ast.Name) and each.id in CACHE_ARGUMENTS for each in targets
    )


class _Sides:
    """Compares the code of the two sides of a branch."""

    def __init__(self, branch: LegacyBranch, releases: Releases) -> None:
        self._releases = releases
        self._file = branch.scope.module.file
        self._legacy = {site.call: site for site in branch.legacy}
        self._plain = {site.call: site for site in branch.plain}

    def compare(self, one: ast.AST, other: ast.AST) -> list[BranchDifference]:
        """Return how two pieces of code differ."""
        if isinstance(one, ast.Call) and one in self._legacy:
            legacy = self._legacy[one]
            if not legacy.is_exact:
                return [BranchDifference("what it checkpoints may do more than run the layer")]
            bare = _without_outcome(legacy, other)
            if not isinstance(bare, ast.Call) or bare not in self._plain:
                return [BranchDifference("its two sides use the result of the call differently")]
            if self._plain[bare].calls_forward:
                return [
                    BranchDifference(
                        "its plain call calls `forward` directly, which no release before 5.23 recomputes"
                    )
                ]
            return compare_calls(legacy, self._plain[bare], self._releases)
        if not is_alike(one, other):
            return [
                BranchDifference(f"its two sides differ: `{self._shown(one)}` and `{self._shown(other)}`")
            ]
        pairs = zip(children(one), children(other), strict=True)
        return [each for a, b in pairs for each in self.compare(a, b)]

    def _shown(self, node: ast.AST) -> str:
        # Some nodes have no place, such as the clauses of a comprehension.
        return one_line(self._file.source(node) if hasattr(node, "lineno") else ast.unparse(node))


def _without_outcome(legacy: RunSite, plain: ast.AST) -> ast.AST | None:
    """Return what stands in the plain side for the checkpointed call alone.

    The function that was checkpointed may have done something with the result of the block already.
    """
    for step in legacy.outcome:
        if isinstance(step, ast.Subscript):
            if not isinstance(plain, ast.Subscript) or structure(step.slice) != structure(plain.slice):
                return None
            plain = plain.value
        elif isinstance(plain, ast.Call) and dotted_name(plain.func) == "tuple" and plain.args:
            plain = plain.args[0]
        elif not all(returns_tuples(info) for info in legacy.blocks):
            return None
    return plain


def compare_calls(
    legacy: RunSite, plain: RunSite, releases: Releases, *, looks_inside: bool = False
) -> list[BranchDifference]:
    """Return how a checkpointed call and a plain one differ in what ``forward`` gets from them.

    Args:
        legacy: the checkpointed call.
        plain: the plain call.
        releases: those of transformers that the code may run with.
        looks_inside: whether to compare the items of what they unpack. The same code may have meant
            something else where these were written, so this cannot show that the calls do the same.
    """
    if structure(legacy.receiver) != structure(plain.receiver):
        one_receiver, other_receiver = (_code(site, site.receiver) for site in (legacy, plain))
        return [BranchDifference(f"its two sides run `{one_receiver}` and `{other_receiver}`")]
    functions = {None if site.function is None else site.function.node for site in (legacy, plain)}
    if len(functions) > 1:
        return [BranchDifference("its two sides run different functions")]
    if legacy.does_more:
        return [BranchDifference("the function that it checkpoints does more than run the layer")]
    found: dict[BranchDifference, None] = {}
    for name, signature, parameters in _callees(legacy):
        if signature is None:
            return [BranchDifference(f"`{name}` cannot be read")]
        one, other = (
            _Call(site, bind(site.written_args if looks_inside else site.args, signature))
            for site in (legacy, plain)
        )
        if not (one.binding.complete and other.binding.complete) and not _same_arguments(legacy, plain):
            return [BranchDifference(f"the two calls do not both match `{name}`")]
        defaults = _defaults(signature, parameters)
        found.update(dict.fromkeys(_compare_bindings(one, other, signature, defaults, releases)))
    return list(found)


def _callees(site: RunSite) -> Iterator[tuple[str, Signature | None, Parameters]]:
    """Yield what a call's arguments are bound to: each block's ``forward``, or an inner function."""
    if site.function is not None:
        node, file = site.function.node, site.function.scope.module.file
        assert isinstance(node, FUNCTIONS)  # it has been found by its name
        yield node.name, function_signature(file, node), Parameters(node.args)
        return
    for block in site.blocks:
        args = None if block.forward is None else block.forward[1].function.args
        yield f"{block.name}.forward", block.signature, Parameters(args)


def _defaults(signature: Signature, parameters: Parameters) -> dict[str, ParameterSource]:
    nodes = {name: parameters.default(name) for name in parameters.names}
    return {
        each.name: ParameterSource(node, one_line(each.default))
        for each in signature.parameters
        if each.default is not None and (node := nodes.get(each.name)) is not None
    }


def _same_arguments(legacy: RunSite, plain: RunSite) -> bool:
    return len(legacy.args) == len(plain.args) and all(
        (one.keyword, one.star) == (other.keyword, other.star)
        and structure(one.value) == structure(other.value)
        for one, other in zip(legacy.args, plain.args, strict=True)
    )


@dataclass(frozen=True)
class _Call:
    """A call whose arguments are bound to parameters."""

    site: RunSite
    binding: Binding

    def passed(self) -> dict[str, ParameterSource]:
        """Return what the call passes, by the parameter or name, and what it unpacks, by its code."""
        found: dict[str, ParameterSource] = {}
        for bound in self.binding.arguments:
            arg, parameter = bound.arg, bound.parameter
            value = ParameterSource(arg.value, _code(self.site, arg.value), arg)
            name = arg.keyword or arg.star + value.code if parameter is None else parameter.name
            found[name] = value
        return found


def _code(site: RunSite, node: ast.AST) -> str:
    """Return code on one line, as it is written if it stands in the method of a call."""
    # A wrapper function, from which an argument comes, may be in another file.
    is_own = any(each is node for each in site.scope.body.nodes)
    return one_line(site.source(node) if is_own else ast.unparse(node))


def _compare_bindings(
    one: _Call,
    other: _Call,
    signature: Signature,
    defaults: Mapping[str, ParameterSource],
    releases: Releases,
) -> Iterator[BranchDifference]:
    """Yield how the arguments of a checkpointed call differ from those of the plain one."""
    mine, theirs = one.passed(), other.passed()
    names = [each.name for each in signature.parameters]
    # No named parameter receives these.
    extras = {*mine, *theirs}.difference(names)
    shared = extras.intersection(mine, theirs)
    for name in (*names, *sorted(extras - shared), *sorted(shared)):
        passed = mine.get(name), theirs.get(name)
        if name in extras:
            found = _compare_extras(name, *passed)
        else:
            found = _compare_arguments(name, *passed, defaults.get(name), releases)
        if found is not None:
            yield found if _is_certain(found, mine, theirs) else replace(found, is_certain=False)


def _is_certain(
    difference: BranchDifference, mine: Mapping[str, ParameterSource], theirs: Mapping[str, ParameterSource]
) -> bool:
    """Return whether two calls differ, whatever is in the mappings that only one of them unpacks.

    Options of the checkpoint function may be in those of the checkpointed call, ``mine``.
    """
    name = difference.parameter
    if name is None or (name in mine and name in theirs):
        return True
    if name in mine:
        return not _is_mapping(name) and not any(map(_is_mapping, theirs.keys() - mine.keys()))
    only_mine = mine.keys() - theirs.keys()
    if any(map(_is_mapping, only_mine)):
        return False
    # The checkpointed call may name one by one what the plain one unpacks.
    return not _is_mapping(name) or all(is_constant(mine[each].node) for each in only_mine)


def _is_mapping(name: str) -> bool:
    return name.startswith("**")


def _compare_arguments(
    name: str,
    checkpointed: ParameterSource | None,
    plain: ParameterSource | None,
    default: ParameterSource | None,
    releases: Releases,
) -> BranchDifference | None:
    """Return how the values that a parameter receives differ, if they do; None if a call does not pass it."""
    left, right = checkpointed or default, plain or default
    if left is right or (left is not None and right is not None and left.is_same(right)):
        return None
    still_on = releases.not_neutralising(name) if _is_switched_off(name, left) else None
    if _is_switched_off(name, left) and (
        still_on is None or plain is None or is_constant(plain.node) or is_guarded(plain.node)
    ):
        return None
    if checkpointed and plain and _same_where_not_none(checkpointed.node, plain.node):
        return None
    return BranchDifference(
        _other_values(name, checkpointed, plain, default)
        + (f", and the base class of {still_on} does not set it to None" if still_on else ""),
        one_is_silent=any(each is None or is_literal(each.node, None) for each in (checkpointed, plain)),
        argument=None if checkpointed is None else checkpointed.arg,
        parameter=name,
        is_cache_off=still_on is not None,
        received=(left, right),
    )


def _other_values(
    name: str,
    checkpointed: ParameterSource | None,
    plain: ParameterSource | None,
    default: ParameterSource | None,
) -> str:
    """Return in words what a parameter gets from two calls."""
    left_out = "nothing" if default is None else f"its default `{default.code}`"
    first, second = (left_out if each is None else f"`{each.code}`" for each in (checkpointed, plain))
    return f"`{name}` gets {first} in the checkpointed call, but {second} in the plain one"


def _compare_extras(
    name: str, checkpointed: ParameterSource | None, plain: ParameterSource | None
) -> BranchDifference | None:
    """Return how an argument differs that no named parameter receives, if it does."""
    is_off = _is_switched_off(name, checkpointed)
    if checkpointed is None or plain is None:
        which, lacking = ("plain", "checkpointed") if plain else ("checkpointed", "plain")
        message = f"the {which} call passes `{name}` and the {lacking} one does not"
        return BranchDifference(message, one_is_silent=True, parameter=name, is_cache_off=is_off)
    if checkpointed.is_same(plain):
        return None
    message = _other_values(name, checkpointed, plain, None)
    return BranchDifference(message, parameter=name, is_cache_off=is_off)


def _is_switched_off(name: str, value: ParameterSource | None) -> bool:
    """Return whether a call leaves out a cache that the base class of some release would leave out too."""
    return name in EVER_NEUTRALISED and (value is None or value.is_off)


def _same_where_not_none(one: ast.expr, other: ast.expr) -> bool:
    """Return whether one value is the other behind a guard: ``m[i] if m is not None else None``."""
    for guarded, bare in ((one, other), (other, one)):
        if (
            isinstance(guarded, ast.IfExp)
            and is_literal(guarded.orelse, None)
            and structure(guarded.body) == structure(bare)
            and isinstance(guarded.test, ast.Compare)
            and isinstance(guarded.test.ops[0], ast.IsNot)
            and isinstance(bare, ast.Subscript)
            and structure(bare.value) == structure(guarded.test.left)
        ):
            return True
    return False
