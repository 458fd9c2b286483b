"""In which ways a checkpointed call and the plain one beside it do not do the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from gclint.codemod.arms import known_off
from gclint.codemod.branch import LegacyBranch, functions_used_outside
from gclint.network.activation import is_constant, is_guarded
from gclint.network.binding import Binding, BoundArgument, bind
from gclint.network.evaluation.signature import Parameter, Signature, function_signature
from gclint.network.evaluation.walk import children, is_alike, walk
from gclint.network.returned import returns_tuples
from gclint.network.runsite import RunSite
from gclint.releases import EVER_NEUTRALISED, Releases
from gclint.source.tokens import code_tokens, one_line, same_code
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_MODE = re.compile(r"checkpoint|ckpt|training|requires_grad|grad_enabled", re.IGNORECASE)
_OFF = {"None", "False", "()"}
# What only a cache needs, and may be left out together with it.
_BESIDE_CACHES = frozenset(("cache_position",))


@dataclass(frozen=True)
class Difference:
    """A way in which the two sides of a branch do not do the same."""

    description: str
    one_is_silent: bool = False
    """Whether one call merely leaves out what the other passes, so that `forward`'s default rules."""
    argument: cst.Arg | None = None
    """What the checkpointed call passes where the plain one passes something else."""
    parameter: str | None = None
    """What gets something else, where `forward` does: a parameter, or what one call alone passes."""
    is_cache_off: bool = False
    """Whether the checkpointed call only keeps a cache away that the base class of some release would not."""
    received: tuple[str | None, str | None] = (None, None)
    """What the parameter gets from the checkpointed call and from the plain one, defaults included."""
    is_certain: bool = True
    """Whether no unpacked mapping may pass what seems to be left out."""


def differences(branch: LegacyBranch, releases: Releases) -> list[Difference]:
    """Return in which ways the two sides do not do the same.

    They do the same when all but the calls of blocks is the same code, and every parameter of
    ``forward`` gets the same from both calls, or one of the known differences: a cache that is off
    while checkpointing, as the base class of all ``releases`` has it.
    """
    counterparts = {other.call: other for other in branch.plain}
    sides = _Sides(branch, counterparts, releases)
    checkpointed, guards = split_side(branch.checkpointed_side)
    plain = list(branch.plain_side.body)
    if guards and branch.negated:
        return [Difference("its checkpointed side begins with statements of its own")]
    needed = functions_used_outside(branch)
    if needed:
        return [Difference(f"`{needed[0]}`, which it defines, is used after it")]
    if len(checkpointed) != len(plain):
        return [Difference("its two sides contain different statements")]
    return [
        each for one, other in zip(checkpointed, plain, strict=True) for each in sides.compare(one, other)
    ]


def split_side(body: cst.BaseSuite) -> tuple[list[cst.CSTNode], list[cst.CSTNode]]:
    """Split the checkpointed side into what does the work and the guards that stand before it.

    Definitions of helper functions belong to neither: they go with the call that uses them.
    """
    work: list[cst.CSTNode] = []
    guards: list[cst.CSTNode] = []
    for position, statement in enumerate(body.body):
        if isinstance(statement, cst.FunctionDef):
            continue
        if not work and len(guards) == position and _switches_cache_off(statement):
            guards.append(statement)
        else:
            work.append(statement)
    return work, guards


def _switches_cache_off(statement: cst.CSTNode) -> bool:
    """Return whether a statement assigns to caches, and to nothing else."""
    targets = [node.target for node in walk(statement) if isinstance(node, cst.AssignTarget)]
    return bool(targets) and all(
        isinstance(each, cst.Name) and each.value in CACHE_ARGUMENTS for each in targets
    )


class _Sides:
    """Compares the code of the two sides of a branch."""

    def __init__(self, branch: LegacyBranch, plain: dict[cst.Call, RunSite], releases: Releases) -> None:
        self._releases = releases
        self._legacy = {site.call: site for site in branch.legacy}
        self._plain = plain

    def compare(self, one: cst.CSTNode, other: cst.CSTNode) -> list[Difference]:
        """Return how two pieces of code differ."""
        if isinstance(one, cst.Call) and one in self._legacy:
            legacy = self._legacy[one]
            bare = _without_outcome(legacy, other)
            if not isinstance(bare, cst.Call) or bare not in self._plain:
                return [Difference("its two sides use the result of the call differently")]
            plain = self._plain[bare]
            if isinstance(bare.func, cst.Attribute) and bare.func.attr.value == "forward":
                return [
                    Difference(
                        "its plain call calls `forward` directly, which no release before 5.23 recomputes"
                    )
                ]
            return compare_calls(legacy, plain, self._releases)
        if not is_alike(one, other):
            return [Difference(f"its two sides differ: `{_shown(_code(one))}` and `{_shown(_code(other))}`")]
        pairs = zip(children(one), children(other), strict=True)
        return [each for a, b in pairs for each in self.compare(a, b)]


