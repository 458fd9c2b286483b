"""GC402: reentrant checkpointing under a DistributedDataParallel that looks for unused parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.finding import Applicability, Finding, StoryStep
from gclint.model.scripts import WRAPPERS, Done, Script, is_literally, is_model, only_returned
from gclint.model.values import Value
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.training import (
    DISABLING,
    ENABLING,
    OPTIONS,
    USE_REENTRANT,
    is_at,
    is_handed_on,
    made_of,
    non_reentrant,
    step,
    trainings,
)
from gclint.releases import Releases
from gclint.rule import Rule

_FIND = "find_unused_parameters"
_STATIC = "static_graph"
_OTHERWISE = DISABLING | {"_set_static_graph"}
"""What is done to a model, or to what wraps it, so that it trains all the same."""
_REASON = "checkpointing is then non-reentrant, also if a single process trains"


class ReentrantWithUnusedParameters(Rule):
    """A training script combines reentrant checkpointing with `find_unused_parameters=True`.

    ## What it does

    Finds, in a training script,

    - arguments of a trainer of transformers or trl, which trains with them, with
      `gradient_checkpointing=True`, `"use_reentrant": True` in `gradient_checkpointing_kwargs`, and
      `ddp_find_unused_parameters=True`;
    - `DistributedDataParallel(model, find_unused_parameters=True)` around a model of transformers whose
      checkpointing is enabled with `"use_reentrant": True`;
    - the same settings in a YAML file of axolotl, LLaMA-Factory or TRL that is given or included, under the
      keys that these document. LLaMA-Factory checkpoints reentrantly unless `use_reentrant_gc: false`.

    Without `gradient_checkpointing_kwargs`, checkpointing is reentrant with releases of transformers before
    5.0, except for trl. Only values that are known count. With `static_graph=True`, DeepSpeed or FSDP,
    nothing is reported.

    ## Why is this bad?

    To find unused parameters, DistributedDataParallel traverses the graph of the forward pass, which does
    not contain what a reentrant checkpoint runs. It takes these parameters for unused, and the backward
    pass marks them as ready a second time. Ran with transformers 4.57.6 and 5.23.0 under
    `torchrun`, on Llama, and as rows of the verifier on other models: the first backward pass raises
    "Expected to mark a variable ready only once". With non-reentrant checkpointing, the same
    script trains. These are rows `R/find-unused` and `N/find-unused` of the set-ups of
    `gclint verify --scenario ddp`.

    ## Example

    ```python
    args = TrainingArguments(
        "out",
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": True},
        ddp_find_unused_parameters=True,
    )
    ```

    Use instead:

    ```python
    args = TrainingArguments(
        "out",
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        ddp_find_unused_parameters=True,
    )
    ```

    ## Fix safety

    The fix writes `False` where `use_reentrant` is written. It is unsafe, since it also changes how a
    single process trains.

    ## References

    -
      [DistributedDataParallel](https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    """

    code = "GC402"
    name = "reentrant-with-unused-parameters"
    precision = "very-high"
    fixes = (Applicability.UNSAFE,)

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each place where the parameters are to be looked for."""
        script = network.script
        for done, options, story in _combined(script, network.releases) if script else ():
            if script is not None and done.file is network.file:
                yield self.finding(
                    f"`{_FIND}=True` with reentrant checkpointing: the first backward pass of "
                    "DistributedDataParallel raises, since parameters are marked as ready twice",
                    network.file.path,
                    network.file.places.span(_place(done)),
                    done.name.rpartition(".")[2],
                    non_reentrant(script, options, network.file, _REASON),
                    story=story,
                )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield why the arguments or the wrapper at a place are right, or not known to be wrong."""
        script = network.script
        for each in trainings(script) if script else ():
            if each.arguments.file is network.file and is_at(explained, each.arguments):
                if not each.is_reentrant(network.releases):
                    yield "the arguments do not say for certain that checkpointing is reentrant"
                elif not each.is_decided:
                    yield "something of which nothing is known may change the arguments"
                elif not is_literally(each.says(f"ddp_{_FIND}"), True):
                    yield f"the arguments do not say for certain that `ddp_{_FIND}` is True"


def _place(done: Done) -> ast.AST:
    """Return the argument that makes it look for them, if it stands in the call itself."""
    written = done.node.keywords if isinstance(done.node, ast.Call) else ()
    return next((each for each in written if each.arg and each.arg.endswith(_FIND)), done.node)


def _combined(
    script: Script, releases: Releases
) -> Iterator[tuple[Done, Value | None, tuple[StoryStep, ...]]]:
    """Yield the calls that get the argument, with the options of checkpointing, and the story."""
    for each in trainings(script):
        if not each.is_reentrant(releases) or each.may_be_wrapped_otherwise or not each.is_decided:
            continue
        if is_literally(each.says(f"ddp_{_FIND}"), True):
            yield each.arguments, each.options, (step(each.trainer, "the trainer gets these arguments"),)
    for wrapper in script.called(*WRAPPERS):
        model = only_returned(script.argument(wrapper, "module", index=0))
        if model is None or not is_model(model) or script.argument(wrapper, _STATIC) is not None:
            continue
        around = made_of(script, model)
        done = [*script.about(around)]
        enabling = [each for each in done if each.name in ENABLING]
        if len(enabling) != 1 or not is_literally(script.argument(wrapper, _FIND), True):
            continue
        if is_handed_on(script, around) or any(each.name in _OTHERWISE for each in done):
            continue
        options = script.argument(enabling[0], *OPTIONS, index=0)
        if options is not None and is_literally(script.under(options, USE_REENTRANT), True):
            yield wrapper, options, (step(enabling[0], "checkpointing is enabled here, and is reentrant"),)
