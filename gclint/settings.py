"""What the user asks for: ``[tool.gclint]`` and the command line's options, as one frozen object."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from gclint.class_settings import ClassSettingsError, class_settings
from gclint.facts import is_dir, is_file, read_text
from gclint.releases import Releases, releases
from gclint.verify.worker.known import Known

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TARGET_VERSION, _LIBRARY, _VERIFY = "target-version", "library", "verify"
_OWN = ("select", "ignore", "include", "exclude", _TARGET_VERSION, _LIBRARY, _VERIFY)


class SettingsError(Exception):
    """The settings cannot be used; the message names the place and is meant for the user."""


@dataclass(frozen=True)
class Settings:
    """Which rules run over which files."""

    select: tuple[str, ...] = ()
    """Codes, prefixes of codes, or names of the rules to run; none means all."""
    ignore: tuple[str, ...] = ()
    """Codes, prefixes of codes, or names of the rules not to run; stronger than ``select``."""
    include: tuple[str, ...] = ()
    """Glob patterns of files to check beside the modeling files; see :meth:`includes`."""
    exclude: tuple[str, ...] = ()
    """Glob patterns of files and folders to leave out; see :meth:`excludes`."""
    of_rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What the table says for settings that rules declare: their names and values."""
    target_version: Releases | None = None
    """The releases of transformers that the code may run with; None to find out."""
    library: Path | None = None
    """Where the source of transformers lies; None to find out."""
    environments: tuple[Path, ...] = ()
    """The Python environments, by folder or interpreter, that the code may run in, the likeliest first."""
    known: tuple[Known, ...] = ()
    """What is said about classes that are run."""
    root: Path = field(default_factory=lambda: _working_directory())
    """The folder that the patterns are relative to."""

    def given(self, name: str) -> tuple[str, ...] | None:
        """Return what the table says for a setting that a rule declares, or None if it says nothing."""
        return dict(self.of_rules).get(name)

    def excludes(self, path: Path) -> bool:
        """Return whether ``path``, or a folder that it lies in, matches a pattern in ``exclude``.

        ``*`` matches across folders. A pattern without a slash matches a file's or folder's name
        anywhere, one with a slash the path from :attr:`root`; nothing outside of that is excluded.
        """
        parts = self._parts(path) if self.exclude else ()
        return any(
            fnmatchcase("/".join(parts[: depth + 1]), pattern) or fnmatchcase(part, pattern)
            for depth, part in enumerate(parts)
            for pattern in self.exclude
        )

    def includes(self, path: Path) -> bool:
        """Return whether the file at ``path`` matches a pattern in ``include``.

        A pattern without a slash matches the file's name anywhere, one with a slash the path from
        :attr:`root`.
        """
        if not self.include:
            return False
        inside = "/".join(self._parts(path))
        return any(fnmatchcase(inside if "/" in each else path.name, each) for each in self.include)

    def _parts(self, path: Path) -> tuple[str, ...]:
        """Return the parts of a path from :attr:`root`; none if it lies outside."""
        absolute = _absolute(path)
        return absolute.relative_to(self.root).parts if absolute.is_relative_to(self.root) else ()

    def overridden(
        self,
        select: Sequence[str] = (),
        ignore: Sequence[str] = (),
        include: Sequence[str] = (),
        target_version: Releases | None = None,
        library: Path | None = None,
    ) -> Settings:
        """Return these settings with what was given on the command line.

        It stands in place of what the table says; what is included is added to that.
        """
        return replace(
            self,
            select=tuple(select) or self.select,
            ignore=tuple(ignore) or self.ignore,
            target_version=target_version or self.target_version,
            library=library or self.library,
            include=(*self.include, *include),
        )


def load_settings(start: Path, of_rules: Collection[str]) -> Settings:
    """Read the nearest ``pyproject.toml`` at or above ``start`` that has a ``[tool.gclint]`` table.

    Args:
        start: a folder.
        of_rules: the names of the settings that rules declare, all of which are lists of strings.

    Raises:
        SettingsError: a file on the way is not TOML, or the table is not as it should be.
    """
    absolute = _absolute(start)
    for folder in (absolute, *absolute.parents):
        path = folder / "pyproject.toml"
        if is_file(path):
            table = _table(path)
            if table is not None:
                return _from_table(table, path, of_rules)
    return Settings()


def common_folder(paths: Sequence[Path]) -> Path:
    """Return the innermost folder that holds all of ``paths``, which are at least one."""
    common = Path(os.path.commonpath([_absolute(path) for path in paths]))
    return common if is_dir(common) else common.parent


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:  # It has been deleted, so nothing lies in it.
        return Path(os.devnull)


def _absolute(path: Path) -> Path:
    # Not Path.resolve: the settings are those of the place where the user sees the file, and a link
    # that loops is for whoever opens it to report.
    return Path(os.path.abspath(path))  # noqa: PTH100


def _table(path: Path) -> Mapping[str, object] | None:
    try:
        document = tomllib.loads(read_text(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read as TOML: {error}") from None
    tool = document.get("tool")
    table = tool.get("gclint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise SettingsError(f"{path}: tool.gclint must be a table")
    return table


def _from_table(table: Mapping[str, object], path: Path, of_rules: Collection[str]) -> Settings:
    known = {*_OWN, *of_rules}
    for key in table:
        if key not in known:
            raise SettingsError(
                f"{path}: [tool.gclint] has no setting {key!r}; there are {', '.join(sorted(known))}"
            )

    def strings(key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise SettingsError(f"{path}: {key} in [tool.gclint] must be a list of strings")
        return tuple(value)

    def text(key: str) -> str | None:
        value = table.get(key)
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"{path}: {key} in [tool.gclint] must be a string")
        return value

    library = text(_LIBRARY)
    try:
        classes = class_settings(table.get(_VERIFY, {}), path.parent)
    except ClassSettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    return Settings(
        known=classes,
        target_version=_target_version(text(_TARGET_VERSION), path),
        library=None if library is None else path.parent / library,
        select=strings("select"),
        ignore=strings("ignore"),
        include=strings("include"),
        exclude=tuple(pattern.rstrip("/") for pattern in strings("exclude")),
        of_rules=tuple((name, strings(name)) for name in sorted(of_rules) if name in table),
        root=path.parent,
    )


def _target_version(text: str | None, path: Path) -> Releases | None:
    if text is None:
        return None
    try:
        return releases(text)
    except ValueError as error:
        raise SettingsError(
            f"{path}: {_TARGET_VERSION} in [tool.gclint]: {error}; write it like 4.57 or >=4.53,<5"
        ) from None
