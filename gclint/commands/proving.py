"""Repairs that are written only if runs of the models prove them: ``gclint check --fix --verify``."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gclint.commands import CannotRun
from gclint.commands.check_options import CheckOptions
from gclint.commands.run_options import results_of_user, run_settings
from gclint.interruption import exit_status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gclint.engine.fix import FixResult
    from gclint.engine.proof import Proof
    from gclint.engine.selection import Selection
    from gclint.finding import Finding
    from gclint.rule import Rule
    from gclint.settings import Settings
    from gclint.source.project import Project
    from gclint.verify.files import Audience, Runner


def proven(
    settings: Settings, rules: Sequence[Rule], selection: Selection, options: CheckOptions
) -> tuple[FixResult, tuple[Proof, ...]]:
    """Run the files, repair what the runs show, run them again, and return the proven repairs."""
    from gclint.engine.fix import fix
    from gclint.engine.observing import observe
    from gclint.engine.proof import prove
    from gclint.engine.provable import Reached
    from gclint.engine.transaction import proven_only

    project = selection.project
    with _runner(settings, project, options) as (run, audience):
        seen = observe(project, selection.files(rules), run)
        reached = Reached(project, rules)

        def wanted(findings: Sequence[Finding]) -> Sequence[Finding]:
            return reached.provable(selection.reported(findings))

        audience.note("repairing what was seen")
        repaired = fix(project, rules, unsafe=options.unsafe_fixes, proves=True, wanted=wanted)
        proofs = tuple(prove(project, repaired, rules, run, seen, audience.note))
    return reached.judged(proven_only(project, repaired, proofs, rules)), proofs


@contextmanager
def _runner(settings: Settings, project: Project, options: CheckOptions) -> Iterator[tuple[Runner, Audience]]:
    """Yield a runner that stores its results, to resume an interrupted run, and what shows its progress."""
    from gclint.commands.run_display import run_display
    from gclint.kept import key_of
    from gclint.verify.files import FileRunner, Journals, NothingRuns
    from gclint.verify.journal import UnusableResults
    from gclint.verify.run import EnvironmentChanged

    try:
        with results_of_user() as folder, run_display(is_shown=options.is_for_people) as audience:
            journals = Journals(folder, key_of(Path()), project.paths) if folder else None
            if journals and not options.resume:
                journals.clear()
            yield FileRunner(run_settings(settings.known, *options.about_runs), audience, journals), audience
    except (NothingRuns, OSError) as error:
        raise CannotRun(f"nothing was repaired, because nothing could be run: {error}") from None
    except (UnusableResults, EnvironmentChanged) as error:
        raise CannotRun(f"nothing was repaired: {error}; run it again without --resume") from None
    except KeyboardInterrupt as error:
        click.echo("Interrupted; nothing was repaired. Run it again with --resume to continue.", err=True)
        click.get_current_context().exit(exit_status(error))
