"""The base class of rules, the list of all rules, and the selection of rules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from gclint.finding import Applicability, Evidence, Finding, Fix, Refusal
from gclint.level import Level
from gclint.settings.definitions import RuleSetting, RuleWords

if TYPE_CHECKING:
    from gclint.code.suppressions import Suppressions
    from gclint.network.explaining.places import CodeToExplain
    from gclint.network.model import Network
    from gclint.settings import Settings
    from gclint.verify.worker.cause import Cause
    from gclint.verify.worker.protocol import ClassResult, Failure, ObservedSite, SourcePlace

_RULES = "gclint.rules"
EVERYTHING = "ALL"
"""The selector of all rules."""
Precision: TypeAlias = Literal["very-high", "high", "medium", "low"]
Text: TypeAlias = "Callable[[SourcePlace], str]"
"""Returns the lines of a place in the source."""


@dataclass(frozen=True)
class Setting(RuleSetting):
    """A setting in the table of a rule, ``[tool.gclint.rules.<name>]``; its value is a list of strings."""

    def of(self, network: Network) -> tuple[str, ...]:
        """Return the value for the file that ``network`` describes."""
        given = network.project.settings.of(network.file.path).given(self.name)
        return self.default if given is None else given


class Rule(ABC):
    """One kind of defect, and everything that is known of it.

    Each rule is a subclass in a module of its own in ``rules/``, and its docstring is its documentation. By
    default, runs of models do not matter to a rule: no run confirms or contradicts its findings, none of its
    repairs is proven, and no failure is attributed to it.
    """

    code: ClassVar[str]
    """For example ``GC001``; the code of a removed rule is never reused."""
    name: ClassVar[str]
    """For example ``missing-checkpointing-layer``."""
    formerly: ClassVar[tuple[str, ...]] = ()
    """The codes of rules that had its findings in earlier releases: what users wrote about these codes holds
    for it as well, unless they name the rule itself."""
    settings: ClassVar[tuple[Setting, ...]] = ()
    """The settings of the rule."""
    fixes: ClassVar[tuple[Applicability, ...]] = ()
    """The kinds of fixes that it makes; copies of the code may make a single fix unsafe in addition."""
    causes: ClassVar[frozenset[Cause]] = frozenset()
    """The causes of failures in runs that its fixes remove."""
    shown_by: ClassVar[frozenset[Cause] | None] = None
    """Those that are the damage which its messages name; None for all."""
    explains_all: ClassVar[bool] = True
    """Whether a failure with one of these causes is always this defect, even without a finding."""
    preview: ClassVar[bool] = False
    """Whether it runs only if users enable rules in preview."""
    always: ClassVar[bool] = False
    """Whether the rule runs whatever rules are selected, unless it is ignored."""
    changes_code: ClassVar[bool] = True
    """Whether its fixes change more than comments, so that a run has to prove them."""
    shows_in_every_run: ClassVar[bool] = False
    """Whether any run of a call shows the defect if it is there, so that a run without it contradicts the
    finding. A defect that depends on the configuration, such as one of caches, may show elsewhere."""
    level: ClassVar[Level] = Level.ERROR
    """The level of its findings, unless a finding or the settings have another one."""
    precision: ClassVar[Precision] = "high"
    """How rare false positives are."""
    is_about_calls: ClassVar[bool] = False
    """Whether its findings are about calls of blocks, with the class of the block as their symbol: only a run
    that reaches such a call proves a repair."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that users may know the rule by."""
        return (self.code, *self.formerly)

    @abstractmethod
    def check(self, network: Network) -> Iterable[Finding]:
        """Yield the findings in the file that ``network`` describes."""

    def finding(
        self,
        message: str,
        path: Path,
        span: tuple[int, int],
        symbol: str,
        remedy: Fix | Refusal,
        **further: Any,
    ) -> Finding:
        """Return a finding of this rule, with ``further`` fields."""
        further = {"level": self.level, "formerly": self.formerly, **further}
        return Finding(self.code, self.name, message, path, *span, symbol, remedy, **further)

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield the reasons, as clauses, why the rule has no finding at a place.

        Yield nothing if the rule does not apply to the place. ``gclint explain`` calls this, only if there is
        no finding.
        """
        return ()

    def places(self, finding: Finding, site: ObservedSite) -> tuple[SourcePlace, ...]:
        """Return the places where ``finding`` is if it is about this call site."""
        return (site.place,)

    def evidence(self, sites: Sequence[ObservedSite], text: Text) -> Evidence | None:
        """Return what runs say about a finding whose failure none of them had; None for nothing.

        Args:
            sites: the call sites of the finding as runs saw them: at least one, and all were run.
            text: returns the source of a place.
        """
        if any(map(self.shows, sites)):
            return Evidence.CONFIRMED
        if any(map(self.flags, sites)):
            return Evidence.UNSEEN
        return Evidence.CONTRADICTED if self.shows_in_every_run else None

    def flags(self, site: ObservedSite) -> bool | None:
        """Return whether a call site has the defect; None if no run can tell.

        The defect may do no damage there: see ``shows``.
        """
        return None

    def shows(self, site: ObservedSite) -> bool:
        """Return whether runs saw the damage of the defect at a call site, beside failures that name it."""
        return False

    def concerns(self, finding: Finding, failure: Failure, run: ClassResult) -> bool:
        """Return whether a failure with one of the rule's ``causes`` shows the defect of a finding.

        A failure at the place of the finding always does. This is called for failures without a place.
        """
        return False

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the documentation."""
        return cls.documentation().partition("\n")[0]

    @classmethod
    def documentation(cls) -> str:
        """Return the rule's docstring, which is Markdown, without indentation."""
        return inspect.cleandoc(cls.__doc__ or "")


