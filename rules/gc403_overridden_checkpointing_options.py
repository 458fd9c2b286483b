"""GC403: options of checkpointing that `prepare_model_for_kbit_training` overrides."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.finding import Applicability, Edit, Finding, Fix, Refusal
from gclint.level import Level
from gclint.model.scripts import Done, Script, is_literally, only_returned
from gclint.model.values import Returned, Value
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.training import (
    ENABLED,
    ENABLING,
    NON_REENTRANT,
    OPTIONS,
    PREPARING,
    USE_REENTRANT,
    is_at,
    is_handed_on,
    made_of,
    result_of,
    step,
    trainings,
    trains_otherwise,
)
from gclint.rule import Rule

_CALLS = (f"peft.{PREPARING}", f"peft.utils.{PREPARING}", f"peft.utils.other.{PREPARING}")
_QUANTIZED = ("load_in_4bit", "load_in_8bit")


class OverriddenCheckpointingOptions(Rule):
    """`prepare_model_for_kbit_training` overrides that checkpointing was to be non-reentrant.

    ## What it does

    Finds calls of peft's `prepare_model_for_kbit_training` without `gradient_checkpointing_kwargs`, for a
    quantized model whose checkpointing the script has enabled before with `"use_reentrant": False`.

    Where a trainer enables checkpointing afterwards, or may do so, nothing is reported.

    ## Why is this bad?

    The call enables checkpointing for a quantized model once more, with the options that it is passed. By
    default these are empty, so that torch's default is used: checkpointing is reentrant, whatever was
    chosen before, and also with transformers 5, whose own default is non-reentrant. Ran with peft 0.21.2 on
    transformers 4.57.6 and 5.23.0: the options of the layers become `{}`. It is row `k-bit/default` of the
    set-ups of `gclint verify --scenario peft`.

    ## Example

    ```python
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model = prepare_model_for_kbit_training(model)
    ```

    Use instead:

    ```python
    model = prepare_model_for_kbit_training(model, gradient_checkpointing_kwargs={"use_reentrant": False})
    ```

    ## Fix safety

    The fix passes `gradient_checkpointing_kwargs={"use_reentrant": False}`. It is unsafe, since
    checkpointing then is non-reentrant, as it was not before.

    ## References

    - [Quantization](https://huggingface.co/docs/peft/main/en/developer_guides/quantization)
    """

    code = "GC403"
    name = "overridden-checkpointing-options"
    level = Level.WARNING
    precision = "very-high"
    fixes = (Applicability.UNSAFE,)

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each call that overrides options."""
        script = network.script
        for done in script.called(*_CALLS) if script else ():
            if script is None or done.file is not network.file:
                continue
            enabling = _before(script, done)
            if enabling is not None and _why_not(script, done) is None:
                yield self.finding(
                    f"`{PREPARING}` enables checkpointing once more, without `use_reentrant=False`: "
                    "from here on it is reentrant",
                    network.file.path,
                    network.file.places.span(done.node),
                    PREPARING,
                    _remedy(network, done),
                    story=(step(enabling, "`use_reentrant=False` is passed here, and overridden"),),
                )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield why a call at a place overrides nothing, or is not known to."""
        script = network.script
        for done in script.called(*_CALLS) if script else ():
            if script is None or done.file is not network.file or not is_at(explained, done):
                continue
            if _before(script, done) is None:
                yield "`use_reentrant=False` was not chosen before, as far as is known"
            elif (reason := _why_not(script, done)) is not None:
                yield reason


def _before(script: Script, done: Done) -> Done | None:
    """Return the call that has enabled non-reentrant checkpointing for the model before."""
    model = only_returned(script.argument(done, "model", index=0))
    for each in script.about([] if model is None else [model]):
        if each.name in ENABLING and each.node in done.before:
            options = script.argument(each, *OPTIONS, index=0)
            if options is not None and is_literally(script.under(options, USE_REENTRANT), False):
                return each
    return None


def _why_not(script: Script, done: Done) -> str | None:
    """Return why a call does not make checkpointing reentrant for certain; None if it does."""
    model = only_returned(script.argument(done, "model", index=0))
    if model is None or not _is_quantized(script, model):
        return "it is not known that the model is quantized: for another one, the call enables nothing"
    if script.argument(done, "gradient_checkpointing_kwargs", index=2) is not None:
        return "the call says which options it uses"
    if script.argument(done, "use_gradient_checkpointing", index=1) is not None:
        return "the call says whether it enables checkpointing"
    if trains_otherwise(script) or any(
        each.is_of_trl or _may_enable(each.says(*ENABLED)) for each in trainings(script)
    ):
        return "a trainer may enable checkpointing afterwards"
    results = made_of(script, result_of(done))
    if any(each.name in ENABLING for each in script.about(results)):
        return "checkpointing is enabled once more afterwards"
    if is_handed_on(script, results):
        return "something of which nothing is known gets the model afterwards"
    return None


def _is_quantized(script: Script, model: Returned) -> bool:
    origin = script.calls.get((model.node, model.name), [])
    return len(origin) == 1 and not model.path and any(_quantizes(script, origin[0]))


def _quantizes(script: Script, made: Done) -> Iterator[bool]:
    """Yield whether each of the arguments that may quantize a model does so for certain."""
    yield from (is_literally(script.argument(made, each), True) for each in _QUANTIZED)
    settings = only_returned(script.argument(made, "quantization_config"))
    for each in script.calls.get((settings.node, settings.name), []) if settings else ():
        yield from (is_literally(script.argument(each, name), True) for name in _QUANTIZED)


def _may_enable(enabled: Value | None) -> bool:
    return enabled is not None and not is_literally(enabled, False)


def _remedy(network: Network, done: Done) -> Fix | Refusal:
    node, file = done.node, network.file
    passed = f"gradient_checkpointing_kwargs={NON_REENTRANT}"
    if not isinstance(node, ast.Call) or not node.args or node.keywords or len(node.args) > 1:
        return Refusal(f"pass `{passed}`")
    end = file.places.span(node.args[0])[1]
    edit = Edit(file.path, end, end, f", {passed}")
    reason = "checkpointing is then non-reentrant, as it was not before"
    return Fix(f"Pass `{passed}`", (edit,), Applicability.UNSAFE, reason)
