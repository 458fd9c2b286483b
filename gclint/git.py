"""Asks git; the one place that starts it.

A repository's own configuration can make git run programs: monitors of the file system, hooks, filters,
external diffs, transports, and all of these again in its submodules. So git is only asked for what it knows
of the index, trees and references; it never compares, or even opens, the files of the working tree. What
these commands could still start is disabled.
"""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from gclint.programs import find

# In a hook, git sets these to the hook's repository; the files may be in another one.
_POINTERS = frozenset(
    (
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_WORK_TREE",
    )
)
_COMMANDS = frozenset(("ls-files", "ls-tree", "merge-base", "rev-parse"))
"""The commands that run no filter on files, and start no git in submodules."""
_DISABLED = (
    # Older versions take any value for a program, and all versions an empty one for none.
    "core.fsmonitor=",
    f"core.hooksPath={os.devnull}",
    "core.untrackedCache=false",
    "submodule.recurse=false",
)
_VARIABLES = {
    # Names are names, not patterns.
    "GIT_LITERAL_PATHSPECS": "1",
    # Objects that a partial clone lacks would be fetched: by a program, over any protocol.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_SECONDS = 120.0
"""The time limit of a command: patterns to ignore, and links to pipes, can make git wait for ever."""
_MOST = 1 << 28
"""The most bytes that a command may print: a small object can stand for a tree of billions of files."""


def git(
    folder: Path, arguments: Sequence[str], index: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a git command that runs nothing else in a folder of a repository, and return what it printed.

    The index is one to use instead of the repository's.

    Raises:
        OSError: git cannot be started, does not end, or prints too much; ``strerror`` says which.
    """
    assert arguments[0] in _COMMANDS, f"git {arguments[0]} may run programs that a repository names"
    environment = {name: value for name, value in os.environ.items() if name not in _POINTERS} | _VARIABLES
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    options = [word for setting in _DISABLED for word in ("-c", setting)]
    command = [str(find("git")), "-C", str(folder.absolute()), "--no-pager", *options, *arguments]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        data = _answer_of(process)
        errors.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, data, errors.read(_MOST))


def _answer_of(process: subprocess.Popen[bytes]) -> bytes:
    """Return what a process prints until it ends."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(_SECONDS, end)
    timer.start()
    try:
        with process:
            assert process.stdout
            data = process.stdout.read(_MOST + 1)
            if len(data) > _MOST:
                process.kill()
    finally:
        timer.cancel()
        timer.join()  # Other threads would keep this process from being forked.
    if late.is_set():
        raise OSError(errno.ETIMEDOUT, f"it did not answer in {_SECONDS:g} s")
    if len(data) > _MOST:
        raise OSError(errno.EFBIG, f"it printed more than {_MOST >> 20} MiB")
    return data
