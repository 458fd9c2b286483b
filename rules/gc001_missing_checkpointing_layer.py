"""GC001: a stacked block that is not a checkpointing layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gclint.edit.leftover import leftover
from gclint.edit.protect import conditions, remedies
from gclint.finding import Applicability, Evidence, Finding
from gclint.level import Level
from gclint.network.checkpoints import calls_between
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.explaining.places import Spot
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.story import call_step, class_step, stack_steps
from gclint.rule import Rule, Text
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import Place, RunSite


class MissingCheckpointingLayer(Rule):
    """A stacked block is not a `GradientCheckpointingLayer`.

    ## What it does

    Finds the blocks of a model that sets `supports_gradient_checkpointing = True` but whose bases do
    not include `GradientCheckpointingLayer`. A class is a block if a legacy branch passes it to a
    checkpoint function, or if a loop over a stack feeds its output back into it and it contains
    attention or another token mixer. The model has to be a transformers model: it derives from
    `PreTrainedModel` and contains the class that runs the block. Loops that only run in evaluation mode
    or without gradients (`torch.no_grad`) do not count.

    A run of the model is a second source: blocks that feed one another and are not recomputed are
    reported at the call, however the model finds them (a registry, a computed name).

    ## Why is this bad?

    Since transformers 4.53 the base class recomputes a block in the backward pass. A block without
    it keeps all its activations even when checkpointing is enabled: memory use does not go down, and
    there is no warning. A block with a legacy branch of its own is checkpointed, but without what
    the base class adds: disabled caches, offloading, `every_n_layers`.

    ## Example

    ```python
    class MyDecoderLayer(nn.Module): ...

    for layer in self.layers:
        if self.gradient_checkpointing and self.training:
            hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, mask)
        else:
            hidden_states = layer(hidden_states, mask)
    ```

    Use instead:

    ```python
    class MyDecoderLayer(GradientCheckpointingLayer): ...

    for layer in self.layers:
        hidden_states = layer(hidden_states, mask)
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
    fixes = (Applicability.SAFE, Applicability.PROVABLE, Applicability.UNSAFE)
    causes = frozenset((Cause.NOT_A_LAYER, Cause.NOTHING_TO_SWITCH))
    is_about_calls = True

    @classmethod
    def documentation(cls) -> str:
        """Return the documentation, with what makes a fix unsafe as the code has it."""
        return super().documentation().replace("{conditions}\n", conditions())

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each block that the file defines, or runs if no other file reports it."""
        for block in network.unprotected_blocks:
            name = block.info.definition.heading
            elsewhere = block.info.file is not network.file
            site = block.sites[0]
            yield self.finding(
                self._message(network, block),
                network.file.path,
                site.span(site.call) if elsewhere else name,
                block.info.name,
                remedies(network)[block.info],
                subject=(block.info.file.path, *name) if elsewhere else None,
                evidence=Evidence.CONFIRMED if block.is_seen else None,
                story=(
                    *stack_steps(site, block.info),
                    call_step(site, block.info),
                    class_step(block.info),
                ),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield the reasons why the classes at a place need not become checkpointing layers."""
        for info in spot.classes:
            yield from network.reasons(info, spot.sites)

    def places(self, finding: Finding, site: RunSite) -> tuple[Place, ...]:
        """Return the call, and the class if it is the one that the finding names."""
        return (site.place, site.definition) if finding.symbol == site.block else (site.place,)

    def evidence(self, sites: Sequence[RunSite], text: Text) -> Evidence | None:
        """Confirm a finding by a call site that is not recomputed."""
        if any(site.recomputed is False for site in sites):
            return Evidence.CONFIRMED
        if any(site.recomputed is None for site in sites):
            return None
        by_branch = any("checkpoint" in text(site.place) for site in sites)
        # If a legacy branch recomputes the block, the finding says so: nothing is lost yet.
        return Evidence.UNSEEN if by_branch else Evidence.CONTRADICTED

    def flags(self, site: RunSite) -> bool | None:
        """Return whether the block is still not a layer, or not recomputed; None if it was not trained."""
        if not site.is_layer:
            return True
        return None if site.recomputed is None else not site.recomputed

    def shows(self, site: RunSite) -> bool:
        """Return whether the block was trained, and the base class did not recompute it."""
        return site.recomputed is False or (site.recomputed is not None and not site.is_layer)

    @staticmethod
    def _message(network: Network, block: UnprotectedBlock) -> str:
        name, owner = block.info.name, block.sites[0].owner.name
        if any(site.checkpointed for site in block.sites):
            return f"`{name}` is checkpointed by a legacy branch in `{owner}`, not by `{CHECKPOINTING_BASE}`"
        stacked = f"`{name}`, stacked in `{owner}`, is not a `{CHECKPOINTING_BASE}`"
        if leftover(network, (block.info,), ()) is not None or _inherits_checkpoint_call(network, block):
            return f"{stacked}: only an explicit checkpoint call recomputes it"
        return f"{stacked}: checkpointing skips it"


def _inherits_checkpoint_call(network: Network, block: UnprotectedBlock) -> bool:
    """Return whether a class that runs a block inherits a call of a checkpoint function from another file."""
    bases = {base for site in block.sites for base in site.owner.mro if base.file is not network.file}
    return any(
        True for base in bases for _ in calls_between(base.module, base.definition.start, base.definition.end)
    )
