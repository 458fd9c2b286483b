"""The settings in force, each with its origin, as TOML or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from gclint.code.paths import inert, shown
from gclint.level import Level
from gclint.releases import Releases, Version
from gclint.report.printing import write_object
from gclint.settings import Settings
from gclint.settings.definitions import DEFINITIONS, IGNORES, LEVELS, RULES, VERIFY, RuleWords
from gclint.settings.settings import SettingOrigin

_Line = tuple[tuple[str, ...], str, Any, "SettingOrigin | None"]
"""A setting: its table, name, value for ``json`` or None, and origin, None for a default."""


def write(settings: Settings, rules: Sequence[RuleWords], stream: TextIO) -> None:
    """Write a TOML file with these settings, each with a comment that names its origin."""
    found = f"read from {shown(settings.file)}" if settings.file else "no settings file was found"
    stream.write(f"# {found}\n")
    begun: tuple[str, ...] = ()
    for table, name, value, origin in _lines(settings, rules):
        if table != begun:
            begun = table
            stream.write(f"\n[{'.'.join(map(_key, table))}]\n")
        is_set = value is not None
        text = f"{_key(name)} = {_toml(value)}" if is_set else f"# {name} is not set"
        stream.write(f"{text}  # {_place(origin)}\n" if is_set else f"{text}\n")


def write_json(settings: Settings, rules: Sequence[RuleWords], stream: TextIO) -> None:
    """Write an object with the settings file, and the value and origin of each setting."""
    document: dict[str, Any] = {"file": str(settings.file) if settings.file else None, "settings": {}}
    for table, name, value, origin in _lines(settings, rules):
        document["settings"][".".join((*table, name))] = {"value": value, "origin": _origin(origin)}
    write_object(document, stream, default=str)


def _lines(settings: Settings, rules: Sequence[RuleWords]) -> Iterator[_Line]:
    for each in DEFINITIONS:
        value = _plain(getattr(settings, each.field))
        if each.kind in (IGNORES, LEVELS):
            value = dict(value)
        yield (), each.name, value, settings.origins.get(each.name)
    for rule in rules:
        for setting in rule.settings:
            given = settings.given(setting.name)
            value = list(setting.default if given is None else given)
            yield (RULES, rule.name), setting.name, value, settings.origins.get(setting.name)
    for kind, classes in settings.verify.items():
        for name, content in classes.items():
            keys = (VERIFY, kind, name)
            for key, value in content.items():
                table = settings.origins[VERIFY]
                origin = replace(table, keys=(*table.keys, kind, name, key))
                yield keys, key, value, origin


def _plain(value: object) -> Any:
    """Return a value as ``json`` can write it."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Releases):
        return _range(value)
    if isinstance(value, Level):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _range(releases: Releases) -> str:
    """Return a range of releases as it is written in a setting."""
    start = f">={_version(releases.start)}" if any(releases.start) else ""
    end = f"<{_version(releases.end)}" if releases.end else ""
    return ",".join(filter(None, (start, end))) or "*"


def _version(version: Version) -> str:
    return ".".join(map(str, version)).removesuffix(".0").removesuffix(".0")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items() if item is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return _string(value)
    # A field of a class may be a date, which TOML writes as Python does.
    return json.dumps(value, default=str) if isinstance(value, (bool, int)) else str(value)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if is_bare else _string(name)


def _string(text: str) -> str:
    # TOML needs the same escapes as JSON, but has others beyond U+FFFF; neither can contain a lone surrogate.
    quoted = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
    shown = "".join(each if each.isprintable() else _escaped(each) for each in quoted)
    return inert(shown, _escaped)


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}"


def _place(origin: SettingOrigin | None) -> str:
    if origin is None:
        return "default"
    if origin.file is None:
        return "command line"
    return f"{shown(origin.file)}:{origin.position[0]}"


def _origin(origin: SettingOrigin | None) -> Mapping[str, object]:
    if origin is None:
        return {"kind": "default"}
    if origin.file is None:
        return {"kind": "command line"}
    row, column = origin.position
    return {"kind": "file", "file": str(origin.file), "line": row, "column": column}
