"""Code that puts something else in the place of what blocks run, or hooks into it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from gclint.code.file import SourceFile
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.packages import LIBRARY
from gclint.code.paths import behind_line, shown
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.edit.recomputed import classes_run
from gclint.edit.surroundings import is_of
from gclint.edit.users import files_beside, module_word, topic_beside
from gclint.model.asking import questions
from gclint.model.notes import quoted
from gclint.model.patches import (
    ANY_PART,
    CLASS,
    Hook,
    Patch,
    ReplacedPart,
    is_relied_on,
    may_be_run,
    patches,
    remakes,
)
from gclint.model.replacements import RUN
from gclint.model.usage import usage_of
from gclint.network.evaluation.classes import ClassInfo, nodes_of
from gclint.network.importers import words_in
from gclint.network.model import Network

_REGISTRY = "AttentionInterface", "ALL_ATTENTION_FUNCTIONS"
"""The class that registers functions of attention, and the name by which models look them up."""
_REGISTERING = "register_"
"""How the names of what hooks into modules begin."""
_MOST_FILES = 60
"""In larger projects, only files are read that the blocks' own import."""


def replaced_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where something that blocks may run is replaced, or hooked into, around their file."""
    around = {base for info in blocks for base in info.mro}
    homes = {base.file for base in around} | {network.file}
    # Whether it matters that these are replaced depends on the release.
    others = {(base.name, name) for base in around for name in RUN}
    parts = _parts_run(blocks)
    for file, where in _placed(network, files_around(network)):
        for each in _patched(network, file):
            if isinstance(each, Hook):
                yield f"`{each.code}` on line {each.row}{where} may hook into what blocks run"
            elif isinstance(each, ReplacedPart):
                # In their own file, what it is about is followed.
                is_seen = each.is_filled or (file is network.file and not each.is_given)
                if not is_seen and each.name in parts:
                    yield f"`{each.code}` on line {each.row}{where} may replace a part that blocks run"
            elif each.last not in others and _is_of(network, file, each, homes):
                yield f"`{each.code}` on line {each.row}{where} replaces something that blocks may run"
    for file in files_beside(network, HOOKING, (_REGISTERING,)):
        if file not in files_around(network):
            for hook in _hooks(file):
                yield f"`{hook.code}` on line {hook.row} of {shown(file.path)} may hook into what blocks run"


def asking_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where code may ask for what becomes different in a checkpointing layer, whatever it asks."""
    homes = [base.file for info in blocks for base in info.mro]
    for file, where in _placed(network, dict.fromkeys((*files_around(network), *homes))):
        found = {} if is_machinery(network.project, file) else questions(file)
        for row, (code, owner) in found.items():
            if owner and not is_of((file, owner), blocks, network):
                continue
            yield f"`{code}` on line {row}{where} may ask for what becomes different in a checkpointing layer"


def class_replaced_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where a name of the blocks' modules gets another meaning, or something becomes another class."""
    homes = {base.file for info in blocks for base in info.mro} | {network.file}
    for file, where in _placed(network, files_around(network)):
        for each in _patched(network, file):
            if not isinstance(each, Patch) or is_relied_on(each.full):
                continue
            if _is_of(network, file, each, homes):
                yield f"`{each.code}` on line {each.row}{where} may put another class in a block's place"
        if file.tree is None or is_machinery(network.project, file):
            continue
        for node in usage_of(file.tree).replacing:
            row = getattr(node, "lineno", 1)
            if remakes(node):
                yield f"`{quoted(node)}` on line {row}{where} may make a block something else"


def layers_replaced(network: Network, names: Collection[str]) -> Iterator[str]:
    """Yield where other code puts something into stacks of layers, or makes layers something else.

    Args:
        network: the file that runs them.
        names: of the attributes that hold them.
    """
    for file, where in _placed(network, files_around(network)):
        for each in patches(file) if not is_machinery(network.project, file) else ():
            if isinstance(each, ReplacedPart) and each.name in names:
                yield f"`{each.code}` on line {each.row}{where}"


