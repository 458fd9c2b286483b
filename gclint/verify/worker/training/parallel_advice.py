"""Which settings to train with under DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Sequence

from gclint.verify.worker.practices import DDP
from gclint.verify.worker.protocol import Advice, SetUp

_SETTINGS = {
    "N/plain": "use_reentrant=False",
    "N/find-unused": "use_reentrant=False with find_unused_parameters=True",
    "R/static": "use_reentrant=True with static_graph=True",
    "R/plain": "use_reentrant=True",
}
"""What to choose, in order: the rows that show it, and what it is in words."""


def advise(rows: Sequence[SetUp]) -> Advice | None:
    """Return the first setting that works in all of its rows, and what it avoids."""
    ran = [each for each in rows if each.outcome != "not run" and each.name in _SETTINGS]
    if not ran:
        return None
    for name, setting in _SETTINGS.items():
        of_setting = [each for each in ran if each.name == name]
        if of_setting and all(each.outcome == "works" for each in of_setting):
            return Advice(DDP, setting, f"Use {setting}{_instead(name, ran)}.")
    return Advice(DDP, "", "No setting that was run works with all data.")


def _instead(name: str, rows: Sequence[SetUp]) -> str:
    """Return why nothing comes before a setting, if something does not work."""
    before = list(_SETTINGS)[: list(_SETTINGS).index(name)]
    failed = next((each for each in rows if each.name in before and each.outcome == "fails"), None)
    if failed is None:
        return ""
    data = f" on {failed.data}" if failed.data else ""
    return f": {failed.name}{data} fails ({failed.symptom})"
