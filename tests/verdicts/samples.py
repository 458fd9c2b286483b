"""The code of which it is written down what gclint says."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from gclint.cli import vocabulary
from gclint.code.discovery import survey
from gclint.releases import releases
from gclint.settings import Settings, load_settings
from gclint.testing.rules import USUAL_RELEASES
from tests.contract.grammar import draw
from tests.contract.packages import package
from tests.ecosystem.releases import release_tree
from tests.ecosystem.third_party import FITTING, PACKAGES
from tests.ecosystem.wheels import wheel_tree
from tests.environment import CACHE
from tests.harness import load_fixtures
from tests.verdicts.odd import ODD
from tests.verdicts.words import digest

RELEASES = ("4.45.2", "4.49.0", "4.52.4", "4.53.3", "4.57.6", "5.0.0", "5.23.0")
MODELS = 1000
_DRAWN_OF_A_RELEASE = 30
_LIBRARY = "5.23.0"
"""The release whose code stands for the library that is installed."""
_TARGET = "4.57.6"
_SILENT_IN_A_RELEASE = 18
_SILENT_ELSEWHERE = {"fixtures": 29, "contract": 12, "odd files": 12}


@dataclass(frozen=True)
class Tree:
    """Code that is looked at together."""

    name: str
    files: Mapping[str, bytes] | Path
    """What it consists of, or where it lies."""
    given: str = "."
    """The folder that gclint is given."""
    silent: int = 0
    """At how many places without a finding it is explained why there is none."""
    include: tuple[str, ...] = ()
    target: str | None = None
    """The releases that it runs with, if it does not say so itself."""
    has_library: bool = True
    drawn: int | None = None
    """How many of the files are given; all of them by default."""

    def given_files(self, settings: Settings) -> list[Path]:
        """Return the files that gclint is given, where its folder is the working directory."""
        files = survey([Path(self.given)], settings).files
        return sorted(sorted(files, key=self._checksum)[: self.drawn])

    def _checksum(self, path: Path) -> int:
        return zlib.crc32(f"{self.name} {path}".encode())

    @contextmanager
    def entered(self) -> Iterator[Path]:
        """Make its folder the working directory."""
        here = Path.cwd()
        with tempfile.TemporaryDirectory(prefix="verdicts-") as place:
            folder = self.files if isinstance(self.files, Path) else Path(place, "tree").resolve()
            for name, data in {} if isinstance(self.files, Path) else self.files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            os.chdir(folder)
            try:
                yield folder
            finally:
                os.chdir(here)

    def code(self, checked: Sequence[Path]) -> str:
        """Return a checksum of its files, or of those that are ``checked`` where there are others as well."""
        files = {str(path): path.read_bytes() for path in checked}
        known = files if isinstance(self.files, Path) else self.files
        return digest(*(f"{name} {zlib.crc32(data)}" for name, data in known.items()))

    def settings(self) -> Settings:
        """Return the settings, where its folder is the working directory."""
        known = load_settings(Path.cwd(), vocabulary())
        target = known.target_version or (None if self.target is None else releases(self.target))
        library = release_tree(_LIBRARY) / "transformers" if self.has_library else None
        return known.overridden(target_version=target, include=self.include, library=library)


@cache
def samples() -> Mapping[str, Callable[[], Sequence[Tree]]]:
    """Return what makes the trees of each sample, by its name: a row in the table of differences."""
    wheels = (*(f"transformers=={each}" for each in RELEASES), *PACKAGES)
    found: dict[str, Callable[[], Sequence[Tree]]] = {name: partial(_wheel, name) for name in wheels}
    return {
        **found,
        "real files": _real_files,
        "fixtures": _fixtures,
        "contract": _models,
        "odd files": _odd_files,
    }


@cache
def trees(sample: str) -> Sequence[Tree]:
    """Return the trees of a sample, fetching what is needed.

    Raises:
        WheelUnavailable: it cannot be fetched.
    """
    return samples()[sample]()


def _real_files() -> list[Tree]:
    """Return a few files of each release; what is said of them is not what is said of all together."""
    whole = {release: _wheel(f"transformers=={release}")[0] for release in RELEASES}
    return [
        replace(tree, name=release, silent=0, drawn=_DRAWN_OF_A_RELEASE) for release, tree in whole.items()
    ]


def _wheel(name: str) -> list[Tree]:
    package, _, version = name.partition("==")
    if package == "transformers":
        folder = release_tree(version).resolve()
        return [Tree(".", folder, "transformers/models", _SILENT_IN_A_RELEASE, has_library=False)]
    folder = wheel_tree(name, CACHE / "third-party" / name.replace("==", "-")).resolve()
    return [Tree(".", folder, ".", 1, ("*.py",), FITTING)]


def _fixtures() -> list[Tree]:
    return _of_files(
        "fixtures",
        {each.name: {name: text.encode() for name, text in each.before.items()} for each in load_fixtures()},
    )


def _odd_files() -> list[Tree]:
    """Return each fixture in half of the odd forms: in every second one, chosen by its name."""
    found: dict[str, dict[str, bytes]] = {}
    for number, (form, make) in enumerate(ODD.items()):
        for fixture in load_fixtures():
            # So a fixture that is added changes nothing for the others.
            if (zlib.crc32(fixture.name.encode()) + number) % 2:
                continue
            plain = {name: text.encode() for name, text in fixture.before.items()}
            files = {
                name: make(text) if name.endswith(".py") else plain[name]
                for name, text in fixture.before.items()
            }
            if files != plain:
                found[f"{form}/{fixture.name}"] = files
    return _of_files("odd files", found)


def _of_files(sample: str, files: Mapping[str, Mapping[str, bytes]]) -> list[Tree]:
    explained = _drawn(sample, files)
    return [
        Tree(name, own, silent=int(name in explained), target=USUAL_RELEASES, has_library=False)
        for name, own in files.items()
    ]


def _models() -> list[Tree]:
    names = [f"{number:04}" for number in range(MODELS)]
    explained = _drawn("contract", names)
    return [
        Tree(
            name,
            {f"toy/{file}": text.encode() for file, text in package(draw(0, int(name))).files.items()},
            silent=int(name in explained),
            target=_TARGET,
        )
        for name in names
    ]


def _drawn(sample: str, names: Mapping[str, object] | Sequence[str]) -> set[str]:
    """Return the trees in which a silent place is explained: the first in the order of their checksums."""
    return set(sorted(names, key=lambda name: zlib.crc32(name.encode()))[: _SILENT_ELSEWHERE[sample]])
