"""What keeps a fix from being right under every release that a file may run with."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.packages import LIBRARY
from gclint.code.remembered import remembered
from gclint.code.walk import text_of, walk
from gclint.edit.places import argument_place
from gclint.finding import Refusal
from gclint.network.caches import live_caches
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.releases import FIRST_WITH_BASE_CLASS

_NEEDS = f"`{CHECKPOINTING_BASE}` needs transformers {FIRST_WITH_BASE_CLASS} or later"


def too_old(network: Network) -> Refusal | None:
    """Return why no block of a file can become a checkpointing layer, where no release has that class."""
    if network.releases.have_base_class:
        return None
    return Refusal(
        f"{_NEEDS}, but this code targets {network.releases}; until then, pass the block to "
        "`self._gradient_checkpointing_func` while checkpointing"
    )


def release_doubts(network: Network, sites: Collection[RunSite], *, loses_branch: bool) -> Iterator[str]:
    """Yield why blocks that become checkpointing layers may not work under every release.

    Args:
        network: the file.
        sites: the plain calls of the blocks that no branch ran while checkpointing.
        loses_branch: whether something else checkpointed the blocks until now.
    """
    older = network.releases.without_base_class
    if older is not None and not network.guards_base_class:
        yield f"{_NEEDS}, but this code may run with {older}"
    elif older is not None and loses_branch:
        yield f"nothing would be recomputed with {older}, where there is no `{CHECKPOINTING_BASE}`"
    for site in sites:
        for name, arg in live_caches(site):
            which = network.releases.not_neutralising(name)
            if which is not None:
                row = network.file.position(argument_place(site, arg)[0]).row
                yield (
                    f"the call on line {row} passes `{name}`, which checkpointing does not disable in {which}"
                )


def import_doubts(network: Network) -> Iterator[str]:
    """Yield why the base class may be missing where a file runs that is to import it.

    If nothing says which releases the file runs with, it is taken to run with the installed one. What it
    imports itself may show that it does not.
    """
    module = network.checkpointing_module
    if module is None or network.guards_base_class:
        return
    is_known = network.file.outline.imported(CHECKPOINTING_BASE) is not None or module.startswith(".")
    if is_known or not network.project.assumed(network.file).is_installed:
        return
    missing = next(_missing(network, network.file, {network.file.path}), None)
    if missing is not None:
        yield (
            f"{missing} is not in the installed transformers, so the file runs with another release, which "
            f"may have no `{CHECKPOINTING_BASE}`; set `target-version`"
        )


def _missing(network: Network, file: SourceFile, seen: set[Path]) -> Iterator[str]:
    """Yield what a file, or one that it imports, imports from transformers although it is not there."""
    project = network.project
    for statement in (each for each in file.outline.imports if each.is_always_run):
        source = statement.module
        for item in statement.items:
            module, name = (item.path, None) if source is None else (source, item.path)
            if module.partition(".")[0] != LIBRARY:
                level = len(module) - len(module.lstrip("."))
                other = project.module(file, module[level:], level)
                if other is not None and other.path not in seen and not project.is_context(other.path):
                    seen.add(other.path)
                    yield from _missing(network, other, seen)
            elif not _is_there(network, file, module, name):
                row = file.position(statement.start).row
                where = "" if file is network.file else f" of {file.path.name}"
                yield f"`{name or module}`, which is imported on line {row}{where},"


def _is_there(network: Network, user: SourceFile, module: str, name: str | None) -> bool:
    """Return whether the installed library may have what a file imports from it."""
    project = network.project
    file = project.module(user, module, 0)
    if file is None:  # The package may know it by another name, under which it is imported.
        package, _, last = module.rpartition(".")
        around = project.module(user, package, 0) if package else None
        return around is not None and last in _known_names(around)
    if name is None or name == "*":
        return True
    if file.tree is None or not _known_names(file).isdisjoint((name, "__getattr__")):
        return True
    if project.module(user, f"{module}.{name}", 0) is not None:
        return True
    home = project.library(user)
    if module == LIBRARY:
        return home is not None and network.library.exports(home.folder).may_have(name)
    return any(item.path == "*" for statement in file.outline.imports for item in statement.items)


@remembered
def _known_names(file: SourceFile) -> frozenset[str]:
    """Return the names that a file may define: what it binds, and texts, as lazy imports have them."""
    found = {each.name for each in file.outline.definitions}
    found |= {each.bound for each in file.outline.all_imported()}
    for node in () if file.tree is None else walk(file.tree.module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        else:
            found.add(text_of(node) or "")
    return frozenset(found)


def keyword_doubt(network: Network, names: Collection[str]) -> str | Refusal | None:
    """Return why caches that are passed by keyword under these ``names`` may stay on while checkpointing."""
    for name in names:
        which = network.releases.not_neutralising(name)
        if which is not None:
            reason = f"in {which}, checkpointing does not disable `{name}` even if it is passed by keyword"
            return reason if network.releases.neutralise_somewhere(name) else Refusal(reason)
    return None
