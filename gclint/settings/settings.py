"""The settings in force, as one frozen object."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gclint.facts import is_dir, is_there
from gclint.level import Level
from gclint.releases import Releases
from gclint.settings.definitions import BY_NAME, Ignores, Levels
from gclint.settings.patterns import from_folder, is_absolute, matches
from gclint.verify.worker.class_settings import ClassSettings


@dataclass(frozen=True)
class SettingOrigin:
    """Where a setting comes from: a place in a file, or the command line."""

    file: Path | None = None
    """None for the command line."""
    keys: tuple[str, ...] = ()
    """The path of keys in the file."""

    def __str__(self) -> str:
        """Return the place as text, with its row and column in a file."""
        if self.file is None:
            return "the command line"
        row, column = self.position
        return f"{self.file}:{row}:{column}"

    @property
    def position(self) -> tuple[int, int]:
        """The row and column in the file, from 1; the file is read again to find them."""
        from gclint.toml import place_of

        return (1, 1) if self.file is None else place_of(self.file, self.keys)


@dataclass(frozen=True)
class Settings:
    """Which rules run on which files, and how their findings are handled.

    The table of definitions says what the fields that are not documented here mean.
    """

    select: tuple[str, ...] = ("ALL",)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Ignores = ()
    levels: Levels = ()
    preview: bool = False
    extra_rules: tuple[str, ...] = ()
    pure_functions: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    target_version: Releases | None = None
    library: Path | None = None
    baseline: Path | None = None
    fail_level: Level = Level.WARNING
    output_format: str = "full"
    of_rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The settings that rules declare: pairs of name and values."""
    environments: tuple[Path, ...] = ()
    """The Python environments (folders or interpreters) that the code may run in, the likeliest first."""
    known: tuple[ClassSettings, ...] = ()
    """The settings of model classes to run."""
    verify: Any = field(default_factory=dict, compare=False, repr=False)
    """The same as in the file, to be shown."""
    root: Path = field(default_factory=lambda: working_directory())
    """The folder that the patterns are relative to."""
    start: Path | None = None
    """The innermost folder that contains all given paths: patterns of names also match there."""
    file: Path | None = field(default=None, compare=False)
    """The settings file, if there is one."""
    origins: Mapping[str, SettingOrigin] = field(default_factory=dict, compare=False, repr=False, hash=False)
    """The origin of each setting that is not the default, by its name in the table."""
    disbelieved: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The extra rules that the settings file names, which are not loaded because a repository says so."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Notes for the user about the settings, a line each."""
    inner: Mapping[Path, Settings] = field(default_factory=dict, hash=False)
    """The settings of files in folders that have a settings file of their own, by the folder."""
    read: Callable[[Path], Settings | None] | None = field(default=None, compare=False, repr=False)
    """Reads the settings file in a folder, if there is one; None if all files have these settings."""

    def of(self, path: Path) -> Settings:
        """Return the settings for a file or folder: those of the nearest settings file above it."""
        if not self.inner:
            return self
        around = (self.inner.get(folder) for folder in absolute(path).parents)
        return next((each for each in around if each is not None), self)

    def around(self, folders: Iterable[Path]) -> Settings:
        """Return these settings, together with those of the settings files in and above some folders.

        What another repository has inside of this one, such as a submodule, decides nothing here.
        """
        if self.read is None or self.start is None:
            return self
        inside = {each for folder in map(absolute, folders) for each in (folder, *folder.parents)}
        new = [each for each in inside if self.start in each.parents and each not in self.inner]
        found = {each: self.read(each) for each in sorted(new) if not self._is_of_others(each)}
        own = {folder: settings for folder, settings in found.items() if settings is not None}
        return replace(self, inner={**self.inner, **own})

    def _is_of_others(self, folder: Path) -> bool:
        """Return whether a folder is in a repository inside of the folder that the run is about."""
        below = (each for each in (folder, *folder.parents) if self.start in each.parents)
        return any(is_there(each / ".git") for each in below)

    def given(self, name: str) -> tuple[str, ...] | None:
        """Return the value of a setting that a rule declares, or None if it is not set."""
        return dict(self.of_rules).get(name)

    def is_of_command_line(self, name: str) -> bool:
        """Return whether the value of a setting was given on the command line."""
        origin = self.origins.get(name)
        return origin is not None and origin.file is None

    def excludes(self, path: Path) -> bool:
        """Return whether ``path``, or a folder that contains it, matches a pattern to skip."""
        return self.excluded_by(path) is not None

    def excluded_by(self, path: Path) -> str | None:
        """Return the first pattern that matches ``path``, or a folder that contains it, to be skipped."""
        own = self.of(path)
        patterns = (*own.exclude, *own.extend_exclude)
        return next((each for each in patterns if own._is_among([each], path)), None)

    def includes(self, path: Path) -> bool:
        """Return whether the file at ``path`` itself matches a pattern in ``include``, in any folder."""
        own = self.of(path)
        return bool(own.include) and (
            own._is_among(own.include, path, folders=False)
            or any("/" not in each and matches(each, path, (path.name,)) for each in own.include)
        )

    def ignored_in(self, path: Path) -> tuple[str, ...]:
        """Return the rules that ``per-file-ignores`` disables for ``path``: codes, prefixes and names."""
        own = self.of(path)
        return tuple(
            selector
            for pattern, selectors in own.per_file_ignores
            if own._is_among([pattern.removeprefix("!")], path) != pattern.startswith("!")
            for selector in selectors
        )

    def _is_among(self, patterns: Collection[str], path: Path, *, folders: bool = True) -> bool:
        whole = absolute(path)
        inside: tuple[str, ...] = ()
        if whole.is_relative_to(self.root):
            inside = whole.relative_to(self.root).parts
        elif self.start is not None and whole.is_relative_to(self.start):
            # Patterns with a slash are relative to another folder, but those of names match here, too.
            inside = whole.relative_to(self.start).parts
            patterns = [each for each in patterns if "/" not in each or is_absolute(each)]
        return any(matches(pattern, whole, inside, folders=folders) for pattern in patterns)

    def overridden(self, **values: object) -> Settings:
        """Return these settings with values from the command line, by field; None and () were not given."""
        given = {name: value for name, value in values.items() if value not in (None, ())}
        joined = {name: self._joined(name.replace("_", "-"), value) for name, value in given.items()}
        origins = {**self.origins, **{name.replace("_", "-"): SettingOrigin() for name in given}}
        # mypy cannot see that each value has the type of its field.
        return replace(self, **joined, origins=origins)  # type: ignore[arg-type]

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
    """Return the innermost folder that contains all of ``paths``, at least one."""
    common = Path(os.path.commonpath([absolute(path) for path in paths]))
    return common if is_dir(common) else common.parent


def working_directory() -> Path:
    """Return the working directory; if it has been deleted, a path that is not a folder."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.devnull)


def absolute(path: Path) -> Path:
    """Return an absolute path without resolving links.

    Settings belong to the place where the user sees the file. A link that leads to itself is reported when
    the file is opened.
    """
    return Path(os.path.abspath(path))  # noqa: PTH100
