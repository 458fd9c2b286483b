"""GC114: input embeddings that do not feed the first block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gclint.codemod.embeddings import concerned, misled, unseen
from gclint.finding import Applicability, Finding
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause

if TYPE_CHECKING:
    from gclint.network.explaining.places import Spot
    from gclint.verify.worker.protocol import ClassResult, Failure


class UnreachedInputEmbedding(Rule):
    """`get_input_embeddings` does not lead to what feeds the first block.

    ## What it does

    Reports models, mostly towers for images and audio, of which a run has seen that `get_input_embeddings()`
    returns nothing, or a module whose output does not reach the first block, and that another module does
    feed it. The text does not say so: the rule is silent unless the model was run, by `gclint verify` or with
    `--verify`.

    ## Why is this bad?

    With a frozen base, what goes into the first block requires no grad, unless
    `enable_input_require_grads()` finds the embeddings. Reentrant checkpointing then returns outputs
    without a graph: the adapters inside of the blocks get no gradient. Where the tower is a part of a larger
    model, training goes on all the same, and they never change.

    ## Example

    ```python
    class MyVisionModel(MyPreTrainedModel):
        def __init__(self, config):
            super().__init__(config)
            self.patch_embed = MyPatchEmbed(config)

        def forward(self, pixel_values):
            hidden_states = self.patch_embed(pixel_values)
            for block in self.blocks:
                hidden_states = block(hidden_states)
    ```

    Use instead:

    ```python
    class MyVisionModel(MyPreTrainedModel):
        def __init__(self, config):
            super().__init__(config)
            self.patch_embed = MyPatchEmbed(config)

        def get_input_embeddings(self):
            return self.patch_embed
    ```

    ## Fix safety

    The fix gives the model the method, with the module that a run has found; a run has also shown that the
    release sets its hook there. Releases before 5.0 ask only the outermost model, which has to return the
    embeddings of its tokens: there a tower can be repaired for itself, and not within another model. A
    model that returns the embeddings of tokens is left alone. The fix is always unsafe: the method is part of
    the model's interface. Without it, `use_reentrant=False` gives adapters their gradients.

    ## References

    - [peft issue #2826](https://github.com/huggingface/peft/issues/2826)
    """

    code = "GC114"
    name = "unreached-input-embedding"
    precision = "very-high"
    fixes = (Applicability.UNSAFE,)
    causes = frozenset((Cause.NO_INPUT_GRADIENT,))

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each model of the file of which a run has seen that."""
        for each in misled(network):
            if not each.seen.fails:
                present = (
                    "returns no module" if each.seen.present is None else "does not feed its first block"
                )
                yield each.finding(
                    self.code,
                    self.name,
                    f"`{each.seen.model}.get_input_embeddings()` {present}: with a frozen base, nothing that "
                    "goes into it requires grad, and reentrant checkpointing gives its adapters no gradient",
                )

    def silence(self, network: Network, spot: Spot) -> Iterable[str]:
        """Yield what only a run shows."""
        return unseen(network, spot.classes)

    def concerns(self, finding: Finding, failure: Failure, run: ClassResult) -> bool:
        """Return whether the run has seen that of the model of a finding."""
        return concerned(finding, run)
