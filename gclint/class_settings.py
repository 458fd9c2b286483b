"""Reads ``[tool.gclint.verify]``: the settings of model classes that gclint cannot derive itself."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gclint.facts import read_json
from gclint.verify.worker.class_settings import ClassSettings

_FIELDS, _CONFIG, _INPUTS = "fields", "config", "inputs"
KINDS = {"configurations": (_FIELDS, _CONFIG), "models": (_FIELDS, _CONFIG, _INPUTS)}
"""The settings of each kind of classes."""


class ClassSettingsError(Exception):
    """The table is invalid; the message is meant for the user."""


def class_settings(table: object, folder: Path) -> tuple[ClassSettings, ...]:
    """Return the settings of classes in ``[tool.gclint.verify]``; paths in it are relative to ``folder``.

    Raises:
        ClassSettingsError: the table is invalid, or names a file that cannot be used.
    """
    place = "[tool.gclint.verify]"
    kinds = _table(table, place)
    _refuse_unknown(kinds, KINDS, place)
    return tuple(
        _known(kind, name, content, folder)
        for kind, classes in kinds.items()
        for name, content in _table(classes, f"[tool.gclint.verify.{kind}]").items()
    )


def _known(kind: str, name: str, content: object, folder: Path) -> ClassSettings:
    place = f"[tool.gclint.verify.{kind}.{name}]"
    said = _table(content, place)
    _refuse_unknown(said, KINDS[kind], place)
    if not said:
        raise ClassSettingsError(f"{place} is empty; it may set {', '.join(KINDS[kind])}")
    return ClassSettings(
        name,
        dict(_table(said.get(_FIELDS, {}), f"{_FIELDS} in {place}")),
        _configuration(said.get(_CONFIG), folder, place),
        _function(said.get(_INPUTS), folder, place),
        place,
        str(folder),
    )


def _configuration(value: object, folder: Path, place: str) -> dict[str, Any] | None:
    """Return the content of the config.json at the path ``value``."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ClassSettingsError(f"{_CONFIG} in {place} must be the path of a config.json")
    path = folder / value
    try:
        content = read_json(path)
    except OSError as error:
        raise ClassSettingsError(f"{_CONFIG} in {place}: {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ClassSettingsError(f"{_CONFIG} in {place}: {path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ClassSettingsError(f"{_CONFIG} in {place}: {path} does not hold a JSON object")
    return content


def _function(value: object, folder: Path, place: str) -> str | None:
    """Return ``value`` with the path in it made absolute."""
    if value is None:
        return None
    example = "file.py:function or module:function"
    if not isinstance(value, str):
        raise ClassSettingsError(f"{_INPUTS} in {place} must be a string like {example}")
    where, _, function = value.rpartition(":")
    if not where or not function.isidentifier():
        raise ClassSettingsError(f"{_INPUTS} in {place} is {value!r}; write it like {example}")
    if not where.endswith(".py"):
        return value
    path = folder / where
    if not path.is_file():
        raise ClassSettingsError(f"{_INPUTS} in {place}: there is no file {path}")
    return f"{path}:{function}"


def _table(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ClassSettingsError(f"{place} must be a table")
    return value


def _refuse_unknown(names: Iterable[str], known: Iterable[str], place: str) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, list(known), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the settings are {', '.join(known)}"
            raise ClassSettingsError(f"{place} has no setting {name!r}; {hint}")
