"""GC108: the output of an embedding that is changed in place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.code.walk import LOOPS, walk
from gclint.finding import Applicability, Edit, Finding, Fix, Refusal, StoryStep
from gclint.network.explaining.places import CodeToExplain
from gclint.network.inplace import InPlaceChange, changes_in_place, changes_seen, embeddings_called
from gclint.network.model import Network
from gclint.network.story import attribute_steps, node_step
from gclint.network.support import supports_checkpointing
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause
from gclint.wording import listed_code

_REASON = "`--fix --verify` makes it if a run with frozen embeddings raises this error"


class InplaceEmbeddingOutput(Rule):
    """The output of the embeddings is changed in place.

    ## What it does

    Finds statements such as `x += y`, `x *= y`, `x[mask] = y` or `x.add_(y)` where `x` is the output of
    the module that `get_input_embeddings()` returns, or a view of it (`x[:, 0]`, `x.view(-1, 8)`), and lines
    that raised the error below in a run. A clone, or anything else that computes a new tensor, ends it.

    ## Why is this bad?

    Training with a frozen base and reentrant checkpointing needs `enable_input_require_grads()`, which sets a
    hook that makes that output require grad. If the embeddings are frozen, nothing before the output requires
    grad, so it is a leaf, and a leaf that requires grad cannot be changed in place: the forward pass raises
    "a leaf Variable that requires grad is being used in an in-place operation", with checkpointing and
    without.

    If the embeddings are trained, their output is not a leaf and nothing raises. From transformers 5.0 on,
    enabling checkpointing sets the hook on every model whose main input is `input_ids`; before, it does so
    only where an adapter is loaded, and PEFT and some trainers set it.

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

    The fix clones the tensor before it is changed. Every value and every gradient stays the same, bit for
    bit and for all types, which `x = x + y` would not guarantee; the copy needs memory. The code alone does
    not show that the hook is ever set on that module, so only `--fix --verify` makes the fix, if a run proves
    it.

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
            start, end = change.file.places.span(change.statement)
            if (start, end) in written:
                continue
            written.add((start, end))
            yield self.finding(
                _message(change),
                network.file.path,
                (start, end),
                change.owner,
                _fix(network, change, start),
                story=tuple(_story(network, change)),
            )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield why no output of the embeddings is changed in place."""
        if explained.owner is None:
            return
        called = embeddings_called(network, explained.owner)
        if not called:
            name = explained.owner.name
            yield f"no method of `{name}` calls the module that `get_input_embeddings()` returns"
        elif not supports_checkpointing(explained.owner):
            yield f"no model that holds `{explained.owner.name}` supports checkpointing"
        else:
            names = listed_code(called)
            yield f"no statement changes the output of {names} of `{explained.owner.name}` in place"


def _message(change: InPlaceChange) -> str:
    if change.module is None:
        return f"`{change.name}` is changed in place, which raised in a run: it was a leaf that requires grad"
    return (
        f"`{change.name}`, the output of `{change.module}`, is changed in place: after "
        '`enable_input_require_grads()`, with frozen embedding weights, this raises "a leaf Variable that '
        'requires grad is being used in an in-place operation"'
    )


def _story(network: Network, change: InPlaceChange) -> Iterator[StoryStep]:
    """Yield where the embeddings are created and called, if the code shows it, and the change in place."""
    if change.model is not None and change.module is not None:
        others = (each for each in network.module.classes.values() if each is not change.model)
        made = f"`{change.module}` is an input embedding: the hook of `enable_input_require_grads()` is on it"
        for owner in (change.model, *others):
            step = next(attribute_steps(owner, change.module, made), None)
            if step is not None:
                yield step
                break
    if change.source is not None:
        returned = f"with frozen embeddings, the hook makes this output of `{change.module}` a leaf"
        yield node_step(change.file, change.source, returned)
    what = f"`{change.name}` is changed in place here, which raises for a leaf that requires grad"
    yield node_step(change.file, change.statement, what)


def _fix(network: Network, change: InPlaceChange, start: int) -> Fix | Refusal:
    file = network.file
    if not change.has_own_lines:
        return Refusal("the statement does not have a line of its own")
    shared = _read_behind(change, start)
    if shared is not None:
        return Refusal(f"`{shared}` is the same memory and is used after it, and would miss the change")
    line = file.line_starts[file.position(start).row - 1]
    indent = file.text[line:start]
    edit = Edit(file.path, start, start, f"{change.name} = {change.name}.clone(){file.newline}{indent}")
    return Fix(f"Clone `{change.name}` before it is changed", (edit,), Applicability.PROVABLE, _REASON)


def _read_behind(change: InPlaceChange, start: int) -> str | None:
    """Return another variable with the same memory that is used after a change, or again in its loop."""
    places = change.file.places
    for node in walk(change.function) if change.others else ():
        if isinstance(node, LOOPS) and places.start(node) <= start < places.end(node):
            start = places.start(node)
    names = (
        node for node in walk(change.function) if isinstance(node, ast.Name) and node.id in change.others
    )
    return next((node.id for node in names if places.start(node) > start), None)
