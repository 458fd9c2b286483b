"""Whether a failure in a run shows what a finding is about."""

from __future__ import annotations

from pathlib import Path

from gclint.finding import Finding, Heir
from gclint.rule import Rule
from gclint.source.file import UnreadableFile
from gclint.source.project import Project
from gclint.verify.worker.protocol import ClassResult, Failure, Place


def is_shown(
    rule: Rule, finding: Finding, row: int, run: ClassResult, failure: Failure, project: Project
) -> bool:
    """Return whether a failure is the damage of a defect: at its place, or in a run of its model.

    Args:
        rule: that of the finding.
        finding: the finding about the defect.
        row: the row of the finding in the text that was run.
        run: the result of a class.
        failure: one of its failures.
        project: the files.
    """
    if failure.cause not in (rule.causes if rule.shown_by is None else rule.shown_by):
        return False
    if not failure.places:
        return rule.concerns(finding, failure, run)
    for place in failure.places:
        path = project.identify(Path(place.path))
        if path == finding.path and place.line <= row <= place.end_line:
            return True
        blocks = {site.block for site in run.sites if site.place == place}
        for heir in finding.heirs:
            if heir.path == path and (heir.symbol in blocks or _defines(project, heir, place)):
                return True
    return False


def _defines(project: Project, heir: Heir, place: Place) -> bool:
    """Return whether a place is in the class that a finding names in another file."""
    try:
        file = project.file(heir.path)
    except (OSError, UnreadableFile):
        return False
    definition = file.outline.classes.get(heir.symbol)
    if definition is None:
        return False
    return file.position(definition.start).row <= place.line <= file.position(definition.end).row