class CommentRule(Rule):
    """A rule about ignore comments, which is checked after all other rules have run."""

    always = True
    changes_code = False

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield nothing, since a network does not include comments."""
        return ()

    @abstractmethod
    def check_comments(
        self, comments: Suppressions, findings: Collection[Finding], ran: Collection[str]
    ) -> Iterable[Finding]:
        """Yield the findings about the ignore comments of a file.

        Args:
            comments: the ignore comments of the file.
            findings: all findings in the file, including suppressed ones.
            ran: the codes of the rules that ran on the file; for any other rule it is not known whether it
                would have a finding.
        """


@cache
def _built_in() -> tuple[Rule, ...]:
    """Return one instance of every rule in ``gclint.rules``."""
    # Imported by name, since the rules import this module.
    names = [each.name for each in pkgutil.iter_modules(importlib.import_module(_RULES).__path__)]
    modules = [importlib.import_module(f"{_RULES}.{name}") for name in names]
    return tuple(
        each() for module in modules for each in rule_classes(module) if not inspect.isabstract(each)
    )


def home(rule: Rule) -> str:
    """Return the file that a rule is defined in; if there is none, the name of its module."""
    name = type(rule).__module__
    return getattr(sys.modules.get(name), "__file__", None) or name


def rule_classes(module: ModuleType) -> Iterator[type[Rule]]:
    """Yield the subclasses of :class:`Rule` that a module defines itself or, if it is a package, inside."""
    for member in dict.fromkeys(filter(inspect.isclass, vars(module).values())):
        home = f"{member.__module__}."
        if issubclass(member, Rule) and home.startswith(f"{module.__name__}."):
            yield member


_own: list[Rule] = []


def set_own_rules(rules: Iterable[Rule]) -> None:
    """Let these rules of the user's own be among all rules, in place of those that were there before."""
    _own[:] = rules


def own_rules() -> tuple[Rule, ...]:
    """Return the rules of the user's own."""
    return tuple(_own)


def is_own(rule: Rule) -> bool:
    """Return whether a rule is one of the user's own; another process has another instance of it."""
    return any(type(each) is type(rule) for each in _own)


def all_rules() -> tuple[Rule, ...]:
    """Return one instance of every rule, of gclint and of the user's own, ordered by code."""
    return tuple(sorted((*_built_in(), *_own), key=lambda rule: rule.code))


def rule_words() -> tuple[RuleWords, ...]:
    """Return the names and settings of all rules, for the reader of settings."""
    return tuple(RuleWords(rule.code, rule.name, rule.settings) for rule in all_rules())


