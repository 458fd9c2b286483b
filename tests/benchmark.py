"""How fast gclint is, measured in one run over the same files: ``python3 -m tests.benchmark``.

Times depend on the machine, so what counts are ratios: to parsing the files with ``ast``, and to
starting Python with the libraries that gclint stands on. What is compared is run by turns, and of the
ratios of all pairs the median counts, so that what else the machine does comes to both. Needs a system
that tells what a process has used (not Windows), and two releases of transformers, which are fetched.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

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
_TYPE = """
import sys, time
from pathlib import Path
from lsprotocol.types import TextDocumentContentChangeWholeDocument
from gclint.rule import selected_rules
from gclint.server.session import Session
from gclint.settings import Settings

settings = Settings()
session = Session(lambda _path: (settings, selected_rules(settings)), "utf-16", [Path().absolute()])
path = Path(sys.argv[1]).absolute()
text = path.read_text(encoding="utf-8")
session.open(path.as_uri(), "python", 0, text)
while session.is_busy:
    session.work()
list(session.news())
for version in range(1, 1 + int(sys.argv[2])):
    edited = text.replace("import torch", f"import torch  # {version}", 1)
    begin = time.process_time()
    session.change(path.as_uri(), version, [TextDocumentContentChangeWholeDocument(edited)])
    while not session.work():
        pass
    list(session.news())
    shown = time.process_time() - begin
    while session.is_busy:
        session.work()
    list(session.news())
    print(shown, time.process_time() - begin)
"""
"""Edits a file of a folder that the server knows, and measures each time how long it works on that: until
the file's findings are shown, and until those in all files that hang on it are."""
_LIBRARIES = "import libcst, click"
_MEGABYTE = 1e6

Row = tuple[str, str, str]
"""What is measured, the figure, and what it should be."""


@dataclass(frozen=True)
class _Usage:
    """What a process used: seconds on processors and on the clock, and megabytes."""

    cpu: float
    wall: float
    memory: float
    output: str


@dataclass(frozen=True)
class _Pairs:
    """What was measured by turns, and what it is compared with."""

    measured: Sequence[float]
    base: Sequence[float]

    def __str__(self) -> str:
        """Return the median of the ratios, and the medians of both sides."""
        ratio = median(one / other for one, other in zip(self.measured, self.base, strict=True))
        measured, base = median(self.measured), median(self.base)
        unit, factor = ("s", 1) if measured >= 1 else ("ms", 1000)
        return f"{ratio:.2f} ({measured * factor:.1f} {unit} to {base * factor:.1f} {unit})"


