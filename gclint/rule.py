"""What a rule is, and where the rules are."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from gclint.finding import Finding
    from gclint.network.model import Network


class Rule(ABC):
    """One kind of defect.

    A subclass lives alone in a module of ``rules/``, and its docstring is its documentation.
    """

    code: ClassVar[str]
    """For example ``GC001``; never used again once a rule is gone."""
    name: ClassVar[str]
    """For example ``missing-checkpointing-layer``."""

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
