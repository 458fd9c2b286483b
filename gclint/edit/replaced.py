"""Code that puts something else in the place of what blocks run, or hooks into it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.packages import LIBRARY
from gclint.code.paths import behind_line, shown
from gclint.code.project import Project
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.code.walk import all_nodes, dotted_name, last_name, walk
from gclint.edit.recomputed import classes_run
from gclint.edit.surroundings import is_of
from gclint.edit.users import files_beside, module_word, topic_beside
from gclint.model import known
from gclint.model.asking import questions
from gclint.model.patches import (
    ANY_PART,
    CLASS,
    OF_ATTENTION,
    REGISTRIES,
    Hook,
    Patch,
    ReplacedPart,
    is_relied_on,
    may_be_run,
    patches,
    remade,
    replaces,
)
from gclint.model.replacements import CALLING, RUN
from gclint.network.evaluation.classes import ClassInfo, nodes_of, words_of
from gclint.network.importers import words_in
from gclint.network.model import Network
from gclint.network.outside import KEEPING

_REGISTERING = "register_"
"""How the names of what hooks into modules begin."""
_REPLACES = "replaces something that blocks may run"
_HOOKS = "may hook into what blocks run"
_MOST_PLACES = 3
_MOST_FILES = 60
"""Of more models of the library, only files are read that the blocks' own import."""


def replaced_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where something that blocks may run is replaced, or hooked into, around their file.

    Of each file, only the first places are told: some replace a hundred things.
    """
    run = _NamesRun(network, blocks)
    for file, where in _placed(network, files_around(network)):
        found = (f"`{each.code}` on line {each.row}{where} {what}" for each, what in run.replaced_in(file))
        yield from islice(found, _MOST_PLACES)
    for file, where in _placed(network, _files_farther(network)):
        found = (f"`{each.code}` on line {each.row}{where} {_REPLACES}" for each in run.replaced_from(file))
        yield from islice(found, _MOST_PLACES)
    for file in files_beside(network, HOOKING, (_REGISTERING,)):
        if file not in files_around(network):
            for hook in _hooks(file)[:_MOST_PLACES]:
                yield f"`{hook.code}` on line {hook.row} of {shown(file.path)} {_HOOKS}"


class _NamesRun:
    """What blocks run, by its names."""

    def __init__(self, network: Network, blocks: Collection[ClassInfo]) -> None:
        around = {base for info in blocks for base in info.mro}
        self._network = network
        self._homes = {base.file for base in around} | {network.file}
        # Whether it matters that these are replaced depends on the release.
        self._others = {(base.name, name) for base in around for name in RUN}
        calls = [*_calls(blocks)]
        self._filled = frozenset(_parts_held(blocks))
        words = (words_of(each.definition) for info in blocks for each in classes_run(info))
        self._is_composite = not known.COMPOSITE.isdisjoint(chain.from_iterable(words))
        self._parts, self._functions, self._own = (
            _parts_run(calls),
            _functions_run(calls),
            _attributes_run(calls),
        )
        self._called = self._own | _attributes_run_around(network, blocks)

    def replaced_in(self, file: SourceFile) -> Iterator[tuple[Hook | Patch | ReplacedPart, str]]:
        """Yield what a file around the blocks replaces of that, and what it does in words."""
        is_known = is_machinery(self._network.project, file)
        for each in _patched(self._network, file):
            is_far = file is not self._network.file or getattr(each, "is_given", False)
            name = None if is_known else _name_set(each)
            # What is not known to be of a package matters only to what blocks call themselves.
            is_called = name in (self._own if isinstance(each, ReplacedPart) else self._called)
            is_called = is_called or (is_far and name in self._functions)
            if isinstance(each, Hook):
                yield each, _HOOKS
            elif isinstance(each, ReplacedPart):
                # In their own file, what it is about is followed.
                is_seen = each.is_filled or (file is self._network.file and not each.is_given)
                if is_called or (not is_seen and each.name in self._parts) or self._is_of_torch(each):
                    yield each, "may replace a part that blocks run"
            elif each.last not in self._others and (is_called or self._is_of(file, each)):
                yield each, _REPLACES

    def replaced_from(self, file: SourceFile) -> Iterator[Patch]:
        """Yield what a file farther away replaces of that when it is imported."""
        named = self._own.difference(CALLING, ("__init__",))
        for each in patches(file):
            if not isinstance(each, Patch) or each.last in self._others or not each.is_imported:
                continue
            if _name_set(each) in named or self._is_of(file, each):
                yield each

    def _is_of_torch(self, part: ReplacedPart) -> bool:
        """Tell whether a module of torch may run something else if a part is replaced, or filled."""
        if part.is_filled:
            return part.name in self._filled
        is_run = self._is_composite and part.name in known.RUN_BY_COMPOSITE
        return is_run or part.name in known.CHANGING_SETTINGS

    def _is_of(self, file: SourceFile, patch: Patch) -> bool:
        return _is_of(self._network, file, patch, self._homes)


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
            if not isinstance(each, Patch) or is_relied_on(each.full) or each.last[-1] in REGISTRIES:
                continue
            if _is_of(network, file, each, homes):
                yield f"`{each.code}` on line {each.row}{where} may put another class in a block's place"
        for row, code in () if is_machinery(network.project, file) else remade(file):
            yield f"`{code}` on line {row}{where} may make a block something else"


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
    is_known = is_machinery(network.project, file)
    yield from (each for each in patches(file) if each.is_imported or not is_known)


def function_replaced(network: Network, functions: Collection[str]) -> Patch | None:
    """Return where a file, or one around it, gives another meaning to some functions of other packages.

    Args:
        network: the file that calls them.
        functions: their full names.
    """
    names, homes = {each.rpartition(".")[2] for each in functions}, (network.file,)
    for file in files_around(network):
        found = (each for each in patches(file) if isinstance(each, Patch) and each.last[-1] in names)
        for each in found:
            if each.full in functions or (each.imported and _is_of(network, file, each, homes)):
                return each
    return None


def _hooks(file: SourceFile) -> list[Hook]:
    return [each for each in patches(file) if isinstance(each, Hook)]


def _is_of(network: Network, file: SourceFile, patch: Patch, homes: Collection[SourceFile]) -> bool:
    """Tell whether a patch is of something that gclint relies on, or of one of some modules."""
    imported = patch.imported
    if patch.last[-1:] == OF_ATTENTION[:1]:
        return any(OF_ATTENTION[1] in words_in(home) for home in homes)
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


def _parts_run(calls: Iterable[ast.expr]) -> frozenset[str]:
    """Return the attributes of ``self`` that are called; any may be one."""
    found = (each.attr for each in calls if isinstance(each, ast.Attribute) and _is_part(each))
    return frozenset((ANY_PART, CLASS, *found))


def _parts_held(blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield the attributes of ``self`` that blocks or their parts call, or whose items they may call."""
    for node in _nodes_run(blocks):
        run = node.func if isinstance(node, ast.Call) else getattr(node, "iter", None)
        for each in () if run is None else walk(run):
            if isinstance(each, ast.Attribute) and _is_part(each):
                yield each.attr


