"""Special tokens of a small vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gclint.verify.worker.synthesis.configurations.fields import Unit, kind_of
from gclint.verify.worker.synthesis.configurations.tree import fields_of, own_fields

_PLACEHOLDER = re.compile(r"(image|video|audio|speech)_token_(id|index)")


def remap_tokens(parts: list[Any], vocabulary: int) -> None:
    """Give the special tokens of all ``parts`` ids below ``vocabulary``.

    Equal ids stay equal and different ones stay different, across all sub-configurations.
    """
    values = sorted(special_tokens(parts))
    new_ids: dict[int, int] = {}
    free = iter(number for number in range(vocabulary - 1, 0, -1) if number not in values)
    for token in values:
        new_ids[token] = token if token < vocabulary // 2 else next(free, token % vocabulary)
    _fill_placeholders(parts, free)
    for part in parts:
        fields = fields_of(part)
        for name, value in token_fields(part):
            if isinstance(value, int):
                fields[name] = new_ids.get(value, value)
            elif isinstance(value, list | tuple) and _ids(value):
                fields[name] = type(value)(new_ids.get(each, each) for each in value)
        if fields.get("vocab_size", 0) is None:
            fields["vocab_size"] = vocabulary
        if fields.get("vocab_size") and fields.get("pad_token_id", 0) is None:
            # Classification of a batch looks for padding, and fails without such a token.
            fields["pad_token_id"] = 0


def _fill_placeholders(parts: list[Any], free: Iterator[int]) -> None:
    """Give an id to each placeholder that has none, the same one under the same name."""
    given: dict[str, int] = {}
    for part in parts:
        for name, value in own_fields(part):
            if value is None and _PLACEHOLDER.fullmatch(name):
                given.setdefault(name, next(free, 1))
                fields_of(part)[name] = given[name]


def token_fields(part: Any) -> list[tuple[str, Any]]:
    """Return the fields of ``part`` that hold ids of tokens."""
    return [
        (name, value)
        for name, value in own_fields(part)
        if kind_of(name) is Unit.TOKEN and value is not None and not isinstance(value, bool)
    ]


def special_tokens(parts: list[Any]) -> set[int]:
    """Return the ids of all special tokens in ``parts``."""
    return {token for part in parts for _, value in token_fields(part) for token in _ids(value)}


def _ids(value: Any) -> list[int]:
    if isinstance(value, int):
        return [value] if value >= 0 else []
    if isinstance(value, list | tuple):
        return [each for each in value if isinstance(each, int) and not isinstance(each, bool) and each >= 0]
    return []
