"""Pairs of Python, transformers and torch that exist, on one sample: ``python3 -m tests.verify.matrix``.

Makes each environment from PyPI in ``.cache/matrix``, runs ``gclint verify`` there on models that stand for
their kinds, and compares the outcomes with those of the first pair that has the same release of transformers.
The interpreters are those below ``~/.pyenv`` and those on the path, as ``python3.10`` and the like; a pair
whose interpreter or packages cannot be had is named.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gclint.verify.results_file import read
from gclint.verify.worker.protocol import ClassResult
from tests.environment import CACHE, PROJECT, python_of

SAMPLE = (
    "bert",  # an encoder with heads
    "gpt2",  # Conv1D, a positional cache
    "llama",
    "t5",  # an encoder and a decoder that share a class
    "whisper",
    "vit",
    "swin",  # a pyramid
    "resnet",  # running statistics
    "wav2vec2",
    "mamba",
    "mixtral",  # experts
    "clip",
    "llava",
    "detr",  # a backbone
    "mllama",  # cross-attention
)
"""Models that stand for their kinds."""


@dataclass(frozen=True)
class Pair:
    """What is installed together."""

    python: str
    transformers: str
    torch: str = ""
    """The newest, if nothing."""

    @property
    def name(self) -> str:
        """How the pair is called, and its folder."""
        return f"python{self.python}-transformers{self.transformers}-torch{self.torch or 'newest'}"

    @property
    def requirements(self) -> tuple[str, ...]:
        """What to give to ``pip install``."""
        torch = f"torch=={self.torch}" if self.torch else "torch"
        return (torch, f"transformers=={self.transformers}")


PAIRS = (
    Pair("3.10", "4.57.6", "2.6.0"),
    Pair("3.11", "5.23.0"),
    Pair("3.12", "5.23.0"),
    Pair("3.13", "5.23.0"),
    Pair("3.14", "5.23.0"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sample in each pair; return 1 if outcomes differ, and 2 if no pair could be run."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.verify.matrix", description=__doc__)
    parser.add_argument("pairs", nargs="*", help="Pythons of the pairs to run, such as 3.10; none means all")
    parser.add_argument("--jobs", default="1")
    options = parser.parse_args(arguments)
    found: dict[Pair, dict[str, str]] = {}
    for pair in PAIRS:
        if options.pairs and pair.python not in options.pairs:
            continue
        try:
            found[pair] = _outcomes(_verified(pair, _environment(pair), options.jobs))
        except _Unavailable as error:
            print(f"{pair.name}: not run: {error}", flush=True)
            continue
        counts = {each: list(found[pair].values()).count(each) for each in ("passed", "failed", "not run")}
        print(f"{pair.name}: {', '.join(f'{count} {each}' for each, count in counts.items())}", flush=True)
    differences = list(_differences(found))
    print("\n".join(differences))
    return 2 if not found else int(bool(differences))


class _Unavailable(Exception):
    """A pair cannot be had here; the message says why."""


def _environment(pair: Pair) -> Path:
    """Return the Python of an environment with the pair."""
    interpreter = _interpreter(pair.python)
    folder = CACHE / "matrix" / pair.name
    stamp = folder / "complete"
    if not stamp.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        python = python_of(folder)
        commands = (
            [str(interpreter), "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *pair.requirements],
        )
        for command in commands:
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode:
                raise _Unavailable((run.stderr.strip() or "pip failed").splitlines()[-1])
        stamp.touch()
    return python_of(folder)


def _interpreter(version: str) -> Path:
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    if installed:
        return installed[-1]
    found = shutil.which(f"python{version}")
    if found is None:
        raise _Unavailable(f"there is no Python {version} here")
    return Path(found)


def _verified(pair: Pair, python: Path, jobs: str) -> list[ClassResult]:
    results = CACHE / "matrix" / f"{pair.name}.jsonl"
    models = [word for name in SAMPLE for word in ("--model", name)]
    command = [sys.executable, "-m", "gclint", "verify", "--python", str(python), *models]
    options = ["--results", str(results), "--device", "cpu", "--jobs", jobs]
    run = subprocess.run([*command, *options], cwd=PROJECT, capture_output=True, text=True)
    if run.returncode not in (0, 1, 2):
        raise _Unavailable(f"gclint verify ended with {run.returncode}: {run.stderr.strip()[-300:]}")
    return read(results)[1].sorted()


def _outcomes(results: Sequence[ClassResult]) -> dict[str, str]:
    return {f"{Path(each.source).parent.name}.{each.name}": each.outcome for each in results}


def _differences(found: dict[Pair, dict[str, str]]) -> Iterator[str]:
    """Yield the classes that end otherwise with the same release; what has no such pair is not compared."""
    for pair, outcomes in found.items():
        first = next(each for each in found if each.transformers == pair.transformers)
        for name in sorted(outcomes.keys() | found[first].keys()):
            if outcomes.get(name) != found[first].get(name):
                ends = f"{outcomes.get(name)}, and in {first.name} {found[first].get(name)}"
                yield f"{name}: in {pair.name} {ends}"


if __name__ == "__main__":
    raise SystemExit(main())
