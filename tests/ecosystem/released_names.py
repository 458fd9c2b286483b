"""Which names of transformers only some releases have: ``python3 -m tests.ecosystem.released_names``.

Prints the text of ``gclint/code/released_names.py``, or writes it with ``--write``. It is about the names
that modeling files of the library import from it, and rests on the releases below: whatever is missing in one
of them is taken to be missing in no other minor release than that one.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import click

from tests.ecosystem.releases import release_tree
from tests.environment import PROJECT

TABLE = PROJECT / "gclint" / "code" / "released_names.py"
RELEASES = (
    "4.45.2",
    "4.47.1",
    "4.49.0",
    "4.51.3",
    "4.52.4",
    "4.53.3",
    "4.55.4",
    "4.57.6",
    "5.0.0",
    "5.10.0",
    "5.23.0",
)
_OF_OTHER_FRAMEWORKS = ("modeling_tf_", "modeling_flax_")
_WIDTH = 100


def text() -> str:
    """Return the text of the module."""
    bounds: defaultdict[str, list[str]] = defaultdict(list)
    for name, requirement in sorted(_bounded()):
        bounds[requirement].append(name)
    groups = "".join(
        f'    "{requirement}": """\n{_wrapped(names)}\n    """,\n'
        for requirement, names in sorted(bounds.items())
    )
    return f'''"""Which names of transformers only some releases have.

Written by ``python3 -m tests.ecosystem.released_names --write`` from {RELEASES[0]} to {RELEASES[-1]}. A
name is a module below ``transformers``, or something in one.
"""

from typing import Final

ONLY_IN: Final = {{
{groups}}}
'''


def _wrapped(names: Iterable[str]) -> str:
    return textwrap.indent(textwrap.fill(" ".join(names), _WIDTH, break_on_hyphens=False), " " * 8)


def _bounded() -> Iterator[tuple[str, str]]:
    """Yield the names that some releases do not have, each with the range of those that may have it."""
    trees = [release_tree(version) / "transformers" for version in RELEASES]
    wanted = sorted({name for tree in trees for name in _imported(tree)})
    known: dict[str, str] = {}
    for name in wanted:
        known[name] = _requirement([_has(tree, name) for tree in trees])
        # A module comes before what is in it.
        if known[name] not in ("", known.get(name.rpartition(".")[0])):
            yield name, known[name]


def _requirement(found: list[bool]) -> str:
    """Return the range of releases that may have what was ``found`` in these; nothing if all may."""
    if True not in found:
        return ""
    first, last = found.index(True), len(found) - 1 - found[::-1].index(True)
    clauses = []
    if first:
        major, minor, _ = RELEASES[first - 1].split(".")
        clauses.append(f">={_after(int(major), int(minor))}")
    if last < len(found) - 1:
        clauses.append(f"<{RELEASES[last + 1].rpartition('.')[0]}")
    return ",".join(clauses)


def _after(major: int, minor: int) -> str:
    """Return the first minor release after one."""
    return "5.0" if (major, minor) == (4, 57) else f"{major}.{minor + 1}"


def _imported(tree: Path) -> Iterator[str]:
    """Yield what the modeling files of a release import from it, but for other models."""
    for path in sorted(tree.glob("models/*/modeling_*.py")):
        if path.name.startswith(_OF_OTHER_FRAMEWORKS):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            # Three dots lead from the folder of a model to the library.
            if not (isinstance(node, ast.ImportFrom) and node.level == 3 and node.module):
                continue
            if not node.module.startswith("models."):
                yield node.module
                yield from (f"{node.module}.{each.name}" for each in node.names)


def _has(tree: Path, name: str) -> bool:
    """Return whether a release may have a module, or something in one."""
    if _file(tree, name) is not None:
        return True
    module, _, last = name.rpartition(".")
    file = _file(tree, module) if module else None
    if file is None:
        # The library gives some modules a second name when it is imported.
        return (
            re.search(rf"\b{(module or last).partition('.')[0]}\b", _read(tree / "__init__.py")) is not None
        )
    names = _names(ast.parse(file.read_bytes()))
    return not names.isdisjoint((last, "*", "__getattr__"))


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _file(tree: Path, name: str) -> Path | None:
    base = tree.joinpath(*name.split("."))
    return next((each for each in (base.with_suffix(".py"), base / "__init__.py") if each.is_file()), None)


def _names(module: ast.Module) -> set[str]:
    """Return whatever a module may define: what it binds, and texts, as lazy imports have them."""
    found = set()
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


@click.command()
@click.option("--write", is_flag=True, help="Write the module instead of printing it.")
def main(write: bool) -> None:
    """Print the table."""
    if write:
        TABLE.write_text(text(), encoding="utf-8")
    else:
        click.echo(text(), nl=False)


if __name__ == "__main__":
    main()
