"""GC103: a list, tuple or dict of activations that a checkpointing layer gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gclint.codemod.sites import SiteDefects, defective_sites, reasons
from gclint.codemod.unpacking import unpacked
from gclint.finding import Applicability, Finding
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot
    from gclint.verify.worker.protocol import RunSite


class NestedActivation(Rule):
    """A checkpointing layer gets activations inside of a list, tuple or dict.

    ## What it does

    Finds calls of a `GradientCheckpointingLayer` (or of a block that GC001 reports) that pass a list, a
    tuple or a dict which holds tensors that require grad: one that is written down with what a module with
    parameters returned, or with a parameter of the model, or an argument annotated as one that such a module
    returns. Rotary embeddings, masks, shapes and sizes require no grad.

    ## Why is this bad?

    Reentrant checkpointing (`use_reentrant=True`, the default before transformers 5) only gives gradients to
    tensors that are arguments themselves. It does not look inside of a container, whether that is passed by
    position or by keyword: where nothing else requires grad, the gradient is lost, and where several layers
    share the container, the backward pass raises "Trying to backward through the graph a second time".

    ## Example

    ```python
    features = [self.low(pixels), self.high(pixels)]
    for layer in self.layers:
        hidden_states = layer(hidden_states, features)
    ```

    Use instead:

    ```python
    low, high = self.low(pixels), self.high(pixels)
    for layer in self.layers:
        hidden_states = layer(hidden_states, low, high)
    ```

    ## Fix safety

    The signature of the block has to change. The fix does that for a tuple of tensors, if `forward` is
    annotated with their number, nothing else calls or inherits the block, and the call passes the tuple by
    position: each tensor gets a parameter of its own, and `forward` makes the tuple of them again. It is
    unsafe, since callers elsewhere break. Anything else has no fix.

    ## References

    - transformers pull request #41818
    """

    code = "GC103"
    name = "nested-activation"
    fixes = (Applicability.UNSAFE,)
    causes = frozenset((Cause.CONTAINED_ACTIVATION,))
    is_about_calls = True
    shows_in_every_run = True

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each call with such arguments."""
        for defects in defective_sites(network):
            if not defects.nested_activations:
                continue
            start, end = defects.site.span(defects.nested_activations[0].arg)
            yield Finding(
                self.code,
                self.name,
                self._message(defects),
                network.file.path,
                start,
                end,
                defects.symbol,
                unpacked(defects),
                story=defects.story(
                    defects.nested_activations,
                    "takes a container, and reentrant checkpointing does not look into one",
                    traced=True,
                ),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield for each call site why it is right."""
        return reasons(
            network, spot.sites, "no list, tuple or dict of tensors that require grad is passed to `{block}`"
        )

    def flags(self, site: RunSite) -> bool:
        """Return whether tensors that require grad were passed inside of a container."""
        return bool(site.contained_activations)

    @staticmethod
    def _message(defects: SiteDefects) -> str:
        names = [bound.parameter.name for bound in defects.nested_activations if bound.parameter is not None]
        shown = " and ".join(f"`{name}`" for name in names)
        verb, pronoun = (
            ("are lists, tuples or dicts", "them") if len(names) > 1 else ("is a list, tuple or dict", "it")
        )
        return (
            f"{shown} {verb} of tensors that require grad, and reentrant checkpointing of "
            f"`{defects.symbol}` gives no gradient to what is inside of {pronoun}"
        )
