"""GC404: a checkpoint function of torch without `use_reentrant`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gclint.edit.replaced import function_replaced
from gclint.finding import Applicability, Edit, Finding, Fix, Refusal
from gclint.level import Level
from gclint.model.patches import Patch
from gclint.model.scripts import Done
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.training import USE_REENTRANT, is_at
from gclint.rule import Rule

_MODULE = "torch.utils.checkpoint"
_FUNCTIONS = (f"{_MODULE}.checkpoint", f"{_MODULE}.checkpoint_sequential")


class ImplicitUseReentrant(Rule):
    """A checkpoint function of torch is called without `use_reentrant`.

    ## What it does

    Finds calls of `torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` without `use_reentrant`,
    in training scripts and other files that are no modeling files. Where the argument may be in unpacked
    keywords, or something else is put in the place of the function, nothing is reported.

    ## Why is this bad?

    Ran with torch 2.13.0: each call warns that the argument "should be passed explicitly", and that a later
    release will raise an exception. Until then checkpointing is reentrant: if no input requires grad, as
    with a frozen base, the parameters inside silently get no gradient.

    ## Example

    ```python
    hidden_states = checkpoint(block, hidden_states)
    ```

    Use instead:

    ```python
    hidden_states = checkpoint(block, hidden_states, use_reentrant=False)
    ```

    ## Fix safety

    The fix passes `use_reentrant=True`, which is what happens anyway, so it is safe. Torch recommends
    `use_reentrant=False`, which is up to you: gradients are the same in almost all cases, and it works
    where no input requires grad, with keyword arguments, and with `find_unused_parameters=True`.

    ## References

    - [torch.utils.checkpoint](https://pytorch.org/docs/stable/checkpoint.html)
    """

    code = "GC404"
    name = "implicit-use-reentrant"
    level = Level.NOTE
    precision = "very-high"
    fixes = (Applicability.SAFE,)

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each such call."""
        for done in _calls(network):
            if not _may_pass(network, done) and _replaced(network) is None:
                name = done.name.rpartition(".")[2]
                yield self.finding(
                    f"`{name}` is called without `{USE_REENTRANT}`: torch warns, and a later release raises",
                    network.file.path,
                    network.file.places.span(done.node),
                    name,
                    _remedy(network, done),
                )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield why a call at a place is right, or not known to be wrong."""
        for done in _calls(network):
            if is_at(explained, done) and _may_pass(network, done):
                yield f"the call passes `{USE_REENTRANT}`, or may do so"
            elif is_at(explained, done) and (patch := _replaced(network)) is not None:
                yield f"`{patch.code}` puts something else in the place of the function"


def _calls(network: Network) -> Iterator[Done]:
    """Yield the calls of checkpoint functions in the file, with the argument where they ever pass it."""
    for found in network.script.places(*_FUNCTIONS) if network.script else ():
        done = next((each for each in found if _may_pass(network, each)), found[0])
        if done.file is network.file and isinstance(done.node, ast.Call):
            yield done


def _replaced(network: Network) -> Patch | None:
    """Return where something else is put in the place of a checkpoint function, if that is seen."""
    return function_replaced(network, {each.rpartition(".")[2] for each in _FUNCTIONS})


def _may_pass(network: Network, done: Done) -> bool:
    """Return whether a call passes the argument, or may do so; nothing that ``*`` unpacks can be it."""
    by_name = replace(done, call=done.call._replace(rest=None))
    return network.script is None or network.script.argument(by_name, USE_REENTRANT) is not None


def _remedy(network: Network, done: Done) -> Fix | Refusal:
    """Return the fix that passes what is the default."""
    node, file = done.node, network.file
    assert isinstance(node, ast.Call)  # Others are left out.
    last = file.places.end(node) - 1
    end = max((file.places.end(each) for each in (*node.args, *node.keywords)), default=0)
    if not end or file.text[end:last].strip() not in ("", ","):
        return Refusal(f"pass `{USE_REENTRANT}=False`")
    given = f"{USE_REENTRANT}=True"
    edit = Edit(file.path, end, end, f", {given}")
    return Fix(f"Pass `{given}`, the default; `False` is recommended", (edit,))
