"""What several tests need."""

from __future__ import annotations

import gc
import os
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path

import platformdirs
import pytest

from gclint.rule import all_rules
from tests.ecosystem.releases import release_tree
from tests.ecosystem.wheels import WheelUnavailable

_RUNS_MODELS = re.compile(r"^pytestmark = .*\bpytest\.mark\.torch\b", re.MULTILINE)
_freeze = gc.freeze
_SHARING = {"browser", "precommit", "ray", "releases", "torch", "wheel"}
"""Marks of tests for which something is made that other tests of their file use as well."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled code where that is switched off, as in containers.

    Hundreds of tests start gclint, and each would compile all of it anew.
    ``-p no:cacheprovider``, with which pytest itself keeps nothing from run to run, leaves it as it is.
    """
    if config.pluginmanager.has_plugin("cacheprovider"):
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="of each test run one case in N, at least one",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Keep tests together that share something, and of what is left by ``-m`` take a sample if asked to."""
    names = {item: item.nodeid for item in items}
    for item in items:
        if any(mark.name in _SHARING for mark in item.iter_markers()):
            # With `--dist loadgroup`, one process runs all of its file.
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    yield
    taken = set(sampled((names[item] for item in items), config.getoption("--one-in")))
    config.hook.pytest_deselected(items=[item for item in items if names[item] not in taken])
    items[:] = [item for item in items if names[item] in taken]


def sampled(cases: Iterable[str], every: int) -> Iterator[str]:
    """Yield one in so many cases of each test, rounded up: the first in the order of their checksums."""
    by_test: dict[str, list[str]] = {}
    for case in cases:
        by_test.setdefault(case.partition("[")[0], []).append(case)
    for own in by_test.values():
        yield from sorted(own, key=lambda case: zlib.crc32(case.encode()))[: -(-len(own) // every)]


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
    all_rules()  # With all that each run imports.
    gc.collect()
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let gclint, wherever a test starts it, keep what is the user's in a folder of these tests."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        # pip's downloads stay where they are.
        patch.setenv("PIP_CACHE_DIR", os.environ.get("PIP_CACHE_DIR", platformdirs.user_cache_dir("pip")))
        patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        yield


@pytest.fixture(scope="module", autouse=True)
def _collect_garbage(_freeze_tests: None) -> Iterator[None]:
    """Give back what the runs of a module left behind, which every forked process would hold as well.

    What is left are mostly modules that its tests imported, and nobody has to look through them again.
    """
    yield
    gc.collect()
    _freeze()


@pytest.fixture(scope="session")
def release() -> Callable[[str], Path]:
    """Return a release's tree by its version; skips the test, and says why, where it cannot be had."""

    def tree(version: str) -> Path:
        try:
            return release_tree(version)
        except WheelUnavailable as error:
            pytest.skip(str(error))

    return tree
