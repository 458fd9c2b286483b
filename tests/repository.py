"""Git repositories for tests, which nothing outside the test decides about."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from itertools import count
from pathlib import Path

_NUMBERS = count(1)
_ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@dataclass(frozen=True)
class Repository:
    """A git repository with a working tree at ``folder``."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Repository:
        """Make a repository without commits, on branch ``main``."""
        folder.mkdir(parents=True, exist_ok=True)
        repository = cls(folder)
        repository.git("init", "-q")
        repository.git("symbolic-ref", "HEAD", "refs/heads/main")
        return repository

    def git(self, *arguments: str | Path) -> None:
        """Run git in the repository."""
        command = ("git", "-C", self.folder, *arguments)
        subprocess.run(command, env={**os.environ, **_ALONE}, check=True, capture_output=True)

    def write(self, *names: str, text: str = "x = 1\n") -> None:
        """Write files of these names, all with the same text."""
        for name in names:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def commit(self) -> None:
        """Commit everything as it is."""
        self.git("add", "-A")
        # Commits of the same content in the same second would be one.
        self.git("commit", "-q", "--allow-empty", "-m", f"change {next(_NUMBERS)}")

    def branch(self) -> None:
        """Commit everything, call it ``origin/main``, and go on from there on a branch."""
        self.commit()
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.git("checkout", "-q", "-b", "work")
