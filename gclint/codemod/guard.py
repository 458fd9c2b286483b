"""Caches that are made before anything asks whether the model checkpoints, and the guard that comes first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gclint.finding import Edit
from gclint.network.binding import bind
from gclint.network.caches import has_flag
from gclint.network.model import Network
from gclint.network.outside import FLAG
from gclint.network.runsite import RunSite
from gclint.releases import EVER_NEUTRALISED
from gclint.source.file import SourceFile
from gclint.source.lines import mentions
from gclint.source.outline import Definition
from gclint.source.walk import Arg, FunctionNode, walk
from gclint.verify.worker.vocabulary import USE_CACHE

_TRAINING = "training"


@dataclass(frozen=True)
class Unguarded:
    """A cache that a method makes and hands to a block while the model checkpoints."""

    site: RunSite
    block: str
    argument: Arg
    name: str
    """The variable."""
    parameter: str
    creation: ast.If
    guard: ast.If | None
    """The statement that disables the cache, and comes too late."""

    @property
    def file(self) -> SourceFile:
        """The file that it is made in."""
        return self.site.scope.module.file

    def edits(self, self_name: str) -> list[Edit]:
        """Return what puts the guard before the cache is made."""
        file, newline = self.file, self.file.newline
        start = file.places.start(self.creation)
        line = file.row_start(file.places.row(start))
        indent = file.text[line:start]
        if self.guard is None:
            step = "    " if "\t" not in indent else "\t"
            guard = (
                f"{indent}if {self_name}.{FLAG} and {self_name}.{_TRAINING}:{newline}"
                f"{indent}{step}{USE_CACHE} = False{newline}"
            )
            return [Edit(file.path, line, line, guard)]
        first, last = map(file.places.row, file.places.span(self.guard))
        begin, end = file.row_start(first), file.row_start(last + 1)
        return [Edit(file.path, line, line, file.text[begin:end]), Edit(file.path, begin, end, "")]


def unguarded_caches(network: Network) -> Iterator[Unguarded]:
    """Yield the caches of a file that reach a checkpointing layer under a name that no release disables."""
    for site in network.run_sites if USE_CACHE in network.file.text else ():
        block = next((info for info in site.blocks if info.is_checkpointing), None)
        if block is None or block.signature is None or site.checkpointed or site.function is not None:
            continue
        method = _method(site)
        if method is None or not mentions(method.text, USE_CACHE) or not has_flag(site.owner):
            continue
        for bound in bind(site.args, block.signature).arguments:
            name = None if bound.parameter is None else bound.parameter.name
            variable = bound.arg.value.id if isinstance(bound.arg.value, ast.Name) else None
            if name is None or variable is None or not EVER_NEUTRALISED.isdisjoint((name, variable)):
                continue
            found = _creation(method.function, variable)
            if found is not None:
                yield Unguarded(site, block.name, bound.arg, variable, name, *found)


def why_guarded(network: Network, site: RunSite) -> str:
    """Return why a call site gets no cache that is made although the model checkpoints."""
    block = next((info for info in site.blocks if info.is_checkpointing), None)
    made = _made_for_cache(network.file)
    passed = made.intersection(arg.value.id for arg in site.args if isinstance(arg.value, ast.Name))
    if block is None or site.checkpointed or site.function is not None:
        return "the call does not run a checkpointing layer directly"
    if not passed:
        return "the call passes no cache that depends on `use_cache` under a name that no release disables"
    if not has_flag(site.owner):
        return f"`{site.owner.name}` has no `{FLAG}` flag of its own to check"
    names = ", ".join(f"`{name}`" for name in sorted(passed))
    return f"no cache that the call passes ({names}) is created without a checkpointing guard"


def _made_for_cache(file: SourceFile) -> set[str]:
    """Return the variables that are made if a cache is asked for, and that no release disables."""
    nodes = () if file.tree is None else walk(file.tree.module)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.If) and USE_CACHE in _words(node.test):
            found |= _assigned(node.body)
    return found - EVER_NEUTRALISED


def _method(site: RunSite) -> Definition | None:
    start, _ = site.span(site.call)
    return next((each for each in site.owner.definition.methods() if each.start <= start < each.end), None)


def _creation(function: FunctionNode, variable: str) -> tuple[ast.If, ast.If | None] | None:
    """Return the statement that makes a cache, and the guard behind it; None where one comes before."""
    creation: ast.If | None = None
    for statement in function.body:
        if not isinstance(statement, ast.If):
            continue
        if _disables(statement, variable):
            return None if creation is None else (creation, statement)
        if creation is None and _makes(statement, variable):
            creation = statement
    return None if creation is None else (creation, None)


def _makes(statement: ast.If, variable: str) -> bool:
    """Return whether a statement sets a variable if a cache is asked for, whatever the model does."""
    asked = _words(statement.test)
    return USE_CACHE in asked and not asked & {_TRAINING, FLAG} and variable in _assigned(statement.body)


def _disables(statement: ast.If, variable: str) -> bool:
    """Return whether a statement takes the cache, or its flag, away while the model checkpoints."""
    asks = any(isinstance(each, ast.Attribute) and each.attr == FLAG for each in walk(statement.test))
    return asks and not _assigned(statement.body).isdisjoint((USE_CACHE, variable))


def _words(test: ast.expr) -> set[str]:
    """Return the names and attributes in a test."""
    named = (each.id if isinstance(each, ast.Name) else getattr(each, "attr", None) for each in walk(test))
    return {each for each in named if each is not None}


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Return the variables that statements assign to."""
    assignments = (each for statement in body for each in walk(statement) if isinstance(each, ast.Assign))
    return {target.id for each in assignments for target in each.targets if isinstance(target, ast.Name)}
