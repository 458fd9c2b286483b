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

_PREFIX = "gclint-home-"
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
    """Yield an empty folder that is removed afterwards."""
    home = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        yield home
    finally:
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
