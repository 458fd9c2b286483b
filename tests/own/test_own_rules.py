"""Rules of the user's own work like gclint's, and as their page says."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest

from gclint.cli.about import _load
from gclint.code.project import Project
from gclint.own import load_rules
from gclint.rule import own_rules
from gclint.run import jobs
from gclint.run.check import judge
from gclint.server.session import Session
from gclint.settings import Settings
from tests.environment import PROJECT
from tests.own.team import FINDING, RULE, Run
from tests.sample import BROKEN


def test_what_is_named_runs_beside_gclints_rules(gclint: Run, rules: Path) -> None:
    status, out, _ = gclint("--extra-rules", str(rules), "--output-format", "concise")
    assert status == 1
    assert next(line for line in out.splitlines() if ": warning: " in line) == FINDING
    assert "GC001" in out
    assert "ACM001" not in gclint("--output-format", "concise").out


def test_the_users_own_settings_name_it_for_each_run(gclint: Run, rules: Path, config: Path) -> None:
    config.write_text('extra-rules = ["our_rules.py"]\n')
    config.with_name("our_rules.py").write_text(RULE)
    assert FINDING in gclint().out
    assert "ACM001  two-layers " in gclint("rules").out
    assert gclint("rule", "two-layers").out.startswith("# ACM001 two-layers\n\n*Level: warning.")
    line = next(each for each in gclint("config").out.splitlines() if each.startswith("extra-rules"))
    assert line.endswith("gclint.toml:1")
    rules.write_text(RULE.replace("ACM001", "ACM002").replace("two-layers", "2-layers".replace("2", "few")))
    assert "ACM001 ACM002" in " ".join(
        re.findall(r"ACM\d+", gclint("rules", "--extra-rules", str(rules)).out)
    )


@pytest.mark.parametrize(
    ("arguments", "is_found"),
    [
        (["--ignore", "ACM001"], False),
        (["--ignore", "ACM"], False),
        (["--ignore", "two-layers"], False),
        (["--select", "GC"], False),
        (["--select", "two-layers"], True),
        (["--select", "GC", "--extend-select", "ACM0"], True),
        (["--per-file-ignores", "modeling_*:ACM001"], False),
        (["--levels", "two-layers:note"], True),
    ],
)
def test_it_is_selected_and_ignored_by_code_prefix_and_name(
    gclint: Run, rules: Path, arguments: list[str], is_found: bool
) -> None:
    out = gclint("--extra-rules", str(rules), *arguments).out
    assert ("ACM001" in out) is is_found
    assert ("note: ACM001" in out) is ("--levels" in arguments)


def test_a_repository_that_selects_something_else_still_gets_it_but_may_ignore_it(
    gclint: Run, folder: Path, rules: Path
) -> None:
    (folder / "gclint.toml").write_text('select = ["GC003"]\n')
    assert FINDING in gclint("--extra-rules", str(rules)).out
    (folder / "gclint.toml").write_text('ignore = ["ACM001"]\n')
    assert "ACM001" not in gclint("--extra-rules", str(rules)).out


def test_a_rule_in_preview_waits_for_its_option(gclint: Run, rules: Path) -> None:
    rules.write_text(RULE.replace('name = "two', 'preview = True\n    name = "two'))
    assert "ACM001" not in gclint("--extra-rules", str(rules)).out
    assert "ACM001" in gclint("--extra-rules", str(rules), "--preview").out


def test_it_repairs_and_its_comments_count(gclint: Run, folder: Path, rules: Path) -> None:
    model = folder / "modeling_sample.py"
    assert gclint("--extra-rules", str(rules), "--select", "ACM", "--add-ignores").status == 0
    assert "num_hidden_layers=2, **kwargs):  # gclint: ignore[ACM001]\n" in model.read_text()
    # A run that knows nothing of the rule does not take the comment for a mistake.
    assert "GC000" not in gclint().out
    assert gclint("--fix").status == 0
    assert "ignore[ACM001]" in model.read_text()
    model.write_text(BROKEN.replace("32", "3").replace("**kwargs):", "**kwargs):  # gclint: ignore[ACM009]"))
    assert "there is no rule ACM009" in gclint("--extra-rules", str(rules)).out
    model.write_text(BROKEN)
    assert gclint("--extra-rules", str(rules), "--fix").status == 0
    assert "num_hidden_layers=3" in model.read_text()


def test_a_baseline_and_standard_input_know_it(
    gclint: Run, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ("--extra-rules", str(rules), "--select", "ACM")
    assert gclint(*own, "--write-baseline", "known.json").status == 0
    assert gclint(*own, "--baseline", "known.json").status == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BROKEN.encode())))
    status, out, _ = gclint(*own, "-")
    assert (status, "-:11:40: warning: ACM001 two are too few" in out) == (1, True)


@pytest.mark.parametrize("shape", ["json", "sarif", "github", "gitlab", "junit"])
def test_every_format_has_it_without_a_page_of_gclints(gclint: Run, rules: Path, shape: str) -> None:
    out = gclint("--extra-rules", str(rules), "--select", "ACM", "--output-format", shape).out
    assert "ACM001" in out
    assert "docs/rules/acm001" not in out
    assert '"helpUri": null' not in out
    assert '"body": null' not in out


def test_explain_tells_what_it_finds_and_that_it_is_silent(gclint: Run, rules: Path) -> None:
    rules.write_text(f"{RULE}\n    def silence(self, network, spot):\n        yield 'it has three'\n")
    out = gclint("explain", "modeling_sample.py:50", "--extra-rules", str(rules)).out
    assert "it has three" in out
    rules.write_text(f"{RULE}\n    def silence(self, network, spot):\n        raise KeyError('why')\n")
    status, out, _ = gclint("explain", "modeling_sample.py:50", "--extra-rules", str(rules))
    assert status == 0
    assert "ACM001 crashed on this file: KeyError: 'why' (our_rules.py, line " in out


@pytest.mark.parametrize("method", ["fork", "start"])
def test_other_processes_have_it(
    gclint: Run, folder: Path, rules: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system cannot fork")
    monkeypatch.setattr(jobs, "_start_method", lambda: method)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    (folder / "other").mkdir()
    (folder / "other" / "modeling_other.py").write_text(BROKEN)
    rules.write_text(RULE.replace("two are too few", "{os.getpid()}").replace('"{', 'f"{'))
    own = ("--extra-rules", str(rules), "--select", "ACM", "--no-cache")
    found = re.findall(r"ACM001 (\d+)", gclint(*own, "--jobs", "2").out)
    assert len(found) == 2
    assert str(os.getpid()) not in found


def test_what_only_this_process_can_load_is_done_here(
    folder: Path, rules: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs, "_start_method", lambda: "start")
    monkeypatch.setenv("GCLINT_TEST_PROCESS", str(os.getpid()))
    rules.write_text(f"{RULE}\nassert os.environ['GCLINT_TEST_PROCESS'] == str(os.getpid())\n")
    (folder / "modeling_other.py").write_text(BROKEN)
    load_rules([str(rules)], [folder])
    found = judge(Project(Settings(), [*folder.glob("*.py")]), [*folder.glob("*.py")], own_rules(), jobs=2)
    assert [len(each.findings) for each in found.values()] == [1, 1]
    assert capfd.readouterr() == ("", "")


def test_the_server_reports_it_and_reads_it_again(folder: Path, rules: Path) -> None:
    session = Session(lambda root: _load(root, given={"extra_rules": (str(rules),)}), "utf-16", [folder])
    uri = (folder / "modeling_sample.py").as_uri()
    shown: dict[str, list[str]] = {}

    def settle() -> list[str]:
        while session.is_busy:
            session.work()
        for each in session.news():
            shown[each.uri] = [found.message for found in each.diagnostics if found.code == "ACM001"]
        return shown[uri]

    assert settle() == ["two are too few"]
    rules.write_text(RULE.replace("two are", "both are"))
    session.reload()
    assert settle() == ["both are too few"]


def test_the_example_of_the_page_works_as_it_stands(gclint: Run, folder: Path) -> None:
    page = (PROJECT / "docs" / "own-rules.md").read_text(encoding="utf-8")
    module, fixture = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(module.splitlines()) < 35
    (folder / "our_rules.py").write_text(module)
    cases = folder / "cases" / "ACM001"
    cases.mkdir(parents=True)
    (cases / "literal.py").write_text(fixture)
    after = re.sub(r"  # expect: .*", "", fixture).replace(
        "output_attentions=True", "output_attentions=False"
    )
    (cases / "literal.unsafe.py").write_text(after)
    commands = re.findall(r"^gclint (.*?)(?: +#.*)?$", page, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        status, out, err = gclint(*command.replace(" src", " cases/ACM001/literal.py").split())
        assert err == ""
        assert "ACM001" in out or out == "1 fixture passed.\n"
        assert status == int("literal.py" in command or "cases/ACM001" in out)


_OF_ALL_NAMES = '''\
import ast

from gclint.finding import Applicability, Edit, Finding, Fix, Refusal
from gclint.level import Level
from gclint.network.model import Network
from gclint.rule import Rule, Setting


class OfAllNames(Rule):
    """It uses all names that stay the same."""

    code, name, level, preview = "ACM001", "of-all-names", Level.NOTE, False
    fixes = (Applicability.UNSAFE,)
    settings = (Setting("acme-words", "Words.", ("x",)),)

    def check(self, network: Network):
        file, words = network.file, self.settings[0].of(network)
        node = next(each for each in ast.walk(file.tree.module) if isinstance(each, ast.ClassDef))
        start, _ = file.places.span(node)
        edit = Edit(file.path, start, start, "# a class\\n")
        fix = Fix("Say so", (edit,), Applicability.UNSAFE, f"{words}")
        word = file.text[start : start + 5]
        found: Finding = self.finding("a class", file.path, (start, start + 5), word, fix)
        yield found
        for site in network.run_sites:
            argument, (block,) = site.args[1], site.blocks
            said = f"{ast.unparse(site.call)} {argument.keyword} {argument.value.id} {block.is_checkpointing}"
            yield self.finding(said, file.path, site.span(argument.value), block.name, Refusal("why"))

    def silence(self, network, spot):
        yield "no"
'''


def test_the_names_that_stay_the_same_do_what_the_page_says(gclint: Run, folder: Path, rules: Path) -> None:
    page = (PROJECT / "docs" / "own-rules.md").read_text(encoding="utf-8")
    table = page.partition("## What stays the same")[2]
    named = {word for each in re.findall(r"`([^`]+)`", table) for word in re.findall(r"\w+", each)}
    assert named - {*re.findall(r"\w+", _OF_ALL_NAMES)} == set()
    rules.write_text(_OF_ALL_NAMES)
    (folder / "gclint.toml").write_text('rules.of-all-names.acme-words = ["y"]\n')
    own = ("--extra-rules", str(rules), "--select", "ACM")
    assert [line for line in gclint(*own).out.splitlines() if "ACM001" in line or "unsafe fix:" in line] == [
        "modeling_sample.py:8:1: note: ACM001 a class",
        "    unsafe fix: ('y',)",
        "modeling_sample.py:53:50: note: ACM001 "
        "layer(hidden_states, attention_mask) None attention_mask False",
    ]
