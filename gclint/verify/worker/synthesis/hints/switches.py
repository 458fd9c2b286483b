"""Parts that a model only has if the configuration enables them."""

from __future__ import annotations

import re

from gclint.verify.worker.synthesis.configurations.tree import fields_of
from gclint.verify.worker.synthesis.hints.failure import Failure, constructor_of, is_module
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation


def enabled(situation: Situation, failure: Failure) -> Plan | None:
    """An attribute that the constructor only sets if a field of the configuration is true."""
    missing = re.search(r"'\w+' object has no attribute '(\w+)'", failure.message)
    module = getattr(failure.error, "obj", None)
    if missing is None or not is_module(module):
        return None
    source = constructor_of(module)
    for switch in re.finditer(r"^( +)if (?:self\.)?config\.(\w+):\n((?:\1 .*\n|\n)+)", source, re.M):
        owners = [type(part).__name__ for part in situation.parts if fields_of(part).get(switch[2]) is False]
        if f"self.{missing[1]} =" in switch[3] and owners:
            return situation.plan.with_values({(owners[0], switch[2]): True})
    return None