def _without_outcome(legacy: RunSite, plain: cst.CSTNode) -> cst.CSTNode:
    """Return what stands in the plain side for the checkpointed call alone.

    The function that was checkpointed may have done something with the result of the block already.
    """
    for step in legacy.outcome:
        if isinstance(step, cst.Subscript):
            if not isinstance(plain, cst.Subscript) or _slice(step) != _slice(plain):
                return cst.Pass()
            plain = plain.value
        elif isinstance(plain, cst.Call) and same_code(_code(plain.func), "tuple"):
            plain = plain.args[0].value
        elif not all(returns_tuples(info) for info in legacy.blocks):
            return cst.Pass()
    return plain


def _slice(node: cst.Subscript) -> list[str]:
    return code_tokens(cst.Module([]).code_for_node(node.with_changes(value=cst.Name("x"))))


def compare_calls(
    legacy: RunSite, plain: RunSite, releases: Releases, *, looks_inside: bool = False
) -> list[Difference]:
    """Return how a checkpointed call and a plain one differ in what ``forward`` gets from them.

    Args:
        legacy: the checkpointed call.
        plain: the plain call.
        releases: those of transformers that the code may run with.
        looks_inside: whether to compare the items of what they unpack. The same code may have meant
            something else where these were written, so this cannot show that the calls do the same.
    """
    one_receiver, other_receiver = _code(legacy.receiver), _code(plain.receiver)
    if not same_code(one_receiver, other_receiver):
        return [Difference(f"its two sides run `{_shown(one_receiver)}` and `{_shown(other_receiver)}`")]
    found: dict[Difference, None] = {}
    for name, signature in _signatures(legacy):
        if signature is None:
            return [Difference(f"`{name}` cannot be read")]
        one, other = (
            bind(site.written_args if looks_inside else site.args, signature) for site in (legacy, plain)
        )
        if not (one.complete and other.complete) and not _same_arguments(legacy, plain):
            return [Difference(f"the two calls do not both match `{name}`")]
        found.update(dict.fromkeys(_compare_bindings(one, other, signature, releases)))
    return list(found)


def _signatures(site: RunSite) -> Iterator[tuple[str, Signature | None]]:
    """Yield what a call's arguments are bound to: each block's ``forward``, or an inner function."""
    if site.function is not None:
        node = cst.ensure_type(site.function.node, cst.FunctionDef)
        yield node.name.value, function_signature(node)
        return
    for block in site.blocks:
        yield f"{block.name}.forward", block.signature


def _same_arguments(legacy: RunSite, plain: RunSite) -> bool:
    return len(legacy.args) == len(plain.args) and all(
        _keyword(one) == _keyword(other) and same_code(_code(one.value), _code(other.value))
        for one, other in zip(legacy.args, plain.args, strict=True)
    )


def _keyword(arg: cst.Arg) -> str:
    return arg.star if arg.keyword is None else arg.keyword.value


def mismatches(sites: Sequence[RunSite], releases: Releases) -> Iterator[tuple[RunSite, list[Difference]]]:
    """Yield the checkpointed calls that give ``forward`` something else than the plain one beside them.

    They are the only calls of the same blocks in the two sides of one ``if`` that asks for a mode.
    """
    for legacy in sites:
        plain = plain_beside(legacy, sites) if legacy.checkpointed else None
        if plain is not None:
            found = [
                each
                for each in compare_calls(legacy, plain, releases, looks_inside=True)
                if each.parameter is not None
                and each.is_certain
                and not (_concerns_cache(each) or _is_off(legacy, each))
            ]
            if found:
                yield legacy, found


def plain_beside(legacy: RunSite, sites: Sequence[RunSite]) -> RunSite | None:
    """Return the plain call that a checkpointed one is the other side of; None where that is not certain."""
    if not legacy.arms or legacy.function is not None:
        return None
    arm = legacy.arms[-1]
    if _MODE.search(_code(arm.branch.test)) is None:
        return None
    sides: defaultdict[bool, list[RunSite]] = defaultdict(list)
    for site in sites:
        for each in site.arms:
            if each.branch is arm.branch:
                sides[each.taken].append(site)
    own, others = (_running(sides[taken], legacy) for taken in (arm.taken, not arm.taken))
    return others[0] if len(own) == len(others) == 1 and not others[0].checkpointed else None


def _concerns_cache(difference: Difference) -> bool:
    """Return whether a checkpointed call only leaves out a cache, or what goes with one, as it should."""
    is_beside = difference.argument is None and difference.parameter in _BESIDE_CACHES
    return is_beside or difference.is_cache_off


def _is_off(legacy: RunSite, difference: Difference) -> bool:
    """Return whether a checkpointed call switches off what the tests around it say is off anyway."""
    one, other = difference.received
    return (
        one is not None
        and other is not None
        and one_line(one) in _OFF
        and any(same_code(other, _code(each)) for arm in legacy.arms for each in known_off(arm))
    )


def _running(sites: Sequence[RunSite], like: RunSite) -> list[RunSite]:
    return [site for site in sites if not set(site.blocks).isdisjoint(like.blocks)]


