"""Which releases of transformers a file needs, by its imports and the metadata above; nothing is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from functools import cache
from pathlib import Path
from typing import cast

from gclint.code.file import SourceFile
from gclint.code.outline import ImportStatement
from gclint.code.packages import LIBRARY, text_or_nothing
from gclint.code.paths import shown
from gclint.code.released_names import ONLY_IN
from gclint.code.tree import Unparsable, parsed
from gclint.facts import exists, matching
from gclint.releases import Assumed, Releases, releases
from gclint.toml import loads

_CONFIGURATION = "config.json"
"""The file beside the code in a repository with weights."""
METADATA = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements*.txt",
    "requirements/*.txt",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    _CONFIGURATION,
)
"""Patterns of the files that may say which releases a project runs with."""
_SAVED_WITH = "transformers_version"
_NAME = re.compile(rf"(?<![\w.-]){LIBRARY}(?![\w.-])")
_REQUIRES = f"Requires-Dist: {LIBRARY}"
_EXTRAS = re.compile(r"[ \t]{0,99}\[[^\[\]\n]{0,400}\]")
_BLANKS = re.compile(r"(?<=\S)[^\S\n]{2,}")
_SPECIFIER = re.compile(r"[ \t(]{0,99}([<>=!~][^;#)@\n]{0,400})")


def stated_releases(folder: Path) -> Assumed | None:
    """Return what the metadata of a project says, or else the configuration in ``folder``; or None."""
    required = required_releases(folder)
    if required is not None:
        return Assumed(required, "required by the metadata of the project")
    path = folder / _CONFIGURATION
    version = _table(_json(path)).get(_SAVED_WITH)
    try:
        saved = releases(f">={version}") if isinstance(version, str) and version else None
    except ValueError:
        return None
    origin = f"the release that saved the model, and later ones, from {shown(path)}"
    return None if saved is None else Assumed(saved, origin, f"from {_CONFIGURATION}")


def within_imports(guess: Assumed, file: SourceFile) -> Assumed:
    """Return a guess without the releases that lack something that a file imports."""
    own = importable_releases(file)
    both = guess.releases.within(own)
    if both == guess.releases:
        return guess
    if both is None:
        return Assumed(own, "the only ones that have all that the file imports", "by what files import")
    origin = f"{guess.origin}, as far as they have all that the file imports"
    return Assumed(both, origin, f"{guess.guessed_from} and what files import")


def importable_releases(file: SourceFile) -> Releases:
    """Return the releases that have all that a file imports from transformers whenever it is imported."""
    found = Releases()
    for statement in file.outline.imports:
        for name in _imported(statement) if statement.is_always_run else ():
            for each in (name, name.rpartition(".")[0]):
                found = found.within(_only_in().get(each, Releases())) or found
    return found


def _imported(statement: ImportStatement) -> Iterator[str]:
    """Yield what a statement imports from the library, with the modules that it is in."""
    for item in statement.items:
        path = item.path if statement.module is None else f"{statement.module}.{item.path}"
        if path.startswith(f"{LIBRARY}."):
            yield path.removeprefix(f"{LIBRARY}.")


@cache
def _only_in() -> Mapping[str, Releases]:
    return {name: releases(bounds) for bounds, text in ONLY_IN.items() for name in text.split()}


def required_releases(folder: Path) -> Releases | None:
    """Return what the nearest metadata at or above ``folder`` requires; None if none has a bound."""
    for each in (folder, *folder.parents):
        for requirements in (*_metadata(each), *_installed_metadata(each, folder)):
            found = _united(requirements)
            if found is not None:
                return found
        if exists(each / ".git"):
            break
    return None


def _metadata(folder: Path) -> Iterator[Iterable[str]]:
    """Yield the ranges that the files of a folder state, the most important group first."""
    project = _toml(folder / "pyproject.toml")
    yield _main(project)
    setup = _setup_cfg(folder / "setup.cfg")
    yield _of_lines(setup.get("options", {}).get("install_requires", "").splitlines())
    yield _quoted(text_or_nothing(folder / "setup.py"))
    extras = setup.get("options.extras_require", {}).values()
    yield [*_optional(project), *_of_lines(line for value in extras for line in value.splitlines())]
    for path in sorted(matching(folder, "requirements*.txt"), key=lambda path: (len(path.name), path.name)):
        yield _of_lines(text_or_nothing(path).splitlines())
    for path in matching(folder / "requirements", "*.txt"):
        yield _of_lines(text_or_nothing(path).splitlines())
    for name in ("uv.lock", "poetry.lock"):
        packages = _toml(folder / name).get("package", [])
        yield _pins(packages if isinstance(packages, list) else [])
    yield _pipfile_lock(folder / "Pipfile.lock")


def _united(ranges: Iterable[str]) -> Releases | None:
    """Return the union of all stated ranges, ignoring those that are unbounded or unreadable."""
    found: Releases | None = None
    for text in ranges:
        try:
            stated = releases(text)
        except ValueError:
            continue
        if stated.says_something:
            found = stated if found is None else found.united(stated)
    return found


def _installed_metadata(folder: Path, inner: Path) -> Iterator[Iterable[str]]:
    """Yield the ranges in the metadata of the built distribution that the files in ``inner`` belong to."""
    texts = [text_or_nothing(folder / "PKG-INFO")]
    own = f"\n{inner.relative_to(folder).as_posix()}/"
    for distribution in matching(folder, "*.dist-info"):
        path = distribution / "METADATA"
        text = text_or_nothing(path)
        if _REQUIRES in text and own in f"\n{text_or_nothing(path.with_name('RECORD'))}":
            texts.append(text)
    lines = [line for text in texts for line in text.splitlines() if line.startswith(_REQUIRES)]
    stated = [line.removeprefix(_REQUIRES.removesuffix(LIBRARY)) for line in lines]
    yield _of_lines(line for line in stated if "extra ==" not in line)
    yield _of_lines(stated)


# -- requirements in the format of PEP 508


def _of_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the ranges in requirements, one a line."""
    for line in lines:
        if line.lstrip().startswith(LIBRARY):
            yield from _ranges(line.lstrip().replace("\\", " "))


