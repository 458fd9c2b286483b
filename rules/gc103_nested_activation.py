"""GC103: activations that are passed to a checkpointing layer inside a list, tuple or dict."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gclint.code.file import SourceFile
from gclint.code.outline import Definition
from gclint.code.paths import shown
from gclint.code.walk import dotted_name, is_docstring
from gclint.copies.generated import is_modular, modeling_path
from gclint.edit.places import argument_place
from gclint.edit.signature import files_naming
from gclint.edit.sites import SiteDefects, defective_sites, reasons
from gclint.finding import Applicability, Edit, Finding, Fix, Refusal, Repair, RepairKind
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.explaining.places import CodeToExplain
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.words import words_in
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ObservedSite
from gclint.wording import listed_code


class NestedActivation(Rule):
    """Activations are passed to a checkpointing layer inside a list, tuple or dict.

    ## What it does

    Finds calls of a `GradientCheckpointingLayer` that pass a list, a tuple or a dict of tensors that require
    grad: one that is built from the output of a module with parameters or from a parameter of the model, or
    an argument annotated as a container that such a module returns. Rotary embeddings, masks, shapes and
    sizes do not require grad.

    ## Why is this bad?

    Reentrant checkpointing (`use_reentrant=True`, the default before transformers 5) only computes gradients
    for tensors that are arguments themselves. It does not look inside a container, whether that is passed by
    position or by keyword: if nothing else requires grad, the gradient is lost, and if several layers
    share the container, the backward pass raises "Trying to backward through the graph a second time".

    ## Example

    ```python
    features = [self.low(pixels), self.high(pixels)]
    for layer in self.layers:
        hidden_states = layer(hidden_states, features)
    ```

    Use instead:

    ```python
    low, high = self.low(pixels), self.high(pixels)
    for layer in self.layers:
        hidden_states = layer(hidden_states, low, high)
    ```

    ## Fix safety

    The signature of the block has to change. The fix does that for a tuple of tensors if `forward` is
    annotated with their number, nothing else calls the block or inherits from it, and the call passes the
    tuple by position: each tensor gets a parameter of its own, and `forward` packs them into the tuple again.
    It is unsafe, since callers elsewhere break. In all other cases there is no fix.

    ## References

    - transformers pull request #41818
    """

    code = "GC103"
    name = "nested-activation"
    fixes = (Applicability.UNSAFE,)
    causes = frozenset((Cause.CONTAINED_ACTIVATION,))
    is_about_calls = True
    shows_in_every_run = True

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each call that passes containers of activations."""
        for defects in defective_sites(network):
            if not defects.nested_activations:
                continue
            yield self.finding(
                self._message(defects),
                network.file.path,
                defects.span(defects.nested_activations[0]),
                defects.symbol,
                _unpacked(defects) if defects.awaits is None else defects.repair(),
                awaits=defects.awaits,
                story=defects.story(
                    defects.nested_activations,
                    "takes a container, and reentrant checkpointing does not look inside it",
                    traced=True,
                ),
            )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield the reasons why the call sites at a place are correct."""
        return reasons(
            network,
            explained.sites,
            "no list, tuple or dict of tensors that require grad is passed to `{block}`",
        )

    def flags(self, site: ObservedSite) -> bool:
        """Return whether tensors that require grad were passed inside a container."""
        return bool(site.contained_activations)

    @staticmethod
    def _message(defects: SiteDefects) -> str:
        names = [bound.parameter.name for bound in defects.nested_activations if bound.parameter is not None]
        return (
            f"tensors that require grad are passed to `{defects.symbol}` inside {listed_code(names)}, "
            "so they receive no gradient under reentrant checkpointing"
        )


_TUPLES = ("tuple", "Tuple", "typing.Tuple")
_TENSORS = ("Tensor", "torch.Tensor")
_OTHERS = (
    "the block has to take each tensor as an argument of its own, since reentrant checkpointing does not "
    "look inside a container; or train with `use_reentrant=False`"
)


def _unpacked(defects: SiteDefects) -> Fix | Refusal:
    """Return the fix that lets a block take the tensors of a tuple one by one, or why there is none."""
    network, site = defects.network, defects.site
    if len(defects.nested_activations) != 1 or len(defects.bindings) != 1:
        return Refusal(_OTHERS)
    (bound,) = defects.nested_activations
    block = defects.bindings[0].block
    method = block.definition.method("forward")
    parameter = bound.parameter
    is_plain = isinstance(bound.arg.value, ast.Name) and bound.by_position and bound.arg in site.args
    if method is None or parameter is None or parameter.default is not None or not is_plain:
        return Refusal(_OTHERS)
    other = _other_user(network, block)
    if other is not None:
        return Refusal(f"{_OTHERS}; {other} with the tuple")
    changed = _signature(block.file, method, parameter.name)
    if changed is None:
        return Refusal(_OTHERS)
    start, _ = argument_place(site, bound.arg)
    path = site.scope.module.file.path
    call = Edit(path, start, start, "*")
    return Fix(
        f"Pass each tensor of `{parameter.name}` to `{block.name}.forward` as an argument of its own",
        (call, *changed),
        Applicability.UNSAFE,
        "the fix changes the signature of the block: callers outside the given files that pass the tuple "
        "break",
        (Repair(RepairKind.CALL, path, *site.span(site.call)),),
    )


def _other_user(network: Network, block: ClassInfo) -> str | None:
    """Return what else calls the block's `forward`, or inherits or overrides it, in words."""
    if block.file is not network.file:
        return f"`{block.name}` in {shown(block.file.path)} is called"
    for info in subclasses(network.project, block):
        if info.name != block.name:
            return f"`{info.name}` in {shown(info.file.path)} inherits it"
    if len([site for site in network.sites_running((block.name,)) if block in site.blocks]) > 1:
        return "other calls in the file run it"
    own = {network.file.path, network.project.identify(modeling_path(network.file.path))}
    for path in (file.path for file in files_naming(network, (block.name,))):
        is_source = is_modular(path) and network.project.identify(modeling_path(path)) in own
        is_other = path not in own and not is_source
        if is_other and _names(network.project.consult(network.file, path), block.name):
            return f"{shown(path)} names it"
    return None


