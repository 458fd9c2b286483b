"""The plugin for pytest: ``--gclint`` examines the models and the trainers that tests are about.

pytest imports it wherever gclint is installed, so it imports nothing else before it has to.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gclint.testing.model_check import CheckResult

_NAME = "test_gclint"
_CLASSES = "all_model_classes"
"""Where a test class in that manner says which models it is about."""
_TRAINER = "make_trainer"
"""The method of a test class that returns the Trainer that it is about."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("gclint").addoption(
        "--gclint",
        action="store_true",
        help=f"add a test {_NAME} to each class of tests that has `{_CLASSES}` and a `model_tester`, or "
        f"`{_TRAINER}()`: it trains these models, or a copy of the model of the Trainer that this returns, "
        "with and without gradient checkpointing, and compares",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> None:
    """Add the test to a class, before its tests are looked for."""
    if not (collector.config.getoption("gclint") and inspect.isclass(obj)):
        return
    if hasattr(obj, _CLASSES) or hasattr(obj, _TRAINER):
        setattr(obj, _NAME, _test)


def _test(self: Any) -> None:
    """The models train with gradient checkpointing as they do without."""
    results = list(_results(self))
    # A model that failed says more than one that nothing is known of.
    failed = [each.text for each in results if each.details.outcome != "not run" and not each.passed]
    if failed:
        pytest.fail("\n".join(failed), pytrace=False)
    unknown = [each.text for each in results if not each.passed]
    if unknown:
        pytest.skip("\n".join(unknown))
    if not results:
        pytest.skip("no model of this class supports gradient checkpointing")


def _results(tests: Any) -> Iterator[CheckResult]:
    """Yield what comes of each model, made and fed as the other tests make and feed it."""
    from gclint.testing.model_check import check

    if hasattr(tests, _TRAINER):
        yield check(getattr(tests, _TRAINER)())
    for model_class in getattr(tests, _CLASSES, None) or ():
        if not getattr(model_class, "supports_gradient_checkpointing", False):
            continue
        config, inputs = tests.model_tester.prepare_config_and_inputs_for_common()
        if hasattr(tests, "_prepare_for_class"):
            inputs = tests._prepare_for_class(inputs, model_class, return_labels=True)
        yield check(model_class(config), inputs)
