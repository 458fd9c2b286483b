"""Replacing a legacy ``if self.gradient_checkpointing and self.training`` by its plain call."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from gclint.codemod.arms import known_off
from gclint.finding import Edit, Refusal
from gclint.network.activation import is_constant, is_guarded
from gclint.network.binding import Binding, bind
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.signature import Signature, function_signature
from gclint.network.evaluation.walk import children, conjuncts, dotted_name, is_alike, walk
from gclint.network.returned import returns_tuples
from gclint.network.runsite import Arm, RunSite
from gclint.releases import EVER_NEUTRALISED, Releases
from gclint.source.fragment import Fragment
from gclint.source.outline import Definition
from gclint.source.tokens import Kind, code_tokens, header_end, one_line, same_code, tokens
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_CONDITION_NAMES = {
    "gradient_checkpointing",
    "training",
    "_requires_grad",
    "is_grad_enabled",
    "requires_grad",
}
_MODE = re.compile(r"checkpoint|ckpt|training|requires_grad|grad_enabled", re.IGNORECASE)
_OFF = {"None", "False", "()"}
# What only a cache needs, and may be left out together with it.
_BESIDE_CACHES = frozenset(("cache_position",))


@dataclass(frozen=True)
class LegacyBranch:
    """An ``if`` whose one side checkpoints blocks and whose other side runs them plainly."""

    scope: Scope
    fragment: Fragment
    node: cst.If
    legacy: tuple[RunSite, ...]
    plain: tuple[RunSite, ...]
    negated: bool = False
    """Whether the plain side comes first: ``if not self.gradient_checkpointing``."""

    @property
    def checkpointed_side(self) -> cst.BaseSuite:
        """The statements that checkpoint."""
        return self.orelse.body if self.negated else self.node.body

    @property
    def plain_side(self) -> cst.BaseSuite:
        """The statements that stay."""
        return self.node.body if self.negated else self.orelse.body

    @property
    def orelse(self) -> cst.Else:
        """The side under ``else``."""
        return cst.ensure_type(self.node.orelse, cst.Else)

    @property
    def span(self) -> tuple[int, int]:
        """Where the statement stands, from ``if`` to its last character."""
        return self.fragment.span(self.node)


def legacy_branch(site: RunSite, sites: Sequence[RunSite]) -> LegacyBranch | Refusal:
    """Return the branch that a checkpointed call stands in, where it is one that can be taken apart.

    Args:
        site: a checkpointed call.
        sites: all run sites of the file.
    """
    arm = next((arm for arm in reversed(site.arms) if _checkpoints(arm)), None)
    if arm is None:
        return Refusal(
            "the checkpointed call is not in an `if` that tests only the checkpointing flag and `training`"
        )
    if not isinstance(arm.branch.orelse, cst.Else):
        return Refusal("the branch has no `else` with a plain call to replace it")
    inside = [other for other in sites if any(each.branch is arm.branch for each in other.arms)]
    legacy = tuple(other for other in inside if other.checkpointed)
    plain = tuple(other for other in inside if not other.checkpointed)
    branch = LegacyBranch(site.scope, site.fragment, arm.branch, legacy, plain, negated=not arm.taken)
    file, start = site.fragment.file, branch.span[0]
    if file.text.startswith("elif", start):
        return Refusal(f"the branch on line {file.position(start).row} is an `elif`")
    return branch


def _checkpoints(arm: Arm) -> bool:
    """Tell whether one side of an ``if`` is where the model checkpoints."""
    test = arm.branch.test
    if arm.taken:
        return _is_condition(test)
    return (
        isinstance(test, cst.UnaryOperation)
        and isinstance(test.operator, cst.Not)
        and _is_condition(test.expression)
    )


def leaves_out_training(branch: LegacyBranch) -> bool:
    """Tell whether a branch checkpoints in evaluation as well, which the base class does not."""
    test = branch.node.test
    if isinstance(test, cst.UnaryOperation):
        test = test.expression
    return "training" not in map(_condition_name, conjuncts(test))


def _is_condition(test: cst.BaseExpression) -> bool:
    """Tell whether a test asks for the checkpointing flag, and for nothing but modes beside it."""
    parts = list(conjuncts(test))
    names = [_condition_name(part) for part in parts]
    return "gradient_checkpointing" in names and all(name in _CONDITION_NAMES for name in names)


def _condition_name(part: cst.BaseExpression) -> str | None:
    if isinstance(part, cst.Attribute):
        return part.attr.value
    if isinstance(part, cst.Call):
        if isinstance(part.func, cst.Name) and part.func.value == "getattr" and len(part.args) >= 2:
            name = part.args[1].value
            return str(name.evaluated_value) if isinstance(name, cst.SimpleString) else None
        return _condition_name(part.func)
    return None


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
    """Tell whether a statement assigns to caches, and to nothing else."""
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


def compare_calls(legacy: RunSite, plain: RunSite, releases: Releases) -> list[Difference]:
    """Return how a checkpointed call and a plain one differ in what ``forward`` gets from them."""
    one_receiver, other_receiver = _code(legacy.receiver), _code(plain.receiver)
    if not same_code(one_receiver, other_receiver):
        return [Difference(f"its two sides run `{_shown(one_receiver)}` and `{_shown(other_receiver)}`")]
    found: dict[Difference, None] = {}
    for name, signature in _signatures(legacy):
        if signature is None:
            return [Difference(f"`{name}` cannot be read")]
        one, other = bind(legacy.args, signature), bind(plain.args, signature)
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
                for each in compare_calls(legacy, plain, releases)
                if each.parameter is not None and not (_concerns_cache(each) or _is_off(legacy, each))
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


def is_spared(site: RunSite) -> bool:
    """Tell whether a call stands where the model does not checkpoint, since a branch of its own does that."""
    return any(_checkpoints(replace(arm, taken=not arm.taken)) for arm in site.arms)


def _concerns_cache(difference: Difference) -> bool:
    """Tell whether a checkpointed call only leaves out a cache, or what goes with one, as it should."""
    is_beside = difference.argument is None and difference.parameter in _BESIDE_CACHES
    return is_beside or difference.is_cache_off


def _is_off(legacy: RunSite, difference: Difference) -> bool:
    """Tell whether a checkpointed call switches off what the tests around it say is off anyway."""
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
    for parameter in signature.parameters:
        a = one.argument(parameter.name)
        b = other.argument(parameter.name)
        if a is None and b is None:
            continue
        passed = [None if bound is None else _code(bound.arg.value) for bound in (a, b)]
        left, right = (parameter.default if value is None else value for value in passed)
        same = left == right if left is None or right is None else same_code(left, right)
        still_on = None
        if _is_switched_off(parameter.name, left):
            still_on = releases.not_neutralising(parameter.name)
            is_off = b is None or is_constant(b.arg.value) or is_guarded(b.arg.value)
            if still_on is None or is_off:
                continue
        if same:
            continue
        if a is not None and b is not None and _same_where_not_none(a.arg.value, b.arg.value):
            continue
        yield Difference(
            f"`{parameter.name}` receives `{_shown(left)}` with checkpointing and `{_shown(right)}` without"
            + (f", and in {still_on} checkpointing does not disable it" if still_on else ""),
            one_is_silent=any(value is None or same_code(value, "None") for value in passed),
            argument=None if a is None else a.arg,
            parameter=parameter.name,
            is_cache_off=still_on is not None,
            received=(left, right),
        )
    extras = [_extra_arguments(binding) for binding in (one, other)]
    for name in sorted(extras[0].keys() ^ extras[1].keys()):
        which, lacking = ("plain", "checkpointed") if name in extras[1] else ("checkpointed", "plain")
        yield Difference(
            f"the {which} call passes `{name}` and the {lacking} one does not",
            one_is_silent=True,
            parameter=name,
            is_cache_off=_is_switched_off(name, extras[0].get(name)),
        )
    for name in sorted(extras[0].keys() & extras[1].keys()):
        if not same_code(extras[0][name], extras[1][name]):
            yield Difference(
                f"`{name}` receives `{_shown(extras[0][name])}` with checkpointing and "
                f"`{_shown(extras[1][name])}` without",
                parameter=name,
                is_cache_off=_is_switched_off(name, extras[0][name]),
            )


def _is_switched_off(name: str, value: str | None) -> bool:
    """Tell whether a call leaves out a cache that the base class of some release would leave out as well."""
    return name in EVER_NEUTRALISED and (value is None or one_line(value) in _OFF)


def _extra_arguments(binding: Binding) -> dict[str, str]:
    """Return what a call unpacks, or passes by a name that ``forward`` does not list."""
    return {
        _shown(b.arg.star + _code(b.arg.value)) if b.arg.keyword is None else b.arg.keyword.value: _code(
            b.arg.value
        )
        for b in binding.arguments
        if b.parameter is None
    }


def _same_where_not_none(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Tell whether one value is the other behind a guard: ``m[i] if m is not None else None``."""
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


