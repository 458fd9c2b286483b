"""The groups of practices, by their names in the table."""

from __future__ import annotations

from gclint.verify.worker.practices import AUTOCAST, COMPILE, DDP, PEFT, WRAPPER
from gclint.verify.worker.training.adapters import ADAPTERS
from gclint.verify.worker.training.autocast import AUTOCASTING
from gclint.verify.worker.training.compiling import COMPILING
from gclint.verify.worker.training.group import Group
from gclint.verify.worker.training.parallel import exists, load, prepare
from gclint.verify.worker.training.parallel_advice import advise
from gclint.verify.worker.training.wrapping import WRAPPING

GROUPS: dict[str, Group] = {
    DDP: Group(prepare, advise, exists=exists, load=load),
    PEFT: ADAPTERS,
    WRAPPER: WRAPPING,
    AUTOCAST: AUTOCASTING,
    COMPILE: COMPILING,
}
"""The groups by name."""
