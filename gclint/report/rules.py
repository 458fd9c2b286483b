"""The list of rules and the documentation of a rule, as text, JSON or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TextIO

from gclint.report.printing import write_object
from gclint.rule import Rule
from gclint.wording import listed


def _write_list(stream: TextIO, rules: Iterable[Rule]) -> None:
    rules = list(rules)
    codes, names = (max(len(getattr(rule, each)) for rule in rules) for each in ("code", "name"))
    for rule in rules:
        stream.write(f"{rule.code:<{codes}}  {rule.name:<{names}}  {rule.summary()}\n")


def _write_formatted(stream: TextIO, rule: Rule) -> None:
    if stream.isatty():
        from gclint.report.terminal import console_on, show_documentation

        show_documentation(console_on(stream), documentation(rule))
    else:
        stream.write(documentation(rule))


LISTS: Mapping[str, Callable[[TextIO, Iterable[Rule]], object]] = {
    "full": _write_list,
    "json": lambda stream, rules: write_object([described(rule) for rule in rules], stream),
}
"""The functions that write the list of rules, by the names that ``--output-format`` takes."""
DOCUMENTS: Mapping[str, Callable[[TextIO, Rule], object]] = {
    "full": _write_formatted,
    "json": lambda stream, rule: write_object(described(rule), stream),
    "markdown": lambda stream, rule: stream.write(documentation(rule)),
}
"""The functions that write the documentation of a rule, by the names that ``--output-format`` takes."""


def documentation(rule: Rule) -> str:
    """Return the documentation of a rule in Markdown, with its fixes and settings."""
    return (
        f"# {rule.code} {rule.name}\n\n{_facts(rule)}\n\n{rule.documentation()}\n{''.join(_settings(rule))}"
    )


def described(rule: Rule) -> dict[str, object]:
    """Return the description of a rule as an object for JSON."""
    from gclint.report.findings import documentation_url

    return {
        "code": rule.code,
        "name": rule.name,
        "summary": rule.summary(),
        "documentation": documentation(rule),
        "level": rule.level.value,
        "precision": rule.precision,
        "preview": rule.preview,
        "fix": {
            "availability": "sometimes" if rule.fixes else "never",
            "applicability": [each.value for each in rule.fixes],
        },
        "settings": [
            {
                "name": each.name,
                "type": "list of strings",
                "default": [*each.default],
                "documentation": each.documentation,
            }
            for each in rule.settings
        ],
        "causes": sorted(cause.value for cause in rule.causes),
        "url": documentation_url(rule),
    }


def _facts(rule: Rule) -> str:
    """Return the level of a rule, and which fixes it has, in words."""
    if not rule.fixes:
        return f"*Level: {rule.level.value}. No fix.*"
    kinds = listed((each.value for each in rule.fixes), "or")
    return f"*Level: {rule.level.value}. A fix is sometimes available: {kinds}.*"


def _settings(rule: Rule) -> Iterator[str]:
    """Yield a section about the settings of a rule, if it has any."""
    if rule.settings:
        yield "\n## Settings\n\n"
    for each in rule.settings:
        default = ", ".join(f'"{value}"' for value in each.default)
        yield f"- `{each.name} = [{default}]` in `[tool.gclint.rules.{rule.name}]`: {each.documentation}\n"
