"""Other files that may do something with what the models of a file hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from gclint.code.file import SourceFile
from gclint.code.likely import given_by_word, likely_imported
from gclint.code.neighbouring_files import files_importing, files_mentioning
from gclint.code.outline import Definition
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.copies.generated import is_modular
from gclint.model.attributes import spaces_of
from gclint.model.importing import names_any
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import ModuleInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import EvaluatedFunction
from gclint.network.model import Network


@remembered
def users_naming(network: Network, names: frozenset[str]) -> tuple[ModuleInfo, ...]:
    """Return the other modules that import from a file, and name one of some attributes."""
    return tuple(_users(network, names))


def users(network: Network) -> tuple[ModuleInfo, ...]:
    """Return the other modules that import from a file, and name it or one of its classes."""
    return users_naming(network, frozenset((module_word(network.file), *network.module.classes)) - {""})


def _users(network: Network, names: Collection[str]) -> Iterator[ModuleInfo]:
    project, classes = network.project, frozenset(network.module.classes)
    stem = module_word(network.file)
    key = f"{' '.join(sorted(names))}|{' '.join(sorted((stem, *classes)))}"
    importing = given_by_word(project, likely_imported)
    given = {path for word in (stem, *classes) for path in importing.get(word, ())}
    likely = (*project.in_order(given), *files_importing(project, sorted((stem, *classes))))
    for file in project.chosen(likely, USING, key, network.file):
        is_other = file is not network.file and not is_modular(file.path)
        if is_other and names_any(spaces_of(project), file, {network.file}, classes):
            project.consult(network.file, file.path)
            yield network.library.module(file)


def subclasses_around(network: Network, base: ClassInfo) -> Iterator[ClassInfo]:
    """Yield the classes that inherit from one in any file, given or not, also those in functions."""
    seen, waiting = {base}, [base]
    while waiting:
        info = waiting.pop()
        home = network if info.file is network.file else Network(network.project, info.file)
        for module in (home.module, *users_naming(home, frozenset((info.name,)))):
            for definition in module.file.outline.definitions:
                found = module.info(definition) if definition.bases else info
                if found not in seen and info in found.bases:
                    seen.add(found)
                    waiting.append(found)
                    yield found


def topic_beside(name: str, holds: Callable[[SourceFile], bool]) -> Topic:
    """Return the question which files of a folder, its key, are such that something holds."""

    def asked(file: SourceFile, folder: str) -> bool:
        return folder == str(file.path.resolve().parent) and holds(file)

    return Topic(name, asked, is_about_others=True)


def files_beside(network: Network, topic: Topic, words: Collection[str]) -> list[SourceFile]:
    """Return the other files of a file's folder for which a topic holds, whose key is the folder.

    Args:
        network: the file, whose verdict depends on them.
        topic: what has to hold.
        words: of which each of them has one.
    """
    project, folder = network.project, network.project.location(network.file.path).parent
    likely = files_mentioning(project, *sorted(words))
    near = (each for each in likely if project.location(each).parent == folder)
    found = project.chosen(near, topic, str(folder), network.file)
    others = [each for each in found if each is not network.file]
    for file in others:
        project.consult(network.file, file.path)
    return others


def module_word(file: SourceFile) -> str:
    """Return the word by which code imports a file; nothing if no code can."""
    path = file.path
    word = path.parent.name if path.stem == "__init__" else path.stem
    return word if word.isidentifier() else ""


def code_of(module: ModuleInfo, is_named: Callable[[Definition], bool]) -> Iterator[tuple[str, Scope]]:
    """Yield the methods and functions of a module for which something holds, with their names."""
    for info in module.classes.values():
        for method in info.methods():
            if is_named(method):
                yield f"{info.name}.{method.name}", info.scope(method)
    for definition in module.file.outline.definitions:
        if not definition.is_class and not definition.indent and is_named(definition):
            for value in module.lookup(definition.name):
                if isinstance(value, EvaluatedFunction):
                    yield definition.name, value.scope.enter(value, ())


def _may_use(file: SourceFile, key: str) -> bool:
    names, _, imported = key.partition("|")
    return not likely_imported(file).isdisjoint(imported.split()) and any(
        name in file.text for name in names.split()
    )


USING = Topic("using", _may_use, is_about_others=True)
"""Which files name some attributes, and import one of some words."""
