"""Renders a page as one HTML file without network requests."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gclint.report.page import classes, matrix
from gclint.report.page.building import Page
from gclint.report.page.excerpts import brief
from gclint.report.printing import binary_size
from gclint.report.verification import advised, by_group, fates

_FOLDER = "templates"


def rendered(page: Page) -> str:
    """Return the HTML."""
    environment = Environment(
        loader=PackageLoader(__package__, _FOLDER),
        # Names and messages of models are text, whatever they contain.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"brief": brief, "percent": _percent, "prose": _prose, "size": binary_size}
    environment.globals |= {
        "advised": advised,
        "by_group": by_group,
        "cells": matrix.cells,
        "classes": classes,
        "fates": fates,
        "spelled": matrix.spelled,
    }
    script = _asset("page.js")
    return environment.get_template("page.html").render(
        page=page,
        style=Markup(_asset("page.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"


def _prose(text: str) -> Markup:
    """Return a sentence with the text between backticks set as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    pieces = [
        Markup("<code>{}</code>").format(each) if number % 2 else escape(each)
        for number, each in enumerate(parts)
    ]
    return Markup("").join(pieces)


def _asset(name: str) -> str:
    return (files(__package__) / _FOLDER / name).read_text(encoding="utf-8")
