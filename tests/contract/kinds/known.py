"""The list of what is known to fail, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from tests.contract.kinds.judging import KEPT, NEEDLESS, WRONG, Verdict

PATH = Path(__file__).with_name("known.txt")
_HEAD = """\
# Models of `python3 -m tests.contract.kinds` that gclint gets wrong: the list may only become shorter.
# `--write` takes out what no longer fails, and counts anew.
"""


def read(path: Path = PATH) -> dict[str, str]:
    """Return how each listed model fails, by its key."""
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            outcome, _, key = line.partition(": ")
            found[key] = outcome
    return found


def write(known: Mapping[str, str], path: Path = PATH) -> None:
    """Write the list, with the numbers of each kind at the top."""
    lines = [_HEAD.rstrip(), "#"]
    order = sorted(known, key=lambda key: (_kind(key), known[key], key))
    for kind, keys in groupby(order, _kind):
        outcomes = [known[key] for key in keys]
        wrong, needless = outcomes.count(WRONG), outcomes.count(NEEDLESS)
        lines.append(f"# {kind}: {wrong} wrong safe fixes, {needless} needless doubts")
    lines += ["", *(f"{known[key]}: {key}" for key in order)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _kind(key: str) -> str:
    return key.partition(": ")[0]


def unlisted(verdicts: Iterable[Verdict], known: Mapping[str, str]) -> list[Verdict]:
    """Return what fails and is not listed as failing so."""
    return [each for each in verdicts if each.outcome not in (KEPT, known.get(each.model.key))]


def mended(verdicts: Iterable[Verdict], known: Mapping[str, str]) -> list[str]:
    """Return the keys of what is listed as failing, and no longer fails so."""
    found = {each.model.key: each.outcome for each in verdicts}
    return [key for key, outcome in known.items() if found.get(key, outcome) != outcome]


def updated(
    known: Mapping[str, str], new: Iterable[Verdict], no_longer: Sequence[str], *, is_admitted: bool
) -> dict[str, str]:
    """Return the list without what no longer fails; with what fails anew only if that is admitted."""
    kept = {key: outcome for key, outcome in known.items() if key not in set(no_longer)}
    return {**kept, **({each.model.key: each.outcome for each in new} if is_admitted else {})}


def gone(keys: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Return what is listed of the kinds, and is no model of theirs."""
    kinds = set(map(_kind, keys))
    return [key for key in known if _kind(key) in kinds and key not in set(keys)]
