"""What several tests need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ecosystem.releases import ReleaseUnavailable, release_tree


@pytest.fixture(scope="session")
def release() -> Callable[[str], Path]:
    """Return a release's tree by its version; skips the test, and says why, where it cannot be had."""

    def tree(version: str) -> Path:
        try:
            return release_tree(version)
        except ReleaseUnavailable as error:
            pytest.skip(str(error))

    return tree
