"""Legacy branches: ``if self.gradient_checkpointing and self.training``, and a plain call under ``else``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gclint.code.file import SourceFile
from gclint.code.walk import FUNCTIONS, conjuncts, walk
from gclint.finding import Refusal
from gclint.network.assignments import Arm
from gclint.network.evaluation.scope import Scope
from gclint.network.runsite import RunSite
from gclint.network.switch import is_flag, is_mode, is_training


@dataclass(frozen=True)
class LegacyBranch:
    """An ``if`` whose one side checkpoints blocks and whose other side runs them plainly."""

    scope: Scope
    node: ast.If
    legacy: tuple[RunSite, ...]
    plain: tuple[RunSite, ...]
    negated: bool = False
    """Whether the plain side comes first: ``if not self.gradient_checkpointing``."""

    @property
    def file(self) -> SourceFile:
        """The file that it is in."""
        return self.scope.module.file

    @property
    def checkpointed_side(self) -> list[ast.stmt]:
        """The statements that checkpoint."""
        return self.node.orelse if self.negated else self.node.body

    @property
    def plain_side(self) -> list[ast.stmt]:
        """The statements that stay."""
        return self.node.body if self.negated else self.node.orelse

    @property
    def span(self) -> tuple[int, int]:
        """Where the statement stands, from ``if`` to its last character."""
        return self.scope.span(self.node)


def legacy_branch(site: RunSite, sites: Sequence[RunSite]) -> LegacyBranch | Refusal:
    """Return the branch that a checkpointed call stands in, where it is one that can be taken apart.

    Args:
        site: a checkpointed call.
        sites: all run sites of the file.
    """
    arm = next((arm for arm in reversed(site.arms) if _checkpoints(site.scope, arm)), None)
    if arm is None:
        return Refusal(
            "the checkpointed call is not in an `if` that tests only the checkpointing flag and `training`"
        )
    file = site.scope.module.file
    other_side = arm.node.orelse
    if not other_side or _is_elif(file, other_side[0]):
        return Refusal("the branch has no `else` with a plain call to replace it")
    inside = [other for other in sites if any(each.node is arm.node for each in other.arms)]
    legacy = tuple(other for other in inside if other.checkpointed)
    plain = tuple(other for other in inside if not other.checkpointed)
    if _is_elif(file, arm.node):
        return Refusal(f"the branch on line {arm.node.lineno} is an `elif`")
    return LegacyBranch(site.scope, arm.node, legacy, plain, negated=not arm.taken)


def _is_elif(file: SourceFile, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and file.text.startswith("elif", file.places.start(statement))


def _checkpoints(scope: Scope, arm: Arm) -> bool:
    """Return whether one side of an ``if`` is where the model checkpoints."""
    test = arm.node.test
    if arm.taken:
        return _is_condition(scope, test)
    return (
        isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _is_condition(scope, test.operand)
    )


def leaves_out_training(branch: LegacyBranch) -> bool:
    """Return whether a branch checkpoints in evaluation as well, which the base class does not."""
    test = branch.node.test
    if isinstance(test, ast.UnaryOp):
        test = test.operand
    return not any(is_training(branch.scope, part) for part in conjuncts(test))


def _is_condition(scope: Scope, test: ast.expr) -> bool:
    """Return whether a test asks for the checkpointing flag, and for nothing but modes beside it."""
    parts = [*conjuncts(test)]
    is_asked = any(is_flag(scope, part) for part in parts)
    return is_asked and all(is_flag(scope, part) or is_mode(scope, part) for part in parts)


def is_spared(site: RunSite) -> bool:
    """Return whether a call stands where the model does not checkpoint, since its own branch does that."""
    return any(_checkpoints(site.scope, replace(arm, taken=not arm.taken)) for arm in site.arms)


def functions_used_outside(branch: LegacyBranch) -> list[str]:
    """Return the functions that the checkpointed side defines and other code of the method uses."""
    made = [node for node in branch.checkpointed_side if isinstance(node, FUNCTIONS)]
    if not made:
        return []
    names = {node.name for node in made}
    inside = set(walk(branch.node))
    uses = [
        node
        for node in branch.scope.body.nodes
        if isinstance(node, ast.Name) and node.id in names and node not in inside
    ]
    called = [branch.scope.local_function(node.id, node) for node in uses]
    return sorted({node.name for node in made for each in called if each is not None and each.node is node})
