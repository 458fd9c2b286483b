"""What the tests of the cache share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gclint.cache import consulted


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin without a cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def only_settled_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests have written and imported: nothing is kept beside code that changes."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and not _is_settled(Path(path)):
            monkeypatch.delitem(sys.modules, name)


def _is_settled(path: Path) -> bool:
    if not path.exists():
        return False
    status = path.stat()
    return max(status.st_mtime_ns, status.st_ctime_ns) < consulted._BEGAN
