"""The rules themselves: the list of them, and the documentation of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from gclint.rule import Rule


def write_list(stream: TextIO, rules: Iterable[Rule]) -> None:
    """Write a line for every rule."""
    rules = list(rules)
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        stream.write(f"{rule.code}  {rule.name:<{width}}  {rule.summary()}\n")


def write_documentation(stream: TextIO, rule: Rule) -> None:
    """Write the documentation of a rule; a terminal shows it set."""
    if stream.isatty():
        from gclint.report.terminal import console_on, show_documentation

        show_documentation(console_on(stream), documentation(rule))
    else:
        stream.write(documentation(rule))


def documentation(rule: Rule) -> str:
    """Return what a rule does, why, and what can be set, in Markdown."""
    return f"# {rule.code} {rule.name}\n\n{rule.documentation()}\n{''.join(_settings(rule))}"


def _settings(rule: Rule) -> Iterator[str]:
    """Yield a section about the settings of a rule, if it has any."""
    if rule.settings:
        yield "\n## Settings\n\n"
    for each in rule.settings:
        default = ", ".join(f'"{value}"' for value in each.default)
        yield f"- `{each.name} = [{default}]` in `[tool.gclint.rules.{rule.name}]`: {each.documentation}\n"