def _names(file: SourceFile, name: str) -> bool:
    """Return whether the code of a file names a class, or cannot be read."""
    if file.tree is None or any(name in (each.bound, each.name) for each in file.outline.all_imported()):
        return True
    return name in file.outline.classes or name in words_in(file.tree.module)


def _signature(file: SourceFile, method: Definition, name: str) -> list[Edit] | None:
    """Return what replaces a parameter by several, and makes the tuple of them at the beginning.

    None where its annotation does not say how many tensors the tuple has.
    """
    function = method.function
    param = next((each for each in function.args.args if each.arg == name), None)
    first = next((each for each in function.body if not is_docstring(each)), None)
    items = [] if param is None else _tensors(param.annotation)
    if param is None or first is None or not items:
        return None
    start, end = file.places.span(param)
    indent = file.text[file.row_start(param.lineno) : start]
    # One below the other where each has a line of its own.
    joint = f",{file.newline}{indent}" if not indent.strip() else ", "
    names = [f"{name}_{number}" for number in range(len(items))]
    made = file.places.start(first)
    step = file.text[file.row_start(first.lineno) : made]
    if step.strip():
        return None  # It stands behind something else.
    return [
        Edit(file.path, start, end, joint.join(map("{}: {}".format, names, items))),
        Edit(
            file.path,
            made,
            made,
            f"{name} = ({', '.join(names)}{',' if len(names) == 1 else ''}){file.newline}{step}",
        ),
    ]


def _tensors(annotation: ast.expr | None) -> list[str]:
    """Return the types of the items of a tuple of tensors; none if an annotation says anything else."""
    if not isinstance(annotation, ast.Subscript) or dotted_name(annotation.value) not in _TUPLES:
        return []
    inner = annotation.slice
    names = [dotted_name(each) for each in (inner.elts if isinstance(inner, ast.Tuple) else [inner])]
    items = [name for name in names if name in _TENSORS]
    return items if len(items) == len(names) else []
