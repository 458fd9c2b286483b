"""What runs say about findings, over messages made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gclint.engine.check import CheckResult
from gclint.engine.evidence import weigh
from gclint.finding import Evidence, Finding, Heir, Refusal
from gclint.rule import Rule, all_rules
from gclint.settings import Settings
from gclint.source.project import Project
from gclint.verify.worker.protocol import ClassResult, Failure, Place, RunSite
from tests.toys import NO_FIX

_SOURCE = """\
class Block(nn.Module):
    def forward(self, hidden_states):
        return hidden_states

class Stack(nn.Module):
    def forward(self, hidden_states, past):
        for layer in self.layers:
            hidden_states = layer(
                hidden_states=hidden_states,
                past=past,
            )
        return hidden_states
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "modeling_x.py"
    path.write_text(_SOURCE)
    return path


def _place(path: Path, line: int, end_line: int | None = None) -> Place:
    return Place(str(path), line, end_line or line)


def _site(path: Path, recomputed: bool | None = True, calls: int = 2) -> RunSite:
    return RunSite(
        place=_place(path, 8, 11),
        block="Block",
        definition=_place(path, 1, 3),
        is_layer=True,
        is_trunk=True,
        calls=calls,
        recomputed=recomputed,
    )


def _finding(path: Path, code: str, words: str) -> Finding:
    start = _SOURCE.index(words)
    return Finding(code, "some-rule", "goes wrong", path, start, start + len(words), "Block", NO_FIX)


def _run(path: Path, *sites: RunSite, failures: tuple[Failure, ...] = ()) -> ClassResult:
    return ClassResult(str(path), "Model", "failed", failures=failures, sites=sites)


def _weigh(path: Path, run: ClassResult, *findings: Finding) -> tuple[Finding, ...]:
    project = Project(Settings(), [path])
    rules: list[Rule] = list(all_rules())
    return weigh(project, CheckResult(findings, (), 1), [run], rules)


def _evidence(path: Path, run: ClassResult, finding: Finding) -> Evidence | None:
    (weighed,) = _weigh(path, run, finding)
    return weighed.evidence


def test_a_block_that_is_not_recomputed_confirms_that_the_layer_is_missing(path: Path) -> None:
    finding = _finding(path, "GC001", "class Block")
    assert _evidence(path, _run(path, _site(path, recomputed=False)), finding) is Evidence.CONFIRMED
    assert _evidence(path, _run(path, _site(path)), finding) is Evidence.CONTRADICTED
    assert _evidence(path, _run(path, _site(path, recomputed=None)), finding) is None


def test_one_site_that_is_not_recomputed_is_enough(path: Path) -> None:
    sites = (_site(path), replace(_site(path), place=_place(path, 12), recomputed=False))
    assert _evidence(path, _run(path, *sites), _finding(path, "GC001", "class Block")) is Evidence.CONFIRMED


def test_recomputation_by_a_branch_is_what_the_finding_speaks_of(path: Path) -> None:
    path.write_text(_SOURCE.replace("layer(\n", "self._gradient_checkpointing_func(layer.__call__,\n"))
    finding = _finding(path, "GC001", "class Block")
    assert _evidence(path, _run(path, _site(path)), finding) is Evidence.CONFIRMED


def test_keyword_activation_is_judged_by_what_carried_gradient(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    carried = replace(_site(path), keyword_activations=("hidden_states",))
    assert _evidence(path, _run(path, carried), finding) is Evidence.CONFIRMED
    assert _evidence(path, _run(path, _site(path)), finding) is Evidence.CONTRADICTED


def test_cache_that_never_came_contradicts_nothing(path: Path) -> None:
    finding = _finding(path, "GC002", "past=past")
    written = replace(_site(path), positional_caches=("past",))
    assert _evidence(path, _run(path, written), finding) is Evidence.CONFIRMED
    assert _evidence(path, _run(path, _site(path)), finding) is None


def test_a_site_that_was_not_run_says_nothing(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    assert _evidence(path, _run(path, _site(path, calls=0)), finding) is None


def test_other_places_and_other_files_say_nothing(path: Path, tmp_path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    elsewhere = replace(_site(path), place=_place(path, 12, 13))
    assert _evidence(path, _run(path, elsewhere), finding) is None
    other = tmp_path / "modeling_y.py"
    other.write_text(_SOURCE)
    assert _evidence(path, _run(other, _site(other)), finding) is None


def test_what_is_generated_speaks_for_its_source(path: Path, tmp_path: Path) -> None:
    generated = tmp_path / "modeling_y.py"
    generated.write_text(_SOURCE)
    finding = _finding(path, "GC001", "class Block")
    site = replace(_site(generated, recomputed=False), block="YBlock")
    run = _run(generated, site)
    assert _evidence(path, run, finding) is None
    for symbol, evidence in (("YBlock", Evidence.CONFIRMED), ("Other", None)):
        assert _evidence(path, run, replace(finding, heirs=(Heir(generated, symbol),))) is evidence


def _failure(path: Path, rule: str = "GC003") -> Failure:
    return Failure(
        "gradients", "reentrant", "default", "37 gradients are lost", places=(_place(path, 8, 11),), rule=rule
    )


def test_failure_that_no_finding_speaks_of_becomes_one(path: Path) -> None:
    run = _run(path, _site(path), failures=(_failure(path), replace(_failure(path), scenario="cache")))
    (seen,) = _weigh(path, run)
    assert (seen.code, seen.name, seen.message) == ("GC003", "keyword-activation", "37 gradients are lost")
    assert (seen.evidence, seen.symbol, seen.path) == (Evidence.CONFIRMED, "Block", path)
    assert _SOURCE[seen.start : seen.end] == "hidden_states = layer("
    assert isinstance(seen.remedy, Refusal)


def test_failure_is_not_reported_beside_the_finding_of_it(path: Path) -> None:
    finding = _finding(path, "GC003", "hidden_states=hidden_states,")
    assert len(_weigh(path, _run(path, _site(path), failures=(_failure(path),)), finding)) == 1
    # A finding of a missing layer stands at the class, far from the place of the failure.
    missing = _finding(path, "GC001", "class Block")
    run = _run(path, _site(path, recomputed=False), failures=(_failure(path, "GC001"),))
    assert len(_weigh(path, run, missing)) == 1


def test_failures_elsewhere_or_of_rules_that_do_not_run_are_no_findings(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "modeling_y.py"
    other.write_text(_SOURCE)
    assert _weigh(path, _run(path, failures=(_failure(other),))) == ()
    assert _weigh(path, _run(path, failures=(_failure(path, "GC999"),))) == ()


def test_comments_suppress_what_only_a_run_has_seen(path: Path) -> None:
    text = _SOURCE.replace(
        "            hidden_states = layer(",
        "            # gclint: ignore[GC003]\n            hidden_states = layer(",
    )
    path.write_text(text)
    failure = replace(_failure(path), places=(_place(path, 9, 12),))
    assert _weigh(path, _run(path, failures=(failure,))) == ()
