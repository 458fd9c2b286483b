"""How Sphinx makes the site of the README, this folder and the pages beside the README.

The sources are read where they are, with the links that they have in the repository:
``sphinx-build -W -c docs . build/site``, or ``python3 -m tests.site``.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gclint import __version__  # noqa: E402

NAVIGATION = {
    "Start": {
        "docs/problem": "The problem in ten lines",
        "docs/use": "Finding and repairing",
        "docs/explain": "Explaining",
        "docs/rules": "Rules",
        "docs/own-rules": "Rules of your own",
        "docs/settings": "Settings",
    },
    "Where you work": {
        "docs/editors": "Editors",
        "docs/agents": "Coding agents",
        "docs/hooks": "Hooks",
        "docs/ci": "CI",
        "docs/formats": "Output formats",
        "docs/cache": "Cache",
    },
    "Run models": {
        "docs/run": "Is my run fine?",
        "docs/verify": "Verifying",
        "docs/training": "Set-ups of training",
        "docs/memory": "Memory",
        "docs/report": "The HTML report",
        "docs/testing": "Your own tests",
        "docs/clusters": "Many machines",
        "FINDINGS": "Findings in transformers",
    },
    "Contribute": {
        "docs/how-it-works": "How it works",
        "docs/adding-a-rule": "Adding a rule",
        "docs/contract": "The contract of safe fixes",
        "docs/performance": "Performance",
        "CONTRIBUTING": "Contributing",
        "SECURITY": "Security",
        "CHANGELOG": "Changelog",
    },
}
"""The pages in their order. A page that stands nowhere here is an orphan, which Sphinx warns of."""

project = "gclint"
author = "the gclint authors"
project_copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/rules/*.md", "docs/upstream/*.md", "docs/upstream/*/*.md"]
# Folders that hold no pages: Sphinx does not go into them.
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"]

myst_heading_anchors = 4
copybutton_prompt_text = "$ "

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"gclint {__version__}"
html_baseurl = "https://gclint.github.io/gclint/"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_theme_options = {
    "source_repository": "https://github.com/gclint/gclint/",
    "source_branch": "main",
    "source_directory": "",
}


def add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Give pages that are read elsewhere, too, the list of those below them, which the sidebar shows."""
    if name == root_doc:
        for caption, entries in NAVIGATION.items():
            titles = [f"{title} </{path}>" for path, title in entries.items()]
            source[0] += _tree(f":caption: {caption}", titles)
    elif name == "docs/rules":
        source[0] += _tree(":glob:", ["rules/*"])
    elif name == "FINDINGS":
        source[0] += _tree(":glob:", ["docs/upstream/*", "docs/upstream/*/*"])


def _tree(option: str, entries: list[str]) -> str:
    return "\n".join(("", "```{toctree}", ":hidden:", option, "", *entries, "```", ""))


def add_index(app: Sphinx, error: Exception | None) -> None:
    """Let the address of the site itself lead to the README."""
    if error is None and app.builder.name == "html":
        shutil.copyfile(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    """Connect what is done here with Sphinx."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_index)
