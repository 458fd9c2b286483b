"""What several tests need."""

from __future__ import annotations

import gc
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from gclint.rule import all_rules
from tests.decisions.reports import Folder
from tests.ecosystem.releases import release_tree
from tests.ecosystem.wheels import WheelUnavailable

_RUNS_MODELS = re.compile(r"^pytestmark = .*\bpytest\.mark\.torch\b", re.MULTILINE)
_freeze = gc.freeze
_SHARES = re.compile(r"scope=\"module\"")
_SHARES_RELEASES = re.compile(r"\breported\(|\brepaired\(")
"""How a test file gets what is made once for each process."""
_OTHERS = {"browser", "precommit", "ray", "releases", "slow", "torch", "wheel"}
"""Marks of tests that plain ``pytest`` leaves out."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled code where that is switched off, as in containers.

    Hundreds of tests start gclint, and each would compile all of it anew.
    ``-p no:cacheprovider``, with which pytest itself keeps nothing from run to run, leaves it as it is.
    """
    if config.pluginmanager.has_plugin("cacheprovider"):
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Put the cases of tests into rings."""
    by_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in by_test.values():
        for own in cases[0].iter_markers("drawn"):
            by_name = {case.nodeid: case for case in cases}
            for name, mark in drawn({name: _marks(case) for name, case in by_name.items()}, **own.kwargs):
                by_name[name].add_marker(mark)
    yield


def drawn(
    cases: Mapping[str, Collection[str]], *, first: int | None = None, full: int | None = None
) -> Iterator[tuple[str, str]]:
    """Yield what puts the cases of a test into rings: a case, and a mark to add to it.

    Args:
        cases: all of them, with the marks that they have.
        first: how many are in the first ring; by default all, or none if plain ``pytest`` leaves them out.
        full: how many are in the first two; all of them by default.
    """
    # Not those at the beginning, which are often of one kind, and the same ones each time.
    order = sorted(cases, key=lambda case: ("first" not in cases[case], zlib.crc32(case.encode())))
    for number, case in enumerate(order):
        is_other = not _OTHERS.isdisjoint(cases[case])
        if first is not None and (number < first) == is_other:
            yield case, "first" if is_other else "slow"
        if full is not None and number >= full:
            yield case, "nightly"


def _marks(item: pytest.Item) -> frozenset[str]:
    return frozenset(mark.name for mark in item.iter_markers())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process run the tests that share something, and whichever has nothing to do the others."""
    from xdist.scheduler import LoadScopeScheduling

    if config.getvalue("dist") != "load":
        return None
    scheduling = LoadScopeScheduling(config, log)
    # Groups of its own, which marks name, have no effect with pytest 9.2.
    scheduling._split_scope = lambda nodeid: shared(config.rootpath / nodeid.partition("::")[0]) or nodeid
    return scheduling


@cache
def shared(path: Path) -> str:
    """Return what tests of a file share, also with those of other files; nothing if they share nothing."""
    text = path.read_text(encoding="utf-8")
    if _SHARES_RELEASES.search(text):
        return "releases"
    return str(path) if _SHARES.search(text) else ""


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
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return an empty folder, the working directory, in which gclint runs in this process."""
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)
