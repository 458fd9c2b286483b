"""What is said otherwise than it is written down."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.verdicts.frozen import Frozen, kinds_at

GONE, NEW, CHANGED = "gone", "new", "changed"
_TELLING = ("finding", "fix", "reason", "names", "edits", "baseline", "diff", "unsafe diff", "silence")
"""By which a finding is recognised that has moved."""
_SHOWN_LINES = 12

Values = Mapping[str, str]
Where = tuple[str, tuple[str, str]]
"""A tree, and a place in it."""


@dataclass(frozen=True)
class Change:
    """One kind of fact that is different at one place."""

    sample: str
    where: Where
    kind: str
    what: str
    before: str = ""
    after: str = ""


def changes(sample: str, before: Frozen, after: Frozen) -> Iterator[Change]:
    """Yield what has changed in a sample; of trees whose code has, only that."""
    for tree in sorted({*before.trees, *after.trees}):
        if before.trees.get(tree) != after.trees.get(tree):
            what = NEW if tree not in before.trees else GONE if tree not in after.trees else CHANGED
            yield Change(sample, (tree, ("", "")), "code", what)
    same = {tree for tree, code in before.trees.items() if after.trees.get(tree) == code}
    old, new = (
        {where: own for where, own in each.facts.items() if where[0] in same} for each in (before, after)
    )
    gone = {where: old[where] for where in old if where not in new}
    come = {where: new[where] for where in new if where not in old}
    pairs = [(where, where) for where in old if where in new]
    moved = list(_moved(gone, come))
    for one, other in moved:
        yield Change(sample, one, "span", CHANGED, one[1][1], other[1][1])
    for one, other in pairs + moved:
        yield from _at(sample, one, other, old[one], new[other])
    known = {where for pair in moved for where in pair}
    for left, what in ((gone, GONE), (come, NEW)):
        for where, values in left.items():
            if where not in known:
                kinds = [kind for kind in kinds_at(where[1][1]) if kind in values]
                shown = " ".join(values[kind] for kind in kinds[:3])
                for kind in kinds[:1] if ":" in where[1][1] else kinds:
                    yield Change(sample, where, kind, what, *((shown, "") if what == GONE else ("", shown)))


def _at(sample: str, where: Where, other: Where, before: Values, after: Values) -> Iterator[Change]:
    for kind in kinds_at(where[1][1]):
        one, two = before.get(kind, ""), after.get(kind, "")
        if one != two:
            what = NEW if not one else GONE if not two else CHANGED
            yield Change(sample, other if two else where, kind, what, one, two)


def _moved(gone: Mapping[Where, Values], come: Mapping[Where, Values]) -> Iterator[tuple[Where, Where]]:
    """Yield places that are gone with the new ones in the same file at which most of the same is said."""
    left: defaultdict[tuple[str, str], list[Where]] = defaultdict(list)
    for where in come:
        left[where[0], where[1][0]].append(where)
    for where, values in gone.items():
        others = left[where[0], where[1][0]]
        alike = {
            each: sum(values[kind] == come[each].get(kind) for kind in _TELLING if kind in values)
            for each in others
        }
        best = max(others, key=lambda each: alike[each], default=None)
        if best is not None and alike[best] >= 3:
            others.remove(best)
            yield where, best


def table(found: Iterable[Change]) -> str:
    """Return how many facts of each kind are gone, new or changed in each sample."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for each in found:
        counts[each.sample, each.kind][each.what] += 1
    samples, kinds = (list(dict.fromkeys(key[index] for key in counts)) for index in (0, 1))
    rows = [["sample", *kinds]]
    for sample in samples:
        cells = (counts.get((sample, kind), Counter()) for kind in kinds)
        rows.append(
            [sample, *(", ".join(f"{number} {what}" for what, number in cell.items()) for cell in cells)]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def shown(change: Change, texts: Mapping[tuple[str, Where, str], str], templates: Mapping[str, str]) -> str:
    """Return a change with what was said, as far as that is written down, and what is said now."""
    tree, (file, place) = change.where
    where = ":".join(filter(None, (*(part for part in (tree, file) if part != "."), place)))
    lines = [f"{change.sample}: {where}: {change.kind} {change.what}"]
    if change.kind in ("finding", "fix", "reason", "span"):
        lines += [
            f"  {sign} {_in_words(value, templates)}"
            for sign, value in (("-", change.before), ("+", change.after))
            if value
        ]
    else:
        said = texts.get((change.sample, change.where, change.kind), "").splitlines()
        lines += [f"  now: {line}" for line in said[:_SHOWN_LINES]]
        lines += ["  now: …"] * (len(said) > _SHOWN_LINES)
    return "\n".join(lines)


def _in_words(value: str, templates: Mapping[str, str]) -> str:
    return " ".join(templates.get(word, word) for part in value.split() for word in part.split("+"))
