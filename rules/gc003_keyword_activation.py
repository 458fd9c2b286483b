"""GC003: an activation that is passed to a checkpointing layer by keyword."""

from __future__ import annotations

from collections.abc import Iterable

from gclint.edit.sites import SiteDefects, defective_sites, reasons
from gclint.finding import Applicability, Finding
from gclint.network.activation import ACTIVATION_NAMES
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.rule import Rule, Setting
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ObservedSite
from gclint.wording import listed_code

_TWICE = "Trying to backward through the graph a second time"


class KeywordActivation(Rule):
    """An activation is passed to a checkpointing layer by keyword.

    ## What it does

    Finds calls of a `GradientCheckpointingLayer` in which a tensor that requires grad is passed by
    keyword: the hidden states that the loop passes from layer to layer, a parameter whose name ends in
    `hidden_state`, `hidden_states` or `attention_states`, or the output of another module with parameters.
    Masks, position ids, flags and rotary embeddings are not activations.
    The setting `activation-names` adds names of parameters.

    A run of the model is a second source: tensors that required grad and lost their gradient are
    reported under any name. Where the block is no layer yet, the fix of GC001 or GC302 also repairs its
    calls, of which nothing is said.

    ## Why is this bad?

    Reentrant checkpointing (`use_reentrant=True`, the default before transformers 5) only computes
    gradients for tensors that are passed by position. One that is passed by keyword loses its gradient
    if no other input requires grad. If one does, the backward pass of each layer also goes through what
    the keyword was computed from, and the second one raises "Trying to backward through the graph a
    second time".

    ## Example

    ```python
    hidden_states = layer(hidden_states=hidden_states, attention_mask=attention_mask)
    ```

    Use instead:

    ```python
    hidden_states = layer(hidden_states, attention_mask=attention_mask)
    ```

    ## Fix safety

    Safe if the activation and the parameters before it can be passed by position: each of them is passed
    already, or has a literal default. There is no fix across `*args`, none for what an unpacked dict
    holds, and none if two arguments that are more than literals and local names would be evaluated in
    another order. If a cache comes before the activation in the signature of `forward`, the signature
    changes as described under GC002, which is unsafe. The fix is also unsafe if the call may run something
    whose parameters are not known: another `__call__` or `forward`, or a class that comes from a parameter
    or a library; or if a decorator of `forward` or a forward hook reads the arguments as they are passed.
    It is also unsafe if the call may still lose a gradient in reentrant mode: something else that may require
    grad stays a keyword, in an unpacked dict too, or the layer returns tensors in a container, keeps them for
    others, asks whether gradients are recorded, or is a generator.

    All arguments that required grad in a run move together. Findings that only a run can show are
    repaired by `--fix --verify` once the repair is proven.

    ## References

    - transformers pull request #41818
    """

    code = "GC003"
    name = "keyword-activation"
    fixes = (Applicability.SAFE, Applicability.PROVABLE, Applicability.UNSAFE)
    settings = (Setting(ACTIVATION_NAMES, "Names of further parameters that receive activations."),)
    causes = frozenset((Cause.KEYWORD_ACTIVATION,))
    is_about_calls = True
    shows_in_every_run = True

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each call that passes activations by keyword."""
        for defects in defective_sites(network):
            if not defects.keyword_activations:
                continue
            yield self.finding(
                self._message(defects),
                network.file.path,
                defects.span(defects.keyword_activations[0]),
                defects.symbol,
                defects.repair(),
                awaits=defects.awaits,
                evidence=defects.evidence(self.causes),
                story=defects.story(
                    defects.keyword_activations,
                    "takes an activation, which reentrant checkpointing needs by position",
                    traced=True,
                ),
            )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield the reasons why the call sites at a place are correct."""
        return reasons(
            network, explained.sites, "nothing that requires grad is passed to `{block}` by keyword"
        )

    def flags(self, site: ObservedSite) -> bool:
        """Return whether a tensor that requires grad was passed by keyword."""
        return bool(site.keyword_activations)

    @staticmethod
    def _message(defects: SiteDefects) -> str:
        names = [bound.parameter.name for bound in defects.keyword_activations if bound.parameter is not None]
        several = len(names) > 1
        passed = f"{listed_code(names)} {'are' if several else 'is'} passed to `{defects.symbol}` by keyword"
        if any(each.positional_activations() for each in defects.bindings):
            unseen = f"where reentrant checkpointing does not see {'them' if several else 'it'}"
            return f'{passed}, {unseen}: with two or more layers, backward raises "{_TWICE}"'
        receives = "they receive" if several else "it receives"
        return f"{passed}, so {receives} no gradient under reentrant checkpointing"
