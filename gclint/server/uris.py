"""Converts the URIs of documents to paths."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes, urlsplit

_DRIVE = re.compile(r"/[A-Za-z]:")
_UNTITLED = "untitled"


def path_of(uri: str) -> Path | None:
    """Return the absolute path for the URI of a file; None for any other URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme.lower() != "file" or not parts.path:
        return None
    if os.name == "nt":
        return _windows_path(parts.netloc, unquote(parts.path))
    if parts.netloc not in ("", "localhost"):
        return None
    raw = unquote_to_bytes(parts.path)
    return None if b"\0" in raw else Path(os.path.abspath(os.fsdecode(raw)))  # noqa: PTH100 (keeps links)


def _windows_path(host: str, path: str) -> Path | None:
    if host:
        return Path(f"//{host}{path}")
    return Path(path[1:]) if _DRIVE.match(path) else None


def untitled_name(uri: str) -> str | None:
    """Return a file name for a document that has not been saved yet; None for any other URI."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != _UNTITLED:
        return None
    return re.sub(r"[^\w.-]+", "-", unquote(rest)).strip("-") or _UNTITLED
