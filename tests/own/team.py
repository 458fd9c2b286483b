"""A rule of a team, and gclint run with it in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.environment import PROJECT
from tests.terminal import Outcome

Run = Callable[..., Outcome]
"""Runs gclint with arguments."""

RULE = '''\
"""Rules of a team."""

import os

from gclint.finding import Applicability, Edit, Finding, Fix, Refusal
from gclint.level import Level
from gclint.rule import Rule, Setting

if "GCLINT_TEST_MARKER" in os.environ:
    open(os.environ["GCLINT_TEST_MARKER"], "a").close()


class TwoLayers(Rule):
    """Two layers are too few."""

    code = "ACM001"
    name = "two-layers"
    level = Level.WARNING
    fixes = (Applicability.SAFE,)

    def check(self, network):
        at = network.file.text.find("num_hidden_layers=2")
        if at >= 0:
            edit = Edit(network.file.path, at + 18, at + 19, "3")
            span, fix = (at, at + 19), Fix("Take three", (edit,))
            yield self.finding("two are too few", network.file.path, span, "SampleConfig", fix)
'''
FINDING = "modeling_sample.py:11:40: warning: ACM001 two are too few [*]"


def run(*arguments: str | Path, **variables: str) -> Outcome:
    """Run gclint in another process, as ``python -m gclint``."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), **variables}
    command = [sys.executable, "-m", "gclint", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    return Outcome(done.returncode, done.stdout, done.stderr)


def distribution(folder: Path, name: str, points: str) -> None:
    """Let a folder have an installed package with entry points for rules, as far as its metadata says."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[gclint.rules]\n{points}\n")
