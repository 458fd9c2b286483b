"""GC114: input embeddings that do not feed the first block."""

from __future__ import annotations

from collections.abc import Iterable

from gclint.edit.embeddings import concerned, misled, unseen
from gclint.finding import Applicability, Finding
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Failure


class UnreachedInputEmbedding(Rule):
    """`get_input_embeddings` does not return the module that feeds the first block.

    ## What it does

    Reports models, mostly towers for images and audio, in which, as a run shows, `get_input_embeddings()`
    returns nothing, or a module whose output does not reach the first block, while another module feeds it.
    The code alone does not show this: the rule is silent unless the model was run, by `gclint verify` or
    `--verify`.

    ## Why is this bad?

    With a frozen base, the input of the first block does not require grad unless
    `enable_input_require_grads()` finds the embeddings. Reentrant checkpointing then returns outputs
    without a graph: the adapters inside the blocks receive no gradient. If the tower is part of a larger
    model, training continues without an error, and the adapters never change.

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

    The fix adds the method, which returns the module that a run has found; the run has also shown that the
    release sets its hook there. Releases before 5.0 call the method only on the outermost model, which has to
    return its token embeddings: with them, a tower can be repaired on its own, but not inside another model.
    A model that returns its token embeddings is left alone. The fix is always unsafe: the method is part of
    the model's interface. Without the fix, adapters receive gradients with `use_reentrant=False`.

    ## References

    - [peft issue #2826](https://github.com/huggingface/peft/issues/2826)
    """

    code = "GC114"
    name = "unreached-input-embedding"
    precision = "very-high"
    fixes = (Applicability.UNSAFE,)
    causes = frozenset((Cause.NO_INPUT_GRADIENT,))

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each model whose input embeddings did not feed the first block in a run."""
        for each in misled(network):
            if not each.seen.fails:
                present = (
                    "returns no module"
                    if each.seen.present is None
                    else "returns a module that does not feed the first block"
                )
                yield each.finding(
                    self.code,
                    self.name,
                    f"`{each.seen.model}.get_input_embeddings()` {present}, so adapters on a frozen base "
                    "receive no gradient under reentrant checkpointing",
                )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield that only a run can show this defect."""
        return unseen(network, explained.classes)

    def concerns(self, finding: Finding, failure: Failure, run: ClassResult) -> bool:
        """Return whether the run shows the defect in the model of a finding."""
        return concerned(finding, run)
