"""Adds ignore comments for findings, in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gclint.codemod.ignoring import suppressed
from gclint.engine.check import CheckResult, check_again
from gclint.engine.fix import FixResult
from gclint.finding import Finding
from gclint.rule import Rule, all_rules, codes_by_word
from gclint.source.project import Project


def with_ignores(
    project: Project, result: CheckResult, findings: Sequence[Finding], rules: Sequence[Rule]
) -> tuple[FixResult, Mapping[Path, int]]:
    """Add an ignore comment for each finding; return what is left, and how many each file had suppressed.

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
    numbers = {}
    for path, own in by_path.items():
        file = project.file(path)
        after, count = suppressed(file, own, codes)
        if count:
            numbers[path] = count
            before, _ = changed.get(path, (file.text, ""))
            changed[path] = (before, after.text)
            project.replace(path, after.text)
    again = check_again(project, result, set(by_path), rules)
    return replace(fixed, **{**vars(again), "problems": fixed.problems}, changed=changed), numbers
