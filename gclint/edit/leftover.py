"""Calls of checkpoint functions that a repair would leave beside the new base class.

A block that is a checkpointing layer and is checkpointed by the model as well is recomputed twice. So what
may checkpoint a block, and is not taken away, forbids the repair, however it is written.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from gclint.code.file import SourceFile
from gclint.code.likely import given_by_word, likely_imported
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.outline import Definition
from gclint.code.paths import behind_line
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.code.walk import dotted_name
from gclint.copies.generated import is_modular
from gclint.edit.branch import LegacyBranch, legacy_branch
from gclint.edit.differences import differences
from gclint.edit.receivers import names_holding
from gclint.network.checkpoints import calls_between, checkpoint_calls, may_call_checkpoint
from gclint.network.evaluation.classes import ClassInfo, nodes_of
from gclint.network.holders import accessors
from gclint.network.importers import import_words, words_in
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.runsite import CHECKPOINT_FUNCTIONS, RunSite


def leftover(
    network: Network, blocks: Collection[ClassInfo], removed: Sequence[tuple[int, int]]
) -> str | None:
    """Return what would recompute one of ``blocks`` a second time, in words; None where nothing would.

    Args:
        network: the file that runs the blocks.
        blocks: what becomes a checkpointing layer.
        removed: the pieces of the file that go.
    """
    for offset in sorted(_in_file(network, blocks)):
        if not any(start <= offset < end for start, end in removed):
            return _reason(network, network.file, offset)
    for other in _others(network, blocks):
        for offset in sorted(_in_other_file(network, other, blocks)):
            return _reason(network, other.file, offset)
        for offset in _in_functions(other):
            return _reason(network, other.file, offset, "may")
    return None


def _reason(network: Network, file: SourceFile, offset: int, verb: str = "would") -> str:
    where = behind_line(file.path, network.file.path)
    return (
        f"the checkpoint call on line {file.position(offset).row}{where} {verb} recompute a layer a second "
        "time, and gclint cannot rewrite it; first make it a plain call by hand"
    )


def _in_file(network: Network, blocks: Collection[ClassInfo]) -> Iterator[int]:
    """Yield the calls in the blocks' own file, or in bases there, that may checkpoint one of them."""
    calls = checkpoint_calls(network.module)
    if not calls:
        return
    nested = {part for info in blocks for part in info.all_parts}
    explained: list[tuple[int, int]] = []
    for site in network.run_sites:
        if site.checkpointed and site.scope.module.file is network.file and site.blocks:
            span = site.span(site.call)
            if site.owner not in nested and not _reaches(site.blocks, blocks):
                explained.append(span)
    for start, end in _regions(network, blocks, nested):
        for offset in calls_between(network.module, start, end):
            if not any(first <= offset < last for first, last in explained):
                yield offset


def _reaches(run: Collection[ClassInfo], blocks: Collection[ClassInfo]) -> bool:
    return any(not info.all_parts.isdisjoint(blocks) for info in run)


def _regions(
    network: Network, blocks: Collection[ClassInfo], nested: Collection[ClassInfo]
) -> Iterator[tuple[int, int]]:
    """Yield the classes and functions of the file that may run the blocks, or are run by them."""
    owners = _owners(network, blocks)
    runners = {site.owner for site in network.run_sites}
    involved = {info for info in network.module.classes.values() if _reaches((info,), blocks)}
    # What wraps a block when the stack is built.
    involved |= {part for info in owners for part in info.parts if part not in runners}
    involved |= owners | set(nested)
    for info in {base for each in involved for base in each.mro if base.file is network.file}:
        yield info.definition.start, info.definition.end
    attributes = _attributes(network, owners, blocks)
    for function in _functions_naming(network, attributes):
        yield function.start, function.end


def _owners(network: Network, blocks: Collection[ClassInfo]) -> set[ClassInfo]:
    """Return the classes whose methods, own or inherited, run one of the blocks."""
    sites = (*network.run_sites, *network.foreign_sites)
    return {site.owner for site in sites if not set(blocks).isdisjoint(site.blocks)}


def _attributes(
    network: Network, owners: Collection[ClassInfo], blocks: Collection[ClassInfo]
) -> frozenset[str]:
    """Return the attributes under which the blocks are held, and the methods that return one of them."""
    names = frozenset(name for owner in owners for name in names_holding(network, owner, blocks))
    return names | accessors(network.module, names)


