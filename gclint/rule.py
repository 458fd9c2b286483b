"""What a rule is, which rules there are, and which are selected."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from gclint.finding import Applicability, Evidence
from gclint.settings.definitions import RuleSetting, RuleWords

if TYPE_CHECKING:
    from gclint.finding import Finding
    from gclint.network.explaining.places import Spot
    from gclint.network.model import Network
    from gclint.settings import Settings
    from gclint.source.project import Surroundings
    from gclint.source.suppressions import Suppressions
    from gclint.verify.worker.cause import Cause
    from gclint.verify.worker.protocol import ClassResult, Failure, Place, RunSite

_RULES = "gclint.rules"
EVERYTHING = "ALL"
"""What stands for all rules."""
Level: TypeAlias = Literal["error", "warning", "note"]
Precision: TypeAlias = Literal["very-high", "high", "medium", "low"]
Text: TypeAlias = "Callable[[Place], str]"
"""Returns the lines of a place in the source."""


@dataclass(frozen=True)
class Setting(RuleSetting):
    """A list of strings that users may give a rule in its own table, ``[tool.gclint.rules.<name>]``."""

    def of(self, network: Network) -> tuple[str, ...]:
        """Return what holds for a file."""
        given = network.project.settings.given(self.name)
        return self.default if given is None else given


class Rule(ABC):
    """One kind of defect, and all that is known of it.

    A subclass lives alone in a module of ``rules/``, and its docstring is its documentation. What it does
    not say about runs is not known: then no run confirms or contradicts its findings, none of its repairs
    is proven, and no failure is put down to it.
    """

    code: ClassVar[str]
    """For example ``GC001``; never used again once a rule is gone."""
    name: ClassVar[str]
    """For example ``missing-checkpointing-layer``."""
    settings: ClassVar[tuple[Setting, ...]] = ()
    """What users may set for it."""
    fixes: ClassVar[tuple[Applicability, ...]] = ()
    """Which kinds of fixes it makes, none if it makes no fix; what copies of the code forbid comes on top."""
    causes: ClassVar[frozenset[Cause]] = frozenset()
    """What it repairs, of all that makes a run fail."""
    explains_all: ClassVar[bool] = True
    """Whether what has one of these causes is its defect, even where the rule itself finds nothing."""
    preview: ClassVar[bool] = False
    """Whether it is not sure enough to run unless users ask for rules in preview."""
    always: ClassVar[bool] = False
    """Whether the rule runs beside whatever rules are selected, unless it is ignored."""
    changes_code: ClassVar[bool] = True
    """Whether its fixes change more than comments, so that a run has to prove them."""
    shows_in_every_run: ClassVar[bool] = False
    """Whether any run of a call shows the defect if it is there, so that one which does not contradicts it;
    what depends on a configuration, as a cache does, may show in another."""
    level: ClassVar[Level] = "error"
    """How bad it is: an ``error`` raises or changes gradients, a ``warning`` costs memory or options."""
    precision: ClassVar[Precision] = "high"
    """How seldom a finding is wrong."""
    is_about_calls: ClassVar[bool] = False
    """Whether its findings are about calls of blocks, whose class is their symbol: only a run that comes to
    such a call proves a repair."""

    @abstractmethod
    def check(self, network: Network) -> Iterable[Finding]:
        """Yield what is wrong in the file that ``network`` describes."""

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield why there is no finding at a place that the rule looks at, in sentences.

        Nothing where there is nothing that it is about. It is asked only where it has no finding, by
        ``gclint explain``.
        """
        return ()

    def places(self, finding: Finding, site: RunSite) -> tuple[Place, ...]:
        """Return the places at which ``finding`` stands if it is about this call site."""
        return (site.place,)

    def evidence(self, sites: Sequence[RunSite], text: Text) -> Evidence | None:
        """Return what the call sites that a finding is about say of it, or None if they say nothing.

        Args:
            sites: the call sites as runs saw them, at least one, all of which were run.
            text: returns their source.
        """
        if any(map(self.flags, sites)):
            return Evidence.CONFIRMED
        return Evidence.CONTRADICTED if self.shows_in_every_run else None

    def flags(self, site: RunSite) -> bool | None:
        """Return whether the defect is there at a call site as a run saw it; None if no run can show that."""
        return None

    def concerns(self, finding: Finding, failure: Failure, run: ClassResult) -> bool:
        """Return whether a failure, which comes from what the rule repairs, shows what a finding is about.

        A failure at the finding's place does so anyway; this is for those that have no place.
        """
        return False

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
    changes_code = False

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
    found: list[Rule] = []
    # By its name: the rules build on this module, and not the other way round.
    for module_info in pkgutil.iter_modules(importlib.import_module(_RULES).__path__):
        module = importlib.import_module(f"{_RULES}.{module_info.name}")
        found.extend(
            member()
            for member in vars(module).values()
            if inspect.isclass(member)
            and issubclass(member, Rule)
            and member.__module__ == module.__name__
            and not inspect.isabstract(member)
        )
    return tuple(sorted(found, key=lambda rule: rule.code))


def rule_words() -> tuple[RuleWords, ...]:
    """Return what settings may say about rules."""
    return tuple(RuleWords(rule.code, rule.name, rule.settings) for rule in all_rules())


def selected_rules(settings: Settings) -> list[Rule]:
    """Return the rules that are to run."""
    return [rule for rule in all_rules() if _is_selected(rule, settings)]


def unknown_selectors(settings: Settings) -> list[tuple[str, str]]:
    """Return what stands for no rule, each behind the name of the setting that has it."""
    said = {
        "select": settings.select,
        "extend-select": settings.extend_select,
        "ignore": settings.ignore,
        "per-file-ignores": [each for _, selectors in settings.per_file_ignores for each in selectors],
    }
    rules = all_rules()
    return [
        (name, each)
        for name, selectors in said.items()
        for each in selectors
        if not any(_selects(each, rule) for rule in rules)
    ]


def held_back(settings: Settings) -> list[Rule]:
    """Return the rules that are named in the selection, and do not run since they are in preview."""
    named = {each.lower() for each in (*settings.select, *settings.extend_select)}
    in_preview = [rule for rule in all_rules() if rule.preview and not settings.preview]
    return [rule for rule in in_preview if named & {rule.code.lower(), rule.name}]


def ignored_codes(settings: Surroundings, path: Path, rules: Iterable[Rule]) -> frozenset[str]:
    """Return the codes of those of ``rules`` that report nothing in the file at ``path``."""
    ignored = settings.ignored_in(path)
    return frozenset(rule.code for rule in rules if any(_selects(each, rule) for each in ignored))


def _is_selected(rule: Rule, settings: Settings) -> bool:
    if rule.preview and not settings.preview:
        return False
    wanted = (*settings.select, *settings.extend_select)
    selected = rule.always or any(_selects(each, rule) for each in wanted)
    return selected and not any(_selects(each, rule) for each in settings.ignore)


def _selects(selector: str, rule: Rule) -> bool:
    word = selector.upper()
    return bool(word) and (word == EVERYTHING or rule.code.startswith(word) or rule.name.upper() == word)


def codes_by_word(rules: Iterable[Rule]) -> dict[str, str]:
    """Return the codes of ``rules`` by the words that stand for one, in lower case: its code and its name."""
    return {word.lower(): rule.code for rule in rules for word in (rule.code, rule.name)}
