"""Writes the files of a new rule: ``python3 -m tests.new_rule GC199 literal-use-cache``.

That is its module, a fixture, its page, and its lines in the table of rules, the schema of the settings and
the changelog. They hold as they are: the rule finds calls that pass ``change_me``. What is left is to write
what it is about, wherever there is a TODO.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gclint.rule import Rule, all_rules
from tests.changelog import with_entry
from tests.environment import PROJECT

SERIES = {
    "GC0": "what every model has to get right",
    "GC1": "gradients and outputs that are wrong",
    "GC2": "checkpointing that silently does nothing",
    "GC3": "migration",
    "GC4": "training scripts",
    "GC9": "examples, which do not land",
}
"""What the codes of rules say by their first digit."""
_LONGEST_NAME = 50
_COPIED = ("docs", "gclint", "rules", "tests", "*.md", "pyproject.toml")
"""What the documentation is made of, and by."""

MODULE = '''\
"""CODE: TODO, as a noun."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.finding import Finding, Refusal
from gclint.level import Level
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.story import call_story
from gclint.rule import Rule


class CLASS(Rule):
    """TODO: what is wrong, in one sentence.

    ## What it does

    Finds calls of a `GradientCheckpointingLayer` that pass `change_me`.

    ## Why is this bad?

    TODO: what happens at run time.

    ## Example

    ```python
    hidden_states = layer(hidden_states, change_me=True)
    ```

    Use instead:

    ```python
    hidden_states = layer(hidden_states)
    ```

    ## Fix safety

    There is no fix. TODO: why, or when a fix is safe.
    """

    code = "CODE"
    name = "NAME"
    level = Level.WARNING

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each such argument."""
        for site in network.run_sites:
            block = next((info for info in site.blocks if info.is_checkpointing), None)
            if block is None:
                continue
            for value in _wrong(site):
                yield self.finding(
                    f"`change_me` is passed to `{block.name}`: TODO, what happens then",
                    network.file.path,
                    site.span(value),
                    block.name,
                    Refusal("TODO: why there is none, or a Fix in place of this"),
                    story=call_story(site, block),
                )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield for each call site why it is not reported."""
        for site in explained.sites:
            if not any(_wrong(site)):
                yield "the call does not pass `change_me`"


def _wrong(site: RunSite) -> Iterator[ast.expr]:
    """Yield the arguments of a call that are to be reported: TODO."""
    for arg in site.args:
        if arg.keyword == "change_me":
            yield arg.value
'''

FIXTURE = '''\
"""TODO: which case this is; each case is a file, and what is right needs as many as what is wrong."""

from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer


class OtterLayer(GradientCheckpointingLayer):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.hidden_size, config.num_heads)

    def forward(self, hidden_states, change_me=False):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]


class OtterModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([OtterLayer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states, change_me=True)  # expect: CODE no fix OtterLayer "is passed"
        return hidden_states

    def forward_right(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)  # silent: CODE "does not pass `change_me`"
        return hidden_states
'''


class Refused(Exception):
    """No rule is written; the message says why."""


def complaint(code: str, name: str, rules: Sequence[Rule], changelog: str) -> str | None:
    """Return why there can be no new rule of this code and name, or None.

    Args:
        code: for example ``GC199``.
        name: for example ``literal-use-cache``.
        rules: those that there are.
        changelog: its text, which also knows rules that are gone.
    """
    if not re.fullmatch(r"GC[0-9]{3}", code):
        return f"{code!r} is not the code of a rule: that is GC and three digits, such as GC199"
    if code[:3] not in SERIES:
        known = "; ".join(f"{series}xx for {what}" for series, what in SERIES.items())
        return f"there is no series {code[:3]}xx: there are {known}"
    owner = next((rule.name for rule in rules if rule.code == code), None)
    if owner or re.search(rf"\b{code}\b", changelog):
        of = f"that of {owner}" if owner else "in the changelog"
        free = next((each for each in _codes(code[:3]) if each not in changelog), None)
        return f"the code {code} is {of}, and no code is used twice{f'; {free} is free' if free else ''}"
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", name) or len(name) > _LONGEST_NAME:
        return (
            f"{name!r} is not the name of a rule: that is two or more words in lower case, joined by "
            "hyphens, which read well after 'allow', such as literal-use-cache, and "
            f"{_LONGEST_NAME} characters at most"
        )
    owner = next((rule.code for rule in rules if rule.name == name), None)
    if owner:
        return f"the name {name} is that of {owner}"
    if name.split("-")[0] in ("allow", "disallow", "no", "dont"):
        return f"a rule is named after what it finds: {name!r} does not read well after 'allow'"
    if re.search(rf"import .*\b{_class_name(name)}\b", MODULE):
        return f"a class {_class_name(name)} is what every rule imports: choose another name than {name!r}"
    return None


def _codes(series: str) -> list[str]:
    return [f"{series}{number:02}" for number in range(1, 100)]


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def files_of(code: str, name: str) -> dict[str, str]:
    """Return the files that a rule begins with, by their paths in the repository."""
    words = {"CODE": code, "NAME": name, "CLASS": _class_name(name)}

    def filled(text: str) -> str:
        return re.sub(r"\b(CODE|NAME|CLASS)\b", lambda word: words[word[0]], text)

    stem = name.replace("-", "_")
    return {
        f"rules/{code.lower()}_{stem}.py": filled(MODULE),
        f"fixtures/{code}/{stem}.py": filled(FIXTURE),
    }


def new_rule(code: str, name: str, root: Path = PROJECT) -> list[str]:
    """Write the files of a rule; return their paths in the repository.

    Args:
        code: that of the rule.
        name: that of the rule.
        root: the repository.

    Raises:
        Refused: there can be no such rule, and nothing is written.
    """
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    refusal = complaint(code, name, all_rules(), changelog)
    if refusal:
        raise Refused(refusal)
    files = files_of(code, name)
    # Also what is not finished, or in another module than its code says.
    taken = [*(root / "rules").glob(f"{code.lower()}_*"), *(root / "fixtures").glob(code)]
    if taken:
        raise Refused(f"{taken[0].relative_to(root)} is there already")
    files["CHANGELOG.md"] = with_entry(changelog, "Added", f"New rule {code} {name}: TODO, what it finds.")
    texts = {**_documented(root, files), **{path: text.encode() for path, text in files.items()}}
    for path, data in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return sorted(texts)


def _documented(root: Path, files: Mapping[str, str]) -> dict[str, bytes]:
    """Return what of the documentation is not as it is made once there are these files as well."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for path in (each for pattern in _COPIED for each in root.glob(pattern)):
            if path.is_dir():
                skipped = shutil.ignore_patterns("__pycache__", ".*", "snapshots")
                shutil.copytree(path, copy / path.name, ignore=skipped)
            else:
                shutil.copyfile(path, copy / path.name)
        for name, text in files.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_text(text, encoding="utf-8", newline="\n")
        command = [sys.executable, "-m", "tests.documented"]
        done = subprocess.run(command, cwd=copy, capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode:
            raise Refused(f"the documentation cannot be made: {done.stderr or done.stdout}")
        made = [*copy.glob("*.md"), *copy.glob("docs/**/*.md"), *copy.glob("gclint/settings/*.json")]
        texts = {path.relative_to(copy).as_posix(): path.read_bytes() for path in made}
    return {name: data for name, data in texts.items() if _content(root / name) != data}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a rule, and say what comes next; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.new_rule", description="Write the files of a new rule."
    )
    parser.add_argument(
        "code", help="such as GC199: " + "; ".join(f"{key}xx is {what}" for key, what in SERIES.items())
    )
    parser.add_argument("name", help="such as literal-use-cache; it has to read well after 'allow'")
    given = parser.parse_args(arguments)
    try:
        written = new_rule(given.code, given.name)
    except Refused as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    for path in written:
        print(f"wrote {path}")
    print(
        f"\nThe rule holds as it is: pytest -k {given.code}\n"
        "Now write what it is about, wherever there is a TODO; docs/adding-a-rule.md explains how."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
