"""Kinds of constructs, as models and harmless twins: ``python3 -m tests.contract.kinds --kind caches``.

Exits with 1 if something fails that ``known.txt`` does not list, if something that it lists does not fail, or
if a model is not what it says it is.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections import Counter
from collections.abc import Sequence

from tests.contract.kinds import KINDS, known
from tests.contract.kinds.judging import NEEDLESS, RELEASE, WRONG, Verdict, judge
from tests.contract.kinds.models import drawn
from tests.contract.releases import python_of_release, worker


def main(arguments: Sequence[str]) -> int:
    """Judge the models of the kinds, and print a table; return the exit status."""
    options = _options().parse_args(arguments)
    python_of_release(RELEASE)
    listed = known.read()
    verdicts: list[Verdict] = []
    print(f"{'kind':12}{'models':>8}{'twins':>8}{'wrong':>8}{'needless':>10}{'known':>8}", flush=True)
    for kind in options.kind or KINDS:
        models = [
            each for pair in drawn(KINDS[kind](), options.models, options.seed) for each in pair.models(kind)
        ]
        found = [judge(each) for each in models]
        verdicts += found
        print(_row(kind, found, listed), flush=True)
    all_keys = [
        each.key for kind in options.kind or KINDS for pair in KINDS[kind]() for each in pair.models(kind)
    ]
    status = _compared(verdicts, all_keys, listed, is_written=options.write, is_admitted=options.admit)
    worker(RELEASE).close()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{sum(each.ru_utime + each.ru_stime for each in used):.0f} seconds of CPU time")
    return status


def _row(kind: str, verdicts: Sequence[Verdict], listed: dict[str, str]) -> str:
    outcomes = Counter(each.outcome for each in verdicts)
    twins = sum(each.model.is_twin for each in verdicts)
    expected = sum(each.model.key in listed for each in verdicts)
    return (
        f"{kind:12}{len(verdicts) - twins:>8}{twins:>8}"
        f"{outcomes[WRONG]:>8}{outcomes[NEEDLESS]:>10}{expected:>8}"
    )


def _compared(
    verdicts: Sequence[Verdict],
    all_keys: Sequence[str],
    listed: dict[str, str],
    *,
    is_written: bool,
    is_admitted: bool,
) -> int:
    """Print what is otherwise than listed, and update the list if asked to; return the exit status."""
    invalid = [each for each in verdicts if each.invalid]
    new, no_longer = known.unlisted(verdicts, listed), known.mended(verdicts, listed)
    no_longer += known.gone(all_keys, listed)
    for each in invalid:
        print(f"not what it says it is: {each.model.key}: {each.invalid}")
    for each in new:
        print(f"{each.outcome}, not listed: {each.model.key}: {each.how}")
    for key in no_longer:
        print(f"listed, and no longer fails so: {key}")
    if is_written or is_admitted:
        known.write(known.updated(listed, new, no_longer, is_admitted=is_admitted))
        new, no_longer = [] if is_admitted else new, []
    return int(bool(invalid or new or no_longer))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests.contract.kinds", description=__doc__)
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind")
    parser.add_argument("--models", type=int, metavar="N", help="how many of each kind, and of their twins")
    parser.add_argument("--seed", type=int, default=0, help="which ones, if not all")
    parser.add_argument("--write", action="store_true", help="take out of the list what no longer fails")
    parser.add_argument("--admit", action="store_true", help="also add what fails: for new models only")
    return parser


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
