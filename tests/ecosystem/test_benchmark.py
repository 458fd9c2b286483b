"""The benchmark measures what it says. How much that is, is not for a test to say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import benchmark

_RATIO = r"\d+\.\d\d \(\d+\.\d m?s to \d+\.\d m?s\)"


@pytest.mark.releases
@pytest.mark.nightly
def test_benchmark_prints_ratios_and_targets(
    release: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("lsprotocol")
    release("5.23.0")
    release("4.52.4")
    assert benchmark.main(["--every", "40", "--repeat", "1"]) == 0
    heading, _, *table = capsys.readouterr().out.splitlines()
    assert re.search(r"transformers 5\.23\.0: \d\d files, \d\.\d MB", heading)
    libraries = r"`import libcst, click`"
    expected = [
        rf"CPU time for all files, to `ast\.parse`  +{_RATIO}  +at most 1\.6",
        r"peak memory with one process  +\d+ MB  +under 250 MB",
        rf"CPU time per file, (\d+) files, to that of \1  +{_RATIO}",
        rf"CPU time per file, \d+ files, to that of \d+  +{_RATIO}  +does not grow",
        rf"CPU time per file, \d+ files, to that of \d+  +{_RATIO}  +does not grow",
        rf"time for all files on all cores, to one process  +{_RATIO}  +at most 1\.0",
        rf"CPU time for all files, known, to `ast\.parse`  +{_RATIO}  +at most 0\.03",
        rf"CPU time for all files after an edit of one, to `ast\.parse`  +{_RATIO}",
        rf"time for Llama's file, to {libraries}  +{_RATIO}  +at most 2\.5",
        rf"CPU time for Llama's file, known, to {libraries}  +{_RATIO}  +at most 0\.45",
        rf"CPU time for an edit in the server, to {libraries}  +{_RATIO}  +at most 0\.35",
        rf"the same, until all files that hang on it are checked  +{_RATIO}",
        rf"CPU time for all fixes in 4\.52\.4, to `ast\.parse`  +{_RATIO}  +at most 6\.0",
    ]
    assert len(table) == len(expected)
    for line, pattern in zip(table, expected, strict=True):
        assert re.fullmatch(pattern, line)
