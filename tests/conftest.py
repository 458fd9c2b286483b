"""What several tests need."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ecosystem.releases import release_tree
from tests.ecosystem.wheels import WheelUnavailable

_RUNS_MODELS = re.compile(r"^pytestmark = .*\bpytest\.mark\.torch\b", re.MULTILINE)


class _LeftOut(pytest.Module):
    """A module of tests that is not imported."""

    def collect(self) -> Iterator[pytest.Item]:
        return iter(())


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Leave out what only runs models where no test does, whatever is asked for by its name.

    To import it is to import torch, which is larger than all the rest: each process that a test forks would
    take it along, and each collection of garbage would go through it.
    """
    marks, arguments = parent.config.getoption("markexpr"), parent.config.args
    is_without = "not torch" in marks.split(" and ") and " or " not in marks
    if not is_without or not all(Path(each).is_dir() for each in arguments):
        return None
    if _RUNS_MODELS.search(module_path.read_text(encoding="utf-8")) is None:
        return None
    left_out: pytest.Module = _LeftOut.from_parent(parent, path=module_path)
    return left_out


@pytest.fixture(scope="session", autouse=True)
def _freeze_tests() -> Iterator[None]:
    """Let no collection of garbage go through all the tests, and what runs leave behind stay garbage."""
    gc.collect()
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def _collect_garbage(_freeze_tests: None) -> Iterator[None]:
    """Give back what the runs of a module left behind, which every forked process would hold as well."""
    yield
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
