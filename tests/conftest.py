"""What several tests need."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ecosystem.releases import release_tree
from tests.ecosystem.wheels import WheelUnavailable


@pytest.fixture(scope="module", autouse=True)
def _collect_garbage() -> Iterator[None]:
    """Give back what the runs of a module left behind, which every forked process would hold as well."""
    yield
    gc.unfreeze()
    gc.collect()


@pytest.fixture(scope="session")
def release() -> Callable[[str], Path]:
    """Return a release's tree by its version; skips the test, and says why, where it cannot be had."""

    def tree(version: str) -> Path:
        try:
            return release_tree(version)
        except WheelUnavailable as error:
            pytest.skip(str(error))

    return tree
