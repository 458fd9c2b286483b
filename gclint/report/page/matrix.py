"""The matrix: the ways to train that any class was run in, and the result of each class in each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gclint.verify.proven import proven_setting
from gclint.verify.worker.modes import CHECKPOINTED
from gclint.verify.worker.practices import PRACTICES, spelled_out
from gclint.verify.worker.protocol import ClassResult, Mode, SetUp
from gclint.verify.worker.scenarios import OPTION, SCENARIOS, scenario_named

State = Literal["works", "partly", "fails", "not run", "none"]
"""The state of a cell; ``partly`` works in one mode or with a setting, and ``none`` does not apply."""

_STANDARD = "scenarios"
"""The heading above the columns of the scenarios."""
_LETTERS: dict[Mode, str] = {"plain": "P", "non-reentrant": "N", "reentrant": "R"}
_WORDS: dict[Mode, str] = {
    "plain": "without checkpointing",
    "non-reentrant": "non-reentrant",
    "reentrant": "reentrant",
}
_NOT_RUN = "\N{EN DASH}"
_OPTIONS = "options"
"""The shared column of the options of configurations, which differ from model to model."""


@dataclass(frozen=True)
class Column:
    """A way to train that classes were run in."""

    key: str
    group: str
    """The heading above it."""
    title: str
    detail: str = ""
    """The data, if the same setting is run with several."""


@dataclass(frozen=True)
class MatrixCell:
    """The result of one class in one column."""

    state: State
    text: str = ""
    """A sign, or the letters of the modes that fail."""
    label: str = ""
    """The same in words."""


def columns(results: Iterable[ClassResult]) -> tuple[Column, ...]:
    """Return the columns in which any class has a result, in the order of the tables."""
    results = list(results)
    seen = {_column(name) for result in results for name in result.scenarios}
    order = dict.fromkeys(_column(each.name) for each in SCENARIOS)
    places = {each.title: place for place, each in enumerate(PRACTICES)}
    setups = {each.title: each for result in results for each in result.setups}
    return (
        *(Column(f"{_STANDARD}/{name}", _STANDARD, name) for name in order if name in seen),
        *(
            Column(key, each.group, spelled_out(each.name), each.data)
            for key, each in sorted(
                setups.items(), key=lambda found: (places.get(found[1].title, len(places)), found[1].group)
            )
        ),
    )


def cells(result: ClassResult, shown: Sequence[Column]) -> tuple[MatrixCell, ...]:
    """Return the result of a class in each of the columns."""
    by_column: dict[str, list[str]] = {}
    for name in result.scenarios:
        by_column.setdefault(f"{_STANDARD}/{_column(name)}", []).append(name)
    settled = {each.group for each in result.advice if each.setting}
    setups = {each.title: _settled(_setup_cell(each), each.group in settled) for each in result.setups}
    has_setting = proven_setting(result) is not None
    return tuple(
        setups.get(column.key) or _settled(_joined(result, by_column.get(column.key, ())), has_setting)
        for column in shown
    )


def spelled(setup: SetUp) -> str:
    """Return the name of a set-up within its group, in words."""
    return ", ".join(filter(None, (spelled_out(setup.name), setup.data)))


def _settled(cell: MatrixCell, has_setting: bool) -> MatrixCell:
    """Return a cell that is not as bad if a setting is known with which the class works."""
    return replace(cell, state="partly") if has_setting and cell.state == "fails" else cell


def _setup_cell(setup: SetUp) -> MatrixCell:
    """Return the result of a set-up, which has one mode as a part of its name."""
    reason = ": ".join(part for part in (setup.symptom, setup.message) if part)
    if setup.outcome == "works":
        return MatrixCell("works", "✓", "works")
    if setup.outcome == "fails":
        return MatrixCell("fails", "✗", f"fails: {reason}")
    return MatrixCell("not run", _NOT_RUN, f"not run: {reason}")


def mode_cells(result: ClassResult, scenario: str) -> tuple[MatrixCell, ...]:
    """Return the result of each mode of a scenario."""
    if messages := _messages(result, scenario, "plain"):
        return (MatrixCell("fails", "fails without checkpointing, too", "; ".join(messages)),) * len(
            CHECKPOINTED
        )
    found = []
    for mode in CHECKPOINTED:
        messages = _messages(result, scenario, mode)
        if messages:
            found.append(MatrixCell("fails", "fails", "; ".join(messages)))
        elif _was_run(result, scenario, mode):
            found.append(MatrixCell("works", "works"))
        else:
            found.append(MatrixCell("not run", "not run"))
    return tuple(found)


def _column(scenario: str) -> str:
    return _OPTIONS if scenario_named(scenario).feature.startswith(OPTION) else scenario


def _joined(result: ClassResult, scenarios: Sequence[str]) -> MatrixCell:
    """Return one cell for all of these scenarios: it fails if one of them does."""
    if not scenarios:
        return MatrixCell("none")
    modes: tuple[Mode, ...] = ("plain", *CHECKPOINTED)
    failing = [mode for mode in modes if any(_messages(result, name, mode) for name in scenarios)]
    running = [mode for mode in CHECKPOINTED if any(_was_run(result, name, mode) for name in scenarios)]
    if failing:
        letters = " ".join(_LETTERS[mode] for mode in failing)
        words = " and ".join(_WORDS[mode] for mode in failing)
        message = next(
            text for name in scenarios for mode in failing for text in _messages(result, name, mode)
        )
        is_left = "plain" not in failing and any(mode not in failing for mode in running)
        return MatrixCell("partly" if is_left else "fails", letters, f"fails {words}: {message}")
    if not running:
        return MatrixCell("not run", _NOT_RUN, "not run")
    if len(running) < len(CHECKPOINTED):
        only = running[0]
        return MatrixCell("works", f"✓{_LETTERS[only]}", f"works {_WORDS[only]}; the other mode was not run")
    return MatrixCell("works", "✓", "works")


def _messages(result: ClassResult, scenario: str, mode: Mode) -> list[str]:
    """Return what was wrong; only verdicts report it for each scenario, if several have it in common."""
    seen = [
        each.message
        for verdict in result.verdicts
        if (verdict.scenario, verdict.mode) == (scenario, mode)
        for each in verdict.observations
    ]
    messages = [each.message for each in result.failures if (each.scenario, each.mode) == (scenario, mode)]
    return list(dict.fromkeys([*messages, *seen]))


def _was_run(result: ClassResult, scenario: str, mode: Mode) -> bool:
    return any((each.scenario, each.mode) == (scenario, mode) for each in result.verdicts)
