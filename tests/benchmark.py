"""How fast gclint is, measured in one run over the same files: ``python3 -m tests.benchmark``.

Times depend on the machine, so what counts are ratios: to parsing the files with ``ast``, and to
starting Python with the libraries that gclint stands on. Needs a system that tells what a process
has used (not Windows), an otherwise idle machine, and two releases of transformers, which are fetched.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gclint import __version__
from tests.ecosystem.releases import copy_of_release, release_tree
from tests.ecosystem.wheels import WheelUnavailable

_RELEASE = "5.23.0"
_SWEPT = "4.52.4"
"""The release with the most to repair."""
_MODELS = "transformers/models"
_TYPICAL_FILE = f"{_MODELS}/llama/modeling_llama.py"
_PARSE = """
import ast, sys, time
texts = [open(path, encoding="utf-8").read() for path in sys.argv[1:]]
begin = time.process_time()
for text in texts:
    ast.parse(text)
print(time.process_time() - begin)
"""
"""Measures itself, so that neither Python's start nor reading the files counts as parsing."""
_LIBRARIES = "import libcst, click"


@dataclass(frozen=True)
class _Usage:
    """What a process used: seconds on processors and on the clock, and megabytes."""

    cpu: float
    wall: float
    memory: float
    output: str


@dataclass(frozen=True)
class _Part:
    """Every n-th file: so the parts are alike but for their size."""

    files: Sequence[str]
    parse: float
    cpu: float
    memory: float

    @property
    def cpu_per_file(self) -> float:
        return self.cpu / len(self.files)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table; return 0 unless nothing could be measured."""
    options = _options(arguments)
    try:
        tree, swept = release_tree(_RELEASE), release_tree(_SWEPT)
    except WheelUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    files = _modeling_files(tree)[:: options.every]
    size = sum((tree / name).stat().st_size for name in files) / 1e6
    print(
        f"gclint {__version__} on transformers {_RELEASE}: {len(files)} files, {size:.1f} MB; "
        f"Python {platform.python_version()}; best of {options.repeat}\n"
    )
    _use(tree, *_gclint(_TYPICAL_FILE))  # Leaves compiled modules behind, as an installation has them.
    parts = [_measure(tree, files[::share], options.repeat) for share in (4, 2, 1)]
    typical = _row_of_one_file(tree, options.repeat)
    sweep = _row_of_sweep(swept, _modeling_files(swept)[:: options.every], options.repeat)
    _print_table([*_rows_of_all_files(parts[-1]), typical, sweep, *_rows_of_parts(parts)])
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.benchmark", description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th file only")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="measure N times, take the best")
    return parser.parse_args(arguments)


def _modeling_files(tree: Path) -> list[str]:
    paths = [path for name in ("modeling_*.py", "modular_*.py") for path in (tree / _MODELS).rglob(name)]
    return sorted(path.relative_to(tree).as_posix() for path in paths)


def _gclint(*paths: str) -> list[str]:
    return ["-m", "gclint", "--exit-zero", *paths]


def _measure(tree: Path, files: Sequence[str], repeat: int) -> _Part:
    """Parse and check files, by turns: so a machine that slows down slows down both."""
    parse, check = [], []
    for _ in range(repeat):
        parse.append(float(_use(tree, "-W", "ignore", "-c", _PARSE, *files).output))
        check.append(_use(tree, *_gclint(*files)))
    return _Part(files, min(parse), min(use.cpu for use in check), max(use.memory for use in check))


def _row_of_one_file(tree: Path, repeat: int) -> tuple[str, str, str]:
    check, libraries = [], []
    for _ in range(3 * repeat):
        check.append(_use(tree, *_gclint(_TYPICAL_FILE)).wall)
        libraries.append(_use(tree, "-c", _LIBRARIES).wall)
    return f"time for Llama's file, to `{_LIBRARIES}`", _ratio(min(check), min(libraries)), "at most 2.5"


def _row_of_sweep(tree: Path, files: Sequence[str], repeat: int) -> tuple[str, str, str]:
    """Repair files, each time in a new copy of the release."""
    parse, repair = [], []
    for _ in range(repeat):
        parse.append(float(_use(tree, "-W", "ignore", "-c", _PARSE, *files).output))
        with tempfile.TemporaryDirectory() as folder:
            copy = copy_of_release(_SWEPT, Path(folder)).parent
            repair.append(_use(copy, *_gclint("--fix", "--unsafe-fixes", *files)).cpu)
    return (
        f"CPU time for all fixes in {_SWEPT}, to `ast.parse`",
        _ratio(min(repair), min(parse)),
        "at most 6.0",
    )


def _rows_of_all_files(part: _Part) -> list[tuple[str, str, str]]:
    return [
        ("CPU time for all files, to `ast.parse`", _ratio(part.cpu, part.parse), "at most 2.0"),
        ("peak memory", f"{part.memory:.0f} MB", "under 400 MB"),
    ]


def _rows_of_parts(parts: Sequence[_Part]) -> list[tuple[str, str, str]]:
    smallest = parts[0]
    return [
        (
            f"CPU time per file, {len(part.files)} files, to that of {len(smallest.files)}",
            _ratio(part.cpu_per_file, smallest.cpu_per_file),
            "" if part is smallest else "does not grow",
        )
        for part in parts
    ]


def _ratio(measured: float, base: float) -> str:
    unit, factor = ("s", 1) if measured >= 1 else ("ms", 1000)
    return f"{measured / base:.2f} ({measured * factor:.1f} {unit} to {base * factor:.1f} {unit})"


def _print_table(rows: Sequence[tuple[str, str, str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _use(tree: Path, *arguments: str) -> _Usage:
    """Run Python in ``tree``, and return what it and its children used."""
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=tree, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments[:3]} failed with status {process.returncode}")
    # macOS counts bytes here, every other system kilobytes.
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return _Usage(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / scale, output)


if __name__ == "__main__":
    raise SystemExit(main())
