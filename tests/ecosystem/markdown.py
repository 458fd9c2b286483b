"""The difference between two versions as Markdown that fits into a comment on a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.ecosystem.difference import Change, Said
from tests.ecosystem.versions import Output

LIMIT = 65_536
"""How many characters GitHub takes in a comment."""
_ROOM = LIMIT - 1_000
_SAMPLES = 12
"""How many changes of a rule are shown."""
_LONGEST_DIFF = 1_500
_LONGEST_TEXT = 400
_KINDS = ("safe", "when proven", "unsafe", "no fix")


@dataclass(frozen=True)
class Compared:
    """What two versions say about a sample."""

    sample: str
    before: tuple[Said, ...] = ()
    after: tuple[Said, ...] = ()
    changes: tuple[Change, ...] = ()
    outputs: tuple[Output, ...] = field(default=(), repr=False)
    unavailable: str | None = None
    """Why it could not be looked at."""

    @property
    def differs(self) -> bool:
        """Whether there is something to look at."""
        return bool(self.changes or self.broken)

    @property
    def broken(self) -> tuple[str, ...]:
        """What only one version has to say of files that it could not judge, in words."""
        if len(self.outputs) != 2:
            return ()
        sides = [{*_troubles(each)} for each in self.outputs]
        told = [(f"only before: {each}") for each in sorted(sides[0] - sides[1])]
        return (*told, *(f"only after: {each}" for each in sorted(sides[1] - sides[0])))


def _troubles(output: Output) -> Iterator[str]:
    for problem in output.problems:
        yield f"`{problem['filename']}`: {problem['message']}"
    for failure in output.failures:
        yield f"`{' '.join(failure.paths)}`: {failure.reason}"


def markdown(before: str, after: str, found: Sequence[Compared], part: str) -> str:
    """Return the difference, cut where it would not fit."""
    text = "\n".join(_lines(before, after, found, part))
    if len(text) <= _ROOM:
        return f"{text}\n"
    cut = text.rfind("\n\n", 0, _ROOM)
    kept = text[: cut if cut > 0 else _ROOM]
    # What is cut open would swallow all that follows it.
    kept += "\n```" * (kept.count("\n```") % 2)
    kept += "\n</details>" * (kept.count("<details>") - kept.count("</details>"))
    return f"{kept}\n\n*The rest does not fit into a comment; `--output FILE` and `--part` show it.*\n"


def _lines(before: str, after: str, found: Sequence[Compared], part: str) -> Iterator[str]:
    yield f"## Ecosystem check: `{before}` → `{after}`"
    yield ""
    of = "" if part == "1/1" else f", part {part}"
    kinds = Counter(change.kind for each in found for change in each.changes)
    looked = [each for each in found if not each.unavailable]
    if not any(each.differs for each in found):
        total = sum(len(each.after) for each in found)
        yield f"No difference: {total} findings in {len(looked)} trees{of} are the same, with their fixes."
    else:
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        yield f"**{counts or 'Findings are the same'}** in {len(looked)} trees{of}."
        yield ""
        yield from _table(found)
    for each in found:
        if each.unavailable:
            yield ""
            yield f"Not looked at: {each.sample}: {each.unavailable}"
    yield from _broken(found)
    for code in sorted({change.said.code for each in found for change in each.changes}):
        yield from _rule(code, found)


def _table(found: Sequence[Compared]) -> Iterator[str]:
    """Yield how many findings and fixes each rule has, where that or one of them is different."""
    yield f"| rule | findings | changed | {' | '.join(f'{kind}' for kind in _KINDS)} |"
    yield f"|---|---|---|{'---|' * len(_KINDS)}"
    before = Counter((said.code, said.kind) for each in found for said in each.before)
    after = Counter((said.code, said.kind) for each in found for said in each.after)
    changed = Counter(change.said.code for each in found for change in each.changes)
    for code in sorted(changed):
        sums = [sum(counts[code, kind] for kind in _KINDS) for counts in (before, after)]
        cells = [_arrow(*sums), str(changed[code])]
        cells += [_arrow(before[code, kind], after[code, kind]) for kind in _KINDS]
        yield f"| {code} | {' | '.join(cells)} |"


def _arrow(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} → {after}"


def _broken(found: Sequence[Compared]) -> Iterator[str]:
    troubles = [(each.sample, trouble) for each in found for trouble in each.broken]
    if troubles:
        yield ""
        yield "### Files that one version could not judge"
        yield ""
    for sample, trouble in troubles[:_SAMPLES]:
        yield f"- {sample}: {_short(trouble)}"
    if len(troubles) > _SAMPLES:
        yield f"- … and {len(troubles) - _SAMPLES} more"


def _rule(code: str, found: Sequence[Compared]) -> Iterator[str]:
    own = [(each.sample, change) for each in found for change in each.changes if change.said.code == code]
    kinds = Counter(change.kind for _, change in own)
    yield ""
    yield f"### {code}: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}"
    yield ""
    shown = list(_chosen(own))
    for sample, change in shown:
        yield from _change(sample, change)
    if len(own) > len(shown):
        yield f"- … and {len(own) - len(shown)} more"


def _chosen(own: Sequence[tuple[str, Change]]) -> Iterator[tuple[str, Change]]:
    """Yield some changes of a rule: of each kind as many."""
    kinds = Counter(change.kind for _, change in own)
    quota = max(1, _SAMPLES // len(kinds))
    taken: Counter[str] = Counter()
    for sample, change in own:
        if taken[change.kind] < quota:
            taken[change.kind] += 1
            yield sample, change


def _change(sample: str, change: Change) -> Iterator[str]:
    said = change.said
    yield f"- {change.kind}: {sample} {_link(sample, said)} `{said.symbol}`: {_short(said.message)}"
    if change.before is not None and change.after is not None:
        for name in ("message", "reason"):
            old, new = getattr(change.before, name), getattr(change.after, name)
            if old != new:
                yield f"  - {name}: {_short(old) or 'none'} → {_short(new) or 'none'}"
    elif said.reason:
        yield f"  - {said.kind}: {_short(said.reason)}"
    sides = {
        label: side.diff
        for label, side in (("before", change.before), ("after", change.after))
        if side is not None and side.diff
    }
    if len({*sides.values()}) == 1:
        sides = {"fix": next(iter(sides.values()))}
        if change.before is not None and change.after is not None:
            return
    for label, diff in sides.items():
        yield "  <details><summary>" + f"{label}: {said.kind if label == 'fix' else ''}</summary>".replace(
            ": <", "<"
        )
        yield ""
        yield "  ```diff"
        shown = diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}\n…"
        yield from (f"  {line}" for line in shown.replace("```", "'''").split("\n"))
        yield "  ```"
        yield "  </details>"


def _link(sample: str, said: Said) -> str:
    """Return where a finding stands, as a link."""
    name, _, version = sample.partition("==")
    place = f"{said.filename}:{said.row}"
    if name == "transformers":
        root = f"https://github.com/huggingface/transformers/blob/v{version}/src"
        return f"[{place}]({root}/{said.filename}#L{said.row})"
    return f"[{place}](https://pypi.org/project/{name}/{version}/)"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"
