"""GC305: a cache passed under a keyword that the base class does not know in every release."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gclint.code.walk import Arg, walk
from gclint.edit.branch import is_spared
from gclint.edit.cache_arguments import no_cache
from gclint.edit.guard import guard_doubts
from gclint.edit.places import argument_place
from gclint.edit.without_cache import cache_doubts
from gclint.finding import Applicability, Edit, Finding, Fix, Refusal, Repair, RepairKind
from gclint.network.caches import has_flag, live_caches
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.story import call_story, parameter_steps
from gclint.network.untrained import untrained
from gclint.releases import EVER_NEUTRALISED
from gclint.rule import Rule
from gclint.wording import listed

_DOING = ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom
"""Expressions that do something which code around the call depends on."""
_GUARD = "None if {0}.gradient_checkpointing and {0}.training else "


class UnfilteredCacheName(Rule):
    """A cache is passed to a checkpointing layer under a name that some releases do not disable.

    ## What it does

    Finds calls of a `GradientCheckpointingLayer` that pass a cache by keyword under a name that the base
    class does not disable in a release that the file may run with: any name in transformers 4.52, and
    `past_key_value` since 5.17. Constants, and caches that the model itself disables while it checkpoints,
    are not reported.

    The releases are those of `--target-version` or `target-version`; else the release of the tree around the
    file; else what the project's metadata requires; else the installed one; else the newest known one.

    ## Why is this bad?

    The base class disables caches while it checkpoints, since recomputing the block would write to them
    a second time. It recognizes them by name: one that it does not know stays enabled. Non-reentrant
    checkpointing then raises a `CheckpointError`, and with reentrant checkpointing gradients are silently
    wrong.

    ## Example

    ```python
    hidden_states = layer(hidden_states, past_key_value=past_key_values)
    ```

    Use instead, where `forward` can name its parameter so (from transformers 4.53 on):

    ```python
    hidden_states = layer(hidden_states, past_key_values=past_key_values)
    ```

    ## Fix safety

    The fix leaves the name as it is and disables the cache at the call, as the base class would:
    `past_key_value=None if self.gradient_checkpointing and self.training else past_key_values`. It is safe in
    every release, and available only if the class that makes the call has that flag itself, and the value
    can only be a cache (see GC002). It is unsafe if the block, or the code around it, does or computes
    something else without the cache, or if that is not known, or if another layer, a run before or code
    around the model may write to or read from the same slot, or if code may set the block's
    `_can_checkpoint_with_cache`, by which it keeps its cache, or if not all objects may have the flag, or may
    have it set without their blocks, or if evaluating the value may do something.
    Renaming the parameter is up to its author, since other callers may use the name.

    ## References

    - [Gradient checkpointing](https://huggingface.co/docs/transformers/main/en/grad_checkpointing)
    """

    code = "GC305"
    name = "unfiltered-cache-name"
    fixes = (Applicability.SAFE, Applicability.UNSAFE)

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each cache that stays on in some release."""
        left_on = {name: network.releases.not_neutralising(name) for name in EVER_NEUTRALISED}
        if not any(which and name in network.file.text for name, which in left_on.items()):
            return
        for site in network.run_sites:
            block = next(
                (info for info in site.blocks if info.is_checkpointing and info in site.let_through), None
            )
            if block is None or site.checkpointed or site.function is not None or is_spared(site):
                continue
            if untrained(site) is not None:
                continue
            for name, arg in live_caches(site):
                which = left_on.get(name)  # There are caches whose names no release knows.
                if which is not None:
                    yield self.finding(
                        f"`{name}` is passed to `{block.name}` by keyword, but in {which} checkpointing "
                        "does not disable a cache of that name",
                        network.file.path,
                        argument_place(site, arg),
                        block.name,
                        _remedy(network, site, name, arg),
                        story=(
                            *call_story(site, block),
                            *parameter_steps(
                                block,
                                name,
                                (f"`{name}` of `{block.name}.forward` is a cache that stays enabled"),
                            ),
                        ),
                    )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield for each call site which caches it passes, and what disables them."""
        for site in explained.sites:
            if not any(info.is_checkpointing for info in site.blocks):
                names = " or ".join(f"`{info.name}`" for info in site.blocks)
                yield f"the call runs {names}, which is not a checkpointing layer and disables no cache"
            elif site.checkpointed or site.function is not None:
                yield "the call goes through another function, so the base class does not see its keywords"
            elif is_spared(site):
                yield "the call is on a path on which the model does not checkpoint"
            elif (idle := untrained(site)) is not None:
                yield idle.value
            else:
                caches = [name for name, _ in live_caches(site)]
                disabled = [f"`{name}`" for name in caches if name in EVER_NEUTRALISED]
                unknown = [f"`{name}`" for name in caches if name not in EVER_NEUTRALISED]
                if disabled:
                    yield f"{network.releases} disables {listed(disabled)} while checkpointing"
                if unknown:
                    yield f"no release disables {listed(unknown)}, which is left to the model"
                if not caches:
                    yield "no cache that can be present while checkpointing is passed by keyword"


def _remedy(network: Network, site: RunSite, name: str, arg: Arg) -> Fix | Refusal:
    if not has_flag(site.owner) or site.scope.self_name is None:
        return Refusal(
            f"`{site.owner.name}` has no `gradient_checkpointing` flag of its own to guard the cache with; "
            f"rename the parameter `{name}` to `past_key_values` in `forward` and its calls"
        )
    if any(isinstance(each, _DOING) for each in walk(arg.value)):
        return Refusal("evaluating the value has side effects, so the guard has to be written by hand")
    other = no_cache(network, site, (arg,))
    if other is not None:
        return Refusal(other)
    start, _ = site.span(arg.value)
    repair = Repair(RepairKind.CALL, network.file.path, *site.span(site.call))
    doubts = [*cache_doubts(network, site), *guard_doubts(network, site, arg.value)]
    return Fix(
        f"Disable `{name}` while checkpointing",
        (Edit(network.file.path, start, start, _GUARD.format(site.scope.self_name)),),
        Applicability.UNSAFE if doubts else Applicability.SAFE,
        "; ".join(doubts) or None,
        (repair,),
    )
