"""A summary in Markdown of repaired and remaining findings, for the description of a pull request."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gclint.code.paths import printable
from gclint.finding import Applicability, Finding, RepairKind
from gclint.report.findings import obstacle
from gclint.report.full import counted_parts
from gclint.report.report import Report
from gclint.wording import counted

_PLAIN = re.compile(r"[^\W_]+(?:[_./ -][^\W_]+)*")
_TICKS = re.compile("`+")
_MARKUP = re.compile(r"[\\*\[\]<>|`~]|(?<!\w)#|(?<![^\W_])_|_(?![^\W_])")
_HEADINGS = {
    Applicability.SAFE: "Safe repairs",
    Applicability.PROVABLE: "Repairs found and proven by runs",
    Applicability.UNSAFE: "Unsafe repairs (please review)",
}


def markdown(report: Report) -> str:
    """Return the summary of a run with ``--fix`` or ``--diff``."""
    blocks = [_introduction(report), _rule_table(report), _model_table(report)]
    blocks += [*_what_is_repaired(report), *_what_is_left(report), *_what_was_run(report)]
    return "\n\n".join(blocks) + "\n"


def _introduction(report: Report) -> str:
    repairs = report.repairs
    return (
        "## Gradient checkpointing, repaired by gclint\n\n"
        f"{counted(len(repairs.made), 'finding')} repaired in {counted(len(repairs.changed), 'file')}: "
        f"{counted_parts(repairs, also_none=True)}. {len(report.left)} left."
    )


def _rule_table(report: Report) -> str:
    repaired = Counter(finding.code for finding in report.repairs.made)
    left = Counter(finding.code for finding in report.left)
    names = {finding.code: finding.name for finding in (*report.repairs.made, *report.left)}
    rows = [(f"{code} {names[code]}", repaired[code], left[code]) for code in sorted(names)]
    return table(("rule", "repaired", "left"), rows)


def _model_table(report: Report) -> str:
    repairs = report.repairs
    files = Counter(report.project.model(path) for path in repairs.changed)
    parts = Counter((report.project.model(repair.path), repair.part) for repair in repairs.pieces)
    repaired = Counter(report.project.model(finding.path) for finding in repairs.made)
    left = Counter(report.project.model(finding.path) for finding in report.left)
    rows = [
        (
            _name(model),
            files[model],
            *(parts[model, part] for part in RepairKind),
            repaired[model],
            left[model],
        )
        for model in report.models
    ]
    heads = tuple(part.plural for part in RepairKind)
    return table(("model", "files", *heads, "findings repaired", "left"), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; numbers are expected in all columns but the first."""
    lines = [heads, ("---", *["---:"] * (len(heads) - 1)), *rows]
    cells = ([str(value).replace("|", "\\|") for value in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _place(report: Report, path: Path) -> str:
    return _name(f"{report.project.model(path)}/{path.name}")


def _name(text: str) -> str:
    """Return a name, as code if Markdown might take it for something else."""
    return text if _PLAIN.fullmatch(text) else in_code(text)


def in_code(text: str) -> str:
    """Return a text as code, whatever is in it."""
    text = printable(text)
    fence = "`" * (max(map(len, _TICKS.findall(text)), default=0) + 1)
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"


def escaped(text: str) -> str:
    """Return a message as Markdown: what is between backticks is code, and the rest has no markup."""
    parts = printable(text).split("`")
    if len(parts) % 2 == 0:
        return _MARKUP.sub(r"\\\g<0>", "`".join(parts))
    return "`".join(
        each if number % 2 else _MARKUP.sub(r"\\\g<0>", each) for number, each in enumerate(parts)
    )


def _what_is_repaired(report: Report) -> Iterator[str]:
    """Yield the repairs by applicability, with the reasons to review them, and what is left to do by hand."""
    places: defaultdict[tuple[str, str, str, str, Applicability], dict[str, None]] = defaultdict(dict)
    for finding in report.repairs.made:
        if (fix := finding.fix) is not None:
            where = _place(report, finding.path)
            key = (finding.code, finding.name, where, escaped(fix.reason or ""), fix.applicability)
            places[key][in_code(finding.symbol)] = None
    rows = sorted(places.items(), key=lambda each: each[0][:-1])
    for applicability, heading in _HEADINGS.items():
        lines = [
            f"- {code} {name}, {place}: {', '.join(symbols)}{f': {reason}' if reason else ''}"
            for (code, name, place, reason, what), symbols in rows
            if what is applicability
        ]
        if lines:
            yield f"### {heading}"
            yield "\n".join(lines)
    if report.repairs.duties:
        yield "### Left to do"
        duties = report.repairs.duties
        yield "\n".join(f"- {_place(report, each.path)}: {escaped(each.text)}" for each in duties)


def _what_is_left(report: Report) -> Iterator[str]:
    by_rule: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in report.left:
        by_rule[finding.code, finding.name].append(finding)
    if by_rule:
        yield "### Remaining findings"
    for (code, name), findings in sorted(by_rule.items()):
        symbols: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for finding in findings:
            why = escaped(obstacle(finding) or finding.message)
            symbols[_place(report, finding.path), why][in_code(finding.symbol)] = None
        lines = [f"- {file}: {', '.join(own)}: {why}" for (file, why), own in sorted(symbols.items())]
        yield "\n".join([f"{code} {name}:", "", *lines])
    if report.problems:
        yield "### Errors"
        yield "\n".join(f"- {_place(report, each.path)}: {escaped(each.message)}" for each in report.problems)


def _what_was_run(report: Report) -> Iterator[str]:
    """Yield the outcome of each repair that was run, and of each class before and after it."""
    if not report.proofs:
        return
    from gclint.report.proofs import outcome, reasons, run_lines

    yield "### Runs"
    for proof in report.proofs:
        files = " and ".join(_place(report, path) for path in proof.paths)
        lines = [f"{files}: {escaped(outcome(proof))}.", ""]
        # An indented line belongs to the one above it.
        for line in (*reasons(proof), *run_lines(proof)):
            bare = line.lstrip()
            lines.append(f"{'  ' if bare != line else ''}- {escaped(bare)}")
        yield "\n".join(lines)
