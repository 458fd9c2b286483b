"""What the table of releases says of the base class."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gclint.releases import EVER_NEUTRALISED, releases

_LATER = {"use_cache", "past_key_values", "layer_past"}
_FIRST = {*_LATER, "past_key_value"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("4.51.3", None),
        ("4.52.0", set()),
        ("4.53.0", _FIRST),
        ("4.57.99", _FIRST),
        ("5.0.0rc1", _FIRST),
        ("5.16.4", _FIRST),
        ("5.17", _LATER),
        ("6.0.0.dev0", _LATER),
    ],
)
def test_a_release_has_the_base_class_of_the_last_change(version: str, expected: set[str] | None) -> None:
    found = releases(version)
    assert found.have_base_class is (expected is not None)
    assert {each for each in EVER_NEUTRALISED if found.neutralise_somewhere(each)} == (expected or set())


def test_what_one_release_neutralises_counts_for_all() -> None:
    assert EVER_NEUTRALISED == _FIRST


def test_the_table_and_the_names_of_caches_need_nothing_but_python() -> None:
    code = "import gclint.releases, gclint.verify.worker.scenarios, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"torch", "transformers", "libcst", "numpy"}.isdisjoint(modules.split())
