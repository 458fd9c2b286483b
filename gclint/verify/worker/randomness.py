"""The sources of random numbers that models draw from."""

from __future__ import annotations

import random

import numpy
import torch


def seed(number: int) -> None:
    """Give every source of random numbers the state that belongs to ``number``."""
    # `torch.manual_seed` notes for each kind of device that is not in use from where it was called.
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    numpy.random.seed(number)
    random.seed(number)
