"""What gclint expects of a rule that it does not know, and of what such a rule finds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import get_args

from gclint.cache.codec import decoded, encoded
from gclint.cache.consulted import Damaged
from gclint.finding import Applicability, Edit, Finding, StoryStep, is_own_code
from gclint.level import Level
from gclint.network.model import Network
from gclint.rule import Precision, Rule, Setting, all_rules, home, is_own

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


class Unsound(Exception):
    """A rule found something that is not a finding of its own; the message is a clause."""


def complaint(rule: Rule, others: Iterable[Rule]) -> str | None:
    """Return why a rule of the user's own cannot be used beside all rules and some others, or None."""
    return next(_complaints(rule, (*all_rules(), *others)), None)


def _complaints(rule: Rule, known: tuple[Rule, ...]) -> Iterator[str]:
    code, name = getattr(rule, "code", None), getattr(rule, "name", None)
    if not isinstance(code, str) or not is_own_code(code):
        had = "it has no code" if code is None else f"its code is {code!r}"
        yield f"{had}; write two or more capital letters and three digits, such as ACM001, but not GC or ALL"
        return
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        had = "it has no name" if name is None else f"its name is {name!r}"
        yield f"{had}; write words in lower case, joined by hyphens, such as literal-use-cache"
        return
    for other in known:
        if code in other.codes or name == other.name:
            word = code if code in other.codes else name
            yield f"{word} is already that of {other.code} {other.name}, in {home(other)}"
    if not rule.documentation():
        yield "it has no docstring, which is its documentation"
    if not isinstance(rule.formerly, tuple) or not all(map(is_own_code, rule.formerly)):
        yield "formerly has to be a tuple of codes"
    if not isinstance(rule.level, Level):
        yield f"level has to be one of {', '.join(map(str, Level))}"
    if rule.precision not in get_args(Precision):
        yield f"precision has to be one of {', '.join(get_args(Precision))}"
    if not isinstance(rule.fixes, tuple) or not all(isinstance(each, Applicability) for each in rule.fixes):
        yield f"fixes has to be a tuple of {', '.join(map(str, Applicability))}"
    yield from _complaints_about_settings(rule, known)


def _complaints_about_settings(rule: Rule, known: tuple[Rule, ...]) -> Iterator[str]:
    if not isinstance(rule.settings, tuple) or not all(isinstance(each, Setting) for each in rule.settings):
        yield "settings has to be a tuple of gclint.rule.Setting"
        return
    taken = {each.name: other for other in known for each in other.settings}
    for each in rule.settings:
        if each.name in taken:
            yield f"its setting {each.name} is already one of {taken[each.name].code}"


def found_by(rule: Rule, network: Network) -> list[Finding]:
    """Return what a rule finds in a file.

    Raises:
        Unsound: it is a rule of the user's own, and what it yields cannot be reported.
    """
    if not is_own(rule):
        return list(rule.check(network))
    found = rule.check(network)
    if not isinstance(found, Iterable):
        raise Unsound(f"`check` returns {found!r} where it has to yield findings")
    return [_checked(each, rule, network) for each in found]


def _checked(found: object, rule: Rule, network: Network) -> Finding:
    """Return a finding if it is one of a rule: of the right types, about itself, and inside of the text."""
    if not isinstance(found, Finding):
        raise Unsound(f"`check` yields {type(found).__name__}, which is not a Finding")
    try:
        is_typed = decoded(Finding, encoded(found)) == found
    except (TypeError, Damaged):
        is_typed = False
    if not is_typed:
        raise Unsound("a field of a finding does not have the type that gclint.finding says")
    if (found.code, found.name) != (rule.code, rule.name):
        raise Unsound(f"a finding has the code {found.code} and the name {found.name}; use `self.finding`")
    if not found.message or not found.symbol:
        raise Unsound("a finding needs a message and a symbol")
    if found.path != network.file.path or found.start == found.end:
        raise Unsound("a finding is not about code in the file that is checked, `network.file.path`")
    parts: tuple[Finding | Edit | StoryStep, ...] = (found, *found.edits, *found.story)
    for path, start, end in ((each.path, each.start, each.end) for each in parts):
        length = len(network.project.file(path).text)
        if not 0 <= start <= end <= length:
            raise Unsound(f"[{start}, {end}) is not a part of {path.name}, which has {length} characters")
    return found
