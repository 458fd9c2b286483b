"""Writes scripts that show a failure without gclint, and runs them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from textwrap import indent, wrap

from gclint.code.packages import INSTALLED
from gclint.code.paths import printable
from gclint.verify.process import work
from gclint.verify.results import Results
from gclint.verify.script import FAILURES, FORWARD, HELPERS, STEP, TEMPLATE, Sign, guard, sign_of
from gclint.verify.settings import GIGABYTES, RunSettings
from gclint.verify.sources import Target, overlay_of, target_of
from gclint.verify.worker.protocol import ClassResult, Demonstration, Failure, Recipe, Request, Unusable
from gclint.verify.worker.scenarios import NO_DROPOUT, Scenario, scenario_named
from gclint.verify.worker.vocabulary import USE_CACHE

_WIDTH = 100
_IMPORTS = {
    name: f"import {name}" for name in ("faulthandler", "re", "resource", "sys", "types", "warnings")
} | {
    "Counter": "from collections import Counter",
    "deque": "from collections import deque",
    "import_module": "from importlib import import_module",
    "signature": "from inspect import signature",
}
_LIBRARIES = {
    "numpy": "import numpy",
    "torch": "import torch",
    "transformers": "import transformers",
    "tree_leaves": "from torch.utils._pytree import tree_leaves",
}
"""The imports of scripts, by the names that they define; a script has those that it uses."""
_WITH_LITTLE_DROPOUT = "LEAST = 0.0  # The model may be written for its defaults.\n"
_WITHOUT_HOOK = "HOOK = False  # The model cannot be trained with it even without checkpointing.\n"
_RETRIED = """\
try:
    plain = train()
except Exception:
    {retry}    plain = train()
"""


def scripts(results: Results) -> Iterator[tuple[str, str]]:
    """Yield a script for each class that failed: the name of its file, and its text."""
    for result in results.of("failed"):
        failure = next((each for each in result.failures if each.mode != "plain"), result.failures[0])
        recipe = result.recipe_of(failure)
        if recipe:
            # A file of results may claim any name.
            name = re.sub(r"\W", "_", f"{Path(result.source).stem}_{result.name}")
            yield f"{name}.py", script(result, failure, recipe)


def script(result: ClassResult, failure: Failure, recipe: Recipe) -> str:
    """Return a script that shows a failure and exits with 1, or with 0 if there is none."""
    title = f"{result.name}, {failure.check} ({failure.mode} {failure.scenario}): {failure.text}"
    scenario, sign = scenario_named(failure.scenario), sign_of(failure)
    mode = "" if failure.mode == "plain" else f"use_reentrant={failure.mode == 'reentrant'}"
    filled = {
        "guard": guard(failure),
        "constants": "".join(_constants(failure, sign, scenario)),
        "config": _called("dict", {name: _written(value) for name, value in recipe.config.items()}),
        "found": sign.found,
        "name": result.name,
        "config_class": recipe.config_class.rpartition(".")[2],
        "preparation": indent("".join(_preparation(scenario, recipe)) + sign.watch, "    "),
        "steps": indent("".join(_steps(scenario, sign, recipe, failure.step + 1)), "    "),
        "failures": FAILURES.format(shown=indent(sign.shown, "    ")) if mode else "",
        "mode": mode or "without checkpointing",
        "runs": "".join(_runs(scenario, mode)),
    }
    body = TEMPLATE.format(title="", imports="", helpers="", **filled)
    helpers = _used(HELPERS, body)
    return TEMPLATE.format(
        title="\n".join(wrap(printable(title).replace("\\", "\\\\").replace('"', "'"), _WIDTH)),
        imports="\n".join(_imports(target_of(Path(result.source)), result.name, recipe, body + helpers)),
        helpers=helpers,
        **filled,
    )


def demonstrate(script: str, settings: RunSettings, texts: Mapping[Path, str] | None = None) -> Demonstration:
    """Run a script in a fresh process, within the limits of a class, and return what came of it.

    The ``texts`` are imported instead of those of the files.
    """
    request = Request(
        (),
        overlay=overlay_of(texts or {}),
        seconds=settings.seconds,
        gigabytes=settings.gigabytes or GIGABYTES,
        script=script,
    )
    with closing(work(settings.python, request)) as messages:
        for message in messages:
            if isinstance(message, Demonstration):
                return message
            if isinstance(message, Unusable):
                return Demonstration(-1, f"{message.message}\n")
    return Demonstration(-1, "the worker did not answer\n")


def _constants(failure: Failure, sign: Sign, scenario: Scenario) -> Iterator[str]:
    if "BLOCKS" in sign.shown:
        yield f"BLOCKS = {_written(list(failure.blocks))}\n"
    if scenario.dropout:
        yield "LEAST = 0.5  # The least probability of dropping something.\n"
    if scenario.require_input_grads:
        yield "HOOK = True\n"


def _preparation(scenario: Scenario, recipe: Recipe) -> Iterator[str]:
    if recipe.is_enabled:
        yield "model.gradient_checkpointing_disable()  # It is enabled by default.\n"
    if recipe.has_dropout and not scenario.dropout:
        yield NO_DROPOUT
    yield scenario.preparation + scenario.setup


def _steps(scenario: Scenario, sign: Sign, recipe: Recipe, least: int) -> Iterator[str]:
    """Yield the lines of the steps, each with its forward passes and a backward pass."""
    if scenario.require_input_grads:
        yield "if HOOK:\n    model.enable_input_require_grads()  # As when training adapters.\n"
    steps, forwards = scenario.steps if sign.all_steps else least, scenario.forwards
    number = "number" if steps > 1 else "0"
    batch = number if forwards == 1 else "index" if steps == 1 else f"{forwards} * number + index"
    forward = FORWARD.format(
        inputs="".join(_inputs(scenario, recipe, batch)),
        context=sign.context and f"{sign.context}    ",
        noted=sign.noted,
        outputs=f"tree_leaves({'without_caches(outputs)' if recipe.has_cache else 'outputs'})",
    )
    if forwards > 1:
        forward = f"for index in range({forwards}):\n{indent(forward, '    ')}"
    # What a step leaves of the random numbers of Python and numpy reaches the next one.
    seed = "torch.manual_seed" if steps > 1 else "transformers.set_seed"
    step = STEP.format(seed=seed, number=number, forward=forward, before=sign.before, after=sign.after)
    yield f"for number in range({steps}):\n{indent(step, '    ')}" if steps > 1 else step


def _inputs(scenario: Scenario, recipe: Recipe, number: str) -> Iterator[str]:
    """Yield the lines that make the inputs of a forward pass, and what the scenario does to them."""
    if number != "0" and recipe.other_inputs:
        which = f"({number})" if " " in number else number
        batches = [_called("dict", each) for each in (recipe.inputs, recipe.other_inputs)]
        yield f"batches = {_broken('[', batches, ']')}\n"
        yield f"inputs = batches[{which} % 2]  # Two lengths alternate.\n"
    else:
        yield f"inputs = {_called('dict', recipe.inputs)}\n"
    if recipe.has_cache and (scenario.use_cache or not recipe.keeps_cache):
        yield f"""\
