"""GC101: a checkpointed call that passes something else than the plain call beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gclint.codemod.branch import mismatches, plain_beside
from gclint.finding import Finding, Refusal
from gclint.network.evaluation.walk import walk
from gclint.network.model import Network
from gclint.network.story import call_story
from gclint.network.support import models_running
from gclint.rule import Rule

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot


class MismatchedCheckpointBranches(Rule):
    """The checkpointed and the plain call of a block do not pass the same.

    ## What it does

    Binds both calls of a legacy branch to the parameters of the block's `forward`, as Python does it,
    and reports parameters that get something else with checkpointing than without: two arguments that
    have changed places, keywords that one of the calls drops, a whole list where the other call passes
    one of its items. A cache that is off while checkpointing, and
    its positions, make no difference.

    ## Why is this bad?

    The model computes something else as soon as checkpointing is enabled, and nothing says so.
    Positional arguments of a checkpoint function are easily shifted, since nobody runs both branches.

    ## Example

    ```python
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, position_ids, mask)
    else:
        hidden_states = layer(hidden_states, mask, position_ids)
    ```

    Use instead:

    ```python
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, mask, position_ids)
    else:
        hidden_states = layer(hidden_states, mask, position_ids)
    ```

    ## Fix safety

    There is no fix: only the author knows which of the two calls is right. GC001 removes the branch
    once they agree.

    ## References

    - [transformers issue #23366](https://github.com/huggingface/transformers/issues/23366)
    """

    code = "GC101"
    name = "mismatched-checkpoint-branches"
    precision = "medium"

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each checkpointed call that differs from its plain one."""
        for legacy, differences in mismatches(network.run_sites, network.releases):
            if legacy.fragment.file is not network.file or not models_running(legacy.owner):
                continue
            # One that a wrapper passes stands elsewhere.
            own = {id(node) for node in walk(legacy.call)}
            argument = next((each.argument for each in differences if id(each.argument) in own), None)
            start, end = legacy.span(legacy.call if argument is None else argument)
            blocks = " and ".join(f"`{info.name}`" for info in legacy.blocks)
            yield Finding(
                self.code,
                self.name,
                f"the checkpointed call of {blocks} does not pass what the plain call beside it passes: "
                + "; ".join(each.description for each in differences),
                network.file.path,
                start,
                end,
                legacy.blocks[0].name,
                Refusal("which of the two calls is right, only the author knows"),
                story=call_story(legacy, legacy.blocks[0]),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield for each checkpointed call with what it was compared."""
        for site in spot.sites:
            if not site.checkpointed:
                continue
            blocks = " and ".join(f"`{info.name}`" for info in site.blocks)
            if not models_running(site.owner):
                yield f"no model is seen to hold `{site.owner.name}`, which calls a checkpoint function"
            elif plain_beside(site, network.run_sites) is None:
                yield f"no single plain call of {blocks} stands in the other branch, to be compared with"
            else:
                yield f"the plain call of {blocks} in the other branch passes the same, caches aside"
        if spot.sites and not any(site.checkpointed for site in spot.sites):
            yield "no call here goes through a checkpoint function of the model's own, so there is no pair"
