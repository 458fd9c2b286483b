"""What no rule can derive about a class: gclint's own table, and the user's settings.

Settings take precedence: they are applied after the table.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gclint.verify.worker.class_settings import ClassSettings
from gclint.verify.worker.synthesis.configurations.tree import descendants, fields_of
from gclint.verify.worker.tiny_model import NotSynthesisable

SETTINGS = "settings"
"""The category of errors that concern the user's settings."""
_TABLE = Path(__file__).with_name("class_settings.json")


def _shipped() -> list[ClassSettings]:
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    return [ClassSettings(name, entry["fields"]) for name, entry in table.items()]


_KNOWN = _shipped()


def learn(entries: Iterable[ClassSettings]) -> None:
    """Add the user's settings, for this process and those that it forks."""
    _KNOWN.extend(entries)


def given_configuration(model_class: Any, config_class: Any) -> Any:
    """Return the configuration that the settings give for a class, or None if they give none.

    Raise NotSynthesisable if the configuration class rejects it.
    """
    entry = _with_configuration(model_class, config_class)
    if entry is None:
        return None
    try:
        return config_class.from_dict(copy.deepcopy(entry.config))
    except Exception as error:
        message = f"config in {entry.origin}: {type(error).__name__}: {error}"
        raise NotSynthesisable(SETTINGS, message[:400]) from error


def is_given(model_class: Any, config: Any) -> bool:
    """Return whether the settings give the whole of ``config``, a configuration of ``model_class``."""
    return _with_configuration(model_class, type(config)) is not None


def _with_configuration(*classes: Any) -> ClassSettings | None:
    return next((entry for entry in _about(*classes) if entry.config is not None), None)


def function_for_inputs(model_class: Any) -> ClassSettings | None:
    """Return the entry that names a function for the inputs of a model class, or None if there is none."""
    return next((entry for entry in _about(model_class) if entry.inputs is not None), None)


def apply_known(model_class: Any, config: Any) -> None:
    """Write what is known into ``config``, a configuration of ``model_class``, and everything below it.

    Raises:
        NotSynthesisable: The settings set a field that neither the configuration nor the model's code has.
    """
    for part in list(descendants(config)):
        for entry in _KNOWN:
            if entry.name == type(part).__name__ or (part is config and entry.name == model_class.__name__):
                _write(entry, part, model_class)


def _about(*classes: Any) -> Iterator[ClassSettings]:
    """Yield what is known about ``classes``; entries that take precedence come first."""
    for name in (each.__name__ for each in classes):
        yield from (entry for entry in _KNOWN[::-1] if entry.name == name)


def _write(entry: ClassSettings, part: Any, model_class: Any) -> None:
    fields = fields_of(part)
    for name, value in entry.fields.items():
        if entry.origin:
            _check_field(entry, name, part, model_class)
        own = copy.deepcopy(value)
        before = fields.get(name)
        if isinstance(before, dict) and isinstance(own, dict) and all(isinstance(key, int) for key in before):
            # Keys are strings in JSON and TOML.
            own = {int(key) if key.isdecimal() else key: each for key, each in own.items()}
        fields[getattr(type(part), "attribute_map", {}).get(name, name)] = own


def _check_field(entry: ClassSettings, name: str, part: Any, model_class: Any) -> None:
    if hasattr(part, name):
        return
    text = inspect.getsource(sys.modules[model_class.__module__])
    if re.search(rf"\b{re.escape(name)}\b", text):
        return
    names = [each for each in fields_of(part) if isinstance(each, str)]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    message = f"fields in {entry.origin}: {type(part).__name__} has no field {name!r}{hint}"
    raise NotSynthesisable(SETTINGS, message)
