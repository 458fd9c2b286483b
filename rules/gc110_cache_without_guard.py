"""GC110: a cache that is created although the model checkpoints."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.outline import Definition
from gclint.code.walk import Arg, FunctionNode, walk
from gclint.edit.places import argument_place
from gclint.finding import Applicability, Edit, Finding, Fix, Refusal, Repair, RepairKind, StoryStep
from gclint.network.binding import bind
from gclint.network.caches import has_flag
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.outside import FLAG
from gclint.network.runsite import RunSite
from gclint.network.story import call_story, parameter_steps
from gclint.network.words import words_in
from gclint.releases import EVER_NEUTRALISED
from gclint.rule import Rule
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ObservedSite
from gclint.verify.worker.vocabulary import USE_CACHE

_TRAINING = "training"
_REASON = "`--fix --verify` makes it if a run shows that training needs no such cache"


class CacheWithoutGuard(Rule):
    """A cache is created although the model checkpoints.

    ## What it does

    Finds methods that create a cache if `use_cache` is set, pass it to a `GradientCheckpointingLayer` under
    a name that the base class does not know, such as `state`, and check too late, or not at all, whether the
    model checkpoints.

    ## Why is this bad?

    Blocks write to the cache, and recomputation does so again: non-reentrant checkpointing raises a
    `CheckpointError`, and reentrant checkpointing raises or gives wrong gradients. Disabling `use_cache`
    after the cache was created is too late. The base class disables a cache that is passed by keyword under a
    name that it knows; GC002 is about one that is passed by position.

    ## Example

    ```python
    if use_cache and state is None:
        state = self.new_state(inputs_embeds)
    if self.gradient_checkpointing and self.training:
        use_cache = False
    for block in self.blocks:
        hidden_states, state = block(hidden_states, state=state, use_cache=use_cache)
    ```

    Use instead:

    ```python
    if self.gradient_checkpointing and self.training:
        use_cache = False
    if use_cache and state is None:
        state = self.new_state(inputs_embeds)
    for block in self.blocks:
        hidden_states, state = block(hidden_states, state=state, use_cache=use_cache)
    ```

    ## Fix safety

    The fix moves the guard before the statement that creates the cache, or adds one there. Nothing changes
    without checkpointing. The code alone does not show whether training needs the cache, so only
    `--fix --verify` makes the fix, if a run proves it.

    ## References

    - [transformers issue #30320](https://github.com/huggingface/transformers/issues/30320)
    """

    code = "GC110"
    name = "cache-without-guard"
    precision = "medium"
    fixes = (Applicability.PROVABLE,)
    causes = frozenset((Cause.WRITTEN_CACHE,))
    explains_all = False

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each cache that is created before or without a guard."""
        for each in _unguarded_caches(network):
            row = each.file.position(each.file.places.start(each.creation)).row
            when = (
                "before checkpointing switches caches off"
                if each.guard is not None
                else "while checkpointing, too"
            )
            yield self.finding(
                f"the cache passed to `{each.block}` as `{each.parameter}` is created on line {row} {when}, "
                "so recomputation writes to it again",
                network.file.path,
                argument_place(each.site, each.argument),
                each.block,
                _remedy(each),
                story=_story(each),
            )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield for each call site why it receives no unguarded cache."""
        return dict.fromkeys(_why_guarded(network, site) for site in explained.sites)

    def flags(self, site: ObservedSite) -> bool:
        """Return whether recomputation wrote to a cache."""
        return bool(site.rewritten_caches)

    def shows(self, site: ObservedSite) -> bool:
        """Return the same: that is the damage."""
        return self.flags(site)


def _story(each: _Unguarded) -> tuple[StoryStep, ...]:
    block = next((info for info in each.site.blocks if info.name == each.block), each.site.blocks[0])
    made = StoryStep(
        each.file.path,
        *each.file.places.span(each.creation.test),
        f"`{each.name}` is created here, whether or not the model checkpoints",
    )
    meaning = f"`{each.parameter}` of `{each.block}.forward` is a cache, to which recomputation writes again"
    return (*call_story(each.site, block), *parameter_steps(block, each.parameter, meaning), made)


def _remedy(each: _Unguarded) -> Fix | Refusal:
    self_name = each.site.scope.self_name
    if self_name is None:
        return Refusal("the method has no `self` whose checkpointing flag could be checked")
    repair = Repair(RepairKind.CALL, each.file.path, *each.file.places.span(each.creation))
    how = (
        "Switch caches off while checkpointing before"
        if each.guard is None
        else "Move what switches caches off before"
    )
    message = f"{how} `{each.name}` is created"
    return Fix(message, tuple(each.edits(self_name)), Applicability.PROVABLE, _REASON, (repair,))


@dataclass(frozen=True)
class _Unguarded:
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


def _unguarded_caches(network: Network) -> Iterator[_Unguarded]:
    """Yield the caches of a file that reach a checkpointing layer under a name that no release disables."""
    for site in network.run_sites if USE_CACHE in network.file.text else ():
        block = site.layer
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
                yield _Unguarded(site, block.name, bound.arg, variable, name, *found)


def _why_guarded(network: Network, site: RunSite) -> str:
    """Return why a call site gets no cache that is made although the model checkpoints."""
    block = site.layer
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
        if isinstance(node, ast.If) and USE_CACHE in words_in(node.test):
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
        asked = {*words_in(statement.test)}
        is_made = USE_CACHE in asked and not asked & {_TRAINING, FLAG}
        if creation is None and is_made and variable in _assigned(statement.body):
            creation = statement
    return None if creation is None else (creation, None)


def _disables(statement: ast.If, variable: str) -> bool:
    """Return whether a statement takes the cache, or its flag, away while the model checkpoints."""
    return FLAG in words_in(statement.test) and not _assigned(statement.body).isdisjoint(
        (USE_CACHE, variable)
    )


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Return the variables that statements assign to."""
    assignments = (each for statement in body for each in walk(statement) if isinstance(each, ast.Assign))
    return {target.id for each in assignments for target in each.targets if isinstance(target, ast.Name)}
