"""The mutants that live, each with the reason why: ``survivors.toml``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

from tests.mutants.drawing import Key

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("survivors.toml")


def reasons(text: str) -> Mapping[Key, str]:
    """Return the reasons that a file gives, by what the mutants are known by."""
    names = {field.name for field in fields(Key)}
    listed = tomllib.loads(text).get("survivor", [])
    return {Key(**{name: each[name] for name in names & each.keys()}): each["reason"] for each in listed}


def entry(key: Key, reason: str = "") -> str:
    """Return what stands in the file for a mutant."""
    said = {name: value for name, value in asdict(key).items() if (name, value) != ("again", 0)}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in said.items()]
    return "\n".join(["[[survivor]]", *lines, f"reason = {json.dumps(reason, ensure_ascii=False)}", ""])
