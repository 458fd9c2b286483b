"""The results of further set-ups of training, as text; classes with equal results are grouped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gclint.verify.worker.protocol import Advice, ClassResult, SetUp

_Rows = tuple[tuple[str, str, str, str], ...]


def setup_lines(results: Iterable[ClassResult]) -> Iterator[str]:
    """Yield which set-ups work and fail, for each group of set-ups and the classes with equal results."""
    alike: defaultdict[tuple[str, str, _Rows], list[tuple[ClassResult, list[SetUp]]]] = defaultdict(list)
    for result in results:
        for group, rows in by_group(result.setups).items():
            signature = tuple((each.name, each.data, each.outcome, each.symptom) for each in rows)
            alike[group, advised(result.advice, group), signature].append((result, rows))
    for (group, sentence, _), members in alike.items():
        names = [result.name for result, _ in members]
        who = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
        yield f"{group}, {who}: {sentence}"
        if len(names) > 1:
            yield f"    classes: {', '.join(names)}"
        yield from _row_lines(members[0][1])


def by_group(rows: Iterable[SetUp]) -> dict[str, list[SetUp]]:
    """Return set-ups by group."""
    found: defaultdict[str, list[SetUp]] = defaultdict(list)
    for each in rows:
        found[each.group].append(each)
    return dict(found)


def advised(advice: Iterable[Advice], group: str) -> str:
    """Return the recommendation for a group of set-ups."""
    return next((each.sentence for each in advice if each.group == group), "no recommendation.")


def _row_lines(rows: Iterable[SetUp]) -> Iterator[str]:
    for fate in fates(rows):
        first, names = fate[0], "; ".join(map(setup_name, fate))
        kind = f" ({first.symptom})" if first.symptom else ""
        yield f"    {first.outcome}: {names}{kind}{f': {first.message}' if first.message else ''}"


def fates(rows: Iterable[SetUp]) -> list[list[SetUp]]:
    """Return set-ups in lists with the same outcome; those that work come first."""
    alike: defaultdict[tuple[str, str, str], list[SetUp]] = defaultdict(list)
    for each in sorted(rows, key=lambda row: row.outcome != "works"):
        alike[each.outcome, each.symptom, each.message].append(each)
    return list(alike.values())


def setup_name(row: SetUp) -> str:
    """Return the name of a set-up within its group."""
    return f"{row.name}, {row.data}" if row.data else row.name
