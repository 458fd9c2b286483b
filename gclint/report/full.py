"""The format for people: one line per finding in a pipe, and also the line of code on a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from gclint.code.paths import shown
from gclint.finding import Applicability, RepairKind, in_reading_order
from gclint.report.findings import count_by_rule, counted_by_level, is_fixable, is_provable, placed, remarks
from gclint.report.printing import is_coloured, write_lines
from gclint.report.report import Repairs, Report
from gclint.wording import counted, first_of

if TYPE_CHECKING:
    from gclint.finding import Finding
    from gclint.run.baseline import Baseline

_MODELS_SHOWN = 8
_BASES_SHOWN = 8


def write(report: Report, stream: TextIO) -> None:
    """Write proofs, findings and failures, and a summary."""
    _write_proofs(report, stream)
    _write_findings(report, stream)
    if report.runs is None:
        write_lines((*_fixed_lines(report), *summary_lines(report)), stream)
        return
    from gclint.report.verification import run_lines

    write_lines(run_lines(report), stream)


def write_statistics(report: Report, stream: TextIO) -> None:
    """Write a line for each rule that has findings, and a summary."""
    _write_proofs(report, stream)
    for each in count_by_rule(report.findings, unsafe=report.unsafe):
        stream.write(f"{each.count:>6}  {each.code}  {each.name} ({each.fixable} fixable)\n")
    write_lines(summary_lines(report), stream)


def write_notices(report: Report, stream: TextIO) -> None:
    """Write errors and notes, which are the same for every format."""
    write_lines(_notices(report), stream)


def _notices(report: Report) -> Iterator[str]:
    if report.baseline is not None and report.recognised is not None:
        if report.recognised.known and not report.quiet:
            known = counted(report.recognised.known, "known finding")
            yield f"{report.baseline}: {known} not reported"
        for entry, count in sorted(report.recognised.stale.items()):
            times = f" {count} times" if count > 1 else ""
            yield (
                f"{report.baseline}: {entry.rule} for {entry.symbol} in {entry.file} no longer occurs{times}"
                "; remove it, or write the baseline again with --write-baseline"
            )
    for problem in report.problems:
        position = f":{problem.position.row}:{problem.position.column}" if problem.position else ""
        yield f"{problem.path}{position}: error: {problem.message}"
    if not report.quiet:
        yield from (f"{empty.path}: note: {empty.message}" for empty in report.empty)
    if report.overlooked and report.files and not report.quiet:
        yield _about(
            report.overlooked,
            "1 file looks like a model but was not checked ({}); to check it, pass --include '*.py'.",
            "{} files look like models but were not checked (such as {}); to check them, pass "
            "--include '*.py'.",
        )
    if report.outside and not report.quiet:
        yield _about(
            report.outside,
            "1 link leads out of the given paths and was not followed ({}); to check what it leads to, pass "
            "the real path.",
            "{} links lead out of the given paths and were not followed (such as {}); to check what they "
            "lead to, pass the real paths.",
        )


def _about(paths: Sequence[object], one: str, several: str) -> str:
    """Return a note about a path, or about several with an example."""
    return one.format(paths[0]) if len(paths) == 1 else several.format(len(paths), paths[0])


def write_diff_notices(report: Report, stream: TextIO) -> None:
    """Write what accompanies a diff: the results of runs, and the numbers of findings fixed and left."""
    _write_proofs(report, stream)
    write_lines(_fixed_lines(report), stream)
    if not report.quiet:
        write_lines(_diff_summary(report), stream)


def _diff_summary(report: Report) -> Iterator[str]:
    fixed, left = len(report.repairs.made), len(report.left)
    if fixed:
        files = counted(len(report.repairs.changed), "file")
        yield f"Would fix {counted(fixed, 'finding')} in {files}; {left} left."
    elif not report.ignored:
        yield f"Nothing would be fixed; {counted(left, 'finding')} left."
    if report.ignored:
        yield f"Would add ignore comments for {counted(report.ignored, 'finding')}."
    yield from _repair_lines(report)


def write_baseline_summary(report: Report, baseline: Baseline, stream: TextIO) -> None:
    """Write the closing line of a run that has written a baseline."""
    if report.quiet:
        return
    known, fixed = baseline.known.total(), len(report.repairs.made)
    if fixed:
        stream.write(
            f"Fixed {counted(fixed, 'finding')}; {known} left, and written to {shown(baseline.path)}.\n"
        )
    else:
        stream.write(f"{counted(known, 'finding')} written to {shown(baseline.path)}.\n")


def counted_parts(repairs: Repairs, *, also_none: bool) -> str:
    """Return the numbers of repaired pieces of code by kind, such as ``2 blocks, 1 call site``."""
    return ", ".join(
        counted(repairs.parts[part], part.value, part.plural)
        for part in RepairKind
        if also_none or repairs.parts[part]
    )


def _write_proofs(report: Report, stream: TextIO) -> None:
    if report.proofs:
        from gclint.report.proofs import proof_lines

        write_lines(proof_lines(report.proofs, shows_runs=report.shows_fixes), stream)


def _write_findings(report: Report, stream: TextIO) -> None:
    if stream.isatty() or (report.findings and is_coloured(stream)):
        from gclint.report.terminal import TerminalFindings

        TerminalFindings(report.project, stream, unsafe=report.unsafe).show(report.findings)
        return
    for finding in report.findings:
        line = placed(finding, report.project, unsafe=report.unsafe)
        write_lines((line, *(f"    {each}" for each in remarks(finding))), stream)


def summary_lines(report: Report) -> Iterator[str]:
    """Yield the closing lines: how many findings there are, were fixed, and can be fixed."""
    if report.quiet:
        return
    if report.ignored:
        yield f"Added ignore comments for {counted(report.ignored, 'finding')}."
    if report.assumed:
        yield f"Assumed {' and '.join(report.assumed)}; set target-version if that is wrong."
    found, lost = len(report.repairs.made), len(report.repairs.lost) + report.unignored
    left = len(report.left) + report.unignored
    fixed = f"Fixed {counted(found, 'finding')}" if found else None
    if left:
        outcome = f"{fixed}; {left} left" if fixed else f"Found {counted(left, 'finding')}"
        if not report.unignored:  # Their levels are not known any more.
            outcome += f": {counted_by_level(report.left)}"
        unwritten = f", {lost} in files that cannot be written" if lost else ""
        yield f"{outcome} ({_fixable(report)}{unwritten})."
    elif (report.problems or report.empty) and not report.files:
        yield "Nothing was checked."
    else:
        outcome = f"{fixed}; none left" if fixed else "No findings"
        yield f"{outcome} in {counted(report.files, 'file')}."
    if report.unknown_bases:
        number = len(report.unknown_bases)
        yield (
            f"{'1 base class is' if number == 1 else f'{number} base classes are'} unknown: "
            f"{first_of(report.unknown_bases, _BASES_SHOWN, ', and')} (their subclasses were not checked; "
            "install transformers, or pass its folder with --library)"
        )
    if report.unparsed:
        python = "Python {}.{}".format(*sys.version_info)
        yield _about(
            [*map(shown, report.unparsed)],
            f"1 file beside the given ones is no code for {python} ({{}}), and so unknown",
            f"{{}} files beside the given ones are no code for {python} (such as {{}}), and so unknown",
        )
    yield from _repair_lines(report)


def _fixed_lines(report: Report) -> Iterator[str]:
    """Yield a line for each repaired finding, and why its fix is not safe, if ``--show-fixes`` is given."""
    if not report.shows_fixes:
        return
    for finding in in_reading_order(report.repairs.made):
        if finding.fix is not None:
            yield f"{finding.path}: fixed {finding.code} for {finding.symbol}: {finding.fix.message}"
            if finding.fix.reason:
                is_unsafe = finding.fix.applicability is Applicability.UNSAFE
                yield f"    {'unsafe' if is_unsafe else 'proven'}: {finding.fix.reason}"


def _fixable(report: Report) -> str:
    safely = sum(is_fixable(finding, unsafe=False) for finding in report.findings)
    in_any_way = sum(is_fixable(finding, unsafe=True) for finding in report.findings)
    by_proof = sum(map(is_provable, report.findings))
    parts = []
    if safely and not report.unsafe:
        parts.append(f"{safely} fixable with --fix")
        if in_any_way > safely:
            parts.append(f"{in_any_way - safely} more with --unsafe-fixes")
    elif in_any_way:
        parts.append(f"{in_any_way} fixable with --fix --unsafe-fixes")
    if by_proof:
        parts.append(f"{by_proof} {'more' if parts else 'fixable'} with {'' if parts else '--fix '}--verify")
    return ", ".join(parts) or "none fixable"


def _repair_lines(report: Report) -> Iterator[str]:
    """Yield what is left to do by hand, and a breakdown if more than one file was changed."""
    for duty in report.repairs.duties:
        yield f"  left to do: {duty.text} ({duty.path})"
    changed = report.repairs.changed
    if len(changed) < 2:
        return
    models = {report.project.model(path) for path in changed}
    where = f"{counted(len(changed), 'file')} of {counted(len(models), 'model')}"
    what = counted_parts(report.repairs, also_none=False)
    yield f"  in {where}{': ' if what else ''}{what}"
    if not report.repairs.made:  # Only ignore comments were added.
        return
    yield f"  by rule: {', '.join(_shares(report, lambda each: each.code))}"
    by_model = _shares(report, lambda each: report.project.model(each.path))
    yield f"  by model: {first_of(by_model, _MODELS_SHOWN, ', and')}"


def _shares(report: Report, key: Callable[[Finding], str]) -> list[str]:
    """Return the share of repaired findings by key, such as ``GC001 3 of 4``; first where most are left."""
    repaired, left = (Counter(map(key, each)) for each in (report.repairs.made, report.left))
    found = repaired + left
    names = sorted(found, key=lambda name: (-left[name], -found[name], name))
    return [f"{name} {repaired[name]} of {found[name]}" for name in names]
