"""Ignore comments for findings, in memory: what is left for later is written down where it stands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from gclint.codemod.edits import edited
from gclint.codemod.ignoring import ignoring
from gclint.engine.check import CheckResult, check_again
from gclint.engine.fix import FixResult
from gclint.finding import Edit, Finding
from gclint.rule import Rule, all_rules, codes_by_word
from gclint.source.file import SourceFile
from gclint.source.project import Project
from gclint.source.suppressions import Suppressions


def with_ignores(
    project: Project, result: CheckResult, findings: Sequence[Finding], rules: Sequence[Rule]
) -> tuple[FixResult, int]:
    """Return what is left once each finding has an ignore comment, and how many were suppressed.

    Args:
        project: the files; only those that it was given change, and nothing is written.
        result: what was found.
        findings: those of it to suppress.
        rules: the rules that ran.
    """
    codes = codes_by_word((*all_rules(), *rules))
    by_path = defaultdict(list)
    for finding in findings:
        if finding.path in project.given and finding.path in project.fixable:
            by_path[finding.path].append(finding)
    fixed = result if isinstance(result, FixResult) else FixResult(**vars(result), applied=(), changed={})
    changed = dict(fixed.changed)
    suppressed = 0
    for path, own in by_path.items():
        file = project.file(path)
        after, count = _suppressing(file, own, codes)
        if count:
            suppressed += count
            before, _ = changed.get(path, (file.text, ""))
            changed[path] = (before, after)
            project.replace(path, after)
    again = check_again(project, result, set(by_path), rules)
    return replace(fixed, **{**vars(again), "problems": fixed.problems}, changed=changed), suppressed


def _suppressing(file: SourceFile, findings: Sequence[Finding], codes: dict[str, str]) -> tuple[str, int]:
    """Return the text of a file with comments for findings, and for how many there was room."""
    count = 0
    # From the end on, so that what is left to do stands where it was found, as far as possible.
    left = sorted(findings, key=lambda each: (each.start, each.end))
    while left:
        finding = left.pop()
        if Suppressions(file, codes).covers(finding):  # By the comment for one of the others.
            count += 1
            continue
        edit = ignoring(file, finding, codes)
        if edit is not None:
            count += 1
            file = SourceFile(file.path, file.encode(edited(file.text, [edit])))
            left = [_moved(each, edit) for each in left]
    return file.text, count


def _moved(finding: Finding, edit: Edit) -> Finding:
    """Return a finding at its place after an edit, which changes none of its own code."""

    def moved(offset: int) -> int:
        return offset + len(edit.content) - (edit.end - edit.start) if edit.end <= offset else offset

    start = moved(finding.start)
    return replace(finding, start=start, end=max(start, moved(finding.end - 1) + 1))
