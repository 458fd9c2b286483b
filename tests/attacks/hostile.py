"""A repository in which everything is a trap, and gclint run in it under Python's own audit events."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.attacks.audited import STARTED
from tests.cache.shell import OWN

_MODULES = (
    *("click", "gclint", "json", "libcst", "multiprocessing", "pip", "platformdirs", "re", "rich", "rules"),
    *("sitecustomize", "torch", "transformers", "typing_extensions", "usercustomize", "venv", "conftest"),
)
"""Modules of the repository that bear the names of what gclint, Python and git hooks import."""

_SECONDS = 20
"""Of CPU time for a run, which needs one or two."""

_PROGRAM = Path(__file__).with_name("audited.py")


@dataclass(frozen=True)
class Audited:
    """What a run did."""

    status: int
    output: str
    errors: str
    touched: tuple[tuple[str, str], ...]
    """What was written, removed, made or renamed: the event and the path."""
    started: tuple[str, ...]
    """The programs that were started."""


@dataclass(frozen=True)
class Trap:
    """A hostile repository, and what lies around it."""

    repository: Path
    outside: Path
    """Files of the user that nothing may touch."""
    marks: Path
    """A folder in which each module or program of the repository leaves a file when it runs."""
    user: Path
    """The home of the user."""

    def state(self) -> dict[str, tuple[bytes, int]]:
        """Return the content and the time of each file that nothing may touch."""
        files = (each for each in self.outside.rglob("*") if each.is_file())
        return {str(each): (each.read_bytes(), each.stat().st_mtime_ns) for each in files}

    def run(self, *arguments: str, variables: Mapping[str, str] | None = None) -> Audited:
        """Run gclint in the repository."""
        log = self.user / "events"
        log.write_bytes(b"")
        done = subprocess.run(
            [sys.executable, _PROGRAM, log, *arguments],
            cwd=self.repository,
            env={**self._variables(), **(variables or {})},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            preexec_fn=_limit,
        )
        events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        return Audited(
            done.returncode,
            done.stdout,
            done.stderr,
            tuple((name, path) for name, paths in events if name != STARTED for path in paths),
            tuple(paths[0] for name, paths in events if name == STARTED),
        )

    def _variables(self) -> dict[str, str]:
        inherited = {name: each for name, each in os.environ.items() if not name.startswith("PYTHON")}
        return {
            **inherited,
            "HOME": str(self.user),
            "XDG_CACHE_HOME": str(self.user / "cache"),
            "XDG_STATE_HOME": str(self.user / "state"),
            "TMPDIR": str(self.user / "tmp"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))


def trap(folder: Path) -> Trap:
    """Make a hostile repository in an empty folder."""
    made = Trap(*(folder / name for name in ("repository", "outside", "marks", "user")))
    for each in (made.repository, made.outside, made.marks, made.user, made.user / "tmp"):
        each.mkdir()
    _fill_outside(made.outside)
    root = made.repository
    (root / "modeling_own.py").write_text(OWN, encoding="utf-8")
    for name in _MODULES:
        (root / f"{name}.py").write_text(f"open({str(made.marks / name)!r}, 'w').close()\n", encoding="utf-8")
    _plant_links(root, made.outside)
    _plant_settings(root, made.outside)
    _plant_git(root, made.marks)
    return made


def _fill_outside(outside: Path) -> None:
    (outside / "victims").mkdir()
    for number in range(70):  # More than a cache keeps.
        (outside / "victims" / f"{number}.json").write_text("{}", encoding="utf-8")
    for name in ("old.tmp", "runs.jsonl", f".gclint-fix-{'0' * 16}.tmp"):
        (outside / "victims" / name).write_text("precious\n", encoding="utf-8")
        os.utime(outside / "victims" / name, (0, 0))
    (outside / "modeling_victim.py").write_text(OWN, encoding="utf-8")
    (outside / "library" / "transformers").mkdir(parents=True)
    (outside / "library" / "transformers" / "__init__.py").write_text(
        '__version__ = "4.57.6"\n', encoding="utf-8"
    )
    base = "class PreTrainedModel:\n    pass\n"
    (outside / "library" / "transformers" / "modeling_utils.py").write_text(base, encoding="utf-8")
    (outside / "secret").write_text("password = 'hunter2'\n", encoding="utf-8")


def _plant_links(root: Path, outside: Path) -> None:
    for link, target in (
        (".gclint_cache/gclint", outside / "victims"),
        (".gclint/repairs", outside / "victims"),
        ("modeling_link.py", outside / "modeling_victim.py"),
        ("modeling_secret.py", outside / "secret"),
        ("linked", outside),
        ("baseline.json", outside / "secret"),
        ("summary.md", outside / "secret"),
        ("report.sarif", outside / "secret"),
    ):
        (root / link).parent.mkdir(exist_ok=True)
        (root / link).symlink_to(target)
    journal = {
        "machine": "",
        "process": 0,
        "homes": ["."],
        "units": [
            [
                {
                    "target": str(outside / name),
                    "temporary": str(outside / "victims" / "0.json"),
                    "digests": ["", ""],
                    "sizes": None,
                }
                for name in ("modeling_victim.py", "secret")
            ]
        ],
    }
    (root / ".gclint-fix").write_bytes(b"gclint fix journal 1\n" + json.dumps(journal).encode() + b"\n")
    (root / f".gclint-fix-{'1' * 16}.tmp").symlink_to(outside / "secret")


def _plant_settings(root: Path, outside: Path) -> None:
    settings = {
        "cache-dir": outside / "victims",
        "baseline": outside / "secret",
        "library": outside / "library",
    }
    lines = [f'{name} = "{path}"' for name, path in settings.items() if name != "baseline"]
    lines.append(f"exclude = [{'**/' * 25 + 'x'!r}]")
    (root / "pyproject.toml").write_text("\n".join(["[tool.gclint]", *lines, ""]), encoding="utf-8")


def _plant_git(root: Path, marks: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.fsmonitor=false")
        subprocess.run(["git", "-C", root, *who, *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("add", "-f", ".")
    git("commit", "-q", "-m", "A trap")
    program = root / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {marks}/git-$1\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    (root / ".gitattributes").write_text("*.py filter=trap diff=trap\n", encoding="utf-8")
    for key in ("core.fsmonitor", "diff.external", "diff.trap.command", "diff.trap.textconv", "core.pager"):
        git("config", key, f"{program} {key}")
    for key in ("filter.trap.clean", "filter.trap.smudge", "core.alternateRefsCommand", "core.sshCommand"):
        git("config", key, f"{program} {key}")
    (root / "modeling_own.py").write_text(OWN + "\n", encoding="utf-8")


def outside_of(touched: Sequence[tuple[str, str]], *allowed: Path) -> list[tuple[str, str]]:
    """Return what was touched elsewhere than in some folders, and than devices."""
    roots = [str(each.resolve()) for each in (*allowed, Path("/dev"), Path("/proc"))]
    return [
        (event, path)
        for event, path in touched
        if not any(f"{os.path.realpath(path)}/".startswith(f"{root}/") for root in roots)
    ]
