"""Processes that are killed at a chosen step of what they do on the disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

_CALLS = ("open", "write", "fsync", "replace", "unlink")


def killed_at(step: int, action: Callable[[], object]) -> bool:
    """Do something in a child that is killed before or after one of its calls; False if it got to the end.

    Args:
        step: which one: 0 is before the first call, 1 is behind it, 2 before the second, and so on.
        action: what the child does.
    """
    child = os.fork()
    if child == 0:
        _kill_at(step)
        try:
            action()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _kill_at(step: int) -> None:
    left = step

    def tick() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **keywords: Any) -> Any:
            tick()
            result = call(*arguments, **keywords)
            tick()
            return result

        return called

    for name in _CALLS:
        setattr(os, name, watched(getattr(os, name)))
