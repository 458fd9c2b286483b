"""What gclint says, written down and compared: ``python3 -m tests.verdicts write`` and ``… compare``.

Over seven releases of transformers, 26 packages, all fixtures, 1,000 generated models and oddly written
files. Facts are known by place and kind: a rule with another code and a sentence in other words are no
difference, as long as they stand for the same at the same places; they are listed as reworded.

Exits with 0 if all is as it is written down, with 1 if not, and with 2 if that could not be found out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from gclint.rule import all_rules
from tests.ecosystem.wheels import WheelUnavailable
from tests.verdicts.difference import Change, changes, shown, table
from tests.verdicts.facts import Taken, taken
from tests.verdicts.frozen import DATA, Frozen, frozen, read_sample, read_templates, write
from tests.verdicts.samples import samples, trees
from tests.verdicts.words import reworded

_AT_ONCE = 40
"""How many small trees a process looks at before it is replaced, which keeps it small."""
_SECONDS_BETWEEN_LINES = 10.0

Job = tuple[str, int]
"""A sample, and the first of its trees."""
Found = Mapping[str, Sequence[Taken]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.verdicts", description=__doc__)
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument(
        "--sample", action="append", choices=list(samples()), metavar="NAME", help="only this"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at once"
    )
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="where the data is")
    parser.add_argument("--shown", type=int, default=2, metavar="N", help="differences to show of each kind")
    options = parser.parse_args(arguments)
    wanted = options.sample or list(samples())
    try:
        known = [] if options.command == "write" else wanted
        before = {each: read_sample(each, options.data) for each in known}
        found = look(wanted, options.jobs)
    except (WheelUnavailable, FileNotFoundError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except Exception:  # It is said of no place, and must not pass for a difference.
        traceback.print_exc()
        return 2
    if options.command == "write":
        write({each: frozen(own) for each, own in found.items()}, templates_of(found), options.data)
        return 0
    return compared(before, found, read_templates(options.data), options.shown)


def look(wanted: Sequence[str], processes: int) -> dict[str, list[Taken]]:
    """Return what gclint says about samples, by sample; without processes, it is found out in this one."""
    all_rules()  # Imported once, and not in each process.
    begun = said = time.monotonic()
    jobs = [
        (sample, first)
        for sample in sorted(wanted, key=_weight)
        for first in range(0, len(trees(sample)), _AT_ONCE)
    ]
    found: dict[str, list[Taken]] = {sample: [] for sample in wanted}
    with closing(_answers(jobs, processes)) as answers:
        for number, (sample, own) in enumerate(answers, start=1):
            found[sample] += own
            if number == len(jobs) or time.monotonic() - said > _SECONDS_BETWEEN_LINES:
                said = time.monotonic()
                print(f"{number} of {len(jobs)} parts, {said - begun:.0f} s", file=sys.stderr, flush=True)
    return found


def _weight(sample: str) -> tuple[int, str]:
    """Return what puts samples in the order of their size, by what is known of them."""
    return 0 if sample == "transformers==4.52.4" else 1 if sample.startswith("transformers==") else 2, sample


def _answers(jobs: Sequence[Job], processes: int) -> Generator[tuple[str, list[Taken]], None, None]:
    if not processes:
        yield from map(_look, jobs)
        return
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(_look, jobs)


def _look(job: Job) -> tuple[str, list[Taken]]:
    sample, first = job
    return sample, [taken(tree) for tree in trees(sample)[first : first + _AT_ONCE]]


def templates_of(found: Found) -> dict[str, str]:
    """Return all wordings that were met."""
    return {word: text for own in found.values() for each in own for word, text in each.templates.items()}


def compared(before: Mapping[str, Frozen], found: Found, templates: Mapping[str, str], most: int) -> int:
    """Print what has changed; return the exit status."""
    said = {each: frozen(own).words for each, own in found.items()}
    known = {word for own in before.values() for word in own.words}
    formerly = {rule.code: rule.formerly[-1] for rule in all_rules() if rule.formerly}
    renamed = {
        **reworded({each: own.words for each, own in before.items()}, said),
        **{code: old for code, old in formerly.items() if code not in known},
    }
    wordings = {**templates, **templates_of(found)}
    for new, old in sorted(renamed.items(), key=lambda pair: pair[1]):
        print(f"reworded: {wordings[old]}\n     now: {wordings[new]}")
    differences = [
        change
        for sample, own in found.items()
        for change in changes(sample, before[sample], frozen(own, renamed))
    ]
    if not differences:
        print("All is as it is written down.")
        return 0
    texts = {
        (sample, (each.tree, place), kind): fact.text
        for sample, own in found.items()
        for each in own
        for place, facts in each.facts.items()
        for kind, fact in facts.items()
    }
    print(table(differences))
    for each in _some(differences, most):
        print(f"\n{shown(each, texts, wordings)}")
    print(f"\n{len(differences)} facts differ.")
    return 1


def _some(differences: Iterable[Change], most: int) -> Iterator[Change]:
    """Yield a few changes of each kind in each sample."""
    groups: defaultdict[tuple[str, str, str], list[Change]] = defaultdict(list)
    for each in differences:
        groups[each.sample, each.kind, each.what].append(each)
    for group in groups.values():
        yield from islice(group, most)


if __name__ == "__main__":
    raise SystemExit(main())