def replacement(branch: LegacyBranch, edits: Sequence[Edit]) -> Edit:
    """Return the edit that puts the plain side in the branch's place.

    Args:
        branch: a branch whose sides agree.
        edits: repairs of the calls in the plain side, made on the way.
    """
    file, fragment = branch.fragment.file, branch.fragment
    start, end = branch.span
    body_start, body_end = fragment.span(branch.plain_side)
    indent = file.text[file.line_starts[file.position(start).row - 1] : start]
    above, header = start, start
    if not branch.negated:
        above, header = fragment.span(branch.node.body)[1], fragment.span(branch.orelse)[0]
    plain = _plain_text(file.text, above, header, body_start, body_end, edits)
    lines = _dedent(plain, _line_indent(file.text, body_start), indent)
    _, guards = split_side(branch.checkpointed_side)
    if guards:
        # They are the side's first statements, so that all of it down to them can stay as it is.
        kept = file.text[start : fragment.span(guards[-1])[1]]
        lines = f"{kept}{file.newline}{indent}{lines}"
    return Edit(file.path, start, end, lines)


def _plain_text(
    text: str, checkpointed_end: int, header: int, start: int, end: int, edits: Sequence[Edit]
) -> str:
    """Return the plain side's code with edits made, and with the comments that stand before it."""
    between = text[header_end(text, header) : start]
    above = text[checkpointed_end:header].splitlines()[1:]
    own = [line.strip() for line in (*above, *between.splitlines()) if line.strip().startswith("#")]
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.content + text[edit.end :]
        end += len(edit.content) - (edit.end - edit.start)
    indent = _line_indent(text, start)
    newline = "\r\n" if "\r\n" in between else "\n"
    return "".join(comment + newline + indent for comment in own) + text[start:end]


