"""The Python files around a run's files: those in its folders, and in the project of a single file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from gclint.code.likely import possibly_imported
from gclint.code.project import Project
from gclint.facts import entries, exists
from gclint.trace import phase

_SKIPPED = frozenset(("__pycache__", "node_modules", "site-packages", "build", "dist"))
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
AROUND = "around"
"""The phase of facts about which files there are, and which words they contain."""
_MOST_FILES = 20_000
"""Far more than any project has; this limits the search in a home folder."""


def files_mentioning(project: Project, *words: str) -> tuple[Path, ...]:
    """Return the files of a run, and those around them, that contain one of some words, in their order.

    They are searched once per run: no fix writes such a word into a file that does not contain it.
    """
    found: dict[str, list[Path]] = {each: [] for each in words if _key(each) not in project.surroundings}
    wanted = [(each.encode(), paths) for each, paths in found.items()]
    with phase(AROUND):
        for path in _known_around(project) if wanted else ():
            data = _searched(project, path)
            for word, paths in wanted:
                if word in data:
                    paths.append(path)
    project.surroundings |= {_key(each): tuple(paths) for each, paths in found.items()}
    return tuple(dict.fromkeys(path for each in words for path in project.surroundings[_key(each)]))


def _key(word: str) -> object:
    return files_mentioning, word


def files_around(project: Project) -> tuple[Path, ...]:
    """Return the files of a run, and those around them."""
    with phase(AROUND):
        return tuple(_around(project))


def files_importing(project: Project, words: Iterable[str]) -> tuple[Path, ...]:
    """Return the files around those of a run that may import one of some words, and perhaps more files."""
    known = project.surroundings
    if files_importing not in known:
        found: defaultdict[object, list[Path]] = defaultdict(list, {files_importing: []})
        with phase(AROUND):
            for path in _known_around(project):
                for key in () if path in project.given else _import_keys(project, path):
                    found[key].append(path)
        known |= {key: tuple(paths) for key, paths in found.items()}
    keys = (files_importing, *((files_importing, each) for each in words))
    return tuple(dict.fromkeys(path for key in keys for path in known.get(key, ())))


def _import_keys(project: Project, path: Path) -> set[object]:
    """Return the keys of the words that a file may import; one for all words if it is not clear which."""
    words = possibly_imported(_searched(project, path))
    return {files_importing} if words is None else {(files_importing, each.decode()) for each in words}


def forget_mentions(project: Project, path: Path) -> bool:
    """Forget what is known of words that were added to a file, or removed; tell whether there are any."""
    data, known = _searched(project, path), project.surroundings
    stale: list[object] = [
        key
        for key, found in known.items()
        if isinstance(key, tuple)
        and key[0] is files_mentioning
        and (path in found) != (key[1].encode() in data)
    ]
    if files_importing in known and path not in project.given:
        imports = [key for key in known if key is files_importing or _is_import(key)]
        is_same = {key for key in imports if path in known[key]} == _import_keys(project, path)
        stale += [] if is_same else imports
    for key in (*stale, files_around):
        project.surroundings.pop(key, None)
    return bool(stale)


def _is_import(key: object) -> bool:
    return isinstance(key, tuple) and key[0] is files_importing


def _searched(project: Project, path: Path) -> bytes:
    try:
        return project.search(path)
    except OSError:
        return b""  # If it is a file of the run, the run reports it.


def _known_around(project: Project) -> tuple[Path, ...]:
    """Return the files of a run and those around them, which are looked for once."""
    if files_around not in project.surroundings:
        project.surroundings[files_around] = tuple(_around(project))
    return project.surroundings[files_around]


def _around(project: Project) -> Iterator[Path]:
    """Yield each of the files once, as the project spells it."""
    seen: set[Path] = set()
    for path in _all_around(project):
        known = project.identify(path)
        if known not in seen:
            seen.add(known)
            yield known


def _all_around(project: Project) -> Iterator[Path]:
    yield from project.paths
    walked = {project.location(folder) for folder in project.folders}
    for folder in project.folders:
        yield from _below(folder)
    for folder in dict.fromkeys(project.location(path).parent for path in project.paths):
        if folder in walked or not walked.isdisjoint(folder.parents):
            continue
        root = _root(folder)
        if root is None:
            yield from _files(folder)
        elif root not in walked:
            walked.add(root)
            yield from _below(root)


def _root(folder: Path) -> Path | None:
    """Return the root of the project, or else of the package, that a folder belongs to."""
    package = None
    while exists(folder / "__init__.py"):
        package, folder = folder, folder.parent
    for candidate in (folder, folder.parent):
        if any(exists(candidate / name) for name in _PROJECT_FILES):
            return candidate
    return package


def _files(folder: Path) -> list[Path]:
    try:
        found = entries(folder, ".py")
    except OSError:
        return []
    return [folder / each.name for each in found if not each.is_folder and not each.is_link]


def _below(root: Path) -> Iterator[Path]:
    """Yield the Python files below a folder, except in environments, caches and build folders.

    Links are not followed: what they lead to inside is yielded there, and anything else is not the project's.
    """
    count = 0
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            found = entries(folder, ".py")
        except OSError:
            continue
        own = [each for each in found if not each.is_link]
        for each in own:
            if not each.is_folder:
                count += 1
                yield folder / each.name
        if count > _MOST_FILES:
            return
        folders = (each.name for each in reversed(own) if each.is_folder and each.name not in _SKIPPED)
        inside = [folder / name for name in folders if not name.startswith(".")]
        waiting += [each for each in inside if not exists(each / "pyvenv.cfg")]
