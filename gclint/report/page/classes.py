"""A row of the matrix for each model class, with all its details."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from gclint.code.paths import shown
from gclint.report.live import size
from gclint.report.page import matrix
from gclint.report.page.excerpts import Sources, brief
from gclint.report.page.view import (
    Block,
    Column,
    Detail,
    Fact,
    Fate,
    Measure,
    Outcome,
    Repair,
    Row,
    SetUpGroup,
    Site,
    Stack,
    State,
    Story,
    Trial,
)
from gclint.report.verification import advised, by_group, fates, setup_name, stories
from gclint.verify.proven import proven_setting
from gclint.verify.worker.coverage import listed
from gclint.verify.worker.modes import CHECKPOINTED
from gclint.verify.worker.protocol import ClassResult, Mode, RunSite, SetUp

_CHECKPOINTED: Mode = "non-reentrant"
"""The mode whose memory the row shows."""
_INDEX = re.compile(r"\.?(?<!\d)(\d+)$")


@dataclass(frozen=True)
class Ran:
    """The result of a class, and the texts that it was run with."""

    result: ClassResult
    sources: Sources


def row(
    now: Ran,
    model: str,
    columns: Sequence[Column],
    repairs: Iterable[Repair] = (),
    before: Ran | None = None,
    repeat: str = "gclint verify",
) -> Row:
    """Return the row of a class with the name of its model.

    The result is that with its repair, if that is proven, and then there is one ``before``. The command to
    ``repeat`` runs files in the same way.
    """
    result = now.result
    outcome: Outcome = result.outcome
    reported = result
    if before is not None and before.result.outcome == "failed" and outcome == "passed":
        outcome, reported = "repaired", before.result
    share, saved = _saving(result)
    kinds = tuple(dict.fromkeys(_kinds(reported)))
    words = [result.name, model, brief(result.source), *kinds, *(each.message for each in reported.failures)]
    return Row(
        f"{model}/{result.name}",
        result.name,
        model,
        outcome,
        kinds,
        f"{result.recomputed} of {result.blocks}" if result.blocks else "",
        share,
        saved,
        matrix.cells(result, columns),
        _detail(now, tuple(repairs), before, repeat),
        " ".join(words).lower(),
    )


def models(results: Iterable[ClassResult]) -> dict[str, str]:
    """Return the names of the models of files; their paths if several have the same name."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for result in results:
        files[PurePath(result.source).stem.removeprefix("modeling_")].add(result.source)
    return {
        source: name if len(sources) == 1 else shown(source)
        for name, sources in files.items()
        for source in sources
    }


def _kinds(result: ClassResult) -> Iterator[str]:
    if result.outcome == "not run":
        yield f"not run: {result.category}"
    for failure in result.failures:
        yield failure.cause.value if failure.cause else failure.check
    for setup in result.setups:
        if setup.outcome == "fails":
            yield f"{setup.group}: {setup.symptom or 'fails'}"


def _saving(result: ClassResult) -> tuple[float | None, str]:
    costs = {cost.mode: cost.saved_bytes for cost in result.costs}
    before, after = costs.get("plain"), costs.get(_CHECKPOINTED)
    if before is None or after is None:
        return None, ""
    return (after / before if before else None), f"{size(before)} → {size(after)}"


def _detail(
    now: Ran,
    repairs: tuple[Repair, ...],
    before: Ran | None,
    repeat: str,
) -> Detail:
    result = now.result
    return Detail(
        brief(result.source),
        result.reason or "",
        proven_setting(result) or "",
        tuple(_stories(now)),
        tuple(_stories(before)) if before is not None else (),
        repairs,
        tuple(_stacks(result)),
        tuple(map(_site, sorted(result.sites, key=_weight))),
        tuple(_measures(result)),
        tuple(_trials(result)),
        tuple(_setups(result)),
        tuple(_remarks(result)),
        tuple(_commands(result, repeat)),
    )


def _stories(ran: Ran) -> Iterator[Story]:
    sources = ran.sources
    for story in stories([ran.result], None):
        first = story.first
        different = first.difference
        yield Story(
            ", ".join(story.checks),
            first.message,
            first.explanation,
            tuple(story.conditions),
            first.parameters,
            tuple(sources.excerpt(place) for place in first.places),
            # The innermost line of each of the two passes; one if they are the same.
            tuple(map(sources.excerpt, dict.fromkeys((*different.first[:1], *different.second[:1]))))
            if different
            else (),
            different.operation if different else "",
        )


