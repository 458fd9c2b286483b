"""Finds code that sets a module's checkpointing flag from outside of its class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gclint.source.file import SourceFile, UnreadableFile, of_text
from gclint.source.outline import Definition
from gclint.source.project import Project
from gclint.source.questions import Topic
from gclint.source.surroundings import files_mentioning

FLAG = "gradient_checkpointing"
CHECKPOINT_FUNCTION = "_gradient_checkpointing_func"
LIBRARY_SWITCH = "_set_gradient_checkpointing"
_BLANKS = r"(?:[ \t]|\\\r?\n){0,99}"
_ASSIGNED = re.compile(rf"{_BLANKS}(?::[^=\n]{{1,400}})?=(?!=)")
_NAMED = re.compile(rf"{_BLANKS},\s{{0,400}}[\"']{FLAG}[\"']\s{{0,400}},")
_OFF = re.compile(r"[\s(]{0,400}False\b")
_SETTING_CALLS = ("setattr(", "__setattr__(")
_ITEM = re.compile(rf"[\"']{FLAG}[\"']\s{{0,400}}\]")
# Objects with these names hold options, not modules.
_OPTIONS = re.compile(r"(?:config|cfg|conf|args|arguments|hparams|params|settings|options|flags)$")
_LONGEST_RECEIVER = 200


@dataclass(frozen=True)
class OutsideSwitch:
    """A statement that sets the flag of a module, outside of the module's own methods."""

    file: SourceFile
    offset: int
    receiver: str
    """The code of the expression whose flag is set."""
    is_complete: bool
    """Whether it does the same as the library: for all modules with a flag, and setting the function, too."""

    @property
    def attribute(self) -> str | None:
        """The attribute that holds the module; None if the receiver is a variable or an item."""
        head, dot, last = self.receiver.rpartition(".")
        return last if dot and last.isidentifier() and head else None


def outside_switches(project: Project, user: SourceFile) -> tuple[OutsideSwitch, ...]:
    """Return the statements that set flags from outside, in the files of a run and around them.

    Args:
        project: the files of the run.
        user: the file whose verdict depends on the answer.
    """
    known = project.derived.get(outside_switches)
    if not isinstance(known, tuple):
        with project.read_for(None):
            known = project.derived[outside_switches] = tuple(_found(project))
    paths = dict.fromkeys(each.file.path for each in known)
    project.questions.ask(user.path, SWITCHES, "", paths)
    for path in paths:
        project.consult(user, path)
    return known


def _sets_flag(file: SourceFile, _key: str) -> bool:
    return FLAG in file.text and any(True for _ in _in_file(file))


SWITCHES = Topic("switches", _sets_flag, is_about_others=True)
"""Asks which files set the flag of modules from outside."""


def _found(project: Project) -> Iterator[OutsideSwitch]:
    for path in files_mentioning(project, FLAG):
        try:
            file = project.file(path)
        except (OSError, UnreadableFile):
            continue  # If it is part of the run, the error is reported.
        yield from switches_in(file)


@of_text
def switches_in(file: SourceFile) -> tuple[OutsideSwitch, ...]:
    """Return the statements in a file that set flags from outside."""
    return tuple(_in_file(file))


def _in_file(file: SourceFile) -> Iterator[OutsideSwitch]:
    text = file.text
    for offset, receiver, value in (*_assignments(text), *_calls(text), *_items(text)):
        if _OPTIONS.search(receiver.lower()) or not file.outline.is_code(offset):
            continue
        functions = _functions_around(file, offset)
        if receiver in {each.first_parameter for each in functions if each.parent and each.parent.is_class}:
            continue  # The receiver is `self`.
        function = functions[-1] if functions else None
        if function is None or function.name != LIBRARY_SWITCH:
            is_off = _OFF.match(file.text, value) is not None
            yield OutsideSwitch(file, offset, receiver, _is_complete(receiver, function, is_off=is_off))


def _assignments(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the offsets of ``receiver.gradient_checkpointing = value`` and its value, and the receiver."""
    word = f".{FLAG}"
    offset = text.find(word)
    while offset != -1:
        assigned = _ASSIGNED.match(text, offset + len(word))
        receiver = receiver_before(text, offset) if assigned else ""
        if assigned and receiver:
            yield offset, receiver, assigned.end()
        offset = text.find(word, offset + 1)


def _calls(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the same for ``setattr(receiver, "gradient_checkpointing", value)``."""
    for call in _SETTING_CALLS:
        offset = text.find(call)
        while offset != -1:
            start = offset + len(call)
            comma = text.find(",", start, start + _LONGEST_RECEIVER)
            named = _NAMED.match(text, comma) if comma != -1 else None
            if named:
                yield offset, text[start:comma].strip(), named.end()
            offset = text.find(call, start)


def _items(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the same for ``vars(receiver)["gradient_checkpointing"] = value``."""
    for key in _ITEM.finditer(text):
        assigned = _ASSIGNED.match(text, key.end())
        bracket = text.rfind("[", max(0, key.start() - _LONGEST_RECEIVER), key.start())
        mapping = receiver_before(text, bracket) if assigned and bracket != -1 else ""
        if assigned and mapping.startswith("vars("):
            yield bracket, mapping[len("vars(") : -1], assigned.end()
        elif assigned and mapping.endswith(".__dict__"):
            yield bracket, mapping.removesuffix(".__dict__"), assigned.end()


def receiver_before(text: str, end: int) -> str:
    """Return the expression of names, items and calls that ends at an offset, of a long one only the end."""
    depth, start = 0, end
    while start > max(0, end - _LONGEST_RECEIVER):
        character = text[start - 1]
        if character in ")]":
            depth += 1
        elif character in "([":
            if not depth:
                break
            depth -= 1
        elif not depth and not (character.isalnum() or character in "_."):
            break
        start -= 1
    return text[start:end].strip()


def _functions_around(file: SourceFile, offset: int) -> list[Definition]:
    """Return the functions around an offset, the innermost last."""
    return [
        each
        for each in file.outline.definitions
        if not each.is_class and each.start <= offset < each.limit and offset < each.end
    ]


def _is_complete(receiver: str, function: Definition | None, *, is_off: bool) -> bool:
    if function is None or not receiver.isidentifier():
        return False
    text = function.text
    hands_on = f"{receiver}.{CHECKPOINT_FUNCTION} =" in text or any(
        f"setattr({receiver}, {quote}{CHECKPOINT_FUNCTION}{quote}" in text for quote in "\"'"
    )
    return (is_off or hands_on) and (".modules()" in text or f"hasattr({receiver}," in text)
