"""GC405: adapters on a frozen model whose reentrant checkpoints get no input that requires grad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gclint.code.names import names
from gclint.finding import Applicability, Finding, StoryStep
from gclint.model.scripts import Done, Script, class_of_model, is_literally, is_model, only_returned
from gclint.model.values import Box, Fixed, Returned, Value
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.training import (
    ENABLING,
    Training,
    is_at,
    is_handed_on,
    made_of,
    mentions,
    non_reentrant,
    step,
    trainings,
)
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
_OF_MODULES = ("bias", "target_modules", "modules_to_save")
_PLAIN = frozenset(_OF_MODULES) | names(
    """
    alpha_pattern fan_in_fan_out inference_mode init_lora_weights layers_pattern layers_to_transform
    lora_alpha lora_dropout r rank_pattern task_type use_dora use_rslora
    """
)
"""The arguments of such a configuration that let nothing else require grad than the modules they name."""
_IN_LAYERS = names(
    """
    q k v qkv q_proj k_proj v_proj o_proj out_proj qkv_proj query key value query_key_value c_attn
    gate_proj up_proj down_proj gate_up_proj fc1 fc2
    """
)
"""The names of modules of attention and of what is behind it, which stand in no embeddings."""
_HEADS = names("class_labels_classifier classifier decode_head fc_norm head lm_head score segmentation_head")
"""The names of modules behind the layers."""
_REASON = "checkpointing is then non-reentrant, as it was not before"


class ReentrantOnFrozenInputs(Rule):
    """Adapters are trained with reentrant checkpointing, and no input of the layers requires grad.

    ## What it does

    Finds trainers of transformers that train a model from peft's `get_peft_model` with
    `gradient_checkpointing=True` and `"use_reentrant": True` (the default before transformers 5.0), where
    nothing makes the inputs of its layers require grad: the model takes images (by its class, such as
    `AutoModelForImageClassification`), or the code runs only with releases before 5.0; the adapters are in
    modules with the usual names of those in layers; the script neither speaks of what requires grad, nor
    enables checkpointing before it adds the adapters; and nothing unknown gets the model.

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

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield why a trainer's arguments at a place are right, or not known to be wrong."""
        script = network.script
        for training, adapting, model in _adapted(script) if script else ():
            reason = _why_not(network, training, adapting, model)
            if reason is not None and is_at(explained, training.arguments):
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
    if not training.is_decided:
        return "something of which nothing is known may change the arguments"
    if is_handed_on(training.script, made_of(training.script, model)):
        return "something of which nothing is known gets the model"
    if mentions(network.file, _REQUIRING):
        return "the script makes inputs require grad, or may do so"
    callbacks = training.script.argument(training.trainer, "callbacks")
    if callbacks is not None and not is_literally(callbacks, None):
        return "callbacks get the model, too"
    return None


def _leaves_embeddings(script: Script, adapting: Done) -> bool:
    """Return whether the adapters are known to be in none of the modules in front of the layers."""
    config = only_returned(script.argument(adapting, "peft_config", index=1))
    for made in script.calls.get((config.node, config.name), []) if config else ():
        if made.call.positional or made.call.options or not _PLAIN.issuperset(dict(made.call.named)):
            return False
        bias, targets, saved = (script.argument(made, each) for each in _OF_MODULES)
        return (
            made.name.endswith(_CONFIG)
            and (bias is None or _is_one_of(script, bias, frozenset(("none",))))
            and (targets is not None and _is_one_of(script, targets, _IN_LAYERS))
            and (saved is None or _is_one_of(script, saved, _HEADS))
        )
    return False


def _is_one_of(script: Script, value: Value, allowed: frozenset[str]) -> bool:
    """Return whether a text, or all texts in a list or tuple, are some that are allowed; None is right."""
    inside = [one for each in value.things for item in script.items(each) for one in item.things]
    written = [each for each in value.things if not isinstance(each, (Box, Fixed))]
    texts = (getattr(each, "value", each) for each in (*inside, *written))
    return all(each is None or each in allowed for each in texts)


def _story(script: Script, training: Training, adapting: Done, model: Returned) -> Iterator[StoryStep]:
    for each in script.calls.get((model.node, model.name), [])[:1]:
        yield step(each, f"the model is a `{class_of_model(model)}`")
    yield step(adapting, "its parameters are frozen, and adapters are added")
    yield step(training.trainer, "the trainer enables checkpointing, after that")
