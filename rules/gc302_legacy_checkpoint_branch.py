"""GC302: a stacked block that a legacy branch recomputes, not the base class."""

from __future__ import annotations

from collections.abc import Iterator

from gclint.block_rule import BlockRule
from gclint.code.walk import dotted_name
from gclint.edit.today import Today, Way
from gclint.level import Level
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.releases import FIRST_NON_REENTRANT, FIRST_WITH_EVERY_N_LAYERS, FIRST_WITH_OFFLOADING
from gclint.wording import listed_code


class LegacyCheckpointBranch(BlockRule):
    """A legacy branch checkpoints a block that is not a `GradientCheckpointingLayer`.

    ## What it does

    Finds blocks whose bases do not include `GradientCheckpointingLayer` and that the model passes to a
    checkpoint function itself, in an `if self.gradient_checkpointing and self.training` or otherwise. Code
    that only runs with releases without that class (before transformers 4.52) is left alone, since the
    branch is right there.

    ## Why is this bad?

    It is not: the block is recomputed. The branch only does less than the base class. `every_n_layers` counts
    nothing but layers, so that it has no effect on the block; caches stay on unless the model itself
    disables them; and a branch that calls torch's function instead of the one that the library sets gets
    neither `gradient_checkpointing_kwargs` nor `offload`. Reentrant checkpointing, the default before
    transformers 5.0, raises an error for arguments that the branch passes by keyword. The message names
    what there is of this in the releases that the code may run with.

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

    The fix replaces the branch by its plain call. It is that of GC001, whose page says when it is safe, and
    includes what the call needs to suit a layer (see GC002 and GC003).

    Until transformers models are converted, `--ignore GC302` leaves the notes out. What ignore comments,
    settings and baselines of gclint 0.2.0 say about GC001 holds for these findings as well.

    ## References

    - [Gradient checkpointing](https://huggingface.co/docs/transformers/main/en/grad_checkpointing)
    - transformers pull request #38913
    """

    code = "GC302"
    name = "legacy-checkpoint-branch"
    level = Level.NOTE
    formerly = ("GC001",)

    def obstacle(self, network: Network, known: Today) -> str | None:
        """Return why the block is not to be migrated; None if it is."""
        if known.way is Way.NONE:
            return "nothing recomputes `{block}`, see GC001"
        if not network.releases.have_base_class:
            return (
                f"{known.way.value} recomputes `{{block}}`, and {network.releases} has no "
                f"`{CHECKPOINTING_BASE}`"
            )
        return None

    def message(self, network: Network, block: ClassInfo, known: Today) -> str:
        """Return what recomputes the block, that this works, and what it lacks."""
        name, owner = block.name, known.site.owner.name
        if known.way is Way.CALL:
            how = f"`{owner}` calls a checkpoint function for `{name}`"
        else:
            how = f"`{owner}` checkpoints `{name}` in a branch of its own"
        lacking = ", and ".join(_lacking(network, block, known.site))
        if not lacking:
            return f"{how}, so it is recomputed; a `{CHECKPOINTING_BASE}` needs no such code"
        return f"{how}, so it is recomputed; but unlike with a `{CHECKPOINTING_BASE}`, {lacking}"


def _lacking(network: Network, block: ClassInfo, site: RunSite) -> Iterator[str]:
    """Yield what the base class does for a block, and what recomputes it does not, as clauses."""
    if site.keywords:
        is_default = network.releases.come_before(FIRST_NON_REENTRANT)
        default = f", the default before transformers {FIRST_NON_REENTRANT}," if is_default else ""
        given = f"the keyword{'s' * (len(site.keywords) > 1)} {listed_code(site.keywords)}"
        yield f"reentrant checkpointing{default} raises an error for {given}"
    if _takes_cache(network, block):
        yield "the model has to switch its cache off itself"
    ignored = []
    if not network.releases.end_before(FIRST_WITH_EVERY_N_LAYERS):
        ignored.append("every_n_layers")
    if _calls_torch(site):
        ignored.append("gradient_checkpointing_kwargs")
        if not network.releases.end_before(FIRST_WITH_OFFLOADING):
            ignored.append("offload")
    if ignored:
        options, have = ("option", "has") if len(ignored) == 1 else ("options", "have")
        yield f"the {options} {listed_code(ignored)} of `gradient_checkpointing_enable()` {have} no effect"


def _takes_cache(network: Network, block: ClassInfo) -> bool:
    """Return whether the base class would disable something that the block takes."""
    parameters = () if block.signature is None else block.signature.parameters
    return any(network.releases.neutralise_somewhere(each.name) for each in parameters)


def _calls_torch(site: RunSite) -> bool:
    """Return whether a checkpointed call goes to torch's function, without the user's options."""
    function = site.scope.module.resolve(dotted_name(site.call.func) or "") if site.checkpointed else ()
    return "gradient_checkpointing_kwargs" not in site.source(site.call) and any(
        getattr(value, "name", None) == "torch.utils.checkpoint.checkpoint" for value in function
    )
