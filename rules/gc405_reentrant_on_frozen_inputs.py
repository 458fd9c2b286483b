"""GC405: adapters on a frozen model whose reentrant checkpoints get no input that requires grad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gclint.finding import Applicability, Finding, StoryStep
from gclint.model.scripts import Done, Script, class_of_model, is_model, only_returned
from gclint.model.values import Box, Constant, Fixed, Returned, Value
from gclint.network.explaining.places import Spot
from gclint.network.model import Network
from gclint.network.training import ENABLING, Training, is_at, non_reentrant, step, trainings
from gclint.releases import FIRST_NON_REENTRANT
from gclint.rule import Rule

_ADAPTING = ("peft.get_peft_model", "peft.mapping_func.get_peft_model", "peft.mapping.get_peft_model")
_REQUIRING = frozenset(
    (
        *ENABLING,
        "enable_input_require_grads",
        "register_forward_hook",
        "register_forward_pre_hook",
        "requires_grad",
        "requires_grad_",
    )
)
"""What may let something require grad that reaches the layers."""
_OF_IMAGES = ("ForImageClassification", "ForSemanticSegmentation", "ForVideoClassification")
"""The tasks whose models take images, and no tokens; of those for audio, some let features require grad."""
_CONFIG = "LoraConfig"
_IN_EMBEDDINGS = ("embed", "patch", "projection")
"""Parts of the names of modules that are, or may be, in front of the layers."""
_REASON = "checkpointing is then non-reentrant, as it was not before"


class ReentrantOnFrozenInputs(Rule):
    """Adapters are trained with reentrant checkpointing, and no input of the layers requires grad.

    ## What it does

    Finds trainers of transformers that train a model from peft's `get_peft_model` with
    `gradient_checkpointing=True` and `"use_reentrant": True` (the default before transformers 5.0), where
    nothing makes the inputs of its layers require grad: the model takes images (by its class, such as
    `AutoModelForImageClassification`), or the code runs only with releases before 5.0; the adapters are in
    none of the embeddings; and the script neither calls `enable_input_require_grads()` nor enables
    checkpointing before it adds the adapters.

    ## Why is this bad?

    Adapters leave the model frozen. A reentrant checkpoint gives gradients only if one of its inputs
    requires grad. transformers 5 sees to that only for models that take tokens, and transformers 4 for none
    with adapters of peft. Ran with peft 0.21.2: in image and video classification and in segmentation, on
    transformers 5.23.0, only the head is trained, and none of the adapters, without an error; language
    models on 4.57.6 raise "element 0 of tensors does not require grad". It is row `LoRA/R` of the set-ups
    of `gclint verify --scenario peft`.

    ## Example

    ```python
    model = get_peft_model(AutoModelForImageClassification.from_pretrained(name), config)
    args = TrainingArguments(
        "out", gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": True}
    )
    Trainer(model=model, args=args, train_dataset=data).train()
    ```

    Use instead:

    ```python
    model = get_peft_model(AutoModelForImageClassification.from_pretrained(name), config)
    args = TrainingArguments(
        "out", gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False}
    )
    Trainer(model=model, args=args, train_dataset=data).train()
    ```

    ## Fix safety

    The fix writes `False` where `use_reentrant` is written. It is unsafe, since checkpointing then is
    non-reentrant.

    ## References

    - [PEFT and gradient checkpointing](https://huggingface.co/docs/transformers/main/en/grad_checkpointing)
    """

    code = "GC405"
    name = "reentrant-on-frozen-inputs"
    fixes = (Applicability.UNSAFE,)

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each such trainer, at its arguments."""
        script = network.script
        for training, adapting, model in _adapted(script) if script else ():
            if script is None or _why_not(network, training, adapting, model) is not None:
                continue
            kind = class_of_model(model)
            yield self.finding(
                f"reentrant checkpointing of a frozen `{kind}`: no input of its layers requires grad, "
                "so the adapters get no gradient",
                network.file.path,
                network.file.places.span(training.arguments.node),
                kind,
                non_reentrant(script, training.options, network.file, _REASON),
                story=_story(script, training, adapting, model),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield why a trainer's arguments at a place are right, or not known to be wrong."""
        script = network.script
        for training, adapting, model in _adapted(script) if script else ():
            reason = _why_not(network, training, adapting, model)
            if reason is not None and is_at(spot, training.arguments):
                yield reason


def _adapted(script: Script) -> Iterator[tuple[Training, Done, Returned]]:
    """Yield the trainers of models with adapters, with what has added these, and the model below."""
    for training in trainings(script):
        given = training.model
        for adapting in script.called(*_ADAPTING):
            if given is None or given.path or given.node is not adapting.node:
                continue
            model = only_returned(script.argument(adapting, "model", index=0))
            if model is not None and is_model(model):
                yield training, adapting, model


def _why_not(network: Network, training: Training, adapting: Done, model: Returned) -> str | None:
    """Return why the adapters get gradients, or may get some; None if they do not."""
    if training.arguments.file is not network.file:
        return "the arguments are made in another file"
    if not training.is_reentrant(network.releases):
        return "the arguments do not say for certain that checkpointing is reentrant"
    takes_tokens = not class_of_model(model).endswith(_OF_IMAGES)
    if training.is_of_trl or (takes_tokens and not network.releases.end_before(FIRST_NON_REENTRANT)):
        return "the library sees to it that inputs require grad"
    if not _leaves_embeddings(training.script, adapting):
        return "it is not known that the adapters leave the embeddings frozen"
    adapted = Returned(adapting.name, adapting.node)  # type: ignore[arg-type]
    if any(each.name in _REQUIRING for each in training.script.about([model, adapted])):
        return "the script makes inputs require grad, or may do so"
    if any(not each.name for thing in (model, adapted) for each in training.script.taking(thing)):
        return "something of which nothing is known gets the model"
    return None


def _leaves_embeddings(script: Script, adapting: Done) -> bool:
    """Return whether the adapters are known to be in none of the modules in front of the layers."""
    config = only_returned(script.argument(adapting, "peft_config", index=1))
    for made in script.calls.get((config.node, config.name), []) if config else ():
        given = [script.argument(made, each) for each in ("target_modules", "modules_to_save")]
        names = [each for value in given if value is not None for each in _texts(script, value)]
        return (
            made.name.endswith(_CONFIG)
            and given[0] is not None
            and all(each is not None and each != "proj" for each in names)
            and not any(part in (each or "") for each in names for part in _IN_EMBEDDINGS)
        )
    return False


def _texts(script: Script, value: Value) -> Iterator[str | None]:
    """Yield the texts in a list or tuple; None for what is not known, such as a pattern."""
    for each in value.things:
        if isinstance(each, (Box, Fixed)):
            inside = (one for item in script.items(each) for one in item.things)
            found = (one.value if isinstance(one, Constant) else None for one in inside)
            yield from (one if isinstance(one, str) else None for one in found)
        elif each != Constant(None):
            yield None


def _story(script: Script, training: Training, adapting: Done, model: Returned) -> Iterator[StoryStep]:
    for each in script.calls.get((model.node, model.name), [])[:1]:
        yield step(each, f"the model is a `{class_of_model(model)}`")
    yield step(adapting, "its parameters are frozen, and adapters are added")
    yield step(training.trainer, "the trainer enables checkpointing, after that")
