"""Parts of a model that it only has where the configuration switches them on."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

from torch import nn

from gclint.verify.worker.synthesis.failure import Failure
from gclint.verify.worker.synthesis.plan import Plan, Situation
from gclint.verify.worker.synthesis.tree import fields_of


def switched_on(situation: Situation, failure: Failure) -> Plan | None:
    """An attribute that the constructor only sets if a field of the configuration is true."""
    missing = re.search(r"'\w+' object has no attribute '(\w+)'", failure.message)
    module = getattr(failure.error, "obj", None)
    if missing is None or not isinstance(module, nn.Module):
        return None
    source = inspect.getsource(type(module).__init__)
    for switch in re.finditer(r"^( +)if (?:self\.)?config\.(\w+):\n((?:\1 +.*\n|\n)+)", source, re.M):
        owners = [type(part).__name__ for part in situation.parts if fields_of(part).get(switch[2]) is False]
        if f"self.{missing[1]} =" in switch[3] and owners:
            return replace(situation.plan, values={**situation.plan.values, (owners[0], switch[2]): True})
    return None