def selected_rules(settings: Settings) -> list[Rule]:
    """Return the rules to run on some of the files; see :func:`selected_for`."""
    wanted = (settings, *settings.inner.values())
    return [rule for rule in all_rules() if any(_is_selected(rule, each) for each in wanted)]


def selected_for(settings: Settings, path: Path, rules: Iterable[Rule]) -> list[Rule]:
    """Return those of the selected ``rules`` that are to run on the file at ``path``."""
    if not settings.inner:
        return [*rules]
    return [rule for rule in rules if _is_selected(rule, settings.of(path))]


def unknown_selectors(settings: Settings) -> list[tuple[str, str]]:
    """Return pairs of the name of a setting and a selector in it that matches no rule."""
    said = {
        "select": settings.select,
        "extend-select": settings.extend_select,
        "ignore": settings.ignore,
        "per-file-ignores": [each for _, selectors in settings.per_file_ignores for each in selectors],
        "levels": [each for each, _ in settings.levels],
    }
    rules = all_rules()
    return [
        (name, each)
        for name, selectors in said.items()
        for each in selectors
        if not any(_selects(each, rule) for rule in rules)
    ]


def held_back(settings: Settings) -> list[Rule]:
    """Return the rules that are selected by name, but do not run because they are in preview."""
    named = {each.lower() for each in (*settings.select, *settings.extend_select)}
    in_preview = [rule for rule in all_rules() if rule.preview and not settings.preview]
    return [rule for rule in in_preview if named & {rule.code.lower(), rule.name}]


def ignored_codes(settings: Settings, path: Path, rules: Iterable[Rule]) -> frozenset[str]:
    """Return the codes of those ``rules`` that are ignored in the file at ``path``, or not to run on it."""
    rules, ignored = list(rules), settings.ignored_in(path)
    selected = selected_for(settings, path, rules)
    return frozenset(
        rule.code for rule in rules if rule not in selected or any(_selects(each, rule) for each in ignored)
    )


def with_level(settings: Settings, finding: Finding) -> Finding:
    """Return a finding with the level that the settings give to its rule, if they name it.

    Of several selectors, the longest one counts, and one for the rule itself before one for its former code.
    """
    found = [
        (_is_name(selector, finding), 0 if selector.upper() == EVERYTHING else len(selector), level)
        for selector, level in settings.of(finding.path).levels
        if _selects(selector, finding)
    ]
    if not found:
        return finding
    return replace(finding, level=max(found, key=lambda each: each[:2])[2])


def _is_selected(rule: Rule, settings: Settings) -> bool:
    if rule.preview and not settings.preview:
        return False
    wanted = (*settings.select, *settings.extend_select)
    selected = rule.always or any(_selects(each, rule) for each in wanted)
    # Who names a module wants its rules, whatever a repository selects.
    selected = selected or (is_own(rule) and not settings.is_of_command_line("select"))
    # What is selected by its own code is not ignored by a former one.
    is_named = any(_is_name(each, rule) for each in wanted)
    return selected and not any(_selects(each, rule, formerly=not is_named) for each in settings.ignore)


def _selects(selector: str, rule: Rule | Finding, *, formerly: bool = True) -> bool:
    word = selector.upper()
    if word == EVERYTHING or _is_name(selector, rule):
        return True
    codes = rule.codes if formerly else (rule.code,)
    return bool(word) and (
        any(code.startswith(word) for code in codes)
        or any(_is_name(selector, each) for each in all_rules() if each.code in codes)
    )


def _is_name(selector: str, rule: Rule | Finding) -> bool:
    return selector.upper() in (rule.code, rule.name.upper())


def has_decided(code: str, ran: Collection[str]) -> bool:
    """Return whether all is known that users may call by a code, since each rule that had it ``ran``."""
    return code in ran and all(rule.code in ran for rule in all_rules() if code in rule.codes)


def codes_by_word(rules: Iterable[Rule]) -> dict[str, str]:
    """Return the codes of ``rules`` by their codes and names in lower case."""
    return {word.lower(): rule.code for rule in rules for word in (rule.code, rule.name)}
