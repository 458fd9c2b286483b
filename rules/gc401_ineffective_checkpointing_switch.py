"""GC401: what looks as if it enabled checkpointing in a training script, and does not."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.code.walk import is_constant, last_name, walk
from gclint.finding import Applicability, Edit, Finding, Fix, Refusal
from gclint.model.scripts import ITEM, Done, Script, class_of_model, is_literally, is_model
from gclint.model.values import Returned
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.outside import CHECKPOINT_FUNCTION, FLAG
from gclint.network.training import (
    ENABLED,
    ENABLING,
    PREPARING,
    is_at,
    is_handed_on,
    made_of,
    step,
    trains_otherwise,
)
from gclint.rule import Rule

_NO_METHODS = frozenset(
    (
        "enable_activation_checkpointing",
        "enable_checkpointing",
        "enable_gradient_checkpointing",
        "gradient_checkpoint_enable",
        "set_grad_checkpointing",
        "set_gradient_checkpointing",
        "use_gradient_checkpointing",
    )
)
"""Methods that models of other libraries have, or that no model has."""
_ARGUMENTS = frozenset((*ENABLED, "use_gradient_checkpointing"))
"""The arguments of functions that may do so."""
_CONFIG = ("config",)
_SAVING = frozenset(("push_to_hub", "save_pretrained", "to_dict", "to_json_file"))
_CALL = "gradient_checkpointing_enable()"


class IneffectiveCheckpointingSwitch(Rule):
    """A training script enables checkpointing in a way that has no effect, or that raises an error.

    ## What it does

    Finds, in a training script, what is done to a model of transformers (from `from_pretrained`,
    `from_config` or the constructor of its class) in place of `gradient_checkpointing_enable()`:

    - the attribute `gradient_checkpointing` is set to True: on the model, on its configuration after the
      model is made, or on its layers one by one;
    - a method is called that models of transformers do not have, such as `enable_gradient_checkpointing()`,
      or `gradient_checkpointing_enable()` of a single layer.

    Where it is not known what the model is, where a line of the script enables checkpointing or something
    unknown may, or where the attribute is set after training, or for a model that is not trained, nothing
    is reported.

    ## Why is this bad?

    Ran with transformers 4.57.6 and 5.23.0, on BERT and Llama: the attribute of the model or of its
    configuration changes nothing, so no block is recomputed and no memory is saved. The attribute of a
    layer makes its forward pass raise an `AttributeError`, since only enabling gives the layers their
    checkpoint function. The methods do not exist: the call raises an `AttributeError`.

    ## Example

    ```python
    model = AutoModelForSequenceClassification.from_pretrained(name)
    for layer in model.bert.encoder.layer:
        layer.gradient_checkpointing = True
    ```

    Use instead:

    ```python
    model = AutoModelForSequenceClassification.from_pretrained(name)
    model.gradient_checkpointing_enable()
    ```

    ## Fix safety

    The fix calls `gradient_checkpointing_enable()` instead. It is unsafe: the model then checkpoints, which
    it has not done before. There is none for layers, since the loop around it would be left, nor for
    methods that are called with arguments.

    ## References

    - [Gradient checkpointing](https://huggingface.co/docs/transformers/main/en/grad_checkpointing)
    """

    code = "GC401"
    name = "ineffective-checkpointing-switch"
    precision = "very-high"
    fixes = (Applicability.UNSAFE,)

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each such call or assignment."""
        for done, model, what in _switches(network):
            if _exempt(network, done, model) is None:
                made = network.script.calls if network.script else {}
                origin = [each[0] for (node, _), each in made.items() if node is model.node]
                kind = class_of_model(model)
                yield self.finding(
                    what,
                    network.file.path,
                    network.file.places.span(done.node),
                    kind,
                    _remedy(network, done),
                    story=[step(each, f"the model is a `{kind}`") for each in origin[:1]],
                )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield why what is done to a model at a place is right, or not known to be wrong."""
        script = network.script
        for found in (*script.calls.values(), *script.set.values()) if script else ():
            done = found[0]
            if done.file is not network.file or not is_at(explained, done):
                continue
            if done.name in ENABLING and done.receiver is not None:
                yield f"`{done.name}` enables checkpointing"
            elif done.name == FLAG and done.receiver is None:
                yield f"it is not known what gets the attribute `{FLAG}`"
        for done, model, _ in _switches(network):
            if is_at(explained, done) and (reason := _exempt(network, done, model)):
                yield reason


def _switches(network: Network) -> Iterator[tuple[Done, Returned, str]]:
    """Yield what is done in place of enabling checkpointing, to which model, and what is wrong with it."""
    script = network.script
    if script is None:
        return
    for found in (*script.places(*_NO_METHODS, *ENABLING), *script.assigned(FLAG)):
        done = next((each for each in found if each.receiver is None), found[0])
        part = done.receiver
        model = None if part is None else Returned(part.name, part.node)
        if part is None or model is None or not is_model(model) or done.file is not network.file:
            continue
        kind, is_call = class_of_model(model), isinstance(done.node, ast.Call)
        if is_call and part.path[-1:] == (ITEM,):
            yield (
                done,
                model,
                f"a layer of `{kind}` has no method `{done.name}`: this raises an `AttributeError`",
            )
        elif is_call and not part.path and done.name in _NO_METHODS:
            yield done, model, f"`{kind}` has no method `{done.name}`: this raises an `AttributeError`"
        elif not is_call and done.name == FLAG and is_literally(done.call.argument(0), True):
            if part.path[-1:] == (ITEM,):
                what = f"`{FLAG}` is set on layers of `{kind}`, which have no checkpoint function: "
                yield done, model, f"{what}the forward pass raises an `AttributeError`"
            elif part.path in ((), _CONFIG):
                where = f"the configuration of `{kind}`, which is made already" if part.path else f"`{kind}`"
                yield (
                    done,
                    model,
                    f"`{FLAG}` is set on {where}: this enables nothing, no block is recomputed",
                )


def _exempt(network: Network, done: Done, model: Returned) -> str | None:
    """Return why something is not reported; None if it is."""
    script, tree = network.script, network.file.tree
    if script is None or tree is None:
        return "the script is too long to follow"
    own = set(walk(done.node))
    others = [each for each in walk(tree.module) if each not in own]
    if any(map(_enables, others)):
        return "the script enables checkpointing elsewhere"
    origin = script.calls.get((model.node, model.name), [])
    if any(script.argument(each, "trust_remote_code") is not None for each in origin):
        return "the model may be of a class that is not of transformers"
    if isinstance(done.node, ast.Call):
        if any(isinstance(each, ast.Constant) and each.value == done.name for each in others):
            return f"the script asks whether there is a method `{done.name}`"
        if done.is_tried:
            return "the script handles the error"
        return None
    if done.receiver is not None and done.receiver.path == _CONFIG and any(script.taking(done.receiver)):
        return "something else gets the configuration, perhaps to make another model of it"
    if (reason := _not_trained(script, done, model)) is not None:
        return reason
    if trains_otherwise(script):
        return "a trainer may enable checkpointing, by arguments that are not known"
    if is_handed_on(script, made_of(script, model)):
        return "something of which nothing is known gets the model, and may enable checkpointing"
    return None


def _not_trained(script: Script, done: Done, model: Returned) -> str | None:
    """Return why an attribute that is set may have another purpose than to train with checkpointing."""
    about = [*script.about([model])]
    if any(each.receiver and each.receiver.path == _CONFIG and each.name in _SAVING for each in about):
        return "the configuration is saved, and a model that is loaded with it checkpoints"
    trained = (each for each in script.called("train") if not is_model(each.receiver))
    if any(each.node in done.before for each in trained):
        return "it is set after training"
    if "eval" in {each.name for each in about} and "train" not in {each.name for each in about}:
        return "the model is only evaluated"
    return None


def _enables(node: ast.AST) -> bool:
    """Return whether a node may be a part of what enables checkpointing, for this or another model."""
    if isinstance(node, ast.keyword):
        return node.arg in _ARGUMENTS and not is_constant(node.value, False)
    if isinstance(node, ast.Call) and last_name(node.func) == PREPARING:
        return not any(each.arg in _ARGUMENTS for each in node.keywords)
    return isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in (*ENABLING, CHECKPOINT_FUNCTION)


def _remedy(network: Network, done: Done) -> Fix | Refusal:
    """Return the fix that enables checkpointing for the model, or what to write."""
    advice = (
        f"call `{_CALL}` of the model once, or pass `gradient_checkpointing=True` to the trainer's arguments"
    )
    if done.receiver is None or done.receiver.path[-1:] == (ITEM,):
        return Refusal(advice)
    node, file = done.node, network.file
    target = node.func if isinstance(node, ast.Call) else node
    if not isinstance(target, ast.Attribute) or (isinstance(node, ast.Call) and (node.args or node.keywords)):
        return Refusal(advice)
    holder = (
        target.value.value if done.receiver.path and isinstance(target.value, ast.Attribute) else target.value
    )
    start = file.places.span(holder)[1]
    end = file.places.span(node)[1] if isinstance(node, ast.Call) else _end_of_assignment(network, node)
    if end is None or file.text[start] != ".":
        return Refusal(advice)
    edit = Edit(file.path, start, end, f".{_CALL}")
    reason = "the model then checkpoints, which it has not done before"
    return Fix(f"Call `{_CALL}`", (edit,), Applicability.UNSAFE, reason)


def _end_of_assignment(network: Network, target: ast.AST) -> int | None:
    """Return where the statement ends that assigns only to this target."""
    tree = network.file.tree
    for each in () if tree is None else walk(tree.module):
        if isinstance(each, ast.Assign) and each.targets == [target]:
            return network.file.places.span(each)[1]
    return None
