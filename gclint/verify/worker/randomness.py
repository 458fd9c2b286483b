"""The random generators that models use."""

from __future__ import annotations

import random

import numpy
import torch


def seed(number: int) -> None:
    """Seed every random generator with ``number``."""
    # `torch.manual_seed` records the call stack for each kind of device that is not in use.
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    numpy.random.seed(number)
    random.seed(number)
