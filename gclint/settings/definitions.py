"""The table of all settings: the name, type, default, documentation and option of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from gclint.level import Level
from gclint.releases import Releases, releases

Ignores: TypeAlias = "tuple[tuple[str, tuple[str, ...]], ...]"
"""Patterns, each with the rules that do not run on the files that it matches."""

Levels: TypeAlias = "tuple[tuple[str, Level], ...]"
"""Rules, each with the level of its findings."""

_MOST_ITEMS = 1000
"""Each pattern is tried on each file, and each module is looked for."""


class SettingsError(Exception):
    """The settings are invalid; the message names the place, and is meant for the user."""


@dataclass(frozen=True)
class SettingType:
    """The type of a setting's value."""

    description: str
    """A noun phrase with its article, to follow "must be"."""
    schema: Mapping[str, object]
    """The type in JSON Schema."""
    accepts: Callable[[object], bool]
    """Returns whether a value from a TOML file has this type."""
    convert: Callable[[object, Path], object]
    """Converts a value from a TOML file, and raises ValueError with the reason if it cannot.

    The second argument is the folder that paths in the value are relative to.
    """
    holds_patterns: bool = False
    """Whether the value is a list of patterns, or a table with patterns as keys."""

    @property
    def takes_several(self) -> bool:
        """Whether the value is a list or table, whose items are separate values on the command line."""
        return self.schema["type"] in ("array", "object")


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _words(value: object, _folder: Path, what: str = "rule") -> tuple[str, ...]:
    assert isinstance(value, list)
    words = tuple(item.strip() for item in value)
    if not all(words):
        raise ValueError(f"the name of a {what} is empty")
    return words


def _modules(value: object, folder: Path) -> tuple[str, ...]:
    names = _words(value, folder, "module")
    _require_few(names, "modules")
    if any("\0" in each for each in names):
        raise ValueError("the name of a module contains a NUL character")
    return tuple(str(folder / each) if is_path_of_rules(each) else each for each in names)


def is_path_of_rules(name: str) -> bool:
    """Return whether an extra rule is named by the path of its file, not as a module or an entry point."""
    return name.endswith(".py")


def _patterns(value: object, folder: Path) -> tuple[str, ...]:
    assert isinstance(value, list)
    _require_few(value)
    return tuple(_pattern(item, folder) for item in value)


def _pattern(text: str, folder: Path, *, may_be_negative: bool = False) -> str:
    from gclint.settings.patterns import from_folder, normalised

    pattern = normalised(text, may_be_negative=may_be_negative)
    leads_out = pattern.removeprefix("!").startswith("../") and folder.is_absolute()
    return from_folder(pattern, folder) if leads_out else pattern


def _require_few(items: Sized, what: str = "patterns") -> None:
    if len(items) > _MOST_ITEMS:
        raise ValueError(f"it has {len(items):,} {what}, and at most {_MOST_ITEMS:,} are allowed")


def _ignores(value: object, folder: Path) -> Ignores:
    assert isinstance(value, dict)
    _require_few(value)
    return tuple(
        (_pattern(pattern, folder, may_be_negative=True), _words(words, folder))
        for pattern, words in value.items()
    )


def _functions(value: object, folder: Path) -> tuple[str, ...]:
    names = _words(value, folder)
    for name in names:
        parts = name.split(".")
        if len(parts) < 2 or not all(map(str.isidentifier, parts)):
            raise ValueError(
                f"{name!r} is not the dotted name of a function, such as flash_attn.flash_attn_func"
            )
    return names


def _level(value: object, _folder: Path) -> Level:
    assert isinstance(value, str)
    try:
        return Level(value.strip().lower())
    except ValueError:
        raise ValueError(f"there is no level {value!r}; choose from {', '.join(_LEVELS)}") from None


def _levels(value: object, folder: Path) -> Levels:
    assert isinstance(value, dict)
    words = _words([*value], folder)
    return tuple((word, _level(level, folder)) for word, level in zip(words, value.values(), strict=True))


def _path(value: object, folder: Path) -> Path:
    assert isinstance(value, str)
    if not value.strip():
        raise ValueError("the path is empty")
    if "\0" in value:
        raise ValueError("the path contains a NUL character")
    return folder / value


def _releases(value: object, _folder: Path) -> Releases:
    assert isinstance(value, str)
    if not value.strip():
        raise ValueError("it is empty; write it like 4.57 or >=4.53,<5")
    try:
        return releases(value)
    except ValueError as error:
        raise ValueError(f"{error}; write it like 4.57 or >=4.53,<5") from None


_LEVELS = [each.value for each in Level]
_LIST = {"type": "array", "items": {"type": "string", "minLength": 1}}

