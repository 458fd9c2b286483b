"""Configurations from the examples in the documentation of their classes."""

from __future__ import annotations

import ast
import doctest
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PretrainedConfig


def example_of(config_class: Any) -> Any:
    """Return the first ``config_class`` that the example in its documentation makes, or None.

    Only constructors of configurations are executed, and methods called ``from_…`` that load nothing.
    """
    values: dict[str, Any] = {config_class.__name__: config_class}
    for name, expression in _assignments(inspect.getdoc(config_class) or ""):
        try:
            values[name] = _Configurations(config_class, values).evaluate(expression)
        except Exception:
            # A line may build a model or use an unknown name; a later one may still make a configuration.
            continue
        if type(values[name]) is config_class:
            return values[name]
    return None


def _assignments(text: str) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that the examples in ``text`` assign to, with the expressions assigned."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
        statements = [each for example in examples for each in ast.parse(example.source).body]
    except (SyntaxError, ValueError):
        return
    for each in statements:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            yield each.targets[0].id, each.value


class _Configurations:
    """Evaluates expressions that make configurations, and raises ``ValueError`` at anything else."""

    def __init__(self, config_class: Any, values: dict[str, Any]) -> None:
        self._module = sys.modules.get(config_class.__module__)
        self._values = values

    def evaluate(self, expression: ast.expr) -> Any:
        if isinstance(expression, ast.Call):
            arguments = [self.evaluate(each) for each in expression.args]
            keywords = {each.arg: self.evaluate(each.value) for each in expression.keywords if each.arg}
            return self._function(expression.func)(*arguments, **keywords)
        if isinstance(expression, ast.Name):
            return self._named(expression.id)
        return ast.literal_eval(expression)

    def _function(self, expression: ast.expr) -> Any:
        method = expression.attr if isinstance(expression, ast.Attribute) else None
        owner = self.evaluate(expression.value if isinstance(expression, ast.Attribute) else expression)
        if not inspect.isclass(owner) or not issubclass(owner, PretrainedConfig):
            raise ValueError
        if method is None:
            return owner
        if not method.startswith("from_") or method == "from_pretrained":
            raise ValueError
        return getattr(owner, method)

    def _named(self, name: str) -> Any:
        for found in (
            self._values.get(name),
            getattr(self._module, name, None),
            getattr(transformers, name, None),
        ):
            if found is not None:
                return found
        raise ValueError(name)
