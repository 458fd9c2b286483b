"""What helps the classes of a release that fail: ``python3 -m tests.ecosystem.remedies 5.23.0 [MODEL ...]``.

Repairs a copy of the release, or of some of its models, with ``gclint --fix --unsafe-fixes --verify``, and
prints how many of the classes that fail outside of running statistics have a proven repair, how many a proven
setting, and which have neither, each with what it fails by. What is run is kept, so ``--resume`` goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gclint.userfolder import key_of
from gclint.verify.proven import proven_setting
from gclint.verify.results_file import read, results_folder
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult
from tests.ecosystem.environments import release_environment
from tests.ecosystem.releases import copy_of_release
from tests.environment import CACHE, EnvironmentUnavailable

_REPAIR, _SETTING = "proven repair", "proven setting"


@dataclass(frozen=True)
class Remedy:
    """What helps a class that fails."""

    name: str
    """The file and the class."""
    by: str | None
    """A proven repair or a proven setting; None for neither."""
    detail: str
    """The setting, or what it fails by."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Repair, and print the shares; return 0 unless nothing could be run."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.ecosystem.remedies", description=__doc__)
    parser.add_argument("release")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args(arguments)
    try:
        python = release_environment(options.release)
    except EnvironmentUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    folder = CACHE / "remedies" / options.release
    copy = folder / "transformers"
    if not (options.resume and copy.is_dir()):
        copy = copy_of_release(options.release, folder)
    paths = [f"transformers/models/{each}" for each in options.models] or ["transformers/models"]
    report = _repaired(folder, python, paths, resume=options.resume)
    if report is None:
        return 2
    before = {(each.source, each.name): each for each in _first_runs(folder)}
    remedies = list(remedies_of(before.values(), report["proofs"]))
    print(text(remedies))
    return 0


def remedies_of(results: Iterable[ClassResult], proofs: Iterable[Mapping[str, Any]]) -> Iterator[Remedy]:
    """Yield what helps each class that fails by something other than running statistics.

    Args:
        results: what the classes did as they are.
        proofs: what the report says of the repairs.
    """
    repaired = {
        (after["source"], after["name"])
        for proof in proofs
        if proof["proven"]
        for after in proof["after"]
        if not _grave(each["cause"] for each in after["failures"])
    }
    for result in sorted(results, key=lambda each: (each.source, each.name)):
        if not _grave(each.cause.value if each.cause else None for each in result.failures):
            continue
        name = f"{Path(result.source).parent.name} {result.name}"
        setting = proven_setting(result)
        if (result.source, result.name) in repaired:
            yield Remedy(name, _REPAIR, setting or "")
        elif setting is not None:
            yield Remedy(name, _SETTING, setting)
        else:
            why = {
                f"{each.cause.value if each.cause else each.check} ({each.mode}, {each.scenario})"
                for each in result.failures
            }
            yield Remedy(name, None, ", ".join(sorted(why)))


def text(remedies: Sequence[Remedy]) -> str:
    """Return the shares, and a line for each class."""
    kinds = Counter(each.by or "neither" for each in remedies)
    shares = [f"{kind}: {count} of {len(remedies)}" for kind, count in kinds.most_common()]
    settings = Counter(each.detail for each in remedies if each.by == _SETTING)
    shares += [f"  {setting}: {count}" for setting, count in settings.most_common()]
    return "\n".join([*shares, *(f"{each.by or 'neither'}: {each.name}: {each.detail}" for each in remedies)])


def _grave(causes: Iterable[str | None]) -> bool:
    return any(each != Cause.STATISTICS.value for each in causes)


def _repaired(folder: Path, python: Path, paths: Sequence[str], *, resume: bool) -> dict[str, Any] | None:
    """Repair what the paths lead to, and return the report."""
    command = [
        sys.executable,
        "-m",
        "gclint",
        "--fix",
        "--unsafe-fixes",
        "--verify",
        "--output-format",
        "json",
    ]
    command += ["--python", str(python), "--device", "cpu", *(["--resume"] if resume else []), *paths]
    run = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE)
    if run.returncode not in (0, 1, 2) or not run.stdout:
        return None
    (folder / "report.json").write_bytes(run.stdout)
    report: dict[str, Any] = json.loads(run.stdout)
    return report


def _first_runs(folder: Path) -> list[ClassResult]:
    """Return what the classes did before anything was changed: the largest of the journals."""
    with results_folder() as kept:
        paths = [kept.path / each for each in kept.names() if each.startswith(f"{key_of(folder)}-repairs-")]
    journals = sorted(paths, key=lambda path: path.stat().st_size)
    return read(journals[-1])[1].sorted() if journals else []


if __name__ == "__main__":
    raise SystemExit(main())