WORDS = SettingType("a list of strings", {**_LIST, "uniqueItems": True}, _is_strings, _words)
MODULES = SettingType("a list of strings", {**_LIST, "uniqueItems": True}, _is_strings, _modules)
"""Files that end in ``.py``, modules and entry points."""
FUNCTIONS = SettingType("a list of strings", {**_LIST, "uniqueItems": True}, _is_strings, _functions)
"""Dotted names."""
PATTERNS = SettingType("a list of strings", _LIST, _is_strings, _patterns, holds_patterns=True)
IGNORES = SettingType(
    "a table of lists of strings",
    {"type": "object", "additionalProperties": _LIST},
    lambda value: isinstance(value, dict) and all(map(_is_strings, value.values())),
    _ignores,
    holds_patterns=True,
)
LEVEL = SettingType("a string", {"type": "string", "enum": _LEVELS}, _is_string, _level)
LEVELS = SettingType(
    "a table of strings",
    {"type": "object", "additionalProperties": {"enum": _LEVELS}},
    lambda value: isinstance(value, dict) and all(map(_is_string, value.values())),
    _levels,
)
PATH = SettingType("a string", {"type": "string", "minLength": 1}, _is_string, _path)
RELEASES = SettingType("a string", {"type": "string", "minLength": 1}, _is_string, _releases)
FORMAT = SettingType("a string", {"type": "string"}, _is_string, lambda value, _folder: value)
"""The name of an output format, which is checked against the table of formats."""
SWITCH = SettingType(
    "true or false", {"type": "boolean"}, lambda value: isinstance(value, bool), lambda value, _folder: value
)


