"""What the table of releases says of the base class."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gclint.releases import EVER_NEUTRALISED, base_class


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("4.51.3", None),
        ("4.52.0", (4, 52)),
        ("4.53.0", (4, 53)),
        ("4.100.0", (4, 53)),
        ("5.0.0rc1", (4, 53)),
        ("5.16.4", (4, 53)),
        ("5.17", (5, 17)),
        ("6.0.0.dev0", (5, 17)),
    ],
)
def test_a_release_has_the_base_class_of_the_last_change(version: str, since: tuple[int, int] | None) -> None:
    found = base_class(version)
    assert (found and found.since) == since


def test_what_one_release_neutralises_counts_for_all() -> None:
    before, after = base_class("4.57.6"), base_class("5.17.0")
    assert before is not None
    assert after is not None
    assert before.neutralised - after.neutralised == {"past_key_value"}
    assert after.neutralised < EVER_NEUTRALISED


@pytest.mark.parametrize("version", ["", "five", "5", "v5.0"])
def test_what_is_not_a_version_has_no_base_class(version: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        base_class(version)


def test_the_table_and_the_names_of_caches_need_nothing_but_python() -> None:
    code = "import gclint.releases, gclint.verify.worker.scenarios, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"torch", "transformers", "libcst", "numpy"}.isdisjoint(modules.split())
