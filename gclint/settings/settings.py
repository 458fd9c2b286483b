"""The settings in force, as one frozen object."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gclint.facts import is_dir
from gclint.releases import Releases
from gclint.settings.definitions import BY_NAME, Ignores
from gclint.settings.patterns import from_folder, is_absolute, matches
from gclint.verify.worker.known import Known


@dataclass(frozen=True)
class Origin:
    """Where a setting comes from: a place in a file, or the command line."""

    file: Path | None = None
    """None for the command line."""
    keys: tuple[str, ...] = ()
    """What leads to it in the file."""

    def __str__(self) -> str:
        """Name the place, with its line where that can be found out."""
        if self.file is None:
            return "the command line"
        row, column = self.position
        return f"{self.file}:{row}:{column}"

    @property
    def position(self) -> tuple[int, int]:
        """The row and column in the file, from 1; the file is read for it."""
        from gclint.settings.places import place_of

        return (1, 1) if self.file is None else place_of(self.file, self.keys)


@dataclass(frozen=True)
class Settings:
    """Which rules run over which files, and what becomes of what they find."""

    select: tuple[str, ...] = ("ALL",)
    """Codes, prefixes of codes, or names of the rules to run, or ``ALL``."""
    extend_select: tuple[str, ...] = ()
    """The same for further rules."""
    ignore: tuple[str, ...] = ()
    """Codes, prefixes of codes, or names of the rules not to run; stronger than ``select``."""
    per_file_ignores: Ignores = ()
    """Patterns of files, each with the rules that are ignored there; see :meth:`ignored_in`."""
    preview: bool = False
    """Whether rules that are not sure enough may run."""
    include: tuple[str, ...] = ()
    """Glob patterns of files to check beside the modeling files; see :meth:`includes`."""
    exclude: tuple[str, ...] = ()
    """Glob patterns of files and folders to leave out; see :meth:`excludes`."""
    extend_exclude: tuple[str, ...] = ()
    """The same, beside those."""
    unsafe_fixes: bool = False
    """Whether fixes that someone must review count."""
    target_version: Releases | None = None
    """The releases of transformers that the code may run with; None to find out."""
    library: Path | None = None
    """Where the source of transformers lies; None to find out."""
    baseline: Path | None = None
    """A file of known findings."""
    cache_dir: Path | None = None
    """Where verdicts are kept; None for the usual place."""
    output_format: str = "full"
    """A name in the table of formats."""
    of_rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What the file says for settings that rules declare: their names and values."""
    environments: tuple[Path, ...] = ()
    """The Python environments, by folder or interpreter, that the code may run in, the likeliest first."""
    known: tuple[Known, ...] = ()
    """What is said about classes that are run."""
    verify: Any = field(default_factory=dict, compare=False, repr=False)
    """The same, as the file says it."""
    root: Path = field(default_factory=lambda: working_directory())
    """The folder that the patterns are relative to."""
    start: Path | None = None
    """The innermost folder that holds all given paths: patterns of names count there, too."""
    file: Path | None = field(default=None, compare=False)
    """What they were read from, if anything."""
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False, repr=False, hash=False)
    """Where those come from that are not the default, by their names in the table."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What users should know about their settings, a line each."""

    def given(self, name: str) -> tuple[str, ...] | None:
        """Return what the file says for a setting that a rule declares, or None if it says nothing."""
        return dict(self.of_rules).get(name)

    def excludes(self, path: Path) -> bool:
        """Return whether ``path``, or a folder that it lies in, matches a pattern to leave out."""
        return self.excluded_by(path) is not None

    def excluded_by(self, path: Path) -> str | None:
        """Return the first pattern that leaves out ``path``, or a folder that it lies in."""
        patterns = (*self.exclude, *self.extend_exclude)
        return next((each for each in patterns if self._is_among([each], path)), None)

    def includes(self, path: Path) -> bool:
        """Return whether the file at ``path`` itself matches a pattern in ``include``, wherever it lies."""
        return bool(self.include) and (
            self._is_among(self.include, path, folders=False)
            or any("/" not in each and matches(each, path, (path.name,)) for each in self.include)
        )

    def ignored_in(self, path: Path) -> tuple[str, ...]:
        """Return what ``per-file-ignores`` says about the file at ``path``: codes, prefixes and names."""
        return tuple(
            selector
            for pattern, selectors in self.per_file_ignores
            if self._is_among([pattern.removeprefix("!")], path) != pattern.startswith("!")
            for selector in selectors
        )

    def _is_among(self, patterns: Collection[str], path: Path, *, folders: bool = True) -> bool:
        whole = absolute(path)
        inside: tuple[str, ...] = ()
        if whole.is_relative_to(self.root):
            inside = whole.relative_to(self.root).parts
        elif self.start is not None and whole.is_relative_to(self.start):
            # Nothing with a slash is relative to this folder, but a name is a name.
            inside = whole.relative_to(self.start).parts
            patterns = [each for each in patterns if "/" not in each or is_absolute(each)]
        return any(matches(pattern, whole, inside, folders=folders) for pattern in patterns)

    def overridden(self, **said: object) -> Settings:
        """Return these settings with what the command line says.

        Args:
            said: values by the names of their fields; None and what is empty is not said at all.
        """
        given = {name: value for name, value in said.items() if value not in (None, ())}
        values = {name: self._joined(name.replace("_", "-"), value) for name, value in given.items()}
        origins = {**self.origins, **{name.replace("_", "-"): Origin() for name in given}}
        # mypy cannot see that each value is of its field's type.
        return replace(self, **values, origins=origins)  # type: ignore[arg-type]

    def _joined(self, name: str, value: object) -> object:
        definition = BY_NAME[name]
        if not isinstance(value, tuple):
            return value
        if definition.kind.holds_patterns:
            value = tuple(
                from_folder(each, Path.cwd())
                if isinstance(each, str)
                else (from_folder(each[0], Path.cwd()), *each[1:])
                for each in value
            )
        return (*getattr(self, definition.field), *value) if definition.adds else value


def common_folder(paths: Sequence[Path]) -> Path:
    """Return the innermost folder that holds all of ``paths``, which are at least one."""
    common = Path(os.path.commonpath([absolute(path) for path in paths]))
    return common if is_dir(common) else common.parent


def working_directory() -> Path:
    """Return the working directory; if it has been deleted, a path that nothing lies in."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.devnull)


def absolute(path: Path) -> Path:
    """Return a path from the root, without looking at links.

    The settings are those of the place where the user sees the file, and a link that loops is for
    whoever opens it to report.
    """
    return Path(os.path.abspath(path))  # noqa: PTH100