def _placed(network: Network, files: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, str]]:
    """Yield files, and how to name them behind a line; nothing for that of the blocks."""
    for file in files:
        yield file, behind_line(file.path, network.file.path)


def _patched(network: Network, file: SourceFile) -> Iterator[Hook | Patch | ReplacedPart]:
    """Yield what a file replaces; of the library's own machinery, only what it has imported."""
    is_librarys = is_machinery(network.project, file)
    yield from (each for each in patches(file) if each.is_imported or not is_librarys)


def function_replaced(network: Network, names: Collection[str]) -> Patch | None:
    """Return where a file, or one around it, gives something imported of some last names another meaning."""
    found = (each for file in files_around(network) for each in patches(file) if isinstance(each, Patch))
    return next((each for each in found if each.last[-1] in names), None)


def _hooks(file: SourceFile) -> list[Hook]:
    return [each for each in patches(file) if isinstance(each, Hook)]


def _is_of(network: Network, file: SourceFile, patch: Patch, homes: Collection[SourceFile]) -> bool:
    """Tell whether a patch is of something that gclint relies on, or of one of some modules."""
    imported = patch.imported
    if patch.last[-1:] == _REGISTRY[:1]:
        return any(_REGISTRY[1] in words_in(home) for home in homes)
    if imported is None or not imported.level:
        if is_relied_on(patch.full):
            return may_be_run(patch.full) or any(patch.last[-1] in words_in(home) for home in homes)
        if imported is None:
            return False
    name, further = imported.module, (*filter(None, (imported.name,)), *patch.path)
    while True:
        if network.project.module(file, name, imported.level) in homes and further:
            return further[-1].startswith("__") or any(further[-1] in words_in(home) for home in homes)
        if len(further) < 2:
            return False
        name, further = ".".join(filter(None, (name, further[0]))), further[1:]


def _parts_run(blocks: Collection[ClassInfo]) -> frozenset[str]:
    """Return the attributes of ``self`` that methods of blocks, or of their parts, call; any may be one."""
    classes = {each for info in blocks for each in classes_run(info)}
    called = (
        node.func
        for each in classes
        for method in each.methods()
        for node in nodes_of(method)
        if isinstance(node, ast.Call)
    )
    return frozenset((ANY_PART, CLASS)) | {
        each.attr
        for each in called
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self"
    }


@remembered
def files_around(network: Network) -> tuple[SourceFile, ...]:
    """Return the file of a network, what it imports of the project, and what may import it."""
    project, own = network.project, network.file
    found = {own.path: own}
    for each in own.outline.all_imported():
        for name in {each.module, ".".join(filter(None, (each.module, each.name)))}:
            file = project.module(own, name, each.level) if each.level or name else None
            if file is not None and not project.is_context(file.path):
                found[file.path] = file
    looks_up = not words_in(own).isdisjoint(_REGISTRY)
    for word in filter(None, (module_word(own), *(_REGISTRY if looks_up else ()))):
        with project.read_for(None):
            mentioning = files_mentioning(project, word) if len(project.given) <= _MOST_FILES else ()
            around = list(project.readable(mentioning))
        if len(around) <= _MOST_FILES:
            project.questions.ask(own.path, MENTIONING, word, (each.path for each in around))
            found |= {project.consult(own, each.path).path: each for each in around}
    return tuple(found.values())


def is_machinery(project: Project, file: SourceFile) -> bool:
    """Tell whether a file is of the library, but of none of its models: its functions are relied on.

    Its own package is, and no other one that has a base class of models by that name.
    """
    home = project.home(file)
    return (
        home is not None
        and home.folder.name == LIBRARY
        and not project.location(file.path).is_relative_to(home.folder / "models")
    )


HOOKING = topic_beside("hooking", lambda file: bool(_hooks(file)))
"""Which files of a folder hook into modules."""
MENTIONING = Topic("mentioning", lambda file, key: key in file.text, is_about_others=True)
"""Which files have a word in their text."""
