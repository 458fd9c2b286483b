"""Writes scripts that show a failure without gclint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from gclint.code.paths import printable
from gclint.verify.results import Results
from gclint.verify.script import TEMPLATE, guard, shown
from gclint.verify.sources import Target, target_of
from gclint.verify.worker.protocol import ClassResult, Failure, Recipe
from gclint.verify.worker.scenarios import ENDLESS, Scenario, scenario_named
from gclint.verify.worker.vocabulary import USE_CACHE


def scripts(results: Results) -> Iterator[tuple[str, str]]:
    """Yield a script for each class that failed: the name of its file, and its text."""
    for result in results.of("failed"):
        failure = next((each for each in result.failures if each.mode != "plain"), result.failures[0])
        if result.recipe:
            # A file of results may claim any name.
            name = re.sub(r"\W", "_", f"{Path(result.source).stem}_{result.name}")
            yield f"{name}.py", script(result, failure, result.recipe)


def script(result: ClassResult, failure: Failure, recipe: Recipe) -> str:
    """Return a script that shows a failure and exits with 1, or with 0 if there is none."""
    target = target_of(Path(result.source))
    title = f"{result.name}, {failure.check} ({failure.mode} {failure.scenario}): {failure.text}"
    scenario = scenario_named(failure.scenario)
    return TEMPLATE.format(
        title=printable(title).replace("\\", "\\\\").replace('"', "'"),
        imports="\n".join(_imports(target, result.name, recipe)),
        config=repr(recipe.config),
        name=result.name,
        config_class=recipe.config_class.rpartition(".")[2],
        batches=", ".join(_keywords(each) for each in (recipe.inputs, recipe.other_inputs) if each),
        preparation=indent(scenario.preparation + scenario.setup, "    "),
        batch=indent(_cache(scenario, recipe) + scenario.batch, "    "),
        steps=scenario.steps,
        forwards=scenario.forwards,
        hook=scenario.require_input_grads,
        mode="{}" if failure.mode == "plain" else f'{{"use_reentrant": {failure.mode == "reentrant"}}}',
        shown=shown(failure),
        guard=guard(failure),
        endless=ENDLESS,
        blocks=failure.blocks,
    )


def _keywords(inputs: dict[str, str]) -> str:
    return f"dict({', '.join(f'{name}={value}' for name, value in inputs.items())})"


def _cache(scenario: Scenario, recipe: Recipe) -> str:
    """Return the lines that make a model use caches, or not."""
    if recipe.keeps_cache and not scenario.use_cache:
        return ""
    return f"""\
for part in holders(model):
    if hasattr(part, "{USE_CACHE}"):
        part.{USE_CACHE} = {scenario.use_cache}
if "{USE_CACHE}" in signature(model.forward).parameters:
    inputs["{USE_CACHE}"] = {scenario.use_cache}
"""


def _imports(target: Target, name: str, recipe: Recipe) -> Iterator[str]:
    yield "import faulthandler\nimport random\nimport re\nimport resource\nimport sys"
    if target.tree is None:
        yield "import types"
    yield "import warnings\nfrom collections import Counter, deque"
    yield "from importlib import import_module\nfrom inspect import signature"
    yield "\nimport numpy\nimport torch\nimport transformers"
    yield "from torch.utils._pytree import tree_leaves\n"
    if target.tree is None:
        package = target.source.module.partition(".")[0]
        yield f"package = sys.modules[{package!r}] = types.ModuleType({package!r})"
        yield f"package.__path__ = [{target.source.package_folder!r}]"
        yield f"sys.path.append({str(Path(target.source.path).parent)!r})"
    else:
        yield f"if {target.tree!r} not in sys.path:\n    sys.path.insert(0, {target.tree!r})"
    config_module, _, config_name = recipe.config_class.rpartition(".")
    yield _import(config_module, config_name)
    yield _import(target.source.module, name)


def _import(module: str, name: str) -> str:
    """Return a statement that imports a class; the name of a module is that of a file, which may be any."""
    if all(map(str.isidentifier, module.split("."))):
        return f"from {module} import {name}"
    return f"{name} = import_module({module!r}).{name}"
