"""Runs the scripts that show failures, in a fresh process of the interpreter of the models."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from gclint.verify.process import work
from gclint.verify.settings import GIGABYTES, RunSettings
from gclint.verify.sources import overlay_of
from gclint.verify.worker.protocol import Demonstration, Request, Unusable


def demonstrate(script: str, settings: RunSettings, texts: Mapping[Path, str] | None = None) -> Demonstration:
    """Run a script within the limits of a class, and return what came of it.

    The ``texts`` are imported instead of those of the files.
    """
    request = Request(
        (),
        overlay=overlay_of(texts or {}),
        seconds=settings.seconds,
        gigabytes=settings.gigabytes or GIGABYTES,
        script=script,
    )
    with closing(work(settings.python, request)) as messages:
        for message in messages:
            if isinstance(message, Demonstration):
                return message
            if isinstance(message, Unusable):
                return Demonstration(-1, f"{message.message}\n")
    return Demonstration(-1, "the worker did not answer\n")
