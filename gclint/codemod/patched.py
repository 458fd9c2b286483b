"""Code around a run that replaces the ``forward`` of a block, which some releases then do not recompute."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Set

from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.modules import Module, library_of
from gclint.network.model import Network
from gclint.network.outside import receiver_before
from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.paths import shown
from gclint.source.questions import Topic
from gclint.source.surroundings import files_mentioning

_FORWARD = ".forward"
_ASSIGNED = re.compile(r"\.forward(?=[ \t]{0,99}=(?!=))")
_WORD = re.compile(r"\w+")


def patch_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where the ``forward`` of a block is replaced, on the class or on an object that may be one.

    Such an object is known by a plain name, or by the stack that it is an item of, in a file that names
    the block, what runs it, or their module.
    """
    which = network.releases.wrapping_forward
    if which is None:
        return
    classes = {base.name for info in blocks for base in info.mro}
    owners = {site.owner.name for site in network.run_sites if not set(blocks).isdisjoint(site.blocks)}
    words = classes | owners | {network.file.path.stem}
    for file in _replacing(network):
        for offset, receiver in _patches(library_of(network.project).module(file)):
            names_class = receiver.rpartition(".")[2] in classes
            if names_class or (_is_object(receiver, network) and _names(file, network, words)):
                row = file.position(offset).row
                where = "" if file is network.file else f" of {shown(file.path)}"
                place = f"`{receiver}.forward` is replaced on line {row}{where}"
                yield f"{place}, and {which} would not recompute it"
                return


def _replacing(network: Network) -> list[SourceFile]:
    """Return the files of a run, or around it, that replace a ``forward``."""
    project, found = network.project, []
    with project.read_for(None):
        for path in files_mentioning(project, _FORWARD):
            try:
                file = project.file(path)
            except (OSError, UnreadableFile):
                continue  # The run reports it if it is one of its files.
            if _patches(library_of(project).module(file)):
                found.append(file)
    project.questions.ask(network.file.path, REPLACING, "", (file.path for file in found))
    for file in found:
        project.consult(network.file, file.path)
    return found


def _replaces(file: SourceFile, _key: str) -> bool:
    return any(True for _ in _patched(file))


REPLACING = Topic("replacing", _replaces, is_about_others=True)
"""Which files replace a ``forward``."""


@remembered
def _patches(module: Module) -> tuple[tuple[int, str], ...]:
    """Return where a ``forward`` is replaced, and of what."""
    return tuple(_patched(module.file))


def _patched(file: SourceFile) -> Iterator[tuple[int, str]]:
    text = file.outline.code
    for match in _ASSIGNED.finditer(text):
        offset = match.start()
        receiver = receiver_before(text, offset) if file.outline.is_code(offset) else ""
        if receiver:
            yield offset, receiver


def _is_object(receiver: str, network: Network) -> bool:
    stack, bracket, _ = receiver.partition("[")
    return receiver.isidentifier() or (
        bool(bracket) and stack.rpartition(".")[2] in network.holding_attributes
    )


def _names(file: SourceFile, network: Network, words: Set[str]) -> bool:
    if file is network.file:
        return True
    return any(not words.isdisjoint(_WORD.findall(each.text)) for each in file.outline.imports)
