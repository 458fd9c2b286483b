"""Legacy branches: ``if self.gradient_checkpointing and self.training``, and a plain call under ``else``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from gclint.finding import Refusal
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.walk import conjuncts, walk
from gclint.network.runsite import Arm, RunSite
from gclint.source.fragment import Fragment

_CONDITION_NAMES = {
    "gradient_checkpointing",
    "training",
    "_requires_grad",
    "is_grad_enabled",
    "requires_grad",
}


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
    """Return whether one side of an ``if`` is where the model checkpoints."""
    test = arm.branch.test
    if arm.taken:
        return _is_condition(test)
    return (
        isinstance(test, cst.UnaryOperation)
        and isinstance(test.operator, cst.Not)
        and _is_condition(test.expression)
    )


def leaves_out_training(branch: LegacyBranch) -> bool:
    """Return whether a branch checkpoints in evaluation as well, which the base class does not."""
    test = branch.node.test
    if isinstance(test, cst.UnaryOperation):
        test = test.expression
    return "training" not in map(_condition_name, conjuncts(test))


def _is_condition(test: cst.BaseExpression) -> bool:
    """Return whether a test asks for the checkpointing flag, and for nothing but modes beside it."""
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


def is_spared(site: RunSite) -> bool:
    """Return whether a call stands where the model does not checkpoint, since its own branch does that."""
    return any(_checkpoints(replace(arm, taken=not arm.taken)) for arm in site.arms)


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
        if not is_within(piece.fragment, node, start, end)
    ]
    called = [branch.scope.local_function(node.value, node) for node in uses]
    return sorted(
        {node.name.value for node in made for each in called if each is not None and each.node is node}
    )


def is_within(fragment: Fragment | None, node: cst.CSTNode, start: int, end: int) -> bool:
    """Return whether a node begins in a range of the file's text."""
    return fragment is not None and start <= fragment.span(node)[0] < end
