"""Finds the modeling files to run, and the names under which they are imported."""

from __future__ import annotations

import ast
import difflib
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from gclint.code.discovery import Survey, survey
from gclint.code.file import SourceFile, UnreadableFile
from gclint.copies.generated import is_modular, modeling_path
from gclint.facts import read_bytes
from gclint.finding import Position, Problem
from gclint.programs import interpreter
from gclint.settings import Settings
from gclint.verify.home import harmless, independent
from gclint.verify.model_files import ModelFiles
from gclint.verify.worker.protocol import Source

_OTHER_LIBRARIES = ("modeling_tf_", "modeling_flax_")
# This does not import transformers, which would take seconds.
_FIND_TRANSFORMERS = (
    "from importlib.util import find_spec; spec = find_spec('transformers'); "
    "print(*(spec.submodule_search_locations or [])[:1] if spec else '', end='')"
)


class UnknownModel(Exception):
    """A model that is not installed; the message names those that are."""


@dataclass(frozen=True)
class Target:
    """A file to run."""

    source: Source
    tree: str | None
    """The folder that contains its package; None for a file without a package."""
    path: Path
    """The file, as the user spelled it."""


def targets_of(paths: Sequence[Path], settings: Settings) -> tuple[list[Target], Survey]:
    """Return the modeling files that ``paths`` lead to, in the order of their paths, and what was surveyed.

    A ``modular_*.py`` is not one, since models are imported from the file that is generated from it, and
    neither is a file that defines no model. In folders, files for TensorFlow and Flax, which older releases
    have, are left out.
    """
    found = survey(paths, settings)
    files, problems = found.files, found.problems
    problems += found.empty  # Who runs models means to run some.
    given = {_absolute(path) for path in paths}
    for file in files:
        if is_modular(file) and _absolute(file) in given:
            message = f"a modular file is not run itself; verify {modeling_path(file).name} instead"
            problems.append(Problem(file, message))
    wanted = [
        file for file in files if _absolute(file) in given or not file.name.startswith(_OTHER_LIBRARIES)
    ]
    targets, models = [], ModelFiles()
    for file in wanted:
        if is_modular(file):
            continue
        try:
            text = SourceFile(file, read_bytes(file)).text
        except OSError as error:
            problems.append(Problem(file, f"this file cannot be read: {error.strerror}"))
        except UnreadableFile as error:
            problems.append(Problem(file, error.message, error.position))
        else:
            if models.defines_model(file):
                targets.append(target_of(file))
            elif _absolute(file) in given:
                problems.append(_without_model(file, text))
    return sorted(targets, key=lambda each: each.source.path), found


def _without_model(path: Path, text: str) -> Problem:
    """Return why a file that was given is not imported."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        position = Position(error.lineno or 1, error.offset or 1)
        return Problem(path, f"it is not imported: this is not Python ({error.msg})", position)
    except ValueError as error:  # The file has null bytes.
        return Problem(path, f"it is not imported: this is not Python ({error})")
    return Problem(path, "it is not imported: no class in its text derives from PreTrainedModel")


def target_of(path: Path) -> Target:
    """Return how to run the file at ``path``: as a module of its package, if it is in one.

    A folder whose name cannot be imported, or means something else, does not belong to a package.
    """
    absolute = _absolute(path)
    parts = [absolute.stem.replace(".", "_")]
    folder = absolute.parent
    while (folder / "__init__.py").is_file() and _is_importable(folder.name):
        parts.append(folder.name)
        folder = folder.parent
    is_named = not (folder / "__init__.py").is_file()
    if len(parts) > 1 and is_named:
        return Target(Source(str(absolute), ".".join(reversed(parts))), str(folder), path)
    # Files of the same name in other folders are other modules.
    package = f"gclint_{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    return Target(Source(str(absolute), ".".join((package, *reversed(parts))), str(folder)), None, path)


def _is_importable(name: str) -> bool:
    return "." not in name and name not in sys.stdlib_module_names


def installed_models(python: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the modeling files of the models in ``python``'s transformers whose names match.

    A pattern names folders of ``transformers.models``, with ``*`` and the like, and ``-`` for ``_``.

    Raises:
        UnknownModel: a pattern matches nothing, or there is no transformers.
        OSError: the interpreter cannot be started.
    """
    with tempfile.TemporaryDirectory() as empty:
        # Python looks in the working directory first.
        found = subprocess.run(
            [interpreter(python), "-c", _FIND_TRANSFORMERS],
            cwd=empty,
            env=harmless(independent(os.environ)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    if not found.stdout:
        raise UnknownModel(
            f"transformers is not installed for {python}; install it there, or choose another interpreter "
            "with --python"
        )
    by_name: dict[str, list[Path]] = {}
    for path in sorted(Path(found.stdout).glob("models/**/modeling_*.py")):
        if not path.name.startswith(_OTHER_LIBRARIES):
            by_name.setdefault(path.parent.name, []).append(path)
    files: dict[Path, None] = {}
    for pattern in patterns:
        spelled = pattern.replace("-", "_")
        # The hyphen in `[a-f]*` is not part of a model's name.
        matching = [name for name in by_name if fnmatchcase(name, pattern) or fnmatchcase(name, spelled)]
        if not matching:
            close = difflib.get_close_matches(spelled, by_name)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise UnknownModel(f"there is no model {pattern!r} in {found.stdout}{hint}")
        files.update(dict.fromkeys(path for name in matching for path in by_name[name]))
    return list(files)


def defining(targets: Sequence[Target], classes: Sequence[str]) -> list[Target]:
    """Return the files that define any of the classes, all of which have to be defined somewhere.

    Raises:
        UnknownModel: one is not.
        OSError: a file cannot be read.
    """
    by_name: dict[str, list[Target]] = {}
    for target in targets:
        for name in SourceFile(target.path, read_bytes(target.path)).outline.classes:
            by_name.setdefault(name, []).append(target)
    for name in classes:
        if name not in by_name:
            close = difflib.get_close_matches(name, by_name)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise UnknownModel(f"none of the files defines a class {name!r}{hint}")
    wanted = {target.source.path for name in classes for target in by_name[name]}
    return [target for target in targets if target.source.path in wanted]


def overlay_of(texts: Mapping[Path, str]) -> dict[str, str]:
    """Return ``texts`` by the absolute paths of the files that they replace."""
    return {str(_absolute(path)): text for path, text in texts.items()}


def shard(targets: Sequence[Target], number: int, count: int) -> list[Target]:
    """Return part ``number``, from 1, of ``count`` approximately equal parts."""
    return list(targets[number - 1 :: count])


def digest(source: Source, overlay: Mapping[str, str]) -> str:
    """Return the SHA-256 of a file, or what is laid over it, and of the configurations beside it."""
    path = Path(source.path)
    content = hashlib.sha256()
    beside = (each for each in path.parent.glob("configuration_*.py") if each.is_file())
    for each in [path, *sorted(beside)]:
        text = overlay.get(str(each))
        content.update(read_bytes(each) if text is None else text.encode())
        content.update(b"\0")
    return content.hexdigest()


def _absolute(path: Path) -> Path:
    # Not resolved: a tree with links in it is imported by the paths that it shows.
    return Path(os.path.abspath(path))  # noqa: PTH100
