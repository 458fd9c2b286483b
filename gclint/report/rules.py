"""The list of rules and the documentation of a rule, as text, JSON or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from gclint.report.printing import write_object

if TYPE_CHECKING:
    from gclint.rule import Rule, Setting


def write_list(stream: TextIO, rules: Iterable[Rule]) -> None:
    """Write one line per rule."""
    rules = list(rules)
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        stream.write(f"{rule.code}  {rule.name:<{width}}  {rule.summary()}\n")


def write_list_as_json(stream: TextIO, rules: Iterable[Rule]) -> None:
    """Write a list with an object for every rule."""
    write_object([described(rule) for rule in rules], stream)


def write_documentation(stream: TextIO, rule: Rule) -> None:
    """Write the documentation of a rule, formatted on a terminal."""
    if stream.isatty():
        from gclint.report.terminal import console_on, show_documentation

        show_documentation(console_on(stream), documentation(rule))
    else:
        write_markdown(stream, rule)


def write_markdown(stream: TextIO, rule: Rule) -> None:
    """Write the documentation of a rule as Markdown."""
    stream.write(documentation(rule))


def write_json(stream: TextIO, rule: Rule) -> None:
    """Write an object with everything about a rule."""
    write_object(described(rule), stream)


LISTS: Mapping[str, Callable[[TextIO, Iterable[Rule]], None]] = {
    "full": write_list,
    "json": write_list_as_json,
}
"""The functions that write the list of rules, by the names that ``--output-format`` takes."""
DOCUMENTS: Mapping[str, Callable[[TextIO, Rule], None]] = {
    "full": write_documentation,
    "json": write_json,
    "markdown": write_markdown,
}
"""The functions that write the documentation of a rule, by the names that ``--output-format`` takes."""


def documentation(rule: Rule) -> str:
    """Return the documentation of a rule in Markdown, with its fixes and settings."""
    return (
        f"# {rule.code} {rule.name}\n\n{_fixes(rule)}\n\n{rule.documentation()}\n{''.join(_settings(rule))}"
    )


def described(rule: Rule) -> dict[str, object]:
    """Return the description of a rule as an object for JSON."""
    from gclint.report.findings import documentation_url

    return {
        "code": rule.code,
        "name": rule.name,
        "summary": rule.summary(),
        "documentation": documentation(rule),
        "level": rule.level,
        "precision": rule.precision,
        "preview": rule.preview,
        "fix": {
            "availability": "sometimes" if rule.fixes else "never",
            "applicability": [each.value for each in rule.fixes],
        },
        "settings": [_setting(each) for each in rule.settings],
        "causes": sorted(cause.value for cause in rule.causes),
        "url": documentation_url(rule),
    }


def _setting(setting: Setting) -> dict[str, object]:
    return {
        "name": setting.name,
        "type": "list of strings",
        "default": [*setting.default],
        "documentation": setting.documentation,
    }


def _fixes(rule: Rule) -> str:
    """Return which fixes a rule has, in words."""
    if not rule.fixes:
        return "*No fix.*"
    *others, last = (each.value for each in rule.fixes)
    kinds = f"{', '.join(others)} or {last}" if others else last
    return f"*A fix is sometimes available: {kinds}.*"


def _settings(rule: Rule) -> Iterator[str]:
    """Yield a section about the settings of a rule, if it has any."""
    if rule.settings:
        yield "\n## Settings\n\n"
    for each in rule.settings:
        default = ", ".join(f'"{value}"' for value in each.default)
        yield f"- `{each.name} = [{default}]` in `[tool.gclint.rules.{rule.name}]`: {each.documentation}\n"
