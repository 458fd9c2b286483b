"""Scripts that show a failure without gclint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from gclint.verify.results import Results
from gclint.verify.sources import Target, target_of
from gclint.verify.worker.protocol import ClassResult, Failure, Recipe
from gclint.verify.worker.scenarios import scenario_named

_SCRIPT = '''\
"""{title}"""

{imports}

CONFIG = {config}


def step(**checkpointing):
    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)
    model = {name}({config_class}.from_dict(CONFIG)).train()
    for parameter in model.parameters():  # No branch is hidden by a zero.
        parameter.data += 0.01 * torch.randn_like(parameter)
    inputs = dict({inputs})
{preparation}
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpointing)
    saved = 0

    def pack(tensor):
        nonlocal saved
        saved += tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs = tree_leaves(model(**inputs))
    tensors = [each for each in outputs if torch.is_tensor(each) and each.requires_grad]
    if tensors:
        sum((each.nan_to_num(0, 0, 0) * torch.randn_like(each)).sum() for each in tensors).backward()
    return saved, {{name: parameter.grad for name, parameter in model.named_parameters()}}


(plain_bytes, plain), (saved_bytes, found) = step(), step(use_reentrant={reentrant})
print("saved bytes", plain_bytes, "with checkpointing", saved_bytes)
for name, gradient in plain.items():
    if gradient is not None and found[name] is None:
        print("lost", name)
    elif gradient is not None and not torch.allclose(gradient, found[name], rtol=1e-3, atol=1e-5):
        print("different", name)
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
    """Return a script that compares a step with checkpointing to one without."""
    target = target_of(Path(result.source))
    title = f"{result.name}, {failure.check} ({failure.mode} {failure.scenario}): {failure.text}"
    scenario = scenario_named(failure.scenario)
    inputs = "".join(f"\n        {name}={value}," for name, value in recipe.inputs.items())
    return _SCRIPT.format(
        title=title.replace("\\", "\\\\").replace('"', "'"),
        imports="\n".join(_imports(target, result.name, recipe)),
        config=repr(recipe.config),
        name=result.name,
        config_class=recipe.config_class.rpartition(".")[2],
        preparation=indent(scenario.preparation.rstrip(), "    "),
        inputs=f"{inputs}\n    " if inputs else "",
        reentrant=failure.mode == "reentrant",
    )


def _imports(target: Target, name: str, recipe: Recipe) -> Iterator[str]:
    yield "import random\nimport sys"
    if target.tree is None:
        yield "import types"
    yield "from inspect import signature"
    yield "\nimport numpy\nimport torch"
    yield "from torch.utils._pytree import tree_leaves\n"
    if target.tree is None:
        package = target.source.module.partition(".")[0]
        yield f"package = sys.modules[{package!r}] = types.ModuleType({package!r})"
        yield f"package.__path__ = [{target.source.package_folder!r}]"
        yield f"sys.path.append({str(Path(target.source.path).parent)!r})"
    else:
        yield f"if {target.tree!r} not in sys.path:\n    sys.path.insert(0, {target.tree!r})"
    config_module, _, config_name = recipe.config_class.rpartition(".")
    yield f"from {config_module} import {config_name}"
    yield f"from {target.source.module} import {name}"
