"""The wording of advice to prefer one practice of a group."""

from __future__ import annotations

from collections.abc import Sequence

from gclint.verify.worker.protocol import Advice, SetUp


def preferring(group: str, where: str, setting: str, failing: Sequence[SetUp]) -> Advice:
    """Return the advice to use a setting.

    Args:
        group: the group of the setting.
        where: when to use it, such as "With adapters".
        setting: the setting to use.
        failing: the rows of the failures that it avoids.
    """
    instead = f"; this fails: {listed(failing)}" if failing else ""
    return Advice(group, setting, f"{where}, use {setting}{instead}.")


def listed(failing: Sequence[SetUp]) -> str:
    """Return the names of rows, each with how it fails."""
    return ", ".join(f"{each.name} ({each.symptom})" for each in failing)
