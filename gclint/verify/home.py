"""The environment of a worker: variables without secrets, and a temporary home."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from gclint.source.disk import is_own, lock

_PREFIX = "gclint-home-"
_LOCK = "lock"
_TRIES = 50
"""How often to retry removing a folder that is still in use, every fiftieth of a second."""
_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|TZ|VIRTUAL_ENV|CONDA_PREFIX|SYSTEMROOT"
    r"|LD_(LIBRARY_PATH|PRELOAD)|DYLD_\w*PATH"
    r"|(LC|PYTHON|GCLINT|TORCH|PYTORCH|TRANSFORMERS|CUDA|CUBLAS|CUDNN|NVIDIA|NCCL|TRITON|HIP|HSA|ROCR|ROCM"
    r"|OMP|GOMP|KMP|MKL|OPENBLAS|NUMEXPR)_?\w*"
)
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def harmless(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter and its libraries need, and that are not secrets."""
    return {
        name: value for name, value in variables.items() if _KEPT.fullmatch(name) and not _SECRET.search(name)
    }


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Yield an empty folder that is removed afterwards, or by the next run if this process is killed."""
    base = Path(tempfile.gettempdir())
    _sweep(base)
    # It gets its name only once it is locked, so that no other run takes it for a leftover.
    new = Path(tempfile.mkdtemp(prefix=f"new-{_PREFIX}"))
    handle = os.open(new / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock(handle, shared=False)
        home = new.rename(base / new.name.removeprefix("new-"))
        try:
            yield home
        finally:
            _remove(home)
    finally:
        os.close(handle)


def _sweep(base: Path) -> None:
    """Remove the homes of runs that were killed."""
    for each in base.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = each.lstat()
            if stat.S_ISDIR(status.st_mode) and is_own(status):
                _sweep_one(each)


def _sweep_one(home: Path) -> None:
    handle = os.open(home / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if lock(handle, shared=False):
            _remove(home)
    finally:
        os.close(handle)


def _remove(home: Path) -> None:
    """Remove a folder, even if dying processes still write into it."""
    for _ in range(_TRIES):
        shutil.rmtree(home, ignore_errors=True)
        if not home.exists():
            return
        # Permissions are restored first, from the outermost folder inwards.
        for folder, names, _files in os.walk(home):
            for path in (Path(folder, name) for name in names):
                if not path.is_symlink():
                    with suppress(OSError):
                        path.chmod(stat.S_IRWXU)
        time.sleep(1 / _TRIES)
