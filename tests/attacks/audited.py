"""Runs gclint, and notes what it writes, removes, renames and starts: ``python audited.py LOG ARGUMENTS``.

Needs nothing but gclint, and imports nothing else, so that what a repository puts in
the way is found as it is for users.
"""

from __future__ import annotations

import json
import os
import sys
from types import FrameType
from typing import Any

STARTED = "subprocess.Popen"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_FOLDERS = {
    "os.mkdir": 2,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.rename": 2,
    "os.chmod": 2,
    "os.link": 2,
    "os.symlink": 2,
}
"""Where an event has the descriptor of the folder that its paths are relative to."""
_OTHERS = ("os.truncate", "shutil.")


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, (str, bytes)) and isinstance(flags, int) and flags & _WRITING:
            _note(event, _opened_in(sys._getframe(1)), path)
    elif event in _FOLDERS:
        handle = arguments[_FOLDERS[event]]
        folder = os.readlink(f"/proc/self/fd/{handle}") if handle > 2 else os.getcwd()  # noqa: PTH109, PTH115
        _note(event, folder, *(each for each in arguments[:2] if isinstance(each, (str, bytes))))
    elif event.startswith(_OTHERS):
        _note(event, os.getcwd(), *(each for each in arguments if isinstance(each, (str, bytes))))  # noqa: PTH109
    elif event == STARTED:
        _note(event, os.getcwd(), arguments[0])  # noqa: PTH109


def _opened_in(frame: FrameType) -> str:
    """Return the folder in which a name is opened: the event does not say, and one place uses handles."""
    own = frame.f_locals.get("self") if frame.f_code.co_filename.endswith("userfolder.py") else None
    return os.getcwd() if own is None else str(own.path)  # noqa: PTH109


def _note(event: str, folder: str, *paths: str | bytes) -> None:
    absolute = [os.path.join(folder, os.fsdecode(each)) for each in paths]  # noqa: PTH118
    os.write(_log, (json.dumps([event, absolute]) + "\n").encode())


if __name__ == "__main__":
    _log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND)
    sys.addaudithook(_listen)
    from gclint.launch import main

    main()
