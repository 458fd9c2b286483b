"""Runs of models: their options, what a terminal shows of them, and the repairs that only they prove."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gclint.cli import CannotRun, print_once
from gclint.cli.options import PATH_TYPE, POSITIVE, MakeOption, together
from gclint.interruption import exit_status
from gclint.verify.settings import GIGABYTES, RunSettings
from gclint.verify.worker.class_settings import ClassSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gclint.code.project import Project
    from gclint.finding import Finding
    from gclint.proof.proving import Proof
    from gclint.rule import Rule
    from gclint.run.baseline import Selection
    from gclint.run.fix import FixResult
    from gclint.settings import Settings
    from gclint.userfolder import UserFolder
    from gclint.verify.files import Audience, Runner
    from gclint.verify.run import ReceivedMessage


_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


def device_name(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Check the value of an option for a device, as a callback of click."""
    if value is not None and not _DEVICE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not auto, cpu, cuda or cuda:N")
    return value


_ABOUT_JOBS = "Run models in N processes at once.  [default: one per core, or one per GPU]"
_ABOUT_PYTHON = (
    "Python interpreter to run models with; it needs torch and transformers.  [default: gclint's own]"
)
_ABOUT_TIME = f"Limit of CPU time per model class.  [default: {RunSettings.seconds:g}]"
_ABOUT_MEMORY = f"Memory limit per model class, or of GPU memory.  [default: {GIGABYTES:g}; no GPU limit]"
_ABOUT_DEVICE = "Where to run models.  [default: auto]"


def run_options(option: MakeOption, about_jobs: str = _ABOUT_JOBS) -> Callable[[Any], Any]:
    """Return a decorator that adds the options to a command; :class:`RunOptions` has their values."""
    return together(
        [
            option("--python", metavar="PATH", type=PATH_TYPE, help=_ABOUT_PYTHON),
            option("--device", metavar="auto|cpu|cuda[:N]", callback=device_name, help=_ABOUT_DEVICE),
            option("--jobs", metavar="N", type=click.IntRange(min=1), help=about_jobs),
            option("--time-limit", metavar="SECONDS", type=POSITIVE, help=_ABOUT_TIME),
            option("--memory-limit", metavar="GIGABYTES", type=POSITIVE, help=_ABOUT_MEMORY),
        ]
    )


@dataclass(frozen=True)
class RunOptions:
    """How models are to be run; None stands for an option that was not given."""

    python: Path | None = None
    device: str | None = None
    jobs: int | None = None
    time_limit: float | None = None
    memory_limit: float | None = None

    def settings(self, known: tuple[ClassSettings, ...] = ()) -> RunSettings:
        """Return the settings of runs, with those of classes that are ``known``."""
        python, seconds = self.python or Path(sys.executable), self.time_limit or RunSettings.seconds
        return RunSettings(python, self.device or "auto", self.jobs, seconds, self.memory_limit, known)


@contextmanager
def results_of_user() -> Iterator[UserFolder | None]:
    """Yield the user's folder of results; None, after a note, if results cannot be kept there."""
    from gclint.verify.results_file import results_folder

    try:
        folder = results_folder()
    except OSError as error:
        print_once(f"note: the results of this run are not kept, so it cannot be resumed: {error.strerror}")
        yield None
        return
    with folder:
        yield folder


class _Nobody:
    """An audience for runs without a terminal: it shows nothing."""

    def expect(self, sources: int) -> None: ...

    def take(self, received: ReceivedMessage) -> None: ...

    def note(self, words: str) -> None: ...


@contextmanager
def run_display(*, is_shown: bool) -> Iterator[Audience]:
    """Show the progress of a run on a terminal, if that is wanted; yields the audience to pass events to."""
    if not (is_shown and sys.stderr.isatty()):
        yield _Nobody()
        return
    from gclint.report.run_progress import run_progress

    with run_progress(sys.stderr) as progress:
        yield progress


def proven(
    settings: Settings,
    rules: Sequence[Rule],
    selection: Selection,
    options: RunOptions,
    *,
    resume: bool,
    is_shown: bool,
) -> tuple[FixResult, tuple[Proof, ...]]:
    """Run the files, repair what the runs show, run them again, and return the proven repairs."""
    from gclint.proof.evidence import observe
    from gclint.proof.provable import Reached, proven_only
    from gclint.proof.proving import prove
    from gclint.run.fix import fix

    project = selection.project
    of_runs = options.settings(settings.known)
    with _runner(of_runs, project, resume=resume, is_shown=is_shown) as (run, audience):
        seen = observe(project, selection.files(rules), run)
        reached = Reached(project, rules)

        def wanted(findings: Sequence[Finding]) -> Sequence[Finding]:
            return reached.provable(selection.reported(findings))

        audience.note("repairing what was seen")
        repaired = fix(project, rules, unsafe=settings.unsafe_fixes, proves=True, wanted=wanted)
        proofs = tuple(prove(project, repaired, rules, run, seen, audience.note))
    return reached.judged(proven_only(project, repaired, proofs, rules)), proofs


@contextmanager
def _runner(
    settings: RunSettings, project: Project, *, resume: bool, is_shown: bool
) -> Iterator[tuple[Runner, Audience]]:
    """Yield a runner that stores its results, to resume an interrupted run, and what shows its progress."""
    from gclint.userfolder import key_of
    from gclint.verify.files import FileRunner, NothingRuns, ResultsFiles
    from gclint.verify.results import UnusableResults

    try:
        with results_of_user() as folder, run_display(is_shown=is_shown) as audience:
            results_files = ResultsFiles(folder, key_of(Path()), project.paths) if folder else None
            if results_files and not resume:
                results_files.clear()
            yield FileRunner(settings, audience, results_files, project.paths), audience
    except (NothingRuns, OSError) as error:
        raise CannotRun(f"nothing was repaired, because nothing could be run: {error}") from None
    except UnusableResults as error:
        raise CannotRun(f"nothing was repaired: {error}; run it again without --resume") from None
    except KeyboardInterrupt as error:
        click.echo("Interrupted; nothing was repaired. Run it again with --resume to continue.", err=True)
        click.get_current_context().exit(exit_status(error))
