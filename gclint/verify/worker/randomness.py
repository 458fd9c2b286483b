"""The random generators that models use."""

from __future__ import annotations

import random
from typing import Any

import numpy
import torch


def seed(number: int) -> None:
    """Seed every random generator with ``number``."""
    seed_torch(number)
    numpy.random.seed(number)
    random.seed(number)


def seed_torch(number: int) -> None:
    """Seed torch's random generators with ``number``."""
    # `torch.manual_seed` records the call stack for each kind of device that is not in use.
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)


def random_states() -> tuple[Any, ...]:
    """Return the states of every random generator."""
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    return random.getstate(), numpy.random.get_state(), torch.get_rng_state(), on_gpus


def restore_random(states: tuple[Any, ...]) -> None:
    """Put every random generator back into the state that it had."""
    random.setstate(states[0])
    numpy.random.set_state(states[1])
    torch.set_rng_state(states[2])
    if states[3] is not None and not torch.cuda._is_in_bad_fork():
        torch.cuda.set_rng_state_all(states[3])
