"""Small modeling files, put together from statements, and what GC001 reports in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.releases import releases
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions import toy

IMPORTS = f"import copy\nfrom functools import partial\n\n{toy.IMPORTS}"
LAYERS = f"{toy.ATTENTION}\n{toy.block()}class ToyOtherLayer(ToyLayer):\n    pass\n"
LOOP, STACK = toy.LOOP, toy.STACK


def model(init: str = STACK, loop: str = LOOP, *, more: str = "", flag: str = "True") -> str:
    """Write a model with these statements; ``more`` goes into its class."""
    takes = "hidden_states, mask=None, encoder_hidden_states=None"
    return toy.model(loop, takes=takes, init=init, more=more, supports=flag)


def reported(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Return the classes that GC001 reports, in order."""
    paths = []
    for name, text in files.items():
        compile(text, name, "exec", dont_inherit=True)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.name.startswith(("modeling_", "modular_")):
            paths.append(path)
    result = check(Project(Settings(), paths), [rule for rule in all_rules() if "GC001" in rule.codes])
    assert result.problems == ()
    return [finding.symbol for finding in result.findings]


def only_fix(
    folder: Path,
    first: str,
    others: Mapping[str, str] | None = None,
    code: str = "GC001",
    target: str | None = None,
) -> Fix:
    """Return the fix of the only finding of a rule in a file.

    Args:
        folder: where to write files.
        first: the text of ``modeling_toy.py``, which alone is given.
        others: further files beside it.
        code: of the rule; by default, that of blocks that are no checkpointing layers.
        target: the releases that the code may run with.
    """
    given = folder / "modeling_toy.py"
    for name, text in {given.name: first, **(others or {})}.items():
        (folder / name).write_text(text, encoding="utf-8")
    rules = [rule for rule in all_rules() if code in rule.codes]
    settings = Settings() if target is None else Settings(target_version=releases(target))
    (finding,) = check(Project(settings, [given], [folder]), rules).findings
    assert isinstance(finding.remedy, Fix), finding.remedy
    return finding.remedy


def applicability(
    folder: Path,
    first: str,
    others: Mapping[str, str] | None = None,
    code: str = "GC001",
    target: str | None = None,
) -> Applicability:
    """Return how safe that fix is."""
    return only_fix(folder, first, others, code, target).applicability
