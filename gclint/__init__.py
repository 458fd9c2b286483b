"""gclint finds and repairs what breaks gradient checkpointing in Hugging Face-style models."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location

# With `python -m gclint`, this runs before the working directory is taken off the path: nothing is imported
# here that Python has not already imported itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gclint.testing.callback import GclintCallback
    from gclint.testing.model_check import CheckError, CheckResult, check

__all__ = ["CheckError", "CheckResult", "GclintCallback", "__version__", "check"]

__version__ = "0.3.0"


def _find_rules_of_checkout() -> None:
    """Make ``gclint.rules`` importable from the folder ``rules`` of a checkout that is not installed."""
    installed, path = (os.path.realpath(f"{__file__}/{up}/rules/__init__.py") for up in ("..", "../.."))
    if os.path.isfile(installed) or not os.path.isfile(path):  # noqa: PTH113
        return
    spec = spec_from_file_location("gclint.rules", path)
    assert spec is not None and spec.loader is not None
    # As an import would do, store the module in both places.
    globals()["rules"] = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])


_find_rules_of_checkout()


def __getattr__(name: str) -> Any:
    """Import the functions for tests of models on first use; the callback also imports transformers."""
    if name in __all__:
        module = "callback" if name == "GclintCallback" else "model_check"
        return getattr(import_module(f"gclint.testing.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
