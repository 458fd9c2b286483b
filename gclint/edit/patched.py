"""Code around a run that replaces the ``forward`` of a block, which some releases then do not recompute."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Set

from gclint.code.file import SourceFile
from gclint.code.likely import likely_imported
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.paths import behind_line
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.code.walk import last_name
from gclint.edit.replaced import files_imported
from gclint.edit.switching import computes_names
from gclint.edit.users import module_word
from gclint.model.attributes import spaces_of
from gclint.model.importing import names_any
from gclint.model.notes import quoted
from gclint.model.replacements import (
    RUN,
    WORDS,
    classes_replaced,
    is_plain,
    places_of_words,
    receiver_of,
    replacements,
)
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.holders import held_classes
from gclint.network.importers import words_in
from gclint.network.model import Network

_MOST_FILES = 60
"""In larger projects, only files that name the block are followed."""


def patch_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield why a block may not be recomputed because its ``forward`` is replaced."""
    which = network.releases.wrapping_forward
    if which is None:
        return
    spaces = spaces_of(network.project)
    for info in blocks:
        if not is_plain(spaces, info.file, info.name):
            yield f"the `forward` of `{info.name}` is no plain method, and {which} may not recompute it"
    for place in forwards_replaced(network, frozenset(blocks)):
        yield f"{place}, and {which} would not recompute it"


@remembered
def forwards_replaced(network: Network, blocks: frozenset[ClassInfo]) -> tuple[str, ...]:
    """Return where the ``forward`` of one of some blocks is replaced."""
    return tuple(_forwards_replaced(network, blocks))


def _forwards_replaced(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where the ``forward`` of a block is replaced, on the class or on an object that may be one.

    In another file, something unknown may be one if it is called like a block, or is an item of what is
    called like their stack, or if the file imports the block, what runs it, or their module, or is imported
    by that.
    """
    spaces = spaces_of(network.project)
    around = {base for info in blocks for base in info.mro}
    around |= {site.owner for site in network.run_sites if not set(blocks).isdisjoint(site.blocks)}
    named, words = {each.file for each in around} | {network.file}, {each.name for each in around}
    for file, is_near in _replacing(network, blocks, named, words):
        if not replacements(file):
            continue  # Its module need not be kept.
        space = spaces.of(file)
        places = replacements(file)  # Of the tree that the module holds.
        for node in places:
            replaced = classes_replaced(space, node, places)
            if _may_be_of(node, replaced, network, blocks, is_near=is_near):
                where = behind_line(file.path, network.file.path)
                row = file.position(space.offset(node)).row
                yield f"{_action(node)} on line {row}{where}"
                return


def _action(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute) and node.attr in RUN:
        return f"`{ast.unparse(node)}` is replaced"
    return f"the `forward` of a block may be replaced by `{quoted(node)}`"


def _may_be_of(
    node: ast.AST,
    replaced: Set[ast.ClassDef | str],
    network: Network,
    blocks: Collection[ClassInfo],
    *,
    is_near: bool,
) -> bool:
    """Tell whether a place may replace the ``forward`` of one of ``blocks``.

    Args:
        node: the place.
        replaced: the classes of which it may replace the ``forward``, or words for what is not known.
        network: the file that runs the blocks.
        blocks: the classes.
        is_near: whether its module names them, or what runs them.
    """
    spaces = spaces_of(network.project)
    for info in blocks:
        nodes = {spaces.of(base.file).class_node(base.name) for base in info.mro}
        if not nodes.isdisjoint(replaced):
            return True
    receiver, words = receiver_of(node), {each for each in replaced if isinstance(each, str)}
    if len(words) == len(replaced) and receiver is not None and last_name(receiver) in _names(blocks):
        return True
    if any(f"`{name}`" in words for name in network.holding_attributes):
        return True
    if not words or not is_near:
        return False
    receiver = node.value if isinstance(node, ast.Attribute) else None
    return not (isinstance(receiver, ast.Attribute) and _holds_others(receiver.attr, network, blocks))


def _names(blocks: Collection[ClassInfo]) -> set[str]:
    return {base.name for info in blocks for base in info.mro}


def _holds_others(name: str, network: Network, blocks: Collection[ClassInfo]) -> bool:
    """Tell whether an attribute of this name holds something else than ``blocks``, wherever it is known."""
    held = [
        attribute
        for info in network.module.classes.values()
        if (attribute := info.attribute(name)) is not None
    ]
    return bool(held) and all(held_classes(each).isdisjoint(blocks) for each in held)


def _replacing(
    network: Network, blocks: Collection[ClassInfo], named: Set[SourceFile], words: Set[str]
) -> Iterator[tuple[SourceFile, bool]]:
    """Yield the files of a run, or around it, that may replace a block's ``forward``, and which are near.

    Args:
        network: the file that runs the blocks.
        blocks: the classes.
        named: the modules of the blocks, and of what runs them.
        words: the names of these classes.
    """
    project = network.project
    files = project.chosen(files_mentioning(project, *WORDS), REPLACING, "", network.file)
    imported = " ".join(sorted({*words, *map(module_word, named)}))
    is_small = len(files) <= _MOST_FILES
    read = " ".join(sorted(_names(blocks).union(network.holding_attributes if is_small else ())))
    key = "|".join((imported, read, *(("",) if is_small else ())))
    # The verdict depends on the text of these alone; of most files, nothing matters but the words.
    likely = set(project.chosen((each.path for each in files), REPLACING, key, network.file))
    own = {network.file, *files_imported(network)}
    for file in files:
        if file in own or file in likely:
            project.consult(network.file, file.path)
            is_near = file in own or names_any(spaces_of(project), file, named, words)
            if is_near or _may_read(file, read.split(), is_small=is_small):
                yield file, is_near


def _may_read(file: SourceFile, names: Collection[str], *, is_small: bool) -> bool:
    """Tell whether a file may read one of some names; in small projects, it may put such a name together."""
    return not words_in(file).isdisjoint(names) or (is_small and computes_names(file))


@remembered
def _has_words(file: SourceFile) -> bool:
    return any(True for _ in places_of_words(file.text))


def _may_replace(file: SourceFile, key: str) -> bool:
    """Tell whether a file has words of what replaces a ``forward``, and may name what the key has.

    The key is empty, or has words of which a file imports one, and names of which it may read one instead. In
    small projects, it has a further mark.
    """
    imported, *read = key.split("|")
    is_likely = not read or not likely_imported(file).isdisjoint(imported.split())
    return _has_words(file) and (is_likely or _may_read(file, read[0].split(), is_small=len(read) > 1))


REPLACING = Topic("replacing", _may_replace, is_about_others=True)
"""Which files may replace the ``forward`` of some blocks, as far as their words tell."""
