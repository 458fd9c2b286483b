"""What a rule is, and where the rules are."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from functools import cache
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from gclint.finding import Finding
    from gclint.network.model import Network
    from gclint.source.suppressions import Suppressions


class Rule(ABC):
    """One kind of defect.

    A subclass lives alone in a module of ``rules/``, and its docstring is its documentation.
    """

    code: ClassVar[str]
    """For example ``GC001``; never used again once a rule is gone."""
    name: ClassVar[str]
    """For example ``missing-checkpointing-layer``."""
    always: ClassVar[bool] = False
    """Whether the rule runs beside whatever rules are selected, unless it is ignored."""

    @abstractmethod
    def check(self, network: Network) -> Iterable[Finding]:
        """Yield what is wrong in the file that ``network`` describes."""

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the documentation."""
        return cls.documentation().partition("\n")[0]

    @classmethod
    def documentation(cls) -> str:
        """Return the rule's docstring, which is Markdown, without its indentation."""
        return inspect.cleandoc(cls.__doc__ or "")


class CommentRule(Rule):
    """A kind of defect of ignore comments, which shows only when all other rules have run."""

    always = True

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield nothing: a network has no comments."""
        return ()

    @abstractmethod
    def check_comments(
        self, comments: Suppressions, findings: Collection[Finding], ran: Collection[str]
    ) -> Iterable[Finding]:
        """Yield what is wrong with the ignore comments of a file.

        Args:
            comments: the file's ignore comments.
            findings: what was found in the file, also what is suppressed.
            ran: the codes of the rules that looked at the file; only of these it is known whether
                there is something to suppress.
        """


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return one instance of every rule in ``gclint.rules``, ordered by code."""
    import gclint.rules

    found: list[Rule] = []
    for module_info in pkgutil.iter_modules(gclint.rules.__path__):
        module = importlib.import_module(f"gclint.rules.{module_info.name}")
        found.extend(
            member()
            for member in vars(module).values()
            if inspect.isclass(member)
            and issubclass(member, Rule)
            and member.__module__ == module.__name__
            and not inspect.isabstract(member)
        )
    return tuple(sorted(found, key=lambda rule: rule.code))


def codes_by_word(rules: Iterable[Rule]) -> dict[str, str]:
    """Return the codes of ``rules`` by the words that stand for one, in lower case: its code and its name."""
    return {word.lower(): rule.code for rule in rules for word in (rule.code, rule.name)}
