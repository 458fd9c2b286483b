"""The environment of a worker: variables without secrets, and a temporary home."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from gclint.userfolder import UserFolder, cache_home, lock, own_folder

_PREFIX = "gclint-home-"
_REGISTER = "homes"
_LONGEST = 1 << 16
"""The most bytes of a note."""
_TRIES = 50
"""How often to retry removing a folder that is still in use, every fiftieth of a second."""
_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|TZ|VIRTUAL_ENV|CONDA_PREFIX|SYSTEMROOT"
    r"|LD_(LIBRARY_PATH|PRELOAD)|DYLD_\w*PATH"
    r"|(LC|PYTHON|GCLINT|TORCH|PYTORCH|TRANSFORMERS|CUDA|CUBLAS|CUDNN|NVIDIA|NCCL|TRITON|HIP|HSA|ROCR|ROCM"
    r"|OMP|GOMP|KMP|MKL|OPENBLAS|NUMEXPR)_?\w*"
)
_SEARCH_PATH = re.compile(r"PYTHON(PATH|HOME|USERBASE)|LD_LIBRARY_PATH|DYLD_\w*PATH")
"""The variables with folders, in which an empty entry stands for the working directory."""
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def harmless(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter and its libraries need, and that are not secrets."""
    return {
        name: value for name, value in variables.items() if _KEPT.fullmatch(name) and not _SECRET.search(name)
    }


def independent(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables that lead to the same folders from any working directory.

    Relative folders to search are made absolute. Empty ones are dropped: ``$PYTHONPATH:/folder`` has one
    that nobody meant.
    """
    return {
        name: _absolute(value) if _SEARCH_PATH.fullmatch(name) else value for name, value in variables.items()
    }


def _absolute(folders: str) -> str:
    return os.pathsep.join(str(Path(each).absolute()) for each in folders.split(os.pathsep) if each)


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Yield an empty folder that is removed afterwards, or by the next run if this process is killed."""
    with ExitStack() as stack:
        register = _register(stack)
        if register is not None:
            _sweep(register)
        home = Path(tempfile.mkdtemp(prefix=_PREFIX))
        if register is not None:
            stack.enter_context(_noted(register, home))
        stack.callback(_remove, home)
        yield home


def _register(stack: ExitStack) -> UserFolder | None:
    """Return the user's folder of notes about such folders; None if this user has none.

    The names of folders prove nothing: the temporary folder may lie in a repository.
    """
    base = cache_home()
    if base is None:
        return None
    try:
        return stack.enter_context(own_folder(base / _REGISTER, is_named=False, create=True))
    except OSError:
        return None


@contextmanager
def _noted(register: UserFolder, home: Path) -> Iterator[None]:
    """Note where a folder is, as long as this process uses it, which a lock shows."""
    try:
        handle = register.open(home.name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    except OSError:  # It may be full.
        yield
        return
    try:
        if lock(handle, shared=False):
            os.write(handle, _note(home))
        yield
    finally:
        with suppress(OSError):
            register.remove(home.name)
        os.close(handle)


def _note(home: Path) -> bytes:
    status = home.lstat()
    return json.dumps([str(home), status.st_dev, status.st_ino]).encode()


def _sweep(register: UserFolder) -> None:
    """Remove the homes of runs that were killed."""
    for name in register.names():
        with suppress(OSError):
            handle = register.open(name, os.O_RDWR)
            try:
                if lock(handle, shared=False):
                    _sweep_one(os.read(handle, _LONGEST))
                    register.remove(name)
            finally:
                os.close(handle)


def _sweep_one(note: bytes) -> None:
    """Remove the home that a note is about, if it is still the same folder."""
    with suppress(FileNotFoundError, ValueError):
        home = Path(json.loads(note)[0])
        if _note(home) == note:
            _remove(home)


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
