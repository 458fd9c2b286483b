"""Proves repairs: they are run before they are written, and those that are not proven are not made.

A repair is proven only if every class that leads to the changed code was run, in the changed files and in the
given ones that import from them; if nothing is worse than before in any scenario and mode; if all changed
code was executed; and if the defect was seen before and is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gclint.code.project import Project
from gclint.copies.generated import is_modular
from gclint.finding import Finding
from gclint.proof.evidence import is_shown
from gclint.proof.reach import Place, Reach
from gclint.proof.regression import Regression, regressions, summarised, was_run, why_not_run
from gclint.proof.text_evidence import shown
from gclint.rule import Rule
from gclint.run.fix import FixResult, fixed_together
from gclint.verify.changed_statements import changed_parts, changed_places
from gclint.verify.files import FileRun, Runner
from gclint.verify.worker import modes
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.coverage import listed, unreached
from gclint.verify.worker.protocol import NO_FLAG, ClassResult, Failure, Mode, ObservedSite
from gclint.wording import first_of

_SHOWN = 3


@dataclass(frozen=True)
class Proof:
    """The outcome for the repair of files that are written together or not at all."""

    paths: tuple[Path, ...]
    repairs: tuple[Finding, ...]
    before: Mapping[Path, FileRun]
    """The runs of the files themselves, and of the given ones that import from them, as they were."""
    after: Mapping[Path, FileRun]
    obstacles: tuple[str, ...]
    """Why the repair is not written; empty if it is proven."""
    users_not_given: tuple[Path, ...] = ()
    """Files that import from these, but were not run, since they were not given."""
    changed: Mapping[Path, tuple[str, str]] = field(default_factory=dict)
    """The texts of the files before and after, whether they are written or not."""
    kinds: tuple[Hashable, ...] = ()
    """The kind of each obstacle; those of one kind say the same of other classes, scenarios or modes."""

    @property
    def classes(self) -> list[ClassResult]:
        """The results of the classes that were run with the repair."""
        results = (result for run in self.after.values() for result in run.results)
        return [result for result in results if was_run(result)]

    @property
    def scenarios(self) -> list[str]:
        """The scenarios in which any of them was run."""
        return list(dict.fromkeys(name for result in self.classes for name in result.scenarios))


def prove(
    project: Project,
    repaired: FixResult,
    rules: Iterable[Rule],
    run: Runner,
    seen: Mapping[Path, FileRun] | None = None,
    note: Callable[[str], None] = lambda words: None,
) -> list[Proof]:
    """Run the changed files and those that use them as they are and as they would be, and judge each repair.

    If the repair of a file is refused, the files that import from it are run again without that repair.
    Earlier runs of the files as they are tell which ``seen`` files run others that they do not import;
    ``note`` receives what is done between runs, in words, to show it.

    Raises:
        NothingRuns: no file at all can be run.
        OSError: a file cannot be read.
    """
    known = {rule.code: rule for rule in rules}
    return _Prover(project, repaired, known, run, seen or {}, note).proofs()


@dataclass
class _RepairUnit:
    """Files whose repairs stand or fall together."""

    paths: list[Path]
    repairs: list[Finding] = field(default_factory=list)
    run_files: list[Path] = field(default_factory=list)
    """The files whose runs decide: these and those that use them, except for modular sources."""
    users_not_given: list[Path] = field(default_factory=list)

    @property
    def has_product(self) -> bool:
        """Whether one of the files is imported at run time, as modular sources are not."""
        return any(not is_modular(path) for path in self.paths)

    def results(self, runs: Mapping[Path, FileRun]) -> list[ClassResult]:
        """Return what came of the classes of the files whose runs decide."""
        return [result for path in self.run_files for result in runs[path].results]


class _Prover:
    def __init__(
        self,
        project: Project,
        repaired: FixResult,
        rules: Mapping[str, Rule],
        run: Runner,
        seen: Mapping[Path, FileRun],
        note: Callable[[str], None],
    ) -> None:
        self._project = project
        self._seen = seen
        self._texts = dict(repaired.changed)
        self._rules = rules
        self._run = run
        self._note = note
        note("following what the repairs change")
        self._reach = Reach(project, self._texts)
        self._units = self._made_units(repaired)
        self._before: Mapping[Path, FileRun] = {}
        self._after: dict[Path, FileRun] = {}

    def proofs(self) -> list[Proof]:
        """Run everything, and return a proof for each unit."""
        files = list(dict.fromkeys(path for unit in self._units for path in unit.run_files))
        texts = {path: after for path, (_, after) in self._texts.items()}
        self._note("")
        self._before, self._after = self._run(files, {}), dict(self._run(files, texts))
        proofs: dict[int, Proof] = {}
        waiting = self._units
        while waiting:
            judged = {id(unit): self._proof(unit) for unit in waiting}
            proofs.update(judged)
            refused = {path for proof in judged.values() if proof.obstacles for path in proof.paths}
            texts = {path: text for path, text in texts.items() if path not in refused}
            touched = self._users(refused)
            waiting = [
                unit
                for unit in self._units
                if not proofs[id(unit)].obstacles and not touched.isdisjoint(unit.run_files)
            ]
            self._note("")
            again = list(dict.fromkeys(path for unit in waiting for path in unit.run_files))
            self._after.update(self._run(again, texts) if again else {})
        return [proofs[id(unit)] for unit in self._units]

    def _made_units(self, repaired: FixResult) -> list[_RepairUnit]:
        units = [_RepairUnit(paths) for paths in fixed_together(self._project, repaired)]
        unit_of = {path: unit for unit in units for path in unit.paths}
        for finding in repaired.applied:
            changed = [edit.path for edit in finding.edits if edit.path in unit_of]
            if changed:
                unit_of[changed[0]].repairs.append(finding)
        for unit in units:
            users = self._users(unit.paths)
            given = [path for path in self._project.paths if path in users]
            unit.run_files = [path for path in dict.fromkeys((*unit.paths, *given)) if not is_modular(path)]
            unit.users_not_given = sorted(
                path for path in users if path not in self._project.given and path.name != "__init__.py"
            )
        return units

    def _users(self, changed: Iterable[Path]) -> set[Path]:
        """Return the changed files, and those that import from them or were seen to run their blocks."""
        return {*changed, *(path for path, _ in self._reach.leading(changed)), *self._seen_users(changed)}

    def _seen_users(self, changed: Iterable[Path]) -> set[Path]:
        """Return the files whose classes were seen to run blocks of changed ones, imported or not."""
        own, users = set(changed), set()
        for path, run in self._seen.items():
            places = {
                place.path
                for result in run.results
                for site in result.sites
                for place in (site.place, site.definition)
            }
            if not own.isdisjoint(self._project.identify(Path(each)) for each in places):
                users.add(path)
        return users

    def _proof(self, unit: _RepairUnit) -> Proof:
        self._note(f"judging the repair of {unit.paths[0].name}")
        obstacles = dict(self._obstacles(unit))
        return Proof(
            tuple(unit.paths),
            tuple(unit.repairs),
            {path: self._before[path] for path in unit.run_files},
            {path: self._after[path] for path in unit.run_files},
            tuple(obstacles),
            tuple(unit.users_not_given),
            {path: self._texts[path] for path in unit.paths},
            tuple(obstacles.values()),
        )

    def _obstacles(self, unit: _RepairUnit) -> Iterator[tuple[str, Hashable]]:
        """Yield what is wrong with the repaired files, and what no run has shown to be right, with kinds."""
        if not unit.has_product:
            yield "the generated file, which is what runs, is not repaired along with it", "generated"
            return
        leading = self._reach.leading(unit.paths)
        yield from ((text, "not run") for text in self._not_run(unit, leading))
        found, ran = list[Regression](), dict[str, frozenset[Mode]]()
        for path in unit.run_files:
            earlier, later = _by_name(self._before[path]), _by_name(self._after[path])
            if self._after[path].problem is not None:
                continue
            # A GPU may add in a different order each time.
            exact = self._before[path].device == "cpu"
            for name in {**earlier, **later}:
                found += regressions(earlier.get(name), later.get(name), exact=exact)
            ran |= {
                name: frozenset(verdict.mode for verdict in result.verdicts) for name, result in later.items()
            }
        yield from summarised(found, ran)
        for finding in unit.repairs:
            # What belongs to the repair of another defect is as right as that.
            if not any(finding.is_part_of(other) for other in unit.repairs):
                yield from ((text, ("doubt", finding.code)) for text in self._doubts(unit, finding))
        yield from ((text, "not executed") for text in self._not_executed(unit))
        yield from self._not_shown(unit)
        yield from ((text, "unused") for text in self._unused(unit, leading))

    def _unused(self, unit: _RepairUnit, leading: Collection[Place]) -> Iterator[str]:
        """Yield the classes that use changed code, and are not a part of any class that was run."""
        results = {result.name: result for result in unit.results(self._after)}
        made = {each for result in results.values() for each in result.made_of}
        if not made:
            return
        places = [each.rpartition("::") for each in made]
        known = {(self._project.identify(Path(path)), name) for path, _, name in places}
        # A class with a result of its own, or that the repair is about, has its own reason.
        explained = {*results, *(finding.symbol for finding in unit.repairs)}
        for path in unit.run_files:
            for name in self._reach.blocks(path):
                if (path, name) in leading and name not in explained and (path, name) not in known:
                    yield (
                        f"`{name}` in {path.name} uses the changed code, but no class that was run "
                        "contains one"
                    )

    def _not_run(self, unit: _RepairUnit, leading: Collection[Place]) -> Iterator[str]:
        """Yield which files and classes could not be run, and may use changed code."""
        for path in unit.run_files:
            before, after = self._before[path], self._after[path]
            if after.problem is not None:
                was = f"; before, {before.problem}" if before.problem is not None else ""
                yield f"{path.name} cannot be run: {after.problem}{was}"
                continue
            earlier = _by_name(before)
            for result in after.results:
                known = earlier.get(result.name)
                # A class for which checkpointing cannot be enabled runs as a part of others, or not at all.
                # What was run before is reported as a regression.
                is_explained = was_run(known) or result.category == NO_FLAG
                if (was_run(known) and was_run(result)) or (is_explained and not was_run(result)):
                    continue
                if (path, result.name) not in leading:
                    continue
                if not was_run(result):
                    yield (
                        f"{result.name} seems to use the changed code, but could not be run "
                        f"({why_not_run(result)})"
                    )
                else:
                    why = f" ({why_not_run(known)})" if known is not None else ""
                    yield f"{result.name} could not be run before{why}, so nothing can be compared"

    def _doubts(self, unit: _RepairUnit, finding: Finding) -> Iterator[str]:
        """Yield why the runs do not show that a defect was there and is gone."""
        rule = self._rules.get(finding.code)
        if rule is not None and not rule.changes_code:
            return
        names = {finding.symbol, *(inherited.symbol for inherited in finding.inherited_by)}
        own = self._sites(unit, self._after, names)
        what = f"`{finding.symbol}`"
        if not own:
            yield from self._doubts_of_failures(unit, finding, rule)
            return
        flagged = {rule.flags(site) if rule else None for site in own}
        if True in flagged:
            yield f"{finding.code}: {what} still has the defect when it is run"
        elif False not in flagged:
            yield f"{finding.code}: no run can show whether {what} is repaired"
        elif rule is not None:
            yield from self._doubts_of_damage(unit, finding, rule, names)

    def _doubts_of_damage(
        self, unit: _RepairUnit, finding: Finding, rule: Rule, names: set[str]
    ) -> Iterator[str]:
        """Yield the same for a defect of calls that is gone: its damage was there, and is gone as well."""
        sites = self._sites_of(unit, finding, names)
        places = {site.place for site in sites}
        causes = rule.causes if rule.shown_by is None else rule.shown_by
        results = unit.results(self._before)
        failures = (failure for result in results for failure in result.failures if failure.cause in causes)
        is_shown = any(map(rule.shows, sites)) or any(not places.isdisjoint(each.places) for each in failures)
        # A block that nothing recomputed, and that is repaired as well, could not show what is wrong with it.
        is_hidden = any(site.recomputed is False for site in sites) and self._is_revealed(unit, names)
        if not is_shown and not is_hidden and not self._stopped(unit, rule):
            yield f"{finding.code}: no run of `{finding.symbol}` showed the damage before the repair"
        left = {site.place for site in self._sites(unit, self._after, names)}
        for later in unit.results(self._after):
            for failure in later.failures:
                if failure.cause in causes and not left.isdisjoint(failure.places):
                    yield _still_fails(finding, later, failure)
                    return

    def _is_revealed(self, unit: _RepairUnit, names: set[str]) -> bool:
        """Return whether a repair of the unit makes one of the blocks recomputable in the first place."""
        return any(
            each.symbol in names
            and each.code in self._rules
            and Cause.NOT_A_LAYER in self._rules[each.code].causes
            for each in unit.repairs
        )

    def _sites_of(self, unit: _RepairUnit, finding: Finding, names: set[str]) -> list[ObservedSite]:
        """Return the calls that a finding is about, before the repair: those at its row, if there are any."""
        sites = self._sites(unit, self._before, names)
        copies = {inherited.symbol for inherited in finding.inherited_by}
        here = [site for site in sites if self._covers(site.place, finding)]
        # A finding of a later pass is in another row than it was in the text that was run.
        return [*here, *(site for site in sites if site.block in copies)] if here else sites

    def _doubts_of_failures(self, unit: _RepairUnit, finding: Finding, rule: Rule | None) -> Iterator[str]:
        """Yield the same for a defect outside of calls of blocks: failures show it, and must be gone."""
        showing = [] if rule is None else list(self._showing(unit, finding, rule))
        if rule is None or not showing:
            yield (
                f"{finding.code}: none of the classes that were run uses "
                f"`{finding.symbol}`{self._why_none(unit)}"
            )
            return
        left = [
            (later, failure)
            for _, later in showing
            for failure in later.failures
            if failure.cause in rule.causes
        ]
        # Another part of the model may have the same defect, which remains when this one is gone.
        own = [
            (later, failure)
            for later, failure in left
            if later.name == finding.symbol or _is_about(rule, finding, later, failure, self._project)
        ]
        is_gone_nowhere = len({later.name for later, _ in left}) == len(showing)
        for later, failure in own[:1] or (left[:1] if is_gone_nowhere else ()):
            yield _still_fails(finding, later, failure)

    def _showing(
        self, unit: _RepairUnit, finding: Finding, rule: Rule
    ) -> Iterator[tuple[ClassResult, ClassResult]]:
        """Yield the classes that showed a defect before the repair, before and after it."""
        for path in unit.run_files:
            later = _by_name(self._after[path])
            for run in self._before[path].results:
                shown = (
                    is_shown(rule, finding, self._covers, run, each, self._project) for each in run.failures
                )
                if run.name in later and any(shown):
                    yield run, later[run.name]

    def _covers(self, place: modes.SourcePlace, finding: Finding) -> bool:
        """Return whether a place is on the row of a finding in the text before the repair."""
        before = self._texts[finding.path][0] if finding.path in self._texts else ""
        row = before.count("\n", 0, finding.start) + 1
        return (
            self._project.identify(Path(place.path)) == finding.path and place.line <= row <= place.end_line
        )

    def _stopped(self, unit: _RepairUnit, rule: Rule) -> bool:
        """Return whether classes failed before they reached any block, as the defect makes them."""
        stopped = (result for result in unit.results(self._before) if not result.sites)
        return any(failure.cause in rule.causes for result in stopped for failure in result.failures)

    def _sites(self, unit: _RepairUnit, runs: Mapping[Path, FileRun], names: set[str]) -> list[ObservedSite]:
        """Return the calls of blocks of these names that are, or whose blocks are, in the unit's files."""
        paths = set(unit.paths)
        return [
            site
            for result in unit.results(runs)
            for site in result.sites
            if site.block in names
            and site.calls
            and any(
                self._project.identify(Path(place.path)) in paths for place in (site.place, site.definition)
            )
        ]

    def _why_none(self, unit: _RepairUnit) -> str:
        """Return why no class runs a block, as words that follow its name."""
        results = unit.results(self._after)
        if not results:
            files = " and ".join(path.name for path in unit.run_files)
            return f": {files} has no class that supports gradient checkpointing and can be run by itself"
        ran = [each.name for each in results if was_run(each)]
        if ran:
            return f"; what was run: {first_of(ran, _SHOWN)}"
        first = results[0]
        more = f", and neither could {len(results) - 1} more" if len(results) > 1 else ""
        return f": {first.name} could not be run ({why_not_run(first)}){more}"

    def _not_executed(self, unit: _RepairUnit) -> Iterator[str]:
        """Yield the changed code that no class has executed."""
        executed = {
            (self._project.identify(Path(place.path)), place.line)
            for result in unit.results(self._after)
            for place in result.executed
        }
        for path in unit.paths:
            if not is_modular(path):
                missed = [
                    place for place in changed_places(*self._texts[path]) if (path, place[0]) not in executed
                ]
                if missed:
                    lines = first_of((str(line) for line, _ in missed), _SHOWN)
                    yield (
                        f"no class that was run reaches the changed code of {path.name} on "
                        f"line{'s' if len(missed) > 1 else ''} {lines} of the repaired text"
                    )
                for line in changed_parts(*self._texts[path])[:1]:
                    yield (
                        f"no run can show that the changed part of a statement of {path.name} on line {line} "
                        "of the repaired text is executed whenever the statement is"
                    )

    def _not_shown(self, unit: _RepairUnit) -> Iterator[tuple[str, Hashable]]:
        """Yield what neither the runs nor the text show to be harmless, with kinds."""
        names = {each.symbol for each in unit.repairs}
        names |= {inherited.symbol for each in unit.repairs for inherited in each.inherited_by}
        own = {site.block for site in self._sites(unit, self._after, names)}
        results = [each for each in unit.results(self._after) if was_run(each)]
        for path in sorted({each.path for run in results for each in run.coverage if not each.is_marked}):
            words = f"{Path(path).name} is nested too deeply to see which of its branches are executed"
            yield words, "not reached"
        texts = {path: self._texts[path][1] for path in unit.paths}
        paths = [*dict.fromkeys((*unit.paths, *unit.run_files))]
        text = shown(self._project, paths, texts, own, self._newly_recomputed(unit))
        of_fixes = (doubt for each in unit.repairs if each.fix for doubt in each.fix.undecided)
        for doubt in dict.fromkeys((*text.undecided, *of_fixes)):
            yield f"runs do not show that this is harmless: {doubt}", "undecided"
        found = [
            each
            for each in unreached(
                results,
                self._text_after,
                # Around what nothing recomputes, checkpointing changes nothing.
                lambda site: site.block in own if own else site.recomputed is not False,
            )
            if text.asks_for(each, self._project.identify(Path(each.path)))
        ]
        if found:
            many = f"{len(found)} branches" if len(found) > 1 else "a branch"
            yield f"no run reaches {many} that the repair may affect: {listed(found)}", "not reached"

    def _newly_recomputed(self, unit: _RepairUnit) -> set[str]:
        """Return the names of the blocks that are recomputed only with the repair."""
        before, after = (
            {
                (result.name, site.block)
                for result in unit.results(runs)
                for site in result.sites
                if site.recomputed
            }
            for runs in (self._before, self._after)
        )
        return {block for _, block in after - before}

    def _text_after(self, path: str) -> str:
        known = self._project.identify(Path(path))
        return self._texts[known][1] if known in self._texts else self._project.file(known).text


def _still_fails(finding: Finding, later: ClassResult, failure: Failure) -> str:
    where = f"{later.name}, {failure.mode}, {failure.scenario}"
    return f"{finding.code}: {where} still fails in the way that the repair should prevent"


def _is_about(rule: Rule, finding: Finding, later: ClassResult, failure: Failure, project: Project) -> bool:
    """Return whether a failure may be that of a finding; the repaired text has other line numbers."""
    if not failure.places:
        return rule.concerns(finding, failure, later)
    paths = {finding.path, *(inherited.path for inherited in finding.inherited_by)}
    return any(project.identify(Path(place.path)) in paths for place in failure.places)


def _by_name(run: FileRun) -> dict[str, ClassResult]:
    return {result.name: result for result in run.results}
