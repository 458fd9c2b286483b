"""GC113: input embeddings whose output is not a single tensor."""

from __future__ import annotations

from collections.abc import Iterable

from gclint.edit.embeddings import concerned, misled, unseen
from gclint.finding import Applicability, Finding
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Failure


class TupleInputEmbedding(Rule):
    """`get_input_embeddings` returns a module whose output is not a single tensor.

    ## What it does

    Reports models in which, as a run shows, the module from `get_input_embeddings()` returns a tuple,
    and a module inside it, such as a projection, returns the tensor that feeds the first block. The code
    alone does not show this: the rule is silent unless the model was run, by `gclint verify` or `--verify`.

    ## Why is this bad?

    `enable_input_require_grads()` sets a hook on that module, which makes its output require grad. A tuple
    has no `requires_grad_`: the forward pass raises an `AttributeError`. Training adapters on a frozen base
    calls it; since transformers 5, so does enabling checkpointing on a model that takes tokens.

    ## Example

    ```python
    class MyPatchEmbeddings(nn.Module):
        def forward(self, pixel_values):
            embeddings = self.projection(pixel_values)
            return embeddings.flatten(2).transpose(1, 2), embeddings.shape[2:]

    class MyModel(MyPreTrainedModel):
        def get_input_embeddings(self):
            return self.embeddings.patch_embeddings
    ```

    Use instead:

    ```python
    class MyModel(MyPreTrainedModel):
        def get_input_embeddings(self):
            return self.embeddings.patch_embeddings.projection
    ```

    ## Fix safety

    The fix makes `get_input_embeddings()` return the module that a run has found, in the way that the release
    looks it up. It is always unsafe: the method is part of the model's interface.

    ## References

    - [Gradient checkpointing](https://huggingface.co/docs/transformers/main/en/grad_checkpointing)
    """

    code = "GC113"
    name = "tuple-input-embedding"
    precision = "very-high"
    fixes = (Applicability.UNSAFE,)
    causes = frozenset((Cause.HOOK, Cause.NO_INPUT_GRADIENT))
    shown_by = frozenset((Cause.HOOK,))

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each model whose input embeddings returned a tuple in a run."""
        for each in misled(network):
            if each.seen.fails:
                yield each.finding(
                    self.code,
                    self.name,
                    f"`{each.seen.model}.get_input_embeddings()` returns a module whose output is not a "
                    "single tensor, so the forward pass raises after `enable_input_require_grads()`",
                )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield that only a run can show this defect."""
        return unseen(network, explained.classes)

    def concerns(self, finding: Finding, failure: Failure, run: ClassResult) -> bool:
        """Return whether the run shows the defect in the model of a finding."""
        return concerned(finding, run)
