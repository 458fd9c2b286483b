"""What a change does to the findings on real code: ``python3 -m tests.ecosystem.compare [BEFORE [AFTER]]``.

Runs two versions of gclint over five releases of transformers and the third-party packages, and prints what
they say otherwise as Markdown for a pull request. A version is a commit, a branch, a tag, or the folder of a
checkout; without AFTER it is the working tree, and without BEFORE the last tag, or else the merge base with
main.

The exit status is 0 if both versions could be run, whatever they say; with ``--exit-code`` it is 1 where they
differ, and 2 if something could not be run at all.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.ecosystem.difference import Said, changes, said_by
from tests.ecosystem.markdown import Compared, markdown
from tests.ecosystem.releases import release_tree
from tests.ecosystem.third_party import FITTING, PACKAGES
from tests.ecosystem.versions import (
    WORKING_TREE,
    Version,
    VersionUnavailable,
    checked_out,
    usual_before,
)
from tests.ecosystem.wheels import WheelUnavailable, wheel_tree
from tests.environment import CACHE

RELEASES = ("4.49.0", "4.52.4", "4.57.6", "5.0.0", "5.23.0")
_MODELS = "transformers/models"
_PART = re.compile(r"(\d{1,4})/(\d{1,4})")


@dataclass(frozen=True)
class Sample:
    """Code that both versions are run over."""

    name: str
    """As pip would be asked for it."""

    @property
    def is_release(self) -> bool:
        """Whether it is transformers itself, of which all models are looked at."""
        return self.name.startswith("transformers==")

    def tree(self) -> Path:
        """Return the folder that it lies in, fetching it if need be.

        Raises:
            WheelUnavailable: it cannot be fetched.
        """
        if self.is_release:
            return release_tree(self.name.partition("==")[2])
        return wheel_tree(self.name, CACHE / "third-party" / self.name.replace("==", "-"))

    def paths(self, tree: Path, part: int, parts: int) -> list[str]:
        """Return what is looked at of it in a part of the whole."""
        if not self.is_release:
            return ["."]
        models = sorted(each.name for each in (tree / _MODELS).iterdir() if _holds_models(each))
        return [f"{_MODELS}/{name}" for name in models[part - 1 :: parts]]

    @property
    def options(self) -> list[str]:
        """Return what gclint is given for it."""
        return [] if self.is_release else ["--include", "*.py", "--target-version", FITTING]


def _holds_models(folder: Path) -> bool:
    return folder.is_dir() and next(folder.rglob("mod*_*.py"), None) is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and print the difference."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.ecosystem.compare", description=__doc__)
    parser.add_argument("before", nargs="?", help="a commit, branch or tag")
    parser.add_argument("after", nargs="?", default=WORKING_TREE, help="another one, or the working tree")
    parser.add_argument("--part", default="1/1", help="such as 2/8: every eighth model and package")
    parser.add_argument("--sample", action="append", help="only this, such as peft==0.21.2; may be repeated")
    parser.add_argument("--output", type=Path, help="write the Markdown to this file")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 where the versions differ")
    options = parser.parse_args(arguments)
    part = _PART.fullmatch(options.part)
    if part is None or not 1 <= int(part[1]) <= int(part[2]):
        parser.error(f"--part {options.part}: write it like 2/8")
    known = {each.name: each for each in samples()}
    unknown = [each for each in options.sample or () if each not in known]
    if unknown:
        parser.error(f"--sample {unknown[0]}: there are {', '.join(known)}")
    wanted = [known[each] for each in options.sample or known]
    try:
        with checked_out(options.before or usual_before()) as one, checked_out(options.after) as other:
            found = []
            for each in compared(one, other, wanted, int(part[1]), int(part[2])):
                print(f"{each.sample}: {each.unavailable or 'compared'}", file=sys.stderr, flush=True)
                found.append(each)
    except VersionUnavailable as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    text = markdown(one.name, other.name, found, options.part)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    if any(each.unavailable for each in found):
        return 2
    return int(options.exit_code and any(each.differs for each in found))


def samples() -> tuple[Sample, ...]:
    """Return all code that versions are compared on."""
    return tuple(Sample(name) for name in (*(f"transformers=={each}" for each in RELEASES), *PACKAGES))


def compared(
    before: Version, after: Version, wanted: Sequence[Sample], part: int = 1, parts: int = 1
) -> Iterator[Compared]:
    """Yield what two versions say otherwise about each sample.

    Args:
        before: one version.
        after: the other one.
        wanted: the samples.
        part: which part of them is looked at, counted from 1.
        parts: how many parts there are: of releases each has every so many models, and of packages as many.
    """
    packages = [each for each in wanted if not each.is_release][part - 1 :: parts]
    for sample in (*(each for each in wanted if each.is_release), *packages):
        try:
            tree = sample.tree()
        except WheelUnavailable as error:
            yield Compared(sample.name, unavailable=str(error))
            continue
        paths = sample.paths(tree, part, parts)
        if not paths:
            continue

        @cache
        def text(filename: str, tree: Path = tree) -> str:
            return (tree / filename).read_bytes().decode("utf-8", errors="replace")

        outputs = [each.check(tree, paths, *sample.options) for each in (before, after)]
        said: list[list[Said]] = [said_by(each, text) for each in outputs]
        differences = tuple(changes(*said))
        yield Compared(sample.name, tuple(said[0]), tuple(said[1]), differences, tuple(outputs))


if __name__ == "__main__":
    raise SystemExit(main())