@dataclass(frozen=True)
class _Bench:
    """A release, the files in it that are checked, and how often each measurement is made."""

    tree: Path
    files: Sequence[str]
    repeat: int

    def parse(self) -> float:
        return float(_use(self.tree, "-W", "ignore", "-c", _PARSE, *self.files).output)

    def pairs(self, measure: Callable[[], float], base: Callable[[], float], times: int = 1) -> _Pairs:
        measured, other = [], []
        for _ in range(times * self.repeat):
            other.append(base())
            measured.append(measure())
        return _Pairs(measured, other)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table as it comes about; return 0 unless nothing could be measured."""
    options = _options(arguments)
    try:
        tree, swept = release_tree(_RELEASE), release_tree(_SWEPT)
    except WheelUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        # The releases themselves stay as they are: nothing is cached beside them, and nothing is edited.
        copy = copy_of_release(_RELEASE, Path(folder)).parent
        bench = _Bench(copy, _modeling_files(copy)[:: options.every], options.repeat)
        size = sum((tree / name).stat().st_size for name in bench.files) / _MEGABYTE
        print(
            f"gclint {__version__} on transformers {_RELEASE}: {len(bench.files)} files, {size:.1f} MB; "
            f"Python {platform.python_version()}; medians of {options.repeat} pairs\n"
        )
        for row in (*_rows(bench), *_rows_of_sweep(swept, options.every, options.repeat)):
            print("  ".join((row[0].ljust(62), row[1].ljust(36), row[2])).rstrip(), flush=True)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.benchmark", description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th file only")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measure N pairs, take the median")
    return parser.parse_args(arguments)


def _modeling_files(tree: Path) -> list[str]:
    paths = [path for name in ("modeling_*.py", "modular_*.py") for path in (tree / _MODELS).rglob(name)]
    return sorted(path.relative_to(tree).as_posix() for path in paths)


def _gclint(*arguments: str) -> list[str]:
    return ["-m", "gclint", "--exit-zero", *arguments]


def _rows(bench: _Bench) -> Iterator[Row]:
    _use(bench.tree, *_gclint("--no-cache", _TYPICAL_FILE))  # Leaves compiled modules, as installations do.
    yield from _rows_of_cold_runs(bench)
    yield from _rows_of_known_files(bench)
    yield from _rows_of_one_file(bench)


# -- all files


def _rows_of_cold_runs(bench: _Bench) -> Iterator[Row]:
    memory: list[float] = []
    costs: list[float] = []

    def cold() -> float:
        used = _use(bench.tree, *_gclint("--no-cache", "--jobs", "1", *bench.files))
        memory.append(used.memory)
        costs.append(used.cpu)
        return used.cpu

    yield "CPU time for all files, to `ast.parse`", str(bench.pairs(cold, bench.parse)), "at most 1.6"
    yield "peak memory with one process", f"{median(memory):.0f} MB", "under 250 MB"
    yield from _rows_of_parts(bench, median(costs))

    def wall(*options: str) -> float:
        return _use(bench.tree, *_gclint("--no-cache", *options, *bench.files)).wall

    pairs = bench.pairs(wall, lambda: wall("--jobs", "1"))
    yield "time for all files on all cores, to one process", str(pairs), "at most 1.0"


def _rows_of_parts(bench: _Bench, whole: float) -> Iterator[Row]:
    """Every n-th file: so the parts are alike but for their size."""
    smallest = bench.files[::4]
    base = _cost_per_file(bench, smallest)
    for files in (smallest, bench.files[::2], bench.files):
        cost = whole / len(files) if files is bench.files else _cost_per_file(bench, files)
        cost = base if files is smallest else cost
        what = f"CPU time per file, {len(files)} files, to that of {len(smallest)}"
        yield what, str(_Pairs([cost], [base])), "" if files is smallest else "does not grow"


def _cost_per_file(bench: _Bench, files: Sequence[str]) -> float:
    runs = (_use(bench.tree, *_gclint("--no-cache", "--jobs", "1", *files)).cpu for _ in range(bench.repeat))
    return median(runs) / len(files)


def _rows_of_known_files(bench: _Bench) -> Iterator[Row]:
    def warm() -> float:
        return _use(bench.tree, *_gclint("--jobs", "1", *bench.files)).cpu

    warm()  # Finds out what is known from now on.
    yield "CPU time for all files, known, to `ast.parse`", str(bench.pairs(warm, bench.parse)), "at most 0.03"
    edited = bench.tree / (_TYPICAL_FILE if _TYPICAL_FILE in bench.files else bench.files[0])

    def after_edit() -> float:
        with edited.open("a", encoding="utf-8") as file:
            file.write("# edited\n")
        return warm()

    pairs = bench.pairs(after_edit, bench.parse)
    yield "CPU time for all files after an edit of one, to `ast.parse`", str(pairs), ""


# -- one file


def _rows_of_one_file(bench: _Bench) -> Iterator[Row]:
    def libraries() -> _Usage:
        return _use(bench.tree, "-c", _LIBRARIES)

    def cold() -> float:
        return _use(bench.tree, *_gclint("--no-cache", _TYPICAL_FILE)).wall

    pairs = bench.pairs(cold, lambda: libraries().wall, times=3)
    yield f"time for Llama's file, to `{_LIBRARIES}`", str(pairs), "at most 2.5"

    def known() -> float:
        return _use(bench.tree, *_gclint(_TYPICAL_FILE)).cpu

    known()
    pairs = bench.pairs(known, lambda: libraries().cpu, times=3)
    yield f"CPU time for Llama's file, known, to `{_LIBRARIES}`", str(pairs), "at most 0.45"
    if find_spec("lsprotocol") is None:
        return
    output = _use(bench.tree, "-c", _TYPE, _TYPICAL_FILE, str(3 * bench.repeat)).output
    edits = [tuple(map(float, line.split())) for line in output.splitlines()]
    base = [libraries().cpu for _ in edits]
    shown, settled = (str(_Pairs(each, base)) for each in zip(*edits, strict=True))
    yield f"CPU time for an edit in the server, to `{_LIBRARIES}`", shown, "at most 0.35"
    yield "the same, until all files that hang on it are checked", settled, ""


# -- repairs


def _rows_of_sweep(tree: Path, every: int, repeat: int) -> Iterator[Row]:
    """Repair files, each time in a new copy of the release."""
    bench = _Bench(tree, _modeling_files(tree)[::every], repeat)

    def repair() -> float:
        with tempfile.TemporaryDirectory() as folder:
            copy = copy_of_release(_SWEPT, Path(folder)).parent
            fixing = ("--no-cache", "--jobs", "1", "--fix", "--unsafe-fixes")
            return _use(copy, *_gclint(*fixing, *bench.files)).cpu

    pairs = bench.pairs(repair, bench.parse)
    yield f"CPU time for all fixes in {_SWEPT}, to `ast.parse`", str(pairs), "at most 6.0"


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
