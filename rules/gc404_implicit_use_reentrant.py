"""GC404: a checkpoint function of torch without `use_reentrant`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from gclint.code.file import SourceFile
from gclint.code.tokens import TokenKind, tokens
from gclint.code.walk import dotted_name, walk, walk_scope
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
_BY_TEXT = frozenset(("exec", "globals"))
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
    where no input requires grad, with keyword arguments, and with `find_unused_parameters=True`. There is
    no fix where a parameter, an attribute or another variable is called, which may also be a function that
    does not take the argument.

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
    return function_replaced(network, _FUNCTIONS)


def _may_pass(network: Network, done: Done) -> bool:
    """Return whether a call passes the argument, or may do so; nothing that ``*`` unpacks can be it."""
    by_name = replace(done, call=done.call._replace(rest=None))
    return network.script is None or network.script.argument(by_name, USE_REENTRANT) is not None


def _remedy(network: Network, done: Done) -> Fix | Refusal:
    """Return the fix that passes what is the default."""
    node, file = done.node, network.file
    assert isinstance(node, ast.Call)  # Others are left out.
    if not _is_torchs(file, node.func) or _has_names_by_text(file):
        return Refusal(f"it may call something else as well, which need not take `{USE_REENTRANT}`")
    end = _end_of_arguments(file, node)
    if end is None:
        return Refusal(f"pass `{USE_REENTRANT}=False`")
    given = f"{USE_REENTRANT}=True"
    edit = Edit(file.path, end, end, f", {given}")
    return Fix(f"Pass `{given}`, the default; `False` is recommended", (edit,))


def _is_torchs(file: SourceFile, function: ast.expr) -> bool:
    """Return whether what is called is what an import gives, whoever calls the code around it.

    A parameter, an attribute of an object or a variable may be something else elsewhere.
    """
    root, tree = (dotted_name(function) or "").partition(".")[0], file.tree
    around = [each.node for each in file.outline.around(file.places.start(function)) if not each.is_class]
    for scope in () if tree is None else (*reversed(around), tree.module):
        bound = [node for node in walk_scope(scope) if root in _bound_names(node)]
        if bound:
            return all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in bound) or any(
                isinstance(node, ast.Assign)
                and len(bound) == 2  # It and its only target.
                and root != (dotted_name(node.value) or root).partition(".")[0]
                and _is_torchs(file, node.value)
                for node in bound
            )
    return False


def _bound_names(node: ast.AST) -> Collection[str]:
    """Return the names that a node itself binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [each.asname or each.name.partition(".")[0] for each in node.names]
    if isinstance(node, ast.Assign):
        return [each.id for each in node.targets if isinstance(each, ast.Name)]
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, ast.arg):
        return (node.arg,)
    name = getattr(node, "name", None)
    return (name,) if isinstance(name, str) else getattr(node, "names", ())


def _has_names_by_text(file: SourceFile) -> bool:
    """Return whether a file may give its names another meaning by a text."""
    nodes = () if file.tree is None else walk(file.tree.module)
    return any(isinstance(node, ast.Name) and node.id in _BY_TEXT for node in nodes)


def _end_of_arguments(file: SourceFile, node: ast.Call) -> int | None:
    """Return where a further argument of a call can be put; None if it can nowhere."""
    last = file.places.end(node) - 1
    end = max((file.places.end(each) for each in (*node.args, *node.keywords)), default=0)
    if not end or end > last:  # Without a comma, what stands alone for itself has no brackets of its own.
        return None
    for token in tokens(file.text, end, last):
        if token.text == ")":
            end = token.end
        elif token.text != "," and token.kind not in (TokenKind.COMMENT, TokenKind.NEWLINE, TokenKind.JOIN):
            return None
    return end
