"""Finds code that refers to ``_set_gradient_checkpointing``, whose override a fix may remove."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gclint.network.evaluation.modules import library_of
from gclint.network.index import subclasses
from gclint.network.outside import LIBRARY_SWITCH, receiver_before
from gclint.network.override import OldOverride
from gclint.source.file import SourceFile, UnreadableFile, of_text
from gclint.source.naming import MODEL_BASE
from gclint.source.outline import Definition
from gclint.source.paths import shown
from gclint.source.project import Project
from gclint.source.questions import Topic
from gclint.source.surroundings import files_mentioning
from gclint.source.tokens import Kind, tokens

_NAMED = re.compile(rf"(?<!\w){LIBRARY_SWITCH}(?!\w)")
_DEFINED = re.compile(r"\bdef[ \t]+$")
_EDGES = ("'", '"', ".", "(")
"""What a name is next to in a string that names or runs it; in a message it stands among words."""
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")


@dataclass(frozen=True)
class _Use:
    """A place where code refers to the method, in a call, as a value, or by a string with its name."""

    offset: int
    owner: Definition | None
    """The class whose code refers to it as its own, by ``self``, ``super()`` or the name alone."""


def uses_of(override: OldOverride) -> Iterator[str]:
    """Yield the places, in words, that refer to an override or to one that may be it."""
    project, model = override.model.module.library.project, override.model
    kin = {base for heir in (model, *subclasses(project, model)) for base in heir.mro}
    for path in _files(project, model.file):
        file = project.consult(model.file, path)
        for use in _uses(file):
            if file is model.file and override.method.start <= use.offset < override.method.end:
                continue
            owner = (
                None if use.owner is None else library_of(project).module(file).classes.get(use.owner.name)
            )
            if use.owner is None or owner in kin:
                where = "" if file is model.file else f" of {shown(path)}"
                yield f"line {file.position(use.offset).row}{where}"


def _files(project: Project, user: SourceFile) -> tuple[Path, ...]:
    found = []
    with project.read_for(None):
        for path in files_mentioning(project, LIBRARY_SWITCH):
            try:
                if _uses(project.file(path)):
                    found.append(path)
            except (OSError, UnreadableFile):
                continue  # If it is part of the run, the error is reported.
    project.questions.ask(user.path, SWITCH_USES, "", found)
    return tuple(found)


def _is_using(file: SourceFile, _key: str) -> bool:
    return LIBRARY_SWITCH in file.text and bool(_uses(file))


SWITCH_USES = Topic("switch-uses", _is_using, is_about_others=True)
"""Asks which files refer to the method."""


@of_text
def _uses(file: SourceFile) -> tuple[_Use, ...]:
    return tuple(_in_file(file))


def _strings(text: str) -> list[tuple[int, int]]:
    """Return where the strings are that code uses, so no docstrings."""
    found, before, depth = [], Kind.NEWLINE, 0
    for token in tokens(text):
        is_formatted = token.text[0] in "fF"
        if token.kind is Kind.STRING and (depth or is_formatted or before is not Kind.NEWLINE):
            found.append((token.start, token.end))
        if token.kind is Kind.OPERATOR:
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
        before = token.kind
    return found


def _in_file(file: SourceFile) -> Iterator[_Use]:
    text = file.text
    strings = _strings(text) if LIBRARY_SWITCH in text else []
    for match in _NAMED.finditer(text):
        start, end = match.span()
        is_string = any(first < start < last for first, last in strings)
        is_defined = _DEFINED.search(text, max(0, start - 40), start) is not None
        is_meant = text[start - 1 : start] in _EDGES[:3] or text[end : end + 1] in _EDGES[:2] + _EDGES[3:]
        if is_defined or not (is_meant if is_string else file.outline.is_code(start)):
            continue
        is_attribute = text[start - 1 : start] == "."
        receiver = receiver_before(text, start - 1) if is_attribute else ""
        if not is_string and receiver.rpartition(".")[2] == MODEL_BASE:
            continue  # That of the library, by its name.
        around = [each for each in file.outline.definitions if each.start <= start < each.end]
        classes = [each for each in around if each.is_class]
        if any(each.name == MODEL_BASE for each in classes):
            continue  # The library itself asks for the signature first.
        own = {each.first_parameter for each in around if each.parent is not None and each.parent.is_class}
        is_own = not is_string and (not is_attribute or receiver in own or receiver.startswith("super("))
        yield _Use(start, classes[-1] if is_own and classes else None)
