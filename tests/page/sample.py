"""A report that has something of everything, for the tests of the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from gclint.code.project import Project
from gclint.finding import Edit, Evidence, Finding, Fix
from gclint.proof.evidence import Hint, Weighed
from gclint.proof.proving import Proof
from gclint.report.page.building import Page, page
from gclint.report.report import Report
from gclint.settings import Settings
from gclint.verify.files import FileRun
from gclint.verify.results import Results
from gclint.verify.sources import digest, target_of
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import (
    Advice,
    ClassResult,
    Cost,
    Discovered,
    Environment,
    Failure,
    Mode,
    Observation,
    SetUp,
    SourcePlace,
    Verdict,
)

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><!--<b>`{{ 7 * 7 }}`"
"""What a model may raise, or be called."""
TEXT = """\
class Layer(Module):
    pass


def forward(self, x):
    for layer in self.layers:
        x = layer(x, context=x)
    return x
"""
ENVIRONMENT = Environment("3.11.7", "2.13.0", "5.23.0", "cpu", ("no network",))
ORIGIN = ("gclint verify .", datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc), "gclint verify")
_BLOCKS = ("model.layers.0", "model.layers.1")


def verdict(
    scenario: str, mode: Mode, message: str = "", *, recomputed: tuple[str, ...] = _BLOCKS
) -> Verdict:
    """Return what a scenario showed in a mode: nothing, or one thing that is wrong."""
    seen = (Observation("gradients", message, (), Cause.KEYWORD_ACTIVATION),) if message else ()
    return Verdict(scenario, mode, seen, 4, recomputed=recomputed, saved_bytes=2048)


def passing(source: Path, name: str) -> ClassResult:
    """Return a class that passed in one scenario."""
    return ClassResult(
        str(source.absolute()),
        name,
        "passed",
        scenarios=("default",),
        blocks=2,
        recomputed=2,
        verdicts=(verdict("default", "non-reentrant"), verdict("default", "reentrant")),
        costs=(Cost("plain", 8192, 0.01), Cost("non-reentrant", 2048, 0.02)),
        compared=4,
        parameters=4,
    )


def failing(source: Path, name: str, message: str = "a gradient is lost") -> ClassResult:
    """Return a class that fails in reentrant mode, and under ddp with that."""
    path = str(source.absolute())
    failure = Failure(
        "gradients",
        "reentrant",
        "default",
        message,
        ("a.weight", "b.weight"),
        (SourcePlace(path, 7, 7),),
        Cause.KEYWORD_ACTIVATION,
        "The call passes `context` by keyword. Pass it by position.",
    )
    return ClassResult(
        path,
        name,
        "failed",
        scenarios=("default", "dropout"),
        failures=(failure,),
        blocks=2,
        recomputed=2,
        verdicts=(
            verdict("default", "non-reentrant"),
            verdict("default", "reentrant", message, recomputed=()),
            verdict("dropout", "non-reentrant"),
        ),
        costs=(Cost("plain", 8192, 0.01), Cost("non-reentrant", 2048, 0.02)),
        setups=(
            SetUp("ddp", "N/plain", "text", "works", recomputed=2, blocks=2),
            SetUp("ddp", "R/plain", "text", "fails", "marked as ready twice", "it raises", ("a.weight",)),
            SetUp("ddp", "R/plain", "images", "not run", "no images", "it takes none"),
        ),
        advice=(Advice("ddp", "use_reentrant=False", "Under DDP, use `use_reentrant=False`."),),
    )


def not_run(source: Path, name: str) -> ClassResult:
    """Return a class that cannot be judged."""
    return ClassResult(str(source.absolute()), name, "not run", "no inputs were found", "inputs")


def results_of(*results: ClassResult, environment: Environment = ENVIRONMENT) -> Results:
    """Return what a run of classes comes to."""
    found = Results()
    found.add(environment, tree=None)
    for source in dict.fromkeys(each.source for each in results):
        path = Path(source)
        known = digest(target_of(path).source, {}) if path.is_file() else "gone"
        own = [each for each in results if each.source == source]
        found.add(Discovered(source, tuple(each.name for each in own)), tree=None, digest=known)
        for each in own:
            found.add(each, tree=None, digest=known)
    return found


def report_of_runs(folder: Path, message: str = "a gradient is lost") -> Report:
    """Return the report of a run with a class of each outcome, and a repair that is suggested."""
    source = folder / "modeling_toy.py"
    source.write_text(TEXT)
    failed = failing(source, "Fails", message)
    results = results_of(failed, passing(source, "Passes"), not_run(source, "NotRun"))
    finding = _finding(source)
    hint = Hint("GC003", (source,), False, True, findings=(finding,))
    # Another finding of that rule in the file has nothing to do with the failure.
    other = replace(finding, symbol="Other", start=0, end=5)
    weighed = Weighed((finding, other), {(failed.source, failed.name, failed.failures[0]): (hint,)})
    return Report(
        Project(Settings(), [source]), (finding, other), files=1, unsafe=True, runs=results, weighed=weighed
    )


def report_of_repairs(folder: Path, *obstacles: str, is_whole: bool = True) -> Report:
    """Return the report of a repair that was run; it is proven if nothing speaks against it.

    Args:
        folder: where the file is.
        obstacles: what speaks against it.
        is_whole: whether the class passes with it.
    """
    source = folder / "modeling_toy.py"
    source.write_text(TEXT)
    before = FileRun((failing(source, "Model"),), environment=ENVIRONMENT)
    after = FileRun(((passing if is_whole else failing)(source, "Model"),), environment=ENVIRONMENT)
    changed = {source: (TEXT, TEXT.replace("context=x", "x"))}
    proof = Proof((source,), (_finding(source),), {source: before}, {source: after}, obstacles, (), changed)
    # What is proven is written before it is reported.
    source.write_text(TEXT if obstacles else changed[source][1])
    return Report(Project(Settings(), [source]), files=1, proofs=(proof,))


def page_of(report: Report) -> Page:
    """Return the page of a report."""
    return page(report, *ORIGIN)


def _finding(source: Path) -> Finding:
    start = TEXT.index("context=x")
    edit = Edit(source, start, start + len("context=x"), "x")
    return Finding(
        "GC003",
        "keyword-activation",
        "`context` is passed by keyword",
        source,
        start,
        edit.end,
        "Layer",
        Fix("Pass it by position", (edit,)),
        evidence=Evidence.CONFIRMED,
    )
