"""What many verdicts come to, as a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tests.contract.counterexamples import Counterexample
from tests.contract.verdicts import Verdict

SHARE = 0.6
"""How many of the models that are repairable by construction have to get a safe fix."""
_REFUSALS = 12


def summary(verdicts: Sequence[Verdict], found: Sequence[Counterexample]) -> str:
    """Return a table of the releases, and what the models were refused for that are repairable."""
    rows: list[tuple[str, ...]] = [
        ("release", "models", "safe fix", "repairable", "of them fixed", "broken 1", "2", "3", "4")
    ]
    for release in dict.fromkeys(each.release for each in verdicts):
        of_release = [each for each in verdicts if each.release == release]
        repairable = [each for each in of_release if each.is_repairable]
        fixed = sum(each.is_fixed for each in repairable)
        counts = Counter(promise for each in of_release for promise in each.promises)
        rows.append(
            (
                release,
                str(len(of_release)),
                str(sum(each.is_fixed for each in of_release)),
                str(len(repairable)),
                f"{fixed} ({fixed / max(1, len(repairable)):.0%})",
                *(str(counts[promise]) for promise in (1, 2, 3, 4)),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    invalid = [each for each in verdicts if each.invalid]
    lines += [f"cannot be trained as it is: {each.shape}: {each.invalid}" for each in invalid[:_REFUSALS]]
    lines.append(f"{len(found)} kinds of counterexamples")
    return "\n".join([*lines, *_refusals(verdicts)])


def share(verdicts: Sequence[Verdict], release: str) -> float:
    """Return how many of the models that are repairable under a release were repaired."""
    repairable = [each for each in verdicts if each.release == release and each.is_repairable]
    return sum(each.is_fixed for each in repairable) / max(1, len(repairable))


def _refusals(verdicts: Sequence[Verdict]) -> list[str]:
    """Return why models that are repairable by construction were not repaired, the most frequent first."""
    reasons: Counter[str] = Counter()
    for each in verdicts:
        if each.is_repairable and not each.is_fixed:
            reason = "; ".join(dict.fromkeys(each.findings)) or "nothing is reported"
            reasons[re.sub(r"line \d+", "line N", reason)] += 1
    return [f"not repaired, {times} times: {reason}" for reason, times in reasons.most_common(_REFUSALS)]
