"""Blocks network access for models."""

from __future__ import annotations

import os
import socket
import sys

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    # With the package `kernels`, layers are replaced by kernels from the hub.
    "USE_HUB_KERNELS": "NO",
}
_EVENTS = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}


def go_offline() -> None:
    """Refuse connections and name look-ups in this process and those that it forks, permanently."""
    os.environ.update(_ENVIRONMENT)
    # Not a patched `socket.socket`: an audit hook covers every way out of the interpreter.
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in _EVENTS and getattr(arguments[0], "family", None) != socket.AF_UNIX:
        raise OSError(f"gclint runs models offline: {event} is refused")
