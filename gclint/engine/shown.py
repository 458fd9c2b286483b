"""Whether a failure in a run shows what a finding is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gclint.finding import Finding
from gclint.rule import Rule
from gclint.verify.worker.protocol import ClassResult, Failure


def is_shown(
    rule: Rule,
    finding: Finding,
    row: int,
    run: ClassResult,
    failure: Failure,
    identify: Callable[[Path], Path],
) -> bool:
    """Return whether a failure shows a defect: at its place, or in a run of its model.

    Args:
        rule: that of the finding.
        finding: the finding about the defect.
        row: the row of the finding in the text that was run.
        run: the result of a class.
        failure: one of its failures.
        identify: returns the path that identifies a file.
    """
    if failure.cause not in rule.causes:
        return False
    if not failure.places:
        return rule.concerns(finding, failure, run)
    heirs = {heir.path for heir in finding.heirs}
    for place in failure.places:
        path = identify(Path(place.path))
        if path in heirs or (path == finding.path and place.line <= row <= place.end_line):
            return True
    return False
