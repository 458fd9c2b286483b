"""The executors, which start workers and receive their messages: locally, or on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from gclint.verify import process
from gclint.verify.cluster import host
from gclint.verify.worker.protocol import Message, Request

Executor = Callable[[Path, Request], Generator[Message]]
"""Lets an interpreter do a request, as :func:`gclint.verify.process.work` does."""

EXECUTORS: Mapping[str, Executor] = {"local": process.work, "ray": host.work}
"""The executors by name."""
