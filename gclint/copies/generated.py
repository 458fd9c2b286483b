"""Files that transformers generates: ``modeling_x.py`` from ``modular_x.py``, as its header says."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from gclint.code.file import SourceFile
from gclint.code.lines import begins_in_string
from gclint.code.remembered import remembered

_HEADER = re.compile(
    r"^#\s*This file was automatically generated from\s+(\S+/modular_\w+\.py)\b", re.MULTILINE
)
_HEADER_LENGTH = 2000
_MODULAR = "modular_"
_MODELING = "modeling_"


@remembered
def modular_path(file: SourceFile) -> Path | None:
    """Return the path of the file that this one was generated from; None for a file written by hand."""
    match = _HEADER.search(file.text, 0, _HEADER_LENGTH)
    if match is None or begins_in_string(file, file.position(match.start()).row):
        return None
    # It is always in the same folder; the path in the header begins at the root of the repository.
    return file.path.with_name(PurePosixPath(match[1]).name)


def is_modular(path: Path) -> bool:
    """Return whether a modeling file is generated from the one at ``path``."""
    return path.name.startswith(_MODULAR)


def modeling_path(path: Path) -> Path:
    """Return the path of the modeling file that is generated from the modular one at ``path``."""
    return path.with_name(_MODELING + path.name.removeprefix(_MODULAR))
