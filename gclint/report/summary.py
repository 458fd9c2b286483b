"""What a run repairs and what it leaves, by rule and by model: as closing text, and for a pull request."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gclint.finding import Finding, Part, Repair
from gclint.report.findings import counted, obstacle

if TYPE_CHECKING:
    from gclint.source.project import Project

_MODELS_IN_TEXT = 8
_UNWRITTEN = "its file cannot be written"


@dataclass(frozen=True)
class Sweep:
    """What a run with ``--fix`` or ``--diff`` repairs, and what it leaves."""

    project: Project
    changed: Collection[Path]
    """The files whose text is another one now."""
    repaired: Sequence[Finding]
    left: Sequence[Finding]

    @classmethod
    def of(
        cls,
        project: Project,
        changed: Iterable[Path],
        applied: Collection[Finding],
        left: Iterable[Finding],
        unwritten: Collection[Path],
    ) -> Sweep:
        """Return the outcome of a run in which the files in ``unwritten`` stayed as they were."""
        lost = [each.refused(_UNWRITTEN) for each in applied if each.path in unwritten]
        repaired = [each for each in applied if each.path not in unwritten]
        return cls(project, [path for path in changed if path not in unwritten], repaired, [*left, *lost])

    def model(self, path: Path) -> str:
        """Return the model that a file belongs to: the name of its folder."""
        return self.project.location(path).parent.name

    @cached_property
    def repairs(self) -> Collection[Repair]:
        """What was put right, each piece of code once, however many findings it had."""
        fixes = [finding.fix for finding in self.repaired if finding.fix is not None]
        return dict.fromkeys(repair for fix in fixes for repair in fix.repairs)

    @cached_property
    def models(self) -> Collection[str]:
        """The models with something repaired or left, by name."""
        paths = {*self.changed, *(each.path for each in (*self.repaired, *self.left))}
        return sorted({self.model(path) for path in paths})


def closing_lines(sweep: Sweep) -> Iterator[str]:
    """Yield the lines that tell more than how many findings were repaired, where it is more than a file."""
    if len(sweep.changed) < 2:
        return
    models = {sweep.model(path) for path in sweep.changed}
    where = f"{counted(len(sweep.changed), 'file')} of {counted(len(models), 'model')}"
    parts = Counter(repair.part for repair in sweep.repairs)
    what = ", ".join(_counted_part(part, parts[part]) for part in Part if parts[part])
    yield f"  in {where}{': ' if what else ''}{what}"
    yield f"  by rule: {', '.join(_shares(sweep, lambda each: each.code))}"
    by_model = _shares(sweep, lambda each: sweep.model(each.path))
    more = len(by_model) - _MODELS_IN_TEXT
    rest = f", and {more} more" if more > 0 else ""
    yield f"  by model: {', '.join(by_model[:_MODELS_IN_TEXT])}{rest}"


def _shares(sweep: Sweep, key: Callable[[Finding], str]) -> list[str]:
    """Return ``GC001 3 of 4`` for three of four findings that are repaired; first where most is left."""
    repaired, left = Counter(map(key, sweep.repaired)), Counter(map(key, sweep.left))
    found = repaired + left
    names = sorted(found, key=lambda name: (-left[name], -found[name], name))
    return [f"{name} {repaired[name]} of {found[name]}" for name in names]


def _counted_part(part: Part, number: int) -> str:
    several = "legacy branches" if part is Part.BRANCH else f"{part.value}s"
    return f"{number} {part.value if number == 1 else several}"


def markdown(sweep: Sweep) -> str:
    """Return the summary as a pull request's description can hold it."""
    blocks = [_introduction(sweep), _rule_table(sweep), _model_table(sweep), *_what_is_left(sweep)]
    return "\n\n".join(blocks) + "\n"


def _introduction(sweep: Sweep) -> str:
    parts = Counter(repair.part for repair in sweep.repairs)
    return (
        "## Gradient checkpointing, repaired by gclint\n\n"
        f"{counted(len(sweep.repaired), 'finding')} repaired in {counted(len(sweep.changed), 'file')}: "
        f"{', '.join(_counted_part(part, parts[part]) for part in Part)}. {len(sweep.left)} left."
    )


def _rule_table(sweep: Sweep) -> str:
    repaired = Counter(finding.code for finding in sweep.repaired)
    left = Counter(finding.code for finding in sweep.left)
    names = {finding.code: finding.name for finding in (*sweep.repaired, *sweep.left)}
    rows = [(f"{code} {names[code]}", repaired[code], left[code]) for code in sorted(names)]
    return _table(("rule", "repaired", "left"), rows)


def _model_table(sweep: Sweep) -> str:
    files = Counter(sweep.model(path) for path in sweep.changed)
    parts = Counter((sweep.model(repair.path), repair.part) for repair in sweep.repairs)
    repaired = Counter(sweep.model(finding.path) for finding in sweep.repaired)
    left = Counter(sweep.model(finding.path) for finding in sweep.left)
    rows = [
        (model, files[model], *(parts[model, part] for part in Part), repaired[model], left[model])
        for model in sweep.models
    ]
    heads = ("blocks", "call sites", "legacy branches")
    return _table(("model", "files", *heads, "findings repaired", "left"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ("---", *["---:"] * (len(heads) - 1)), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _what_is_left(sweep: Sweep) -> Iterator[str]:
    """Yield for each rule what is left and why, file by file."""
    by_rule: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in sweep.left:
        by_rule[finding.code, finding.name].append(finding)
    if by_rule:
        yield "### What is left"
    for (code, name), findings in sorted(by_rule.items()):
        symbols: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for finding in findings:
            file = f"{sweep.model(finding.path)}/{finding.path.name}"
            symbols[file, obstacle(finding) or finding.message][f"`{finding.symbol}`"] = None
        lines = [f"- {file}: {', '.join(own)}: {why}" for (file, why), own in sorted(symbols.items())]
        yield "\n".join([f"{code} {name}:", "", *lines])