@dataclass(frozen=True)
class SettingDefinition:
    """One setting."""

    name: str
    """The key in the table."""
    kind: SettingType
    default: object
    """The value in TOML that has the same effect; None if there is none."""
    documentation: str
    """Sentences in Markdown."""
    example: str
    """A value in TOML."""
    help: str
    """What the command line says about it."""
    metavar: str | None = None
    """What stands there for its value; None for a switch."""
    is_of_run: bool = False
    """Whether it concerns a whole run, so that settings files for some of its files cannot have it."""
    is_of_user: bool = False
    """Whether only the command line and the user's own settings can have it, as it says what is trusted."""
    adds: bool = False
    """Whether values from the command line are added to those in the table, instead of replacing them."""

    @property
    def option(self) -> str:
        """The name of the option, for a switch with that of its opposite."""
        return f"--{self.name}/--no-{self.name}" if self.kind is SWITCH else f"--{self.name}"

    @property
    def field(self) -> str:
        """The name of the attribute of ``Settings``."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class RuleSetting:
    """A setting in the table of a rule; its value is a list of strings."""

    name: str
    documentation: str
    """One line in Markdown."""
    default: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleWords:
    """The names that settings may use for a rule, and the settings that it has itself."""

    code: str
    name: str
    settings: tuple[RuleSetting, ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """The names that settings may refer to, and which this package does not know itself."""

    rules: Callable[[], Sequence[RuleWords]] = field(default=lambda: ())
    """Returns all rules; called only if a table names one, since importing them takes time."""
    format_complaint: Callable[[str], str | None] = lambda _name: None
    """Returns an error message if the name of a format is unknown, otherwise None."""


_RULES_HINT = "codes, prefixes of codes or names"

DEFINITIONS = (
    SettingDefinition(
        "select",
        WORDS,
        ["ALL"],
        f"The rules to run: {_RULES_HINT}, or `ALL`.",
        '["GC001", "positional-cache"]',
        "Run only these rules: codes, prefixes, names or ALL, separated by commas.",
        "RULES",
    ),
    SettingDefinition(
        "extend-select",
        WORDS,
        [],
        "Rules to run in addition to those in `select`. On the command line, they are added to those in "
        "the file.",
        '["GC3"]',
        "Run these rules in addition to the selected ones.",
        "RULES",
        adds=True,
    ),
    SettingDefinition(
        "ignore",
        WORDS,
        [],
        "Rules not to run; this overrides `select` and `extend-select`.",
        '["unused-ignore"]',
        "Do not run these rules, even if they are selected.",
        "RULES",
    ),
    SettingDefinition(
        "per-file-ignores",
        IGNORES,
        {},
        "Rules to ignore in the files that match a pattern. A pattern that starts with `!` stands for all "
        "files that it does not match.",
        '{ "src/legacy/*" = ["GC001"] }',
        "Ignore RULE in files that match PATTERN; separate pairs by commas.",
        "PATTERN:RULE",
    ),
    SettingDefinition(
        "levels",
        LEVELS,
        {},
        "The levels of findings by rule: `error`, `warning` or `note`. Of several codes, prefixes and names "
        "that fit a rule, the longest one counts.",
        '{ GC001 = "error", GC3 = "note" }',
        "Give the findings of RULE this LEVEL: error, warning or note; separate pairs by commas.",
        "RULE:LEVEL",
    ),
    SettingDefinition(
        "preview",
        SWITCH,
        False,
        "Whether rules in preview may run. Without it no selection runs them, not even `ALL`.",
        "true",
        "Also run selected rules that are in preview.",
    ),
    SettingDefinition(
        "extra-rules",
        MODULES,
        [],
        "Modules with rules of your own: paths that end in `.py`, installed modules, or entry points. Only "
        "the command line and your own settings can name them, not those of a repository. On the command "
        "line, they are added to those in your settings.",
        '["our_rules.py"]',
        "Also run the rules in MODULE: a path that ends in .py, an installed module, or an entry point.",
        "MODULE",
        is_of_user=True,
        adds=True,
    ),
    SettingDefinition(
        "pure-functions",
        FUNCTIONS,
        [],
        "Functions and modules of other packages, by their dotted names, that change nothing that they are "
        "given, keep nothing and return tensors: a fix is not unsafe because nothing is known of them. Only "
        "the command line and your own settings can name them, not those of a repository. On the command "
        "line, they are added to those in your settings.",
        '["flash_attn.flash_attn_func"]',
        "Take FUNCTIONS of other packages, dotted names separated by commas, to change nothing and return "
        "tensors.",
        "FUNCTIONS",
        is_of_user=True,
        adds=True,
    ),
    SettingDefinition(
        "include",
        PATTERNS,
        [],
        "Patterns of files to check in folders, in addition to `modeling_*.py` and `modular_*.py`. On the "
        "command line, they are added to those in the file.",
        '["encoder_*.py"]',
        "In folders, also check files that match PATTERN, such as '*.py', except tests and builds.",
        "PATTERN",
        adds=True,
    ),
    SettingDefinition(
        "exclude",
        PATTERNS,
        [],
        "Patterns of files and folders to skip, even if they are given as paths.",
        '["src/generated"]',
        "Skip files and folders that match PATTERN, even if they are given.",
        "PATTERN",
    ),
    SettingDefinition(
        "extend-exclude",
        PATTERNS,
        [],
        "Patterns of files and folders to skip in addition to those in `exclude`. On the command line, "
        "they are added to those in the file.",
        '["*_old.py"]',
        "Skip these in addition to what the settings exclude.",
        "PATTERN",
        adds=True,
    ),
    SettingDefinition(
        "unsafe-fixes",
        SWITCH,
        False,
        "Whether to include fixes that need a review, and to make them with `--fix`.",
        "true",
        "Include fixes that need a review.",
        is_of_run=True,
    ),
    SettingDefinition(
        "target-version",
        RELEASES,
        None,
        "The releases of transformers that the code may run with. By default they come from the project's "
        "metadata, or from the installed release.",
        '">=4.53,<5"',
        "Releases that the code may run with: 4.57 or '>=4.53,<5'.  [default: from the project, or the "
        "installed one]",
        "RELEASES",
    ),
    SettingDefinition(
        "library",
        PATH,
        None,
        "The source of transformers, to look up base classes; it is never changed. By default the "
        "installed one.",
        '"../transformers/src"',
        "Source of transformers, to look up base classes; it is never changed.  [default: the installed one]",
        "PATH",
        is_of_run=True,
    ),
    SettingDefinition(
        "baseline",
        PATH,
        None,
        "A file of known findings, which are not reported.",
        '"gclint-baseline.json"',
        "Do not report the findings in FILE.",
        "FILE",
        is_of_run=True,
    ),
    SettingDefinition(
        "fail-level",
        LEVEL,
        "warning",
        "The lowest level of findings with which the exit status is 1: `error`, `warning` or `note`.",
        '"note"',
        "Exit with 1 if findings of this level or a graver one remain: error, warning or note.  "
        "[default: warning]",
        "LEVEL",
        is_of_run=True,
    ),
    SettingDefinition(
        "output-format",
        FORMAT,
        "full",
        "The format in which `gclint check` prints findings.",
        '"concise"',
        "Format of the report.",
        is_of_run=True,
    ),
)
"""All settings except those of rules and of model classes, in the order in which they are shown."""

BY_NAME: Mapping[str, SettingDefinition] = {each.name: each for each in DEFINITIONS}

RETIRED: Mapping[str, str] = {"cache-dir": "use the option --cache-dir"}
"""Settings of earlier versions that have no effect any more, with what to do instead."""

RULES = "rules"
"""The key of the table that contains a table for each rule."""
VERIFY = "verify"
"""The key of the table about model classes to run."""
