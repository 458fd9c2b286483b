"""GC001: a stacked block that is not a checkpointing layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gclint.codemod.leftover import leftover
from gclint.codemod.protect import remedies
from gclint.finding import Applicability, Evidence, Finding
from gclint.network.checkpoints import calls_between
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.story import call_step, class_step, stack_steps
from gclint.rule import Rule, Text
from gclint.verify.worker.cause import Cause

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot
    from gclint.verify.worker.protocol import Place, RunSite


class MissingCheckpointingLayer(Rule):
    """A stacked block is not a `GradientCheckpointingLayer`.

    ## What it does

    Finds the blocks of a model that says `supports_gradient_checkpointing = True` and that do not
    reach `GradientCheckpointingLayer` through their bases. A class counts as a block when a legacy
    branch hands it to a checkpoint function, or when a loop over a stack feeds its output back into
    it and it is built of attention or of another mixer of sequence positions. The model is one of
    transformers: it reaches `PreTrainedModel` and holds the class that runs the block.

    A run of the model is a second source: blocks that it saw feed one another and stay as they were
    are reported at the call, however the model came by them (a registry, a computed name).

    ## Why is this bad?

    Since transformers 4.53 it is the base class that recomputes a block in the backward pass. A
    block without it keeps all its activations although the user has enabled checkpointing: memory
    is as high as before, and nothing says so. A block that has its own legacy branch does
    checkpoint, but without what the base class adds: caches disabled, offloading,
    `every_n_layers`.

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

    The fix changes the base, adds the import, replaces a legacy branch by its plain call once both
    calls give every parameter of `forward` the same, repairs the block's call sites (see GC002 and
    GC003) and drops what this leaves unused. A cache that is off while checkpointing is the only
    difference between two calls that is accepted; for any other one there is no fix.

    It is unsafe where the file may run with a release that has no such class (before transformers 4.52), or
    one that leaves on a cache which the repaired call passes; `--target-version` says which releases those
    are. It is also unsafe where a call site would still be wrong afterwards, where a branch checkpoints
    in evaluation as well, where the block keeps running
    statistics (recomputation updates them twice) or assigns to itself in `forward`, where a block that
    was not recomputed before returns a dict, a list or an output class, changes its arguments in place or
    draws random numbers that are not torch's, and where other
    classes that are not blocks share the base that has to change. There is none for a block that
    takes its cache apart in training, nor for one that is a model itself.

    There is no fix either where something other than `gradient_checkpointing_enable()` enables a
    legacy branch, since it would not reach the layers: a flag that does not begin as False or comes
    from the configuration, a condition that asks for anything but the flag and the mode, an override
    of the library's methods, a script anywhere in the given folders that sets the flag of one
    module, or a model without `supports_gradient_checkpointing` that calls a checkpoint function of
    its own. The reason names the place. Nor is there one where a checkpoint function would still be
    called for the block, in this file or in another of the given ones, since it would then be
    recomputed twice. A block that other files define or run is repaired in all of them at once.

    What rests on a run, and not on the text, is repaired by `--fix --verify` once it is proven.

    ## References

    - [Gradient checkpointing](https://huggingface.co/docs/transformers/main/en/grad_checkpointing)
    - transformers pull requests #38913 and #41818
    """

    code = "GC001"
    name = "missing-checkpointing-layer"
    level = "warning"
    fixes = (Applicability.SAFE, Applicability.PROVABLE, Applicability.UNSAFE)
    causes = frozenset((Cause.NOT_A_LAYER, Cause.NOTHING_TO_SWITCH))
    is_about_calls = True

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each block that the file defines, or runs and nobody else reports."""
        for block in network.unprotected_blocks:
            name = self._name(block)
            elsewhere = block.info.file is not network.file
            site = block.sites[0]
            start, end = site.span(site.call) if elsewhere else name
            yield Finding(
                self.code,
                self.name,
                self._message(network, block),
                network.file.path,
                start,
                end,
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
        """Yield for each class that calls run why it need not become a checkpointing layer."""
        for info in spot.classes:
            yield from network.reasons(info, spot.sites)

    def places(self, finding: Finding, site: RunSite) -> tuple[Place, ...]:
        """Return the call, and the class if it is the one that the finding names."""
        return (site.place, site.definition) if finding.symbol == site.block else (site.place,)

    def evidence(self, sites: Sequence[RunSite], text: Text) -> Evidence | None:
        """Confirm it by one site that is not recomputed, or is by a branch in the model's own loop."""
        if any(site.recomputed is False for site in sites):
            return Evidence.CONFIRMED
        if any(site.recomputed is None for site in sites):
            return None
        by_branch = any("checkpoint" in text(site.place) for site in sites)
        # Recomputed by a branch in the model's own loop: that is what such a finding says.
        return Evidence.CONFIRMED if by_branch else Evidence.CONTRADICTED

    def flags(self, site: RunSite) -> bool | None:
        """Return whether the block is still not a layer, or not recomputed; None where it is not trained."""
        if not site.is_layer:
            return True
        return None if site.recomputed is None else not site.recomputed

    @staticmethod
    def _name(block: UnprotectedBlock) -> tuple[int, int]:
        definition = block.info.definition
        name = block.info.file.text.index(definition.name, definition.header + len("class"))
        return definition.header, name + len(definition.name)

    @staticmethod
    def _message(network: Network, block: UnprotectedBlock) -> str:
        name, owner = block.info.name, block.sites[0].owner.name
        if any(site.checkpointed for site in block.sites):
            return (
                f"`{name}` is checkpointed by a branch of its own in `{owner}` and is not a "
                f"`{CHECKPOINTING_BASE}`: caches are not switched off for it, and newer checkpointing "
                "options pass it by"
            )
        stacked = f"`{name}` is stacked in `{owner}` and is not a `{CHECKPOINTING_BASE}`"
        if leftover(network, (block.info,), ()) is not None or _inherits_checkpoint_call(network, block):
            return f"{stacked}: only code that calls a checkpoint function itself can recompute it"
        return f"{stacked}: with gradient checkpointing enabled it still keeps all its activations"


def _inherits_checkpoint_call(network: Network, block: UnprotectedBlock) -> bool:
    """Tell whether a class that runs a block inherits a call of a checkpoint function from another file."""
    bases = {base for site in block.sites for base in site.owner.mro if base.file is not network.file}
    return any(
        True for base in bases for _ in calls_between(base.module, base.definition.start, base.definition.end)
    )