def _compare_bindings(
    one: Binding, other: Binding, signature: Signature, releases: Releases
) -> Iterator[Difference]:
    """Yield how the arguments of a checkpointed call differ from those of the plain one."""
    found: list[Difference] = []
    for parameter in signature.parameters:
        checkpointed, plain = one.argument(parameter.name), other.argument(parameter.name)
        if checkpointed is not None or plain is not None:
            found += _compare_arguments(parameter, checkpointed, plain, releases)
    found += _compare_extras(_extra_arguments(one), _extra_arguments(other))
    mine, theirs = _passed(one), _passed(other)
    for each in found:
        yield each if _is_certain(each, mine, theirs) else replace(each, is_certain=False)


def _passed(binding: Binding) -> dict[str, cst.BaseExpression]:
    """Return what a call passes, by the parameter or name, and what it unpacks, by its code."""
    return {
        _extra_name(b.arg) if b.parameter is None else b.parameter.name: b.arg.value
        for b in binding.arguments
    }


def _is_certain(
    difference: Difference, mine: dict[str, cst.BaseExpression], theirs: dict[str, cst.BaseExpression]
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
    return not _is_mapping(name) or all(is_constant(mine[each]) for each in only_mine)


def _is_mapping(name: str) -> bool:
    return name.startswith("**")


def _compare_arguments(
    parameter: Parameter,
    checkpointed: BoundArgument | None,
    plain: BoundArgument | None,
    releases: Releases,
) -> Iterator[Difference]:
    """Yield how the values that a parameter receives differ, if they do; None if a call does not pass it."""
    passed = [None if bound is None else _code(bound.arg.value) for bound in (checkpointed, plain)]
    left, right = (parameter.default if value is None else value for value in passed)
    still_on = None
    if _is_switched_off(parameter.name, left):
        still_on = releases.not_neutralising(parameter.name)
        is_off = plain is None or is_constant(plain.arg.value) or is_guarded(plain.arg.value)
        if still_on is None or is_off:
            return
    if left == right if left is None or right is None else same_code(left, right):
        return
    if (
        checkpointed is not None
        and plain is not None
        and _same_where_not_none(checkpointed.arg.value, plain.arg.value)
    ):
        return
    yield Difference(
        f"`{parameter.name}` receives `{_shown(left)}` with checkpointing and `{_shown(right)}` without"
        + (f", and in {still_on} checkpointing does not disable it" if still_on else ""),
        one_is_silent=any(value is None or same_code(value, "None") for value in passed),
        argument=None if checkpointed is None else checkpointed.arg,
        parameter=parameter.name,
        is_cache_off=still_on is not None,
        received=(left, right),
    )


def _compare_extras(checkpointed: dict[str, str], plain: dict[str, str]) -> Iterator[Difference]:
    """Yield how arguments differ that no named parameter receives, given as code by name."""
    for name in sorted(checkpointed.keys() ^ plain.keys()):
        which, lacking = ("plain", "checkpointed") if name in plain else ("checkpointed", "plain")
        yield Difference(
            f"the {which} call passes `{name}` and the {lacking} one does not",
            one_is_silent=True,
            parameter=name,
            is_cache_off=_is_switched_off(name, checkpointed.get(name)),
        )
    for name in sorted(checkpointed.keys() & plain.keys()):
        if not same_code(checkpointed[name], plain[name]):
            yield Difference(
                f"`{name}` receives `{_shown(checkpointed[name])}` with checkpointing and "
                f"`{_shown(plain[name])}` without",
                parameter=name,
                is_cache_off=_is_switched_off(name, checkpointed[name]),
            )


def _is_switched_off(name: str, value: str | None) -> bool:
    """Return whether a call leaves out a cache that the base class of some release would leave out too."""
    return name in EVER_NEUTRALISED and (value is None or one_line(value) in _OFF)


def _extra_arguments(binding: Binding) -> dict[str, str]:
    """Return what a call unpacks, or passes by a name that ``forward`` does not list."""
    return {_extra_name(b.arg): _code(b.arg.value) for b in binding.arguments if b.parameter is None}


def _extra_name(arg: cst.Arg) -> str:
    return _shown(arg.star + _code(arg.value)) if arg.keyword is None else arg.keyword.value


def _same_where_not_none(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Return whether one value is the other behind a guard: ``m[i] if m is not None else None``."""
    for guarded, bare in ((one, other), (other, one)):
        if (
            isinstance(guarded, cst.IfExp)
            and same_code(_code(guarded.orelse), "None")
            and same_code(_code(guarded.body), _code(bare))
            and isinstance(guarded.test, cst.Comparison)
            and isinstance(guarded.test.comparisons[0].operator, cst.IsNot)
            and isinstance(bare, cst.Subscript)
            and same_code(_code(bare.value), _code(guarded.test.left))
        ):
            return True
    return False


def _shown(code: str | None) -> str:
    return "nothing" if code is None else one_line(code)


def _code(node: cst.CSTNode) -> str:
    """Return a node's code without the brackets around it."""
    if isinstance(node, cst.BaseExpression) and node.lpar and not isinstance(node, cst.Tuple):
        node = node.with_changes(lpar=(), rpar=())
    return cst.Module([]).code_for_node(node)
