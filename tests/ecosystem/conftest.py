"""What several tests of whole releases need."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.ecosystem.repaired import RELEASES, Repaired, repair

_SMALLEST = "4.57.6"
"""The release with the fewest repairs, which all kinds of tests look at outside of the nightly run."""

each_release = pytest.mark.parametrize(
    "version",
    [each if each == _SMALLEST else pytest.param(each, marks=pytest.mark.nightly) for each in RELEASES],
)
"""Runs a test on each release that is repaired."""


@pytest.fixture(scope="session")
def repaired(
    release: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Repaired]:
    """Return a function that makes all fixes in a copy of a release, once."""

    @cache
    def made(version: str) -> Repaired:
        return repair(version, release(version), tmp_path_factory.mktemp(version), "--unsafe-fixes")

    return made
