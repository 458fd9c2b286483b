"""GC110: a cache that is created although the model checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gclint.codemod.guard import Unguarded, unguarded_caches, why_guarded
from gclint.codemod.places import argument_place
from gclint.finding import Applicability, Finding, Fix, Part, Refusal, Repair, Step
from gclint.network.model import Network
from gclint.network.story import call_story, parameter_steps
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot
    from gclint.verify.worker.protocol import RunSite

_REASON = "only a run can show whether training needs this cache"


class CacheWithoutGuard(Rule):
    """A cache is created although the model checkpoints.

    ## What it does

    Finds methods that create a cache if `use_cache` is set, pass it to a `GradientCheckpointingLayer` under
    a name that the base class does not know, such as `state`, and check too late, or not at all, whether the
    model checkpoints.

    ## Why is this bad?

    Blocks write to the cache, and recomputation does so again: non-reentrant checkpointing raises a
    `CheckpointError`, and reentrant checkpointing raises or gives wrong gradients. Disabling `use_cache`
    after the cache was created is too late. The base class disables a cache that is passed by keyword under a
    name that it knows; GC002 is about one that is passed by position.

    ## Example

    ```python
    if use_cache and state is None:
        state = self.new_state(inputs_embeds)
    if self.gradient_checkpointing and self.training:
        use_cache = False
    for block in self.blocks:
        hidden_states, state = block(hidden_states, state=state, use_cache=use_cache)
    ```

    Use instead:

    ```python
    if self.gradient_checkpointing and self.training:
        use_cache = False
    if use_cache and state is None:
        state = self.new_state(inputs_embeds)
    for block in self.blocks:
        hidden_states, state = block(hidden_states, state=state, use_cache=use_cache)
    ```

    ## Fix safety

    The fix moves the guard before the statement that creates the cache, or adds one there. Nothing changes
    without checkpointing. The code alone does not show whether training needs the cache, so only
    `--fix --verify` makes the fix, if a run proves it.

    ## References

    - [transformers issue #30320](https://github.com/huggingface/transformers/issues/30320)
    """

    code = "GC110"
    name = "cache-without-guard"
    precision = "medium"
    fixes = (Applicability.PROVABLE,)
    causes = frozenset((Cause.WRITTEN_CACHE,))
    explains_all = False

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each cache that is created before or without a guard."""
        for each in unguarded_caches(network):
            start, end = argument_place(each.site, each.argument)
            row = each.file.position(each.file.places.start(each.creation)).row
            when = "before the checkpointing" if each.guard is not None else "without a checkpointing"
            yield Finding(
                self.code,
                self.name,
                f"the cache passed to `{each.block}` as `{each.parameter}` is created on line {row} {when} "
                "guard, so recomputation writes to it again",
                network.file.path,
                start,
                end,
                each.block,
                _remedy(each),
                story=_story(each),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield for each call site why it receives no unguarded cache."""
        return dict.fromkeys(why_guarded(network, site) for site in spot.sites)

    def flags(self, site: RunSite) -> bool:
        """Return whether recomputation wrote to a cache."""
        return bool(site.rewritten_caches)

    def shows(self, site: RunSite) -> bool:
        """Return the same: that is the damage."""
        return self.flags(site)


def _story(each: Unguarded) -> tuple[Step, ...]:
    block = next((info for info in each.site.blocks if info.name == each.block), each.site.blocks[0])
    made = Step(
        each.file.path,
        *each.file.places.span(each.creation.test),
        f"`{each.name}` is created here, whether or not the model checkpoints",
    )
    meaning = f"`{each.parameter}` of `{each.block}.forward` is a cache, to which recomputation writes again"
    return (*call_story(each.site, block), *parameter_steps(block, each.parameter, meaning), made)


def _remedy(each: Unguarded) -> Fix | Refusal:
    self_name = each.site.scope.self_name
    if self_name is None:
        return Refusal("the method has no `self` whose checkpointing flag could be checked")
    repair = Repair(Part.CALL, each.file.path, *each.file.places.span(each.creation))
    where = "Move the guard before" if each.guard is not None else "Add a checkpointing guard before"
    message = f"{where} `{each.name}` is created"
    return Fix(message, tuple(each.edits(self_name)), Applicability.PROVABLE, _REASON, (repair,))
