"""What the documentation takes from the code, written anew: ``python3 -m tests.documented``.

Needs gclint installed. Writes a page for each rule, made of its docstring and named like its module, to
which findings lead; the table of rules; that of settings, and their JSON schema; and what the commands
print that the README and ``docs/`` show: those in blocks of the language ``console`` that begin with
``$ gclint``, run in a copy of ``docs/examples``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gclint.report.rules import documentation
from gclint.rule import Rule, all_rules
from gclint.settings.definitions import DEFINITIONS
from tests.environment import PROJECT
from tests.settings_schema import schema_text

DOCS = PROJECT / "docs"
FOLDER = DOCS / "rules"
EXAMPLES = DOCS / "examples"
TABLE = DOCS / "rules.md"

_RUN = re.compile(r"^```console\n(?=\$ gclint )(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)


def documents() -> Mapping[Path, str]:
    """Return the texts of all files that are made of nothing but the rules."""
    pages = {FOLDER / f"{_module(rule)}.md": documentation(rule) for rule in all_rules()}
    return {**pages, TABLE: _table()}


def pages() -> Iterator[Path]:
    """Yield the files that people write."""
    yield from sorted(PROJECT.glob("*.md"))
    yield from sorted({*DOCS.glob("*.md")} - {TABLE})


def with_outputs(text: str) -> str:
    """Return a page with what its commands print."""
    return _RUN.sub(lambda block: f"```console\n{_run_again(block[1])}```", text)


@contextmanager
def copied_examples() -> Iterator[Path]:
    """Yield a folder with the examples, in which runs may leave what they like."""
    with tempfile.TemporaryDirectory() as folder:
        yield shutil.copytree(EXAMPLES, Path(folder, "examples"), ignore=shutil.ignore_patterns(".*"))


def _run_again(block: str) -> str:
    """Return the commands of a block, each with its output."""
    with copied_examples() as examples:
        return "".join(f"$ {command}\n{_output(command, examples)}" for command in _COMMAND.findall(block))


def _output(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command, comments=True)
    assert program == "gclint", f"{command}: only gclint is run"
    done = subprocess.run(
        [sys.executable, "-m", "gclint", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"},
        encoding="utf-8",
    )
    return done.stdout


def _module(rule: Rule) -> str:
    return type(rule).__module__.rpartition(".")[2]


def _table() -> str:
    rows = (
        f"| [{rule.code}](rules/{_module(rule)}.md) | {rule.name} | {rule.summary()} |"
        for rule in all_rules()
    )
    return "\n".join(
        (
            "# Rules",
            "",
            "Each page explains what the rule finds, why that is bad, and when its fix is safe.",
            "`gclint rules` prints this list, and `gclint rule GC001` a page. Choose rules with `--select`",
            "and `--ignore`, or with the [settings](settings.md) of these names.",
            "",
            "| code | name | finding |",
            "|---|---|---|",
            *rows,
            "",
        )
    )


SETTINGS = PROJECT / "docs" / "settings.md"
SCHEMA = PROJECT / "gclint" / "settings" / "schema.json"
_TABLE_BEGINS, _TABLE_ENDS = "<!-- settings: made of their definitions -->\n", "<!-- end of settings -->\n"


def with_settings(page: str) -> str:
    """Return a page with the table of settings as their definitions have it."""
    before, _, rest = page.partition(_TABLE_BEGINS)
    _, _, after = rest.partition(_TABLE_ENDS)
    return f"{before}{_TABLE_BEGINS}\n{settings_table()}\n{_TABLE_ENDS}{after}"


def settings_table() -> str:
    """Return a row of Markdown for each setting."""
    rows = ["| setting | type | default | example | option |", "|---|---|---|---|---|"]
    notes = []
    for each in DEFINITIONS:
        default = "" if each.default is None else f"`{json.dumps(each.default)}`"
        example, option = f"`{each.example}`", f"`{each.option}`"
        rows.append(f"| `{each.name}` | {each.kind.description} | {default} | {example} | {option} |")
        notes.append(f"- `{each.name}`: {each.documentation}")
    return "\n".join((*rows, "", *notes, ""))


def main() -> int:
    """Write the files, and remove those of rules that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = dict(documents())
    for path in {*FOLDER.iterdir()} - {*written}:
        path.unlink()
    written[SCHEMA] = schema_text()
    for path in pages():
        text = path.read_text(encoding="utf-8")
        renewed = with_outputs(with_settings(text) if path == SETTINGS else text)
        if renewed != text:
            written[path] = renewed
    for path, text in written.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