def _ranges(text: str) -> Iterator[str]:
    """Yield the range after each mention of the library as a word."""
    for name in _NAME.finditer(text):
        extras = _EXTRAS.match(text, name.end())
        specifier = _SPECIFIER.match(text, extras.end() if extras else name.end())
        if specifier is not None:
            yield specifier[1].partition("--hash")[0].strip().rstrip(",")


def _quoted(text: str) -> Iterator[str]:
    """Yield the ranges in strings of a program that is not run."""
    if LIBRARY not in text:
        return
    try:
        nodes = ast.walk(parsed(text))
    except Unparsable:
        return
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _of_lines((node.value,))


# -- files


def _main(project: Mapping[str, object]) -> Iterator[str]:
    """Yield the requirements of the package itself in `pyproject.toml`."""
    yield from _of_lines(_strings(_table(project, "project").get("dependencies")))
    yield from _poetry(_table(project, "tool", "poetry", "dependencies"))


def _optional(project: Mapping[str, object]) -> Iterator[str]:
    """Yield the requirements of its extras and groups."""
    for tables in (_table(project, "project", "optional-dependencies"), _table(project, "dependency-groups")):
        for group in tables.values():
            yield from _of_lines(_strings(group))
    yield from _of_lines(_strings(_table(project, "tool", "uv").get("dev-dependencies")))
    yield from _poetry(_table(project, "tool", "poetry", "dev-dependencies"))
    for name in _table(project, "tool", "poetry", "group"):
        yield from _poetry(_table(project, "tool", "poetry", "group", name, "dependencies"))


def _poetry(dependencies: Mapping[str, object]) -> Iterator[str]:
    stated = dependencies.get(LIBRARY)
    for each in stated if isinstance(stated, list) else [stated]:
        version = each.get("version") if isinstance(each, dict) else each
        if isinstance(version, str):
            # A bare version means exactly that one here.
            yield version


def _pins(packages: Iterable[object]) -> Iterator[str]:
    for package in packages:
        if isinstance(package, dict) and package.get("name") == LIBRARY:
            yield f"=={package.get('version')}"


def _pipfile_lock(path: Path) -> Iterator[str]:
    document = _json(path)
    for group in ("default", "develop"):
        version = _table(document, group, LIBRARY).get("version")
        if isinstance(version, str):
            yield version


def _json(path: Path) -> object:
    """Return what is in a file about the library; nothing if it is no JSON."""
    text = text_or_nothing(path)
    if LIBRARY not in text:
        return None
    import json

    try:
        return cast(object, json.loads(text))
    except (ValueError, RecursionError):
        return None


def _setup_cfg(path: Path) -> Mapping[str, Mapping[str, str]]:
    text = text_or_nothing(path)
    parser = ConfigParser(interpolation=None)
    try:
        # The time that ConfigParser takes for blanks inside of a line is the square of their number.
        parser.read_string(_BLANKS.sub(" ", text) if LIBRARY in text else "")
    except ConfigError:
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}


def _toml(path: Path) -> Mapping[str, object]:
    text = text_or_nothing(path)
    if LIBRARY not in text:
        return {}
    try:
        return loads(text)
    except ValueError:
        return {}  # The build tool reports this.


def _table(document: object, *keys: str) -> Mapping[str, object]:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return cast("Mapping[str, object]", document) if isinstance(document, dict) else {}


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
