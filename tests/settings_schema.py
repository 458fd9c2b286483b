"""The settings as a JSON schema, for editors that complete and check ``[tool.gclint]``.

The package contains it as a file, which ``python3 -m tests.documented`` writes.
"""

from __future__ import annotations

import json
from typing import Any

from gclint.report.formats import FORMATS
from gclint.rule import rule_words
from gclint.settings.definitions import (
    DEFINITIONS,
    FORMAT,
    IGNORES,
    RETIRED,
    RULES,
    VERIFY,
    WORDS,
    RuleWords,
    SettingDefinition,
)
from gclint.settings.reading import KINDS

_URL = "https://raw.githubusercontent.com/gclint/gclint/main/gclint/settings/schema.json"

_STRINGS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_CONTENT = {
    "fields": {"type": "object", "description": "Fields of the configuration."},
    "config": {"type": "string", "description": "The path of a config.json."},
    "inputs": {
        "type": "string",
        "description": "A function that makes the inputs: file.py:function or module:function.",
    },
}
"""The schemas of the settings of a model class."""


def schema_text() -> str:
    """Return the schema of the table as the text of a file."""
    return json.dumps(schema(), indent=2) + "\n"


def schema() -> dict[str, Any]:
    """Return the schema of ``[tool.gclint]``, which also fits a file with the settings at top level."""
    rules = rule_words()
    selectors = ["ALL", *(word for rule in rules for word in (rule.code, rule.name))]
    properties = {
        **{each.name: _setting(each) for each in DEFINITIONS},
        **{
            name: {"description": f"This has no effect any more; {instead}.", "deprecated": True}
            for name, instead in RETIRED.items()
        },
        RULES: _table(
            {rule.name: _rule_table(rule) for rule in rules if rule.settings},
            "Settings of rules, a table for each rule.",
        ),
        VERIFY: _table(
            {
                kind: {
                    "type": "object",
                    "additionalProperties": {
                        **_table({name: _CONTENT[name] for name in names}),
                        "minProperties": 1,
                    },
                }
                for kind, names in KINDS.items()
            },
            "Settings of model classes.",
        ),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _URL,
        "title": "gclint",
        "description": "The table [tool.gclint] of a pyproject.toml.",
        **_table(properties),
        "$defs": {
            "selector": {
                "description": "The code of a rule, a prefix of codes, a name, or ALL.",
                "type": "string",
                "minLength": 1,
                "anyOf": [{"enum": selectors}, {"type": "string"}],
            }
        },
    }


def _setting(definition: SettingDefinition) -> dict[str, Any]:
    own: dict[str, Any] = {"description": definition.documentation, **definition.kind.schema}
    if definition.kind is FORMAT:
        own["enum"] = list(FORMATS)
    elif definition.kind is WORDS:
        own["items"] = {"$ref": "#/$defs/selector"}
    elif definition.kind is IGNORES:
        own["additionalProperties"] = {"type": "array", "items": {"$ref": "#/$defs/selector"}}
    if definition.default is not None:
        own["default"] = definition.default
    return own


def _rule_table(rule: RuleWords) -> dict[str, Any]:
    settings = {
        each.name: {"description": each.documentation, **_STRINGS, "default": list(each.default)}
        for each in rule.settings
    }
    return _table(settings, f"Settings of {rule.code}.")


def _table(properties: dict[str, Any], description: str | None = None) -> dict[str, Any]:
    about = {"description": description} if description else {}
    return {**about, "type": "object", "properties": properties, "additionalProperties": False}
