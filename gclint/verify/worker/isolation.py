"""Isolates the code that is run from the machine and from the network, as far as the system allows.

This is not a sandbox: the code has the permissions of the user, and can read and write the user's files.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import sys
import tempfile
from typing import NoReturn

from gclint.verify.worker.child import die_with_parent
from gclint.verify.worker.processes import are_visible

_NEW_MOUNTS, _NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_OWN = _NEW_MOUNTS | _NEW_PROCESSES | _NEW_NETWORK
_PRIVATE, _RECURSIVE = 1 << 18, 1 << 14
_NO_SET_USER, _NO_DEVICES = 2, 4
# Requests about a network interface: its name, its flags, and their whole size.
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_NAME, _REQUEST = 16, 40
_UNSEEN = "the limits hold for each process, not for all that a class starts"
_HOMES = {
    "HOME": "",
    "TMPDIR": "tmp",
    "HF_HOME": "huggingface",
    "TORCH_HOME": "torch",
    "TRITON_CACHE_DIR": "triton",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
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


def isolate(gigabytes: float) -> tuple[str, ...]:
    """Put this process and everything that it starts into new namespaces; return what that enforces.

    Call this before importing anything that starts threads. It returns in a fork of this process, which
    itself waits for the fork, and ends with it. Files to share memory have a limit of gigabytes.
    """
    flags = _allowed()
    if flags is None:
        return (
            "the network is blocked for Python code, but not for other programs (namespaces are not allowed)",
            "processes that leave the worker's group may outlive it",
            *(() if are_visible() else (_UNSEEN,)),
        )
    _enter(flags)
    _raise_loopback()
    process = os.fork()
    if process:
        _wait(process)
    die_with_parent()
    enforced = ("no network", "processes that it starts end with it")
    if not _hide_processes():
        return (*enforced, f"{_UNSEEN} (a new /proc is not allowed)")
    _limit_shared_memory(gigabytes)
    return (*enforced, "other processes are hidden")


def use_home(home: str) -> None:
    """Redirect everything that is stored per user to a folder, from now on.

    The working directory is an empty folder in it, which no other model has used.
    """
    for name, inside in _HOMES.items():
        folder = os.path.join(home, inside) if inside else home  # noqa: PTH118
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 (before more is imported)
        os.environ[name] = folder
    os.makedirs(f"{home}/empty", exist_ok=True)  # noqa: PTH103
    os.chdir(f"{home}/empty")
    tempfile.tempdir = None


def _allowed() -> int | None:
    """Return the namespaces that this process can enter, found by trying in a fork; None if it cannot."""
    if sys.platform != "linux":
        return None
    # As root, files of other users are accessible only without a user namespace.
    for flags in (_OWN, _OWN | _NEW_USER):
        process = os.fork()
        if not process:
            status = 1
            with contextlib.suppress(OSError):
                _enter(flags)
                status = 0
            os._exit(status)
        if os.waitpid(process, 0)[1] == 0:
            return flags
    return None


def _enter(flags: int) -> None:
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise OSError(ctypes.get_errno(), "namespaces are not allowed")
    if flags & _NEW_USER:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write(text)


def _raise_loopback() -> None:
    """Enable the loopback interface of this namespace, which is not connected to anything else.

    Process groups need it. If this is refused, there are no process groups.
    """
    import fcntl  # Systems without this have no namespaces either.

    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name = b"lo".ljust(_NAME, b"\0")
        answer = fcntl.ioctl(control, _GET_FLAGS, name + bytes(_REQUEST - _NAME))
        (flags,) = struct.unpack_from("H", answer, _NAME)
        request = name + struct.pack("H", flags | _UP)
        fcntl.ioctl(control, _SET_FLAGS, request.ljust(_REQUEST, b"\0"))


def _hide_processes() -> bool:
    """Hide the processes of other namespaces in ``/proc``, which shows their environments."""
    libc = ctypes.CDLL(None)
    if libc.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None):
        return False
    return not libc.mount(b"proc", b"/proc", b"proc", 0, None)


def _limit_shared_memory(gigabytes: float) -> None:
    """Give these namespaces a folder for shared memory of their own, which ends with them."""
    if os.path.isdir("/dev/shm"):  # noqa: PTH112
        options = f"mode=1777,size={int(gigabytes * 1e9)}".encode()
        ctypes.CDLL(None).mount(b"tmpfs", b"/dev/shm", b"tmpfs", _NO_SET_USER | _NO_DEVICES, options)


def _wait(process: int) -> NoReturn:
    """Wait for the first process of the namespaces, and exit with its status."""
    die_with_parent()
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        out_of_memory = ", which systems send when they run out of memory" if name == "SIGKILL" else ""
        sys.stderr.write(f"it was killed ({name}{out_of_memory})\n")
        sys.stderr.flush()
        os._exit(1)
    os._exit(os.waitstatus_to_exitcode(status))


def go_offline() -> None:
    """Refuse connections and name look-ups in this process and those that it forks, permanently."""
    os.environ.update(_ENVIRONMENT)
    # Not a patched `socket.socket`: an audit hook covers every way out of the interpreter.
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in _EVENTS and getattr(arguments[0], "family", None) != socket.AF_UNIX:
        raise OSError(f"gclint runs models offline: {event} is refused")
