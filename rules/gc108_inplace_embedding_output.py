"""GC108: the output of an embedding that is changed in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gclint.finding import Applicability, Edit, Finding, Fix
from gclint.network.inplace import Change, changes_in_place, changes_seen, embeddings_called
from gclint.network.model import Network
from gclint.network.support import supports_checkpointing
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause

_REASON = (
    "whether the hook of `enable_input_require_grads()` is on that module, only a run shows, "
    "and where it is not, this is a copy for nothing"
)

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot


class InplaceEmbeddingOutput(Rule):
    """The output of the embeddings is changed in place.

    ## What it does

    Finds statements such as `x += y`, `x *= y`, `x[mask] = y` or `x.add_(y)` where `x` is what the
    module that `get_input_embeddings()` leads to has just returned, under whatever name; and lines that
    raised this error in a run.

    ## Why is this bad?

    Training with a frozen base and reentrant checkpointing needs `enable_input_require_grads()`, which lets
    that output require grad. As nothing before it does, it is a leaf, and a leaf that requires grad cannot be
    changed in place: the forward pass raises "a leaf Variable that requires grad is being used in an in-place
    operation", with checkpointing and without.

    ## Example

    ```python
    inputs_embeds = self.embed_tokens(input_ids)
    inputs_embeds[image_mask] = image_features
    ```

    Use instead:

    ```python
    inputs_embeds = self.embed_tokens(input_ids)
    inputs_embeds = inputs_embeds.clone()
    inputs_embeds[image_mask] = image_features
    ```

    ## Fix safety

    The fix clones the tensor before it is changed. Every value and every gradient stays the same, to the bit
    and whatever the types, which `x = x + y` would not promise; the copy needs memory. The text does not say
    that the hook is ever on that module, so the fix is made by `--fix --verify` only, where a run proves it.

    ## References

    - [transformers issue #35898](https://github.com/huggingface/transformers/issues/35898)
    """

    code = "GC108"
    name = "inplace-embedding-output"
    precision = "medium"
    fixes = (Applicability.PROVABLE,)
    causes = frozenset((Cause.LEAF,))

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each statement that changes such an output."""
        written: set[tuple[int, int]] = set()
        for change in (*changes_in_place(network), *changes_seen(network)):
            start, end = change.fragment.span(change.statement)
            if (start, end) in written:
                continue
            written.add((start, end))
            source = "is" if change.module is None else f"is what `{change.module}` has returned, and is"
            yield Finding(
                self.code,
                self.name,
                f"`{change.name}` {source} changed in place: once `enable_input_require_grads()` lets it "
                "require grad, the forward pass raises",
                network.file.path,
                start,
                end,
                change.owner,
                _fix(network, change, start),
            )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield why nothing is changed in place that the embeddings have returned."""
        if spot.owner is None:
            return
        called = embeddings_called(network, spot.owner)
        if not called:
            yield f"no method of `{spot.owner.name}` calls what `get_input_embeddings()` leads to"
        elif not supports_checkpointing(spot.owner):
            yield f"no model that holds `{spot.owner.name}` supports checkpointing"
        else:
            names = " and ".join(f"`{name}`" for name in called)
            yield f"no statement changes in place what {names} of `{spot.owner.name}` has returned"


def _fix(network: Network, change: Change, start: int) -> Fix:
    file = network.file
    line = file.line_starts[file.position(start).row - 1]
    indent = file.text[line:start]
    edit = Edit(file.path, start, start, f"{change.name} = {change.name}.clone(){file.newline}{indent}")
    return Fix(f"Clone `{change.name}` before it is changed", (edit,), Applicability.PROVABLE, _REASON)
