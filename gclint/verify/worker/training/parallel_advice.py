"""Advises which settings to use with DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Sequence

from gclint.verify.worker.practices import DDP
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.training.judgement import UNUSED

_SETTINGS = {
    "N/plain": "use_reentrant=False",
    "N/find-unused": "use_reentrant=False, find_unused_parameters=True",
    "R/static": "use_reentrant=True, static_graph=True",
    "R/plain": "use_reentrant=True",
}
"""The settings in order of preference: the rows that test them, and how to set them."""


def advise(rows: Sequence[SetUp]) -> Advice | None:
    """Return the first setting that works in all of its rows, and what it avoids."""
    failed = [each for each in rows if each.outcome == "fails" and each.name in _SETTINGS]
    for name, setting in _SETTINGS.items():
        of_setting = [each.outcome for each in rows if each.name == name]
        # A row that was not run might have failed.
        if of_setting and set(of_setting) == {"works"}:
            before = list(_SETTINGS)[: list(_SETTINGS).index(name)]
            avoided = next((each for each in failed if each.name in before), None)
            instead = f": {_reason(avoided)}" if avoided else ""
            return Advice(DDP, setting, f"With DistributedDataParallel, use {_worded(setting)}{instead}.")
    if not failed:
        return None
    why = f": {failed[0].name}{_on(failed[0])} fails ({failed[0].symptom})"
    return Advice(DDP, "", f"With DistributedDataParallel, no setting that was run works with all data{why}.")


def _worded(setting: str) -> str:
    worded = setting.replace(", ", " with ")
    # By default, the Trainer passes something else with checkpointing.
    in_trainer = " (ddp_find_unused_parameters=True in the Trainer)" if "find_unused" in setting else ""
    return worded + in_trainer


def _reason(row: SetUp) -> str:
    if row.symptom == UNUSED and row.parameters:
        of_data = f"on {row.data}, " if row.data else ""
        first, *others = row.parameters
        such = f"{len(row.parameters)} parameters, such as " if others else ""
        return f"{of_data}no gradient reaches {such}`{first}`"
    return f"{row.name}{_on(row)} fails ({row.symptom})"


def _on(row: SetUp) -> str:
    return f" on {row.data}" if row.data else ""
