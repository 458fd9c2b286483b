"""Finds and reads the settings file, and reports errors in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from gclint import toml
from gclint.facts import is_file, is_link, is_there, read_json, read_text, real_path
from gclint.settings.definitions import (
    BY_NAME,
    FORMAT,
    RETIRED,
    RULES,
    VERIFY,
    RuleSetting,
    RuleWords,
    SettingDefinition,
    SettingsError,
    Vocabulary,
)
from gclint.settings.settings import SettingOrigin, Settings, absolute, working_directory
from gclint.userfolder import config_home, own_folder
from gclint.verify.worker.class_settings import ClassSettings
from gclint.wording import closest

_PROJECT_FILE = "pyproject.toml"
OWN_FILE = "gclint.toml"
FILES = (OWN_FILE, _PROJECT_FILE)
"""The names of settings files; in a folder, the first one counts."""
_TABLE = ("tool", "gclint")
_FIELDS, _CONFIG, _INPUTS = "fields", "config", "inputs"
KINDS = {"configurations": (_FIELDS, _CONFIG), "models": (_FIELDS, _CONFIG, _INPUTS)}
"""The settings of each kind of classes."""


def load_settings(start: Path, vocabulary: Vocabulary, config: Path | None = None) -> Settings:
    """Read the nearest settings file, from ``start`` upwards.

    That is a ``gclint.toml``, or a ``pyproject.toml`` that has a ``[tool.gclint]`` table. If ``config`` is
    given, that file is read instead. It has such a table; a file that is not called ``pyproject.toml`` may
    have the settings at top level.

    Raises:
        SettingsError: a file on the way is not TOML, or a setting is invalid.
    """
    start = absolute(start)
    if config is not None:
        config = absolute(config)
        settings = _settings_in(config, vocabulary, start)
        if settings is None:
            raise SettingsError(f"{config} has no [tool.gclint] table")
        return settings
    for folder in (start, *start.parents):
        for path in (folder / name for name in FILES):
            if not is_file(path):
                continue
            if path.name == OWN_FILE:
                _require_inside(path)
            settings = _settings_in(path, vocabulary, start)
            if settings is not None:
                return settings
    root = working_directory()
    return Settings(root=root if start.is_relative_to(root) else start, start=start)


def inner_settings(folder: Path, vocabulary: Vocabulary) -> Settings | None:
    """Return the settings for the files in a folder of a run, if that has a settings file; otherwise None.

    Raises:
        SettingsError: a setting is invalid, a file that mentions gclint is not TOML, or a link leads to it
            from the repository that it is not in.
    """
    for path in (folder / name for name in FILES):
        if not is_file(path):
            continue
        _require_inside(path)
        # Among the files of a run, there may be a project that is broken on purpose.
        if path.name == OWN_FILE or _mentions_gclint(path):
            settings = _settings_in(path, vocabulary, folder)
            if settings is not None:
                return replace(settings, notes=(*settings.notes, *_of_whole_runs(settings)))
    return None


def user_settings() -> Settings:
    """Return the user's own settings, which hold wherever gclint runs, and name code that it may run.

    They are believed only if they lie in the user's own folder, in which git tracks nothing.

    Raises:
        SettingsError: the file is not TOML, or a setting is invalid, or belongs to a project.
    """
    folder = config_home()
    path = None if folder is None else folder / OWN_FILE
    if folder is None or path is None or not is_file(path):
        return Settings()
    try:
        with own_folder(folder, is_named=False) as opened:
            opened.status(OWN_FILE)
    except OSError as error:
        where = "" if error.filename in (None, str(path)) else f" {error.filename}:"
        return Settings(notes=(f"{path}: note: this file is not read:{where} {error.strerror or error}",))
    settings = _settings_in(path, Vocabulary(), folder)
    assert settings is not None
    for name, origin in settings.origins.items():
        if name not in BY_NAME or not BY_NAME[name].is_of_user:
            raise SettingsError(f"{origin}: {name} belongs into the settings of a project")
    return settings


def _require_inside(path: Path) -> None:
    """Raise an error if a settings file is a link out of its repository: its keys would be printed."""
    if not is_link(path):
        return
    folders = (path.parent, *path.parent.parents)
    root = next((each for each in folders if is_there(each / ".git")), path.parent)
    if not real_path(path).is_relative_to(real_path(root)):
        raise SettingsError(f"{path}: this link leads out of {root}; pass --config with the path of the file")


def _mentions_gclint(path: Path) -> bool:
    try:
        return _TABLE[1] in read_text(path)
    except (OSError, UnicodeDecodeError):
        return False


def _of_whole_runs(settings: Settings) -> Iterator[str]:
    """Yield a note for each setting that concerns a whole run, not some of its files."""
    for name, origin in settings.origins.items():
        if name == VERIFY or (name in BY_NAME and BY_NAME[name].is_of_run):
            yield f"{origin}: note: {name} concerns a whole run, and this file only a part of it"


def _settings_in(path: Path, vocabulary: Vocabulary, start: Path) -> Settings | None:
    """Return the settings in a file; None if it is a project's and has none."""
    document = _document(path)
    table = _own_table(document, path)
    if table is not None:
        return _TableReader(path, _TABLE, vocabulary).read(table, start)
    return None if path.name == _PROJECT_FILE else _TableReader(path, (), vocabulary).read(document, start)