def _name_set(patch: Patch | ReplacedPart | Hook) -> str | None:
    """Return the name of an attribute that gets another value; None if it is one that is filled."""
    if isinstance(patch, Hook) or patch.is_filled:
        return None
    return patch.name if isinstance(patch, ReplacedPart) else patch.last[-1]


def _is_part(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _calls(blocks: Collection[ClassInfo]) -> Iterator[ast.expr]:
    """Yield what methods of blocks, or of their parts, call."""
    return (node.func for node in _nodes_run(blocks) if isinstance(node, ast.Call))


def _nodes_run(blocks: Collection[ClassInfo]) -> Iterator[ast.AST]:
    """Yield the code of the methods of blocks, and of their parts."""
    for part in {each for info in blocks for each in classes_run(info)}:
        yield from (node for method in part.methods() for node in nodes_of(method))


def _functions_run(calls: Iterable[ast.expr]) -> frozenset[str]:
    """Return the names without a dot that are called."""
    return frozenset(each.id for each in calls if isinstance(each, ast.Name))


def _attributes_run(calls: Iterable[ast.expr]) -> frozenset[str]:
    """Return the attributes that are called of something else than ``self``."""
    own = (each.attr for each in calls if isinstance(each, ast.Attribute) and not _is_part(each))
    return frozenset((*CALLING, *own))


def _attributes_run_around(network: Network, blocks: Collection[ClassInfo]) -> frozenset[str]:
    """Return the attributes of something else than ``self`` that files call, those of blocks or around."""
    files = {each.file for info in blocks for each in classes_run(info)}.union(files_around(network))
    attributes = (_attributes_called(each) for each in files if not is_machinery(network.project, each))
    return frozenset().union(*attributes)


@remembered
def _attributes_called(file: SourceFile) -> frozenset[str]:
    """Return the attributes that a file calls, except below ``self``, and all that it reads of imports."""
    imported = {each.bound for each in file.outline.all_imported()}
    found = set[str]()
    for node in all_nodes(file.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holder = node.func.value
            while isinstance(holder, (ast.Attribute, ast.Subscript)):
                holder = holder.value
            found.update(() if last_name(holder) == "self" else (node.func.attr,))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            root = (dotted_name(node) or "").partition(".")[0]
            found.update((node.attr,) if root in imported else ())
    return frozenset(found)


@remembered
def files_around(network: Network) -> tuple[SourceFile, ...]:
    """Return the file of a network, what it imports of the project, and what may import it."""
    project, own = network.project, network.file
    imported = (each for each in _imported(project, own) if not project.is_context(each.path))
    found = {own.path: own, **{each.path: project.consult(own, each.path) for each in imported}}
    looks_up = not words_in(own).isdisjoint(OF_ATTENTION)
    for word in filter(None, (module_word(own), *(OF_ATTENTION if looks_up else ()))):
        # The models of the library are many, and do not replace anything in each other.
        if is_librarys(project, own) and len(project.given) > _MOST_FILES:
            continue
        mentioning = files_mentioning(project, word)
        if word in OF_ATTENTION and is_librarys(project, own):
            mentioning = tuple(each for each in mentioning if not _is_beside(project, own, each))
        for each in project.chosen(mentioning, MENTIONING, word, own):
            found[each.path] = project.consult(own, each.path)
    return tuple(found.values())


@remembered
def _files_farther(network: Network) -> tuple[SourceFile, ...]:
    """Return what else is imported before a file is: its packages, and what all of these import in turn."""
    near = files_around(network)
    known = {each.path for each in near}
    return tuple(each for each in _reached(network, near) if each.path not in known)


@remembered
def files_imported(network: Network) -> tuple[SourceFile, ...]:
    """Return the files of the project that one imports, directly or not, but none of the library."""
    return tuple(_reached(network, (network.file,)))


def _reached(network: Network, files: Collection[SourceFile]) -> list[SourceFile]:
    """Return what files import, and their packages, directly or not; nothing for one of the library."""
    project, own = network.project, network.file
    found: dict[Path, SourceFile] = {}
    waiting = [] if is_librarys(project, own) else [*files]
    while waiting:
        file = waiting.pop()
        for each in (*_imported(project, file), *_packages_of(project, file)):
            is_known = each.path in found or project.is_context(each.path) or is_librarys(project, each)
            if not is_known:
                found[each.path] = project.consult(own, each.path)
                waiting.append(each)
    return [*found.values()]


def _imported(project: Project, file: SourceFile) -> Iterator[SourceFile]:
    """Yield the files of a project that one imports."""
    for each in file.outline.all_imported():
        for name in {each.module, ".".join(filter(None, (each.module, each.name)))}:
            found = project.module(file, name, each.level) if each.level or name else None
            yield from () if found is None else (found,)


def _packages_of(project: Project, file: SourceFile) -> Iterator[SourceFile]:
    """Yield the package that a file is in, whose own code runs before."""
    package = project.module(file, "", 2 if file.path.stem == "__init__" else 1)
    yield from () if package is None else (package,)


def is_librarys(project: Project, file: SourceFile) -> bool:
    """Tell whether a file is of the library, or of one of its models."""
    home = project.home(file)
    return home is not None and home.folder.name == LIBRARY


def _is_beside(project: Project, file: SourceFile, path: Path) -> bool:
    """Tell whether the file at a path is of the same library as another one."""
    home = project.home(file)
    return home is not None and project.location(path).is_relative_to(home.folder)


def is_machinery(project: Project, file: SourceFile) -> bool:
    """Tell whether a file is of the library, but of none of its models: its functions are relied on.

    Its own package is, and no other one that has a base class of models by that name.
    """
    home = project.home(file)
    return (
        home is not None
        and is_librarys(project, file)
        and not project.location(file.path).is_relative_to(home.folder / "models")
    )


HOOKING = topic_beside("hooking", lambda file: bool(_hooks(file)))
"""Which files of a folder hook into modules."""


def _may_matter(file: SourceFile, word: str) -> bool:
    if word not in file.text or not file.parses:
        return False
    return replaces(file) or bool(patches(file) or questions(file)) or KEEPING in file.text


MENTIONING = Topic("mentioning", _may_matter, is_about_others=True)
"""Which files have a word in their text, and do something that may matter."""