for part in holders(model):
    if hasattr(part, "{USE_CACHE}"):
        part.{USE_CACHE} = {scenario.use_cache}
if "{USE_CACHE}" in signature(model.forward).parameters:
    inputs["{USE_CACHE}"] = {scenario.use_cache}
"""
    yield scenario.batch


def _runs(scenario: Scenario, mode: str) -> Iterator[str]:
    """Yield the lines that train the model without and with checkpointing."""
    retry = (
        _WITHOUT_HOOK if scenario.require_input_grads else _WITH_LITTLE_DROPOUT if scenario.dropout else ""
    )
    if not mode:
        yield "try:\n    train()\n    sentences = []\n"
    else:
        yield _RETRIED.format(retry=retry) if retry else "plain = train()\n"
        yield f"try:\n    sentences = list(failures(plain, train({mode})))\n"


def _called(name: str, arguments: Mapping[str, str]) -> str:
    """Return a call with keyword arguments as text."""
    return _broken(f"{name}(", (f"{key}={value}" for key, value in arguments.items()), ")")


def _broken(start: str, parts: Iterable[str], end: str) -> str:
    """Return what is between brackets with commas, broken into lines if it is long."""
    parts = list(parts)
    whole = f"{start}{', '.join(parts)}{end}"
    if len(whole) <= _WIDTH:
        return whole
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1].rpartition("\n")[2]) + len(part) < _WIDTH:
            lines[-1] += f" {part},"
        else:
            lines.append(indent(f"{part},", "    "))
    return "\n".join((start, *lines, end))


def _written(value: object) -> str:
    """Return a field of a configuration as Python, broken into lines if it is long."""
    if isinstance(value, dict):
        return _broken("{", (f"{key!r}: {_written(each)}" for key, each in value.items()), "}")
    if isinstance(value, list):
        return _broken("[", map(_written, value), "]")
    return repr(value)


def _used(known: Mapping[str, str], text: str) -> str:
    """Return the functions that a text uses, and those that these use."""
    names: set[str] = set()
    while True:
        used = "\n\n".join((text, *(known[name] for name in names)))
        further = {name for name in known if re.search(rf"\b{name}\(", used)} - names
        if not further:
            return "".join(f"{function}\n\n" for name, function in known.items() if name in names)
        names |= further


def _imports(target: Target, name: str, recipe: Recipe, text: str) -> Iterator[str]:
    config_module, _, config_name = recipe.config_class.rpartition(".")
    own = [_import(config_module, config_name), _import(target.source.module, name)]
    place = list(_place(target))
    used = "\n".join((text, *own, *place))
    for known in (_IMPORTS, _LIBRARIES):
        yield from (line for word, line in known.items() if re.search(rf"\b{word}\b", used))
        yield from [""] if known is _IMPORTS else ()
    yield from place
    yield from own


def _place(target: Target) -> Iterator[str]:
    """Yield the lines with which the file of a model can be imported; none if it is installed."""
    if target.tree is None:
        package = target.source.module.partition(".")[0]
        yield f"\npackage = sys.modules[{package!r}] = types.ModuleType({package!r})"
        yield f"package.__path__ = [{target.source.package_folder!r}]"
        yield f"sys.path.append({str(Path(target.source.path).parent)!r})"
    elif not INSTALLED.intersection(Path(target.tree).parts):
        yield f"\nsys.path.insert(0, {target.tree!r})"


def _import(module: str, name: str) -> str:
    """Return a statement that imports a class; the name of a module is that of a file, which may be any."""
    if all(map(str.isidentifier, module.split("."))):
        return f"from {module} import {name}"
    return f"{name} = import_module({module!r}).{name}"
