"""What no rule can know about a class, from gclint's own table and from the user's settings.

The users' word counts: what they say about a class is set after what the table says.
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

from gclint.verify.worker.known import Known
from gclint.verify.worker.specimen import NotSynthesisable
from gclint.verify.worker.synthesis.configurations.tree import descendants, fields_of

SETTINGS = "settings"
"""The kind of the reasons that have to do with what users say."""
_TABLE = Path(__file__).with_name("known.json")


def _shipped() -> list[Known]:
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    return [Known(name, entry["fields"]) for name, entry in table.items()]


_KNOWN = _shipped()


def learn(entries: Iterable[Known]) -> None:
    """Take in what users say, for this process and those that it forks."""
    _KNOWN.extend(entries)


def given_configuration(model_class: Any, config_class: Any) -> Any:
    """Return the configuration that users give for a class, or None where they give none.

    Raises:
        NotSynthesisable: The configuration class refuses it.
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
    """Tell whether users give the whole of ``config``, a configuration of ``model_class``."""
    return _with_configuration(model_class, type(config)) is not None


def _with_configuration(*classes: Any) -> Known | None:
    return next((entry for entry in _about(*classes) if entry.config is not None), None)


def function_for_inputs(model_class: Any) -> Known | None:
    """Return what names the function that makes the inputs of a model class, or None where nothing does."""
    return next((entry for entry in _about(model_class) if entry.inputs is not None), None)


def apply_known(model_class: Any, config: Any) -> None:
    """Write what is known into ``config``, a configuration of ``model_class``, and into what is below it.

    Raises:
        NotSynthesisable: Users set a field that there is not, nor anything that reads it.
    """
    for part in list(descendants(config)):
        for entry in _KNOWN:
            if entry.name == type(part).__name__ or (part is config and entry.name == model_class.__name__):
                _write(entry, part, model_class)


def _about(*classes: Any) -> Iterator[Known]:
    """Yield what is known about ``classes``, the last word first."""
    for name in (each.__name__ for each in classes):
        yield from (entry for entry in _KNOWN[::-1] if entry.name == name)


def _write(entry: Known, part: Any, model_class: Any) -> None:
    fields = fields_of(part)
    for name, value in entry.fields.items():
        if entry.origin:
            _expect(entry, name, part, model_class)
        own = copy.deepcopy(value)
        before = fields.get(name)
        if isinstance(before, dict) and isinstance(own, dict) and all(isinstance(key, int) for key in before):
            # Neither JSON nor TOML has numbers for keys.
            own = {int(key) if key.isdecimal() else key: each for key, each in own.items()}
        fields[getattr(type(part), "attribute_map", {}).get(name, name)] = own


def _expect(entry: Known, name: str, part: Any, model_class: Any) -> None:
    if hasattr(part, name):
        return
    text = inspect.getsource(sys.modules[model_class.__module__])
    if re.search(rf"\b{re.escape(name)}\b", text):
        return
    there = [each for each in fields_of(part) if isinstance(each, str)]
    close = difflib.get_close_matches(name, there, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    message = f"fields in {entry.origin}: {type(part).__name__} has no field {name!r}{hint}"
    raise NotSynthesisable(SETTINGS, message)