def _line_indent(text: str, offset: int) -> str:
    line = text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]
    return line[: len(line) - len(line.lstrip())]


def _dedent(code: str, old: str, new: str) -> str:
    """Move lines from one indentation to another, strings over several lines left alone."""
    pieces: list[str] = []
    end = 0
    for token in tokens(code):
        if token.kind in (Kind.NEWLINE, Kind.JOIN) and code.startswith(old, token.end):
            pieces += [code[end : token.end], new]
            end = token.end + len(old)
    return "".join([*pieces, code[end:]])


def removed_names(branch: LegacyBranch) -> set[str]:
    """Return the names, dotted ones in full and in part, that the checkpointed side uses."""
    found: set[str] = set()
    for node in walk(branch.checkpointed_side):
        if isinstance(node, cst.Name):
            found.add(node.value)
        elif isinstance(node, cst.Attribute):
            found.add(dotted_name(node) or "")
    return found


def unused_helpers(branch: LegacyBranch) -> list[Definition]:
    """Return the functions of the same method that only the checkpointed side uses, and does not hold."""
    file = branch.fragment.file
    start, end = branch.fragment.span(branch.checkpointed_side)
    used_inside = {node.value for node in walk(branch.checkpointed_side) if isinstance(node, cst.Name)}
    pieces = [] if branch.scope.body is None else branch.scope.body.pieces()
    used_elsewhere = [
        node.value
        for piece in pieces
        for root in piece.nodes or ()
        for node in walk(root)
        if isinstance(node, cst.Name) and not _is_within(piece.fragment, node, start, end)
    ]
    by_start = {definition.start: definition for definition in file.outline.definitions}
    found: list[Definition] = []
    for piece in pieces:
        for name, node in piece.functions.items():
            # Its own definition names it once.
            if name not in used_inside or used_elsewhere.count(name) != 1 or piece.fragment is None:
                continue
            first, _ = piece.fragment.span(node)
            definition = by_start.get(file.line_starts[file.position(first).row - 1])
            if definition is not None and not start <= first < end:
                found.append(definition)
    return found


def functions_used_outside(branch: LegacyBranch) -> list[str]:
    """Return the functions that the checkpointed side defines and other code of the method uses."""
    made = [node for node in branch.checkpointed_side.body if isinstance(node, cst.FunctionDef)]
    if not made or branch.scope.body is None:
        return []
    names = {node.name.value for node in made}
    start, end = branch.span
    uses = [
        node
        for piece in branch.scope.body.pieces_naming(names)
        for root in piece.nodes or ()
        for node in walk(root)
        if isinstance(node, cst.Name) and node.value in names
        if not _is_within(piece.fragment, node, start, end)
    ]
    called = [branch.scope.local_function(node.value, node) for node in uses]
    return sorted(
        {node.name.value for node in made for each in called if each is not None and each.node is node}
    )


def _is_within(fragment: Fragment | None, node: cst.CSTNode, start: int, end: int) -> bool:
    return fragment is not None and start <= fragment.span(node)[0] < end
