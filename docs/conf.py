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
    "Start": ("docs/problem", "docs/use", "docs/settings", "docs/explain", "docs/rules", "docs/notebooks"),
    "Where you work": ("docs/editors", "docs/hooks", "docs/ci", "docs/agents", "docs/formats", "docs/cache"),
    "Run models": (
        "docs/verify",
        "docs/training",
        "docs/memory",
        "docs/report",
        "docs/testing",
        "docs/clusters",
        "FINDINGS",
    ),
    "Contribute": (
        "docs/how-it-works",
        "docs/contract",
        "docs/performance",
        "docs/ecosystem",
        "CONTRIBUTING",
        "SECURITY",
        "CHANGELOG",
    ),
}
"""The pages in their order. A page that stands nowhere here is an orphan, which Sphinx warns of."""

project = "gclint"
author = "the gclint authors"
project_copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/rules/*.md"]
# Folders that hold no pages: Sphinx does not go into them.
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"]

myst_heading_anchors = 4
copybutton_prompt_text = "$ "

html_theme = "furo"
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
    """Give the README and the table of rules what the sidebar shows; both are read elsewhere, too."""
    if name == root_doc:
        trees = (_tree(entries, f":caption: {caption}") for caption, entries in NAVIGATION.items())
        source[0] += "".join(trees)
    elif name == "docs/rules":
        source[0] += _tree(("rules/*",), ":glob:")


def _tree(entries: tuple[str, ...], option: str) -> str:
    there = (each for each in entries if "*" in each or (ROOT / f"{each}.md").is_file())
    # From the root, wherever the tree stands.
    lines = "\n".join(each if "*" in each else f"/{each}" for each in there)
    return f"\n```{{toctree}}\n:hidden:\n{option}\n\n{lines}\n```\n"


def add_index(app: Sphinx, error: Exception | None) -> None:
    """Let the address of the site itself lead to the README."""
    if error is None and app.builder.name == "html":
        shutil.copyfile(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    """Connect what is done here with Sphinx."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_index)