def _document(path: Path) -> Mapping[str, object]:
    try:
        text = read_text(path).removeprefix("\ufeff")
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        row = error.object.count(b"\n", 0, error.start) + 1
        column = error.start - error.object.rfind(b"\n", 0, error.start)
        raise SettingsError(
            f"{path}:{row}:{column}: cannot be read as TOML: "
            f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None
    try:
        return toml.loads(text)
    except ValueError as error:
        where, message = _place_in(str(error), text)
        raise SettingsError(f"{path}{where}: cannot be read as TOML: {message}") from None


def _place_in(message: str, text: str) -> tuple[str, str]:
    """Return the ``:row:column`` in a message of tomllib, if it has one, and the message without it."""
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    if found is None:
        return "", message
    if found[1] is not None:
        return f":{found[1]}:{found[2]}", message[: found.start()]
    lines = text.split("\n")
    return f":{len(lines)}:{len(lines[-1]) + 1}", f"{message[: found.start()]} at the end of the file"


def _own_table(document: Mapping[str, object], path: Path) -> Mapping[str, object] | None:
    tool = document.get("tool")
    table = tool.get("gclint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise SettingsError(f"{SettingOrigin(path, _TABLE)}: tool.gclint must be a table")
    return table


class _TableReader:
    def __init__(self, path: Path, keys: tuple[str, ...], vocabulary: Vocabulary) -> None:
        """Read the file at ``path``, in which ``keys`` lead to the table."""
        self._path = path
        self._keys = keys
        self._vocabulary = vocabulary
        self._origins: dict[str, SettingOrigin] = {}
        self._notes: list[str] = []
        self._may_lack_rules = False
        """Whether the table names rules that are perhaps not loaded."""

    def read(self, table: Mapping[str, object], start: Path) -> Settings:
        """Return the settings in ``table``."""
        values = {}
        of_rules: dict[str, tuple[str, ...]] = {}
        self._may_lack_rules = bool(table.get("extra-rules"))
        for key, value in table.items():
            if key in BY_NAME:
                values[BY_NAME[key].field] = self._value(BY_NAME[key], value)
                self._origins[key] = SettingOrigin(self._path, (*self._keys, key))
            elif key in RETIRED:
                place = SettingOrigin(self._path, (*self._keys, key))
                self._notes.append(f"{place}: note: {key} has no effect any more; {RETIRED[key]}")
            elif key not in (RULES, VERIFY):
                of_rules.update(self._moved(key, value))
        of_rules.update(self._of_rules(table.get(RULES, {})))
        settings = Settings(
            of_rules=tuple(sorted(of_rules.items())),
            known=self._known(table.get(VERIFY)),
            verify=table.get(VERIFY, {}),
            root=self._path.parent,
            start=start,
            file=self._path,
        )
        # mypy cannot see that each value has the type of its field.
        settings = replace(settings, **values)  # type: ignore[arg-type]
        return replace(settings, origins=self._origins, notes=tuple(self._notes))

    def _value(self, definition: SettingDefinition, value: object) -> object:
        kind = definition.kind
        if not kind.accepts(value):
            self._fail(
                (definition.name,),
                f"{definition.name} must be {kind.description}, such as {definition.example}",
            )
        complaint = self._vocabulary.format_complaint(str(value)) if kind is FORMAT else None
        if complaint is not None:
            self._fail((definition.name,), f"{definition.name}: {complaint}")
        try:
            return kind.convert(value, self._path.parent)
        except ValueError as error:
            self._fail((definition.name,), f"{definition.name}: {error}")

    def _moved(self, key: str, value: object) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield a setting of a rule that is at top level, where it belonged in earlier versions."""
        found = {
            setting.name: (rule, setting) for rule in self._vocabulary.rules() for setting in rule.settings
        }
        if key not in found:
            own = (*BY_NAME, RULES, VERIFY)
            names = {name: name for name in own}
            names |= {
                name: f"{name}, in {self._table((RULES, rule.name))}" for name, (rule, _) in found.items()
            }
            self._fail(
                (key,), self._unknown(key, (), names if closest(key.replace("_", "-"), names) else own)
            )
        rule, setting = found[key]
        place = SettingOrigin(self._path, (*self._keys, key))
        self._notes.append(
            f"{place}: note: {key} has moved to {self._table((RULES, rule.name))}; it still works here"
        )
        yield key, self._strings((key,), setting, value)

    def _of_rules(self, tables: object) -> Iterator[tuple[str, tuple[str, ...]]]:
        if not isinstance(tables, dict):
            self._fail((RULES,), f"{self._table((RULES,))} must be a table")
        if not tables:
            return
        rules = {rule.name: rule for rule in self._vocabulary.rules()}
        codes = {rule.code.lower(): rule.name for rule in rules.values()}
        for name, table in tables.items():
            if name not in rules and self._may_lack_rules:
                continue
            if name not in rules:
                known = codes.get(name.lower()) or name.lower()
                if known in rules:
                    self._fail(
                        (RULES, name), f"write {self._table((RULES, known))}, with the name of the rule"
                    )
                self._fail((RULES, name), f"there is no rule {name!r}; {self._hint(name, [*rules])}")
            yield from self._of_rule(rules[name], table)

    def _of_rule(self, rule: RuleWords, table: object) -> Iterator[tuple[str, tuple[str, ...]]]:
        keys = (RULES, rule.name)
        if not isinstance(table, dict):
            self._fail(keys, f"{self._table(keys)} must be a table")
        settings = {setting.name: setting for setting in rule.settings}
        for key, value in table.items():
            if key not in settings:
                self._fail((*keys, key), self._unknown(key, keys, [*settings]))
            yield key, self._strings((*keys, key), settings[key], value)

    def _strings(self, keys: tuple[str, ...], setting: RuleSetting, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self._fail(keys, f"{setting.name} must be a list of strings")
        self._origins[setting.name] = SettingOrigin(self._path, (*self._keys, *keys))
        return tuple(value)

    def _known(self, table: object) -> tuple[ClassSettings, ...]:
        if table is None:
            return ()
        try:
            known = _class_settings(table, self._path.parent)
        except ValueError as error:
            self._fail((VERIFY,), str(error))
        self._origins[VERIFY] = SettingOrigin(self._path, (*self._keys, VERIFY))
        return known

    def _table(self, keys: tuple[str, ...]) -> str:
        """Return the header of the table of settings, or of the one below it that ``keys`` lead to."""
        return f"[{'.'.join((*self._keys, *keys))}]" if (*self._keys, *keys) else "this file"

    def _unknown(self, key: str, table: tuple[str, ...], known: Iterable[str] | Mapping[str, str]) -> str:
        return f"{self._table(table)} has no setting {key!r}; {self._hint(key, known)}"

    @staticmethod
    def _hint(word: str, known: Iterable[str] | Mapping[str, str]) -> str:
        """Return a hint at a known name that is similar to ``word``; a mapping gives each a longer form."""
        meant = closest(word.replace("_", "-"), known)
        if meant is None:
            return f"the known names are {', '.join(sorted(known))}" if known else "it has no settings"
        suggestion = known[meant] if isinstance(known, Mapping) else meant
        return f"did you mean {suggestion}?"

    def _fail(self, keys: tuple[str, ...], message: str) -> NoReturn:
        raise SettingsError(f"{SettingOrigin(self._path, (*self._keys, *keys))}: {message}")


# -- settings of model classes, which gclint cannot derive itself


def _class_settings(table: object, folder: Path) -> tuple[ClassSettings, ...]:
    """Return the settings in ``[tool.gclint.verify]``; raise ValueError if they cannot be used."""
    place = "[tool.gclint.verify]"
    kinds = _as_table(table, place)
    _refuse_unknown(kinds, KINDS, place)
    return tuple(
        _class_setting(kind, name, content, folder)
        for kind, classes in kinds.items()
        for name, content in _as_table(classes, f"[tool.gclint.verify.{kind}]").items()
    )


def _class_setting(kind: str, name: str, content: object, folder: Path) -> ClassSettings:
    place = f"[tool.gclint.verify.{kind}.{name}]"
    said = _as_table(content, place)
    _refuse_unknown(said, KINDS[kind], place)
    if not said:
        raise ValueError(f"{place} is empty; it may set {', '.join(KINDS[kind])}")
    return ClassSettings(
        name,
        dict(_as_table(said.get(_FIELDS, {}), f"{_FIELDS} in {place}")),
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
        raise ValueError(f"{_CONFIG} in {place} must be the path of a config.json")
    path = folder / value
    try:
        content = read_json(path)
    except OSError as error:
        raise ValueError(f"{_CONFIG} in {place}: {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{_CONFIG} in {place}: {path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{_CONFIG} in {place}: {path} does not hold a JSON object")
    return content


def _function(value: object, folder: Path, place: str) -> str | None:
    """Return ``value`` with the path in it made absolute."""
    if value is None:
        return None
    example = "file.py:function or module:function"
    if not isinstance(value, str):
        raise ValueError(f"{_INPUTS} in {place} must be a string like {example}")
    where, _, function = value.rpartition(":")
    if not where or not function.isidentifier():
        raise ValueError(f"{_INPUTS} in {place} is {value!r}; write it like {example}")
    if not where.endswith(".py"):
        return value
    path = folder / where
    if not path.is_file():
        raise ValueError(f"{_INPUTS} in {place}: there is no file {path}")
    return f"{path}:{function}"


def _as_table(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{place} must be a table")
    return value


def _refuse_unknown(names: Iterable[str], known: Iterable[str], place: str) -> None:
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            close = get_close_matches(name, list(known), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the settings are {', '.join(known)}"
            raise ValueError(f"{place} has no setting {name!r}; {hint}")
