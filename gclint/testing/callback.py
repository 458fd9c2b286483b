"""The callback that checks a trainer when it begins to train; importing it imports transformers."""

from __future__ import annotations

import warnings
from typing import Any

from gclint.testing.model_check import SECONDS, CheckError, check
from gclint.verify.worker.beginning import AtBeginning


class GclintCallback(AtBeginning):
    """Checks the trainer that it is given to, as :func:`gclint.check` does, before its first step.

    It warns if the run is not fine, or cannot be checked, and says nothing otherwise.
    """

    def __init__(self, *, raises: bool = False, seconds: float = SECONDS) -> None:
        """Prepare.

        Args:
            raises: whether to raise :class:`gclint.CheckError` instead of warning if the run is not fine.
            seconds: the time limit of each set-up.
        """
        super().__init__()
        self._raises = raises
        self._seconds = seconds

    def look(self, trainer: Any) -> None:
        """Check the trainer."""
        try:
            result = check(trainer, seconds=self._seconds)
        except CheckError as error:
            # What cannot be checked need not be wrong.
            warnings.warn(f"gclint could not check the run: {error}", stacklevel=2)
            return
        if result.passed:
            return
        if self._raises:
            raise CheckError(result.text)
        warnings.warn(result.text, stacklevel=2)
