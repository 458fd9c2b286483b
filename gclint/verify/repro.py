"""Scripts that show a failure without gclint."""

from __future__ import annotations

import pprint
from collections.abc import Iterator
from pathlib import Path

from gclint.verify.results import Results
from gclint.verify.sources import Target, target_of
from gclint.verify.worker.protocol import ClassResult, Failure, Recipe

_SCRIPT = '''\
"""{name}, {check} ({mode}, {scenario}): {message}"""

{imports}

CONFIG = {config}


def gradients(**checkpointing):
    torch.manual_seed(0)
    model = {name}({config_class}.from_dict(CONFIG)).train()
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpointing)
    torch.manual_seed(1)
    outputs = tree_leaves(model({inputs}))
    tensors = [each for each in outputs if torch.is_tensor(each) and each.requires_grad]
    sum((each * torch.randn_like(each)).sum() for each in tensors).backward()
    return {{name: parameter.grad for name, parameter in model.named_parameters()}}


plain, checkpointed = gradients(), gradients(use_reentrant={reentrant})
for name, gradient in plain.items():
    if gradient is not None:
        other = checkpointed[name]
        same = other is not None and torch.allclose(gradient, other, rtol=1e-3, atol=1e-5)
        print("same" if same else "lost" if other is None else "DIFFERENT", name)
'''


def write_scripts(folder: Path, results: Results) -> list[Path]:
    """Write a script for each class that failed with checkpointing on, and return where they are.

    Raises:
        OSError: a file cannot be written.
    """
    written = []
    for result in results.of("failed"):
        failure = next((each for each in result.failures if each.mode != "plain"), None)
        if failure and result.recipe:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{Path(result.source).stem}_{result.name}.py"
            path.write_text(script(result, failure, result.recipe), encoding="utf-8")
            written.append(path)
    return written


def script(result: ClassResult, failure: Failure, recipe: Recipe) -> str:
    """Return a script that compares the gradients with and without checkpointing."""
    target = target_of(Path(result.source))
    inputs = "".join(f"\n        {name}={value}," for name, value in recipe.inputs.items())
    return _SCRIPT.format(
        name=result.name,
        check=failure.check,
        mode=failure.mode,
        scenario=failure.scenario,
        message=failure.message.replace("\\", "\\\\").replace('"', "'"),
        imports="\n".join(_imports(target, result.name, recipe)),
        config=pprint.pformat(recipe.config, width=100, compact=True),
        config_class=recipe.config_class.rpartition(".")[2],
        inputs=f"{inputs}\n    " if inputs else "",
        reentrant=failure.mode == "reentrant",
    )


def _imports(target: Target, name: str, recipe: Recipe) -> Iterator[str]:
    yield "import sys"
    if target.tree is None:
        yield "import types"
    yield "\nimport torch"
    yield "from torch.utils._pytree import tree_leaves\n"
    if target.tree is None:
        package = target.source.module.rpartition(".")[0]
        yield f"package = sys.modules[{package!r}] = types.ModuleType({package!r})"
        yield f"package.__path__ = [{target.source.package_folder!r}]"
    else:
        yield f"if {target.tree!r} not in sys.path:\n    sys.path.insert(0, {target.tree!r})"
    config_module, _, config_name = recipe.config_class.rpartition(".")
    yield f"from {config_module} import {config_name}"
    yield f"from {target.source.module} import {name}"