def _stacks(result: ClassResult) -> Iterator[Stack]:
    """Yield the stacks, with the state of their blocks in the first scenario."""
    seen: dict[str, list[str]] = {}
    modes = []
    for mode in CHECKPOINTED:
        for verdict in result.verdicts:
            if (verdict.scenario, verdict.mode) == ("default", mode):
                modes.append(mode)
                missed = [
                    name
                    for each in verdict.observations
                    if each.check == "recomputation"
                    for name in each.about
                ]
                for name in missed:
                    seen.setdefault(name, [])
                for name in verdict.recomputed:
                    seen.setdefault(name, []).append(mode)
    by_stack: dict[str, list[str]] = {}
    for name in sorted(seen, key=_natural):
        by_stack.setdefault(_INDEX.sub("", name) or name, []).append(name)
    for stack, names in by_stack.items():
        blocks = tuple(_block(name, seen[name], modes) for name in names)
        whole = sum(bool(seen[name]) for name in names)
        yield Stack(stack, blocks, f"{whole} of {len(names)} recomputed")


def _block(name: str, modes: Sequence[str], run: Sequence[str]) -> Block:
    found = _INDEX.search(name)
    state: State = "works" if len(modes) == len(run) else "partly" if modes else "fails"
    label = {
        "works": "recomputed",
        "partly": f"recomputed {' and '.join(modes)} only",
        "fails": "not recomputed",
    }[state]
    return Block(found[1] if found else name.rpartition(".")[2], state, label)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split(".")]


def _weight(site: RunSite) -> tuple[bool, str, int]:
    return not (site.is_trunk or site.recomputed), site.place.path, site.place.line


def _site(site: RunSite) -> Site:
    remarks = (
        ("gradient by keyword", site.keyword_activations),
        ("gradient inside containers", site.contained_activations),
        ("cache by position", site.positional_caches),
        ("cache written again", site.rewritten_caches),
    )
    defects = tuple(f"{what}: {', '.join(names)}" for what, names in remarks if names)
    layer = () if site.is_layer or not site.is_trunk else ("not a checkpointing layer",)
    recomputed = {True: "yes", False: "no", None: "not seen"}[site.recomputed]
    place = f"{brief(site.place.path)}:{site.place.line}"
    return Site(place, site.block, site.calls, recomputed, (*layer, *defects))


def _measures(result: ClassResult) -> Iterator[Measure]:
    plain = next((cost.saved_bytes for cost in result.costs if cost.mode == "plain"), 0)
    for cost in result.costs:
        yield Measure(
            "without checkpointing" if cost.mode == "plain" else cost.mode,
            size(cost.saved_bytes),
            cost.saved_bytes / plain if plain else 0.0,
            f"{cost.seconds * 1000:.3g} ms",
            "" if cost.peak_bytes is None else size(cost.peak_bytes),
        )


def _trials(result: ClassResult) -> Iterator[Trial]:
    saved = {(each.scenario, each.mode): each.saved_bytes for each in result.verdicts}
    for name in result.scenarios:
        kept = [saved.get((name, mode)) for mode in CHECKPOINTED]
        yield Trial(
            name,
            matrix.mode_cells(result, name),
            tuple("" if each is None else size(each) for each in kept),
        )


def _setups(result: ClassResult) -> Iterator[SetUpGroup]:
    for group, rows in by_group(result.setups).items():
        has_way = any(each.setting for each in result.advice if each.group == group)
        yield SetUpGroup(group, advised(result.advice, group), has_way, tuple(map(_fate, fates(rows))))


def _fate(rows: Sequence[SetUp]) -> Fate:
    first = rows[0]
    names = tuple(
        Fact(
            setup_name(each),
            "" if each.recomputed is None else f"{each.recomputed} of {each.blocks} blocks recomputed",
        )
        for each in rows
    )
    title = f"{first.outcome}: {first.symptom}" if first.symptom else first.outcome
    return Fate(matrix.setup_cell(first).state, title, first.message, names, first.parameters)


def _remarks(result: ClassResult) -> Iterator[Fact]:
    if result.is_cut_short:
        yield Fact("Cut short", "its process ended before all scenarios were run")
    if result.not_covered:
        yield Fact("Not run in any scenario", ", ".join(result.not_covered))
    if result.unreached:
        yield Fact("Branches that no run reached", listed(result.unreached))
    for each in result.not_compared:
        names = ", ".join(each.parameters)
        yield Fact("Gradients not compared", f"{each.reason}: {names}")
    if result.parameters:
        yield Fact("Gradients compared", f"{result.compared} of {result.parameters} parameters")
    for bears in result.stability:
        moved = f"gradients move by up to {bears.moved:.0%}"
        what = {"stable": moved, "amplifies": moved, "raises": f"raises {bears.error}"}[bears.grade]
        yield Fact(f"Noise in what is recomputed, {bears.experts} experts", f"{bears.grade}: {what}")
    for note in result.notes:
        yield Fact("Note", note)


def _commands(result: ClassResult, repeat: str) -> Iterator[Fact]:
    path = shlex.quote(shown(result.source))
    groups = ",".join(dict.fromkeys(each.group for each in result.setups))
    yield Fact("Run it again", f"{repeat}{f' --scenario {groups}' if groups else ''} {path}")
    if result.outcome == "failed" and result.recipe is not None:
        yield Fact("Show the failure without gclint", f"{repeat} --write-repro repro {path}")
