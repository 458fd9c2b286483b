"""Completion in real shells, by the scripts that ``gclint completion`` prints."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which ``gclint`` is the one under test, and a folder with files."""
    tmp_path = tmp_path_factory.mktemp("completion")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gclint"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gclint "$@"\n')
    program.chmod(0o755)
    (tmp_path / "work" / "models").mkdir(parents=True)
    (tmp_path / "work" / "version.py").touch()
    for shell in ("bash", "zsh", "fish"):
        script = subprocess.run([program, "completion", shell], capture_output=True, text=True, check=True)
        assert script.stderr == ""
        (tmp_path / f"gclint.{shell}").write_text(script.stdout)
    return {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }


_LINES = [
    ("gclint ", {"check", "verify", "rules", "config", "completion"}, {"--fix"}),
    ("gclint ver", {"verify"}, {"rules"}),
    ("gclint --extend-", {"--extend-select", "--extend-exclude"}, {"--fix", "check"}),
    ("gclint --output-format s", {"sarif"}, {"json"}),
    ("gclint config --per", {"--per-file-ignores"}, {"--fix"}),
    ("gclint completion ", {"bash", "zsh", "fish"}, {"check"}),
    ("gclint verify merge --out", {"--output-format", "--output-file"}, {"--scenario"}),
]


def _run(command: list[str], environment: dict[str, str]) -> str:
    folder = Path(environment["HOME"]) / "work"
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash(environment: dict[str, str]) -> None:
    for line, among, not_among in _LINES:
        words = line.split(" ")
        quoted = " ".join(map(shlex.quote, words))
        script = (
            f"source ~/gclint.bash 2>/dev/null; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
            "compopt() { :; }; _gclint_completion gclint; printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        found = set(_run(["bash", "--norc", "-c", script], environment).split("\n"))
        assert among <= found, line
        assert not not_among & found, line


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh(environment: dict[str, str]) -> None:
    for line, among, not_among in _LINES:
        words = line.split(" ")
        script = (
            "compdef() { :; }; compadd() { print -rl -- ${(P)@[-1]} }; _describe() { print -rl -- ${(P)3} }; "
            "_path_files() { :; }; source ~/gclint.zsh; "
            f"words=({' '.join(map(shlex.quote, words))}); CURRENT={len(words)}; _gclint_completion"
        )
        printed = _run(["zsh", "-f", "-c", script], environment)
        found = {each.partition(":")[0] for each in printed.split("\n")}
        assert among <= found, line
        assert not not_among & found, line


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish(environment: dict[str, str]) -> None:
    for line, among, not_among in _LINES:
        script = f"source ~/gclint.fish; complete --do-complete {shlex.quote(line)}"
        printed = _run(["fish", "--no-config", "-c", script], environment)
        found = {each.partition("\t")[0] for each in printed.split("\n")}
        assert among <= found, line
        assert not not_among & found, line
