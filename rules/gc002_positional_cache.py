"""GC002: a cache that is passed to a checkpointing layer by position."""

from __future__ import annotations

from collections.abc import Iterable

from gclint.edit.sites import SiteDefects, defective_sites, reasons
from gclint.finding import Applicability, Finding
from gclint.network.activation import is_guarded
from gclint.network.binding import BoundArgument
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ObservedSite
from gclint.wording import listed_code


class PositionalCache(Rule):
    """A cache is passed to a checkpointing layer by position.

    ## What it does

    Finds calls of a `GradientCheckpointingLayer` in which `past_key_values`, `past_key_value`,
    `layer_past` or `use_cache` is passed by position. Calls that only run in evaluation mode or without
    gradients (`torch.no_grad`) are left alone. Where the block is no layer yet, the fix of GC001 or GC302
    also repairs its calls, of which nothing is said.

    ## Why is this bad?

    The base class disables caches while it checkpoints, since recomputing the block would write to
    them a second time. It recognizes them by keyword and cannot see one that is passed by position:
    reentrant checkpointing then writes the cache twice, and non-reentrant checkpointing raises a
    `CheckpointError`, since the recomputed tensors have other shapes. A guard such as
    `past if not (self.gradient_checkpointing and self.training) else None` at the call avoids both;
    it does by hand what the keyword would do.

    ## Example

    ```python
    outputs = layer(hidden_states, past_key_values, attention_mask)
    ```

    Use instead:

    ```python
    outputs = layer(hidden_states, past_key_values=past_key_values, attention_mask=attention_mask)
    ```

    ## Fix safety

    Safe if it only adds keywords to the call: to the cache, and to the arguments after it. If an
    activation comes after the cache in the signature of `forward`, neither order of the call is right;
    the fix then moves the activations to the front of the signature and rewrites the calls, overrides
    and `super().forward` calls in the given files. That is unsafe, since callers elsewhere break. It is
    also unsafe if a release that the file may run with does not disable a cache of that name (see
    GC305); if none does, there is no fix. It is unsafe as well if a decorator of `forward` or a forward hook
    reads the arguments as they are passed, or if the block, or the code around it, does or computes
    something else without the cache, or if that is not known: an empty cache gives back what a block puts
    into it, but not if another layer, or a run before, may have written to the same slot, nor if the cache
    has a fixed length or a class of the project's own. So it is if code around the model reads the cache
    afterwards, or if the block may keep it: code may set its `_can_checkpoint_with_cache`, which
    transformers 5.23 reads. There is no fix for a block that
    needs its cache in training, nor for an argument inside an unpacked list or dict.

    Nor is there one if the value may be something else than a cache, such as a learned prompt, since the
    base class would drop it. A cache is what comes from the model's own arguments under such a name, is
    None, or is made by a class of caches from nothing that requires grad.

    Findings that only a run can show are repaired by `--fix --verify` once the repair is proven.

    ## References

    - transformers pull request #41818, issue #30320
    """

    code = "GC002"
    name = "positional-cache"
    fixes = (Applicability.SAFE, Applicability.PROVABLE, Applicability.UNSAFE)
    causes = frozenset((Cause.POSITIONAL_CACHE,))
    is_about_calls = True

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each call that passes caches by position."""
        for defects in defective_sites(network):
            if not defects.positional_caches:
                continue
            bound = defects.positional_caches[0]
            yield self.finding(
                self._message(defects, bound),
                network.file.path,
                defects.span(bound),
                defects.symbol,
                defects.repair(),
                awaits=defects.awaits,
                evidence=defects.evidence(self.causes),
                story=defects.story(
                    defects.positional_caches,
                    "is a cache, which checkpointing can disable only if it is passed by keyword",
                    traced=False,
                ),
            )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield the reasons why the call sites at a place are correct."""
        return reasons(network, explained.sites, "no cache is passed to `{block}` by position")

    def flags(self, site: ObservedSite) -> bool:
        """Return whether a cache was passed by position."""
        return bool(site.positional_caches)

    def shows(self, site: ObservedSite) -> bool:
        """Return whether recomputation wrote to a cache of a call that passes one by position."""
        return bool(site.positional_caches and site.rewritten_caches)

    @staticmethod
    def _message(defects: SiteDefects, first: BoundArgument) -> str:
        names = listed_code(
            bound.parameter.name for bound in defects.positional_caches if bound.parameter is not None
        )
        several = len(defects.positional_caches) > 1
        verb, pronoun = ("are", "them") if several else ("is", "it")
        if is_guarded(first.arg.value):
            return (
                f"{names} {verb} passed to `{defects.symbol}` by position, so only the guard at the call "
                f"disables {pronoun}: without it, recomputation writes to the cache a second time"
            )
        passed = f"{names} {verb} passed to `{defects.symbol}` by position"
        harm = f"checkpointing cannot disable {pronoun}, and recomputation writes to the cache a second time"
        return f"{passed}, so {harm}"
