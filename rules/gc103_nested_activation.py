"""GC103: activations that are passed to a checkpointing layer inside a list, tuple or dict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gclint.codemod.sites import SiteDefects, defective_sites, reasons
from gclint.codemod.unpacking import unpacked
from gclint.finding import Applicability, Finding
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause
from gclint.wording import listed_code

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot
    from gclint.verify.worker.protocol import RunSite


class NestedActivation(Rule):
    """Activations are passed to a checkpointing layer inside a list, tuple or dict.

    ## What it does

    Finds calls of a `GradientCheckpointingLayer` (or of a block that GC001 reports) that pass a list, a
    tuple or a dict of tensors that require grad: one that is built from the output of a module with
    parameters or from a parameter of the model, or an argument annotated as a container that such a module
    returns. Rotary embeddings, masks, shapes and sizes do not require grad.

    ## Why is this bad?

    Reentrant checkpointing (`use_reentrant=True`, the default before transformers 5) only computes gradients
    for tensors that are arguments themselves. It does not look inside a container, whether that is passed by
    position or by keyword: if nothing else requires grad, the gradient is lost, and if several layers
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

    The signature of the block has to change. The fix does that for a tuple of tensors if `forward` is
    annotated with their number, nothing else calls the block or inherits from it, and the call passes the
    tuple by position: each tensor gets a parameter of its own, and `forward` packs them into the tuple again.
    It is unsafe, since callers elsewhere break. In all other cases there is no fix.

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
        """Yield a finding for each call that passes containers of activations."""
        for defects in defective_sites(network):
            if not defects.nested_activations:
                continue
            start, end = defects.span(defects.nested_activations[0])
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
                    "takes a container, and reentrant checkpointing does not look inside it",
                    traced=True,
                ),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield the reasons why the call sites at a place are correct."""
        return reasons(
            network, spot.sites, "no list, tuple or dict of tensors that require grad is passed to `{block}`"
        )

    def flags(self, site: RunSite) -> bool:
        """Return whether tensors that require grad were passed inside a container."""
        return bool(site.contained_activations)

    @staticmethod
    def _message(defects: SiteDefects) -> str:
        names = [bound.parameter.name for bound in defects.nested_activations if bound.parameter is not None]
        outcome = "receive no gradient under reentrant checkpointing"
        return (
            f"tensors that require grad are passed to `{defects.symbol}` inside {listed_code(names)}, "
            f"so they {defects.consequence(outcome, f'would {outcome}')}"
        )
