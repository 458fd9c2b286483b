"""What sound has to be like and what has to come with it, told from an error."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import torch

from gclint.verify.worker.synthesis.failure import Failure
from gclint.verify.worker.synthesis.inputs import make_inputs
from gclint.verify.worker.synthesis.plan import Plan, Situation
from gclint.verify.worker.synthesis.repair_inputs import SWITCHES


def _multiple(situation: Situation, failure: Failure) -> Plan | None:
    """Sound whose length has to be a multiple of something."""
    found = re.search(r"`(\w+)` length (\d+) is not a multiple of (\d+)", failure.message)
    value = make_inputs(situation).get(found[1]) if found else None
    if found is None or not isinstance(value, torch.Tensor):
        return None
    count = -(-int(found[2]) // int(found[3]))
    shape = (*value.shape[:-1], count * int(found[3]))
    return replace(situation.plan, shapes={**situation.plan.shapes, found[1]: shape})


def _unset(situation: Situation, failure: Failure) -> Plan | None:
    """A variable that is set only where an input is given."""
    if not isinstance(failure.error, UnboundLocalError):
        return None
    variables, _ = failure.frames[0]
    names = {name for name in situation.parameters if name in variables and variables[name] is None}
    names -= situation.plan.also | SWITCHES
    return replace(situation.plan, also=situation.plan.also | names) if names else None


REPAIRS: tuple[Any, ...] = (_multiple, _unset)
