"""Caches that are made before anything asks whether the model checkpoints, and the guard that comes first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from gclint.finding import Edit
from gclint.network.binding import bind
from gclint.network.caches import has_flag
from gclint.network.evaluation.walk import walk
from gclint.network.model import Network
from gclint.network.outside import FLAG
from gclint.network.runsite import RunSite
from gclint.releases import EVER_NEUTRALISED
from gclint.source.fragment import Fragment, parse_definition
from gclint.source.outline import Definition
from gclint.verify.worker.vocabulary import USE_CACHE

_TRAINING = "training"
_ASKS = re.compile(rf"\n([ \t]+)if\b[^\n]*\b{USE_CACHE}\b[^\n]*((?:\n(?:\1[ \t]+[^\n]*|[ \t]*(?=\n)))*)")
_MADE = re.compile(r"\n[ \t]+(\w+)[ \t]*=(?!=)")


@dataclass(frozen=True)
class Unguarded:
    """A cache that a method makes and hands to a block while the model checkpoints."""

    site: RunSite
    block: str
    argument: cst.Arg
    name: str
    """The variable."""
    parameter: str
    fragment: Fragment = field(repr=False)
    creation: cst.If
    guard: cst.If | None
    """The statement that disables the cache, and comes too late."""

    def edits(self, self_name: str) -> list[Edit]:
        """Return what puts the guard before the cache is made."""
        file = self.fragment.file
        start, _ = self.fragment.span(self.creation)
        line = file.line_starts[file.position(start).row - 1]
        indent, newline = file.text[line:start], file.newline
        if self.guard is None:
            step = "    " if "\t" not in indent else "\t"
            guard = (
                f"{indent}if {self_name}.{FLAG} and {self_name}.{_TRAINING}:{newline}"
                f"{indent}{step}{USE_CACHE} = False{newline}"
            )
            return [Edit(file.path, line, line, guard)]
        first, last = (file.position(each).row for each in self.fragment.span(self.guard))
        begin = file.line_starts[first - 1]
        end = file.line_starts[last] if last < len(file.line_starts) else len(file.text)
        return [Edit(file.path, line, line, file.text[begin:end]), Edit(file.path, begin, end, "")]


def unguarded_caches(network: Network) -> Iterator[Unguarded]:
    """Yield the caches of a file that reach a checkpointing layer under a name that no release disables."""
    made = _made_for_cache(network.file.outline.code)
    for site in network.run_sites if made else ():
        names = {arg.value.value for arg in site.args if isinstance(arg.value, cst.Name)}
        if made.isdisjoint(names):
            continue
        block = next((info for info in site.blocks if info.is_checkpointing), None)
        if block is None or block.signature is None or site.checkpointed or site.function is not None:
            continue
        method = _method(site)
        if method is None or USE_CACHE not in method.text or not has_flag(site.owner):
            continue
        for bound in bind(site.args, block.signature).arguments:
            name = None if bound.parameter is None else bound.parameter.name
            if name is None or name in EVER_NEUTRALISED or not isinstance(bound.arg.value, cst.Name):
                continue
            fragment = parse_definition(network.file, method)
            found = _creation(fragment, bound.arg.value.value)
            if found is not None:
                yield Unguarded(site, block.name, bound.arg, bound.arg.value.value, name, fragment, *found)


def why_guarded(network: Network, site: RunSite) -> str:
    """Return why a call site gets no cache that is made although the model checkpoints."""
    block = next((info for info in site.blocks if info.is_checkpointing), None)
    made = _made_for_cache(network.file.outline.code)
    passed = made.intersection(arg.value.value for arg in site.args if isinstance(arg.value, cst.Name))
    if block is None or site.checkpointed or site.function is not None:
        return "the call does not run a checkpointing layer directly"
    if not passed:
        return "the call passes no cache that depends on `use_cache` under a name that no release disables"
    if not has_flag(site.owner):
        return f"`{site.owner.name}` has no `{FLAG}` flag of its own to check"
    names = ", ".join(f"`{name}`" for name in sorted(passed))
    return f"no cache that the call passes ({names}) is created without a checkpointing guard"


def _made_for_cache(text: str) -> frozenset[str]:
    """Return the variables that seem to be made if a cache is asked for, and that no release disables."""
    found: set[str] = set()
    for match in _ASKS.finditer(text) if USE_CACHE in text else ():
        found.update(_MADE.findall(match[2]))
    return frozenset(found - EVER_NEUTRALISED)


def _method(site: RunSite) -> Definition | None:
    start, _ = site.span(site.call)
    return next((each for each in site.owner.definition.methods() if each.start <= start < each.end), None)


def _creation(fragment: Fragment, variable: str) -> tuple[cst.If, cst.If | None] | None:
    """Return the statement that makes a cache, and the guard behind it; None where one comes before."""
    function = fragment.body[0]
    if not isinstance(function, cst.FunctionDef):
        return None
    creation: cst.If | None = None
    for statement in function.body.body:
        if not isinstance(statement, cst.If):
            continue
        if _disables(statement, variable):
            return None if creation is None else (creation, statement)
        if creation is None and _makes(statement, variable):
            creation = statement
    return None if creation is None else (creation, None)


def _makes(statement: cst.If, variable: str) -> bool:
    """Return whether a statement sets a variable if a cache is asked for, whatever the model does."""
    asked = {each.value for each in walk(statement.test) if isinstance(each, cst.Name)}
    return USE_CACHE in asked and not asked & {_TRAINING, FLAG} and _assigns(statement.body, variable)


def _disables(statement: cst.If, variable: str) -> bool:
    """Return whether a statement takes the cache, or its flag, away while the model checkpoints."""
    asks = any(isinstance(each, cst.Attribute) and each.attr.value == FLAG for each in walk(statement.test))
    return asks and (_assigns(statement.body, USE_CACHE) or _assigns(statement.body, variable))


def _assigns(block: cst.BaseSuite, variable: str) -> bool:
    return any(
        isinstance(each, cst.Assign)
        and any(
            isinstance(target.target, cst.Name) and target.target.value == variable for target in each.targets
        )
        for each in walk(block)
    )
