"""GC001: a stacked block that nothing recomputes, since it is not a checkpointing layer."""

from __future__ import annotations

from gclint.block_rule import BlockRule
from gclint.edit.today import Today, Way
from gclint.level import Level
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.model import Network


class MissingCheckpointingLayer(BlockRule):
    """A stacked block is not a `GradientCheckpointingLayer`, and checkpointing skips it.

    ## What it does

    Finds the blocks of a model that sets `supports_gradient_checkpointing = True` but whose bases do
    not include `GradientCheckpointingLayer`. A class is a block if a loop over a stack feeds its output back
    into it and it contains attention or another token mixer. The model has to be a transformers model: it
    derives from `PreTrainedModel` and contains the class that runs the block. Loops that only run in
    evaluation mode or without gradients (`torch.no_grad`) do not count, and blocks that a legacy branch
    checkpoints are GC302's, unless another class has a stack of them and checkpoints nothing.

    A run of the model is a second source: blocks that feed one another and are not recomputed are
    reported at the call, however the model finds them (a registry, a computed name).

    ## Why is this bad?

    Since transformers 4.53 the base class recomputes a block in the backward pass. A block without
    it keeps all its activations even when checkpointing is enabled: memory use does not go down, and
    there is no warning. In code for older releases only, where there is no such class to derive from, the
    finding is a note.

    ## Example

    ```python
    class MyDecoderLayer(nn.Module): ...

    for layer in self.layers:
        hidden_states = layer(hidden_states, attention_mask=mask)
    ```

    Use instead:

    ```python
    class MyDecoderLayer(GradientCheckpointingLayer): ...

    for layer in self.layers:
        hidden_states = layer(hidden_states, attention_mask=mask)
    ```

    ## Fix safety

    The fix changes the base, adds the import, replaces a legacy branch by its plain call if both
    calls pass the same arguments to `forward`, repairs the block's call sites (see GC002 and GC003)
    and removes imports and helpers that become unused. The only difference between the two calls
    that is accepted is a cache that is disabled while checkpointing; otherwise there is no fix.

    It is unsafe if

    {conditions}

    There is no fix for a block that needs its cache in training, nor for one that is itself a model. Nor is
    there one if a call passes something under the name of a cache that may be something else (see GC002).

    There is no fix either if something other than `gradient_checkpointing_enable()` enables a legacy
    branch, since it would not reach the layers: a flag that is not initialized to False or comes from
    the configuration, a condition that tests anything but the flag and the mode, an override of the
    library's methods, a script in the given folders that sets the flag of one module, or a model
    without `supports_gradient_checkpointing` that calls a checkpoint function itself. The reason
    names the place. Nor is there one if a checkpoint function would still be called for the block, in
    this file or in another given one, since the block would then be recomputed twice. A block that
    other files define or run is repaired in all of them at once.

    Findings that only a run can show are repaired by `--fix --verify` once the repair is proven.

    ## References

    - [Gradient checkpointing](https://huggingface.co/docs/transformers/main/en/grad_checkpointing)
    - transformers pull requests #38913 and #41818
    """

    code = "GC001"
    name = "missing-checkpointing-layer"
    level = Level.WARNING

    def obstacle(self, network: Network, known: Today) -> str | None:
        """Return what recomputes the block today; None if nothing does."""
        return None if known.way is Way.NONE else f"{known.way.value} recomputes `{{block}}`, see GC302"

    def message(self, network: Network, block: ClassInfo, known: Today) -> str:
        """Return that checkpointing skips the block."""
        owner = known.site.owner.name
        return (
            f"`{block.name}`, stacked in `{owner}`, is not a `{CHECKPOINTING_BASE}`: checkpointing skips it "
            "and saves no memory"
        )
