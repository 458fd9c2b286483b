"""GC110: a cache that is made although the model checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gclint.codemod.guard import Unguarded, unguarded_caches, why_guarded
from gclint.finding import Applicability, Finding, Fix, Part, Refusal, Repair, Step
from gclint.network.model import Network
from gclint.network.story import call_story, parameter_steps
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot
    from gclint.verify.worker.protocol import RunSite

_REASON = "whether training needs that cache, and whether it alone differs in recomputation, only a run shows"


class CacheWithoutGuard(Rule):
    """A cache is made although the model checkpoints.

    ## What it does

    Finds methods that make a cache if `use_cache` is set, and pass it to a `GradientCheckpointingLayer` under
    a name that the base class does not know, such as `state`; and that ask only afterwards, or not at all,
    whether the model checkpoints.

    ## Why is this bad?

    Blocks write into the cache, and recomputation does so again: non-reentrant checkpointing raises a
    `CheckpointError`, and reentrant checkpointing raises or gives wrong gradients. Disabling `use_cache` once
    the cache is there comes too late. A cache that is passed by keyword under a name that the base class
    knows is disabled there; GC002 is about one that is passed by position.

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

    The fix moves the guard before the statement that makes the cache, or puts one there. Nothing changes
    without checkpointing. The text does not say whether training needs the cache, so the fix is made by
    `--fix --verify` only, where a run proves it.

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
        """Yield a finding for each cache that is made too early."""
        for each in unguarded_caches(network):
            start, end = each.site.span(each.argument)
            made, _ = each.fragment.span(each.creation)
            row = network.file.position(made).row
            when = "before anything asks" if each.guard is not None else "and nothing asks"
            yield Finding(
                self.code,
                self.name,
                f"`{each.parameter}` of `{each.block}` gets a cache that line {row} makes if `use_cache` is "
                f"set, {when} whether the model checkpoints: recomputation writes it twice, or raises a "
                "CheckpointError",
                network.file.path,
                start,
                end,
                each.block,
                _remedy(each),
                story=_story(each),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield for each call site why it gets no cache that is made too early."""
        return dict.fromkeys(why_guarded(network, site) for site in spot.sites)

    def flags(self, site: RunSite) -> bool:
        """Return whether a cache was written to by recomputation."""
        return bool(site.rewritten_caches)


def _story(each: Unguarded) -> tuple[Step, ...]:
    block = next((info for info in each.site.blocks if info.name == each.block), each.site.blocks[0])
    made = Step(
        each.fragment.file.path,
        *each.fragment.span(each.creation.test),
        f"`{each.name}` is made here, whether or not the model checkpoints",
    )
    meaning = f"`{each.parameter}` of `{each.block}.forward` is a cache, which recomputation writes again"
    return (*call_story(each.site, block), *parameter_steps(block, each.parameter, meaning), made)


def _remedy(each: Unguarded) -> Fix | Refusal:
    self_name = each.site.scope.self_name
    if self_name is None:
        return Refusal("the method has no object whose flag could be asked")
    repair = Repair(Part.CALL, each.fragment.file.path, *each.fragment.span(each.creation))
    where = "Move the guard before" if each.guard is not None else "Ask for checkpointing before"
    message = f"{where} `{each.name}` is made"
    return Fix(message, tuple(each.edits(self_name)), Applicability.PROVABLE, _REASON, (repair,))