def _functions_naming(network: Network, attributes: Collection[str]) -> Iterator[Definition]:
    """Yield the functions of a file that may stand in for methods, and read one of these attributes."""
    for function in _functions(network):
        text = function.text
        named = {name for name in attributes if name in text}
        if named and any(
            isinstance(node, ast.Attribute) and node.attr in named for node in nodes_of(function)
        ):
            yield function


def _functions(network: Network) -> Iterator[Definition]:
    """Yield the functions of a file that are no methods, also those that a plain class collects."""
    yield from network.file.outline.functions.values()
    collecting = {
        info.definition for info in network.module.classes.values() if info.resolved and not info.is_module
    }
    yield from (each for each in network.file.outline.definitions if each.parent in collecting)


# -- other files


def _others(network: Network, blocks: Collection[ClassInfo]) -> Iterator[Network]:
    """Yield the other files that name a block or what runs it, and call a checkpoint function."""
    project, owners = network.project, _owners(network, blocks)
    words = {info.name for info in (*blocks, *owners)} | {network.file.path.stem}
    importing = [_importing(project, word, network.file) for word in sorted(words)]
    for file in dict.fromkeys(file for found in importing for file in found):
        if file is not network.file and not is_modular(file.path):
            yield Network(project, project.consult(network.file, file.path))


def _in_other_file(network: Network, other: Network, blocks: Collection[ClassInfo]) -> Iterator[int]:
    for site in other.run_sites:
        if site.checkpointed and site.scope.module.file is other.file and _reaches(site.blocks, blocks):
            # The other file's own finding takes such a branch away, together with this repair.
            direct = (not set(info.mro).isdisjoint(blocks) for info in site.blocks)
            if not all(direct) or not _can_go(site, other):
                yield site.span(site.call)[0]
    owners = _owners(network, blocks)
    for owner in owners:
        for subclass in subclasses(network.project, owner):
            if subclass.file is other.file:
                explained = [site.span(site.call) for site in other.run_sites if site.checkpointed]
                for offset in calls_between(other.module, subclass.definition.start, subclass.definition.end):
                    if not any(first <= offset < last for first, last in explained):
                        yield offset
    attributes = _attributes(network, owners, blocks)
    for function in _functions_naming(other, attributes):
        yield from calls_between(other.module, function.start, function.end)


def _in_functions(other: Network) -> Iterator[int]:
    """Yield the calls of torch's checkpoint function in functions, which may get the layers."""
    for function in _functions(other):
        for node in nodes_of(function):
            called = other.module.resolve(dotted_name(node.func) or "") if isinstance(node, ast.Call) else ()
            if any(getattr(each, "name", None) in CHECKPOINT_FUNCTIONS for each in called):
                yield other.file.places.start(node)


def _can_go(site: RunSite, network: Network) -> bool:
    """Return whether the branch that a call stands in can be taken apart."""
    branch = legacy_branch(site, network.run_sites)
    return isinstance(branch, LegacyBranch) and all(
        each.one_is_silent for each in differences(branch, network.releases)
    )


def _importing(project: Project, word: str, user: SourceFile) -> list[SourceFile]:
    """Return the files that may call a checkpoint function and import a word: of a run, and around it.

    Of those around the given ones, only such with the word in their texts are parsed.
    """
    given = given_by_word(project, likely_imported).get(word, ())
    beside = (file.path for file in _beside(project) if word in words_in(file))
    return project.chosen((*given, *beside), CHECKPOINTING, word, user)


def _beside(project: Project) -> Sequence[SourceFile]:
    """Return the files around the given ones that may call a checkpoint function, found once."""
    known = project.derived.get(_beside)
    if not isinstance(known, tuple):
        around = (path for path in files_mentioning(project, "checkpoint") if path not in project.given)
        with project.read_for(None):
            found = (file for file in project.readable(around) if may_call_checkpoint(file.text))
            known = project.derived[_beside] = tuple(found)
    return known


def _checkpoints(file: SourceFile, word: str) -> bool:
    return may_call_checkpoint(file.text) and word in import_words(file)


CHECKPOINTING = Topic("checkpointing", _checkpoints, is_about_others=True)
"""Which files call a checkpoint function, and import something by this name."""
