"""The steps that explain a finding: the stack, the block, the call, and where a gradient comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gclint.code.file import SourceFile
from gclint.code.outline import Definition
from gclint.code.tokens import shortened
from gclint.finding import StoryStep
from gclint.network.evaluation.body import NameBinding
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.signature import ParameterKind, listed_parameters
from gclint.network.gradient import Gradients
from gclint.network.holders import held_classes, holding_attributes
from gclint.network.runsite import RunSite
from gclint.network.words import words_in
from gclint.wording import listed_code

_MOST_ORIGINS = 2


def call_story(site: RunSite, block: ClassInfo) -> tuple[StoryStep, ...]:
    """Return the steps for a call of a block: the stack, the block and the call."""
    return (*stack_steps(site, block), class_step(block), call_step(site, block))


def stack_steps(site: RunSite, block: ClassInfo) -> Iterator[StoryStep]:
    """Yield the places where the stack whose block a call runs is created and filled."""
    others = (info for info in site.owner.module.classes.values() if info is not site.owner)
    for owner in (site.owner, *others):
        held = _stacks(owner, block)
        for name in sorted(held & _names_around(site) or held):
            yield from _filled(owner, name, block)
        if held:
            return


def _filled(owner: ClassInfo, name: str, block: ClassInfo) -> Sequence[StoryStep]:
    """Return the places where an attribute is filled with a block, in the first class that does so."""
    key = (_filled, name, block)
    known = owner.facts.get(key)
    if not isinstance(known, tuple):
        # Cached, since it is part of the story of each call of the block, and there may be hundreds.
        fillings = (tuple(_fillings(base, name, owner, block)) for base in owner.mro)
        known = owner.facts[key] = next(filter(None, fillings), ())
    return known


def _stacks(owner: ClassInfo, block: ClassInfo) -> set[str]:
    """Return the attributes of a class that hold a block."""
    return {
        name
        for name in holding_attributes(owner)
        if name != "*" and block in held_classes(owner.attribute(name))
    }


def _names_around(site: RunSite) -> set[str]:
    """Return the names in the called expression, and in the iterables of the loops around the call."""
    nodes = [site.receiver, *(loop.iter for loop in site.loops if not isinstance(loop, ast.While))]
    return {word for node in nodes for word in words_in(node)}


def _fillings(base: ClassInfo, name: str, owner: ClassInfo, block: ClassInfo) -> Iterator[StoryStep]:
    """Yield the places where a class's own methods fill an attribute."""
    for key, binding in _bindings(base, name):
        holds = f"`{key}` of `{owner.name}` holds `{block.name}`"
        what = f"`{block.name}` is added to `{key}` here" if binding.added else holds
        yield node_step(base.file, binding.value, what)


def _bindings(base: ClassInfo, name: str) -> Iterator[tuple[str, NameBinding]]:
    """Yield the bindings of an attribute in a class's own methods, with the code of its name there."""
    for method in base.methods():
        scope = base.scope(method)
        if scope.self_name is not None:
            key = f"{scope.self_name}.{name}"
            yield from ((key, binding) for binding in scope.bindings(key))


def class_step(block: ClassInfo) -> StoryStep:
    """Return the step for the definition of a block, which says whether the library recomputes it."""
    if not block.is_checkpointing:
        message = f"`{block.name}` is not a `{CHECKPOINTING_BASE}`"
    else:
        between = [base.name for base in block.mro[1:] if base.is_checkpointing]
        between = [each for each in between if each != CHECKPOINTING_BASE]
        through = f", through `{between[0]}`" if between else ""
        message = f"`{block.name}` is a `{CHECKPOINTING_BASE}`{through}: its calls are recomputed"
    return definition_step(block.file, block.definition, message)


def definition_step(file: SourceFile, definition: Definition, message: str) -> StoryStep:
    """Return the step for the definition of a class or function, from its keyword to its name."""
    return StoryStep(file.path, *definition.heading, message)


def attribute_steps(owner: ClassInfo, name: str, message: str) -> Iterator[StoryStep]:
    """Yield the step for the first binding of an attribute in the methods of a class or its bases, if any."""
    for base in owner.mro:
        for _, binding in _bindings(base, name):
            yield node_step(base.file, binding.value, message)
            return


def node_step(file: SourceFile, node: ast.AST, message: str) -> StoryStep:
    """Return the step for a node of a file."""
    return StoryStep(file.path, *file.places.span(node), message)


def call_step(site: RunSite, block: ClassInfo) -> StoryStep:
    """Return the step for the call of a block."""
    owner = site.owner.name
    if site.checkpointed:
        message = f"`{owner}` calls a checkpoint function for `{block.name}` here"
    elif site.stream:
        verb = "is" if len(site.stream) == 1 else "are"
        names = listed_code(sorted(site.stream))
        message = f"`{owner}` runs `{block.name}` here, and {names} {verb} passed from each call to the next"
    else:
        message = f"`{owner}` runs `{block.name}` here"
    return node_step(site.scope.module.file, site.call, message)


def parameter_steps(block: ClassInfo, name: str, message: str) -> Iterator[StoryStep]:
    """Yield the step for a parameter of a block's ``forward``, if it has one of that name."""
    if block.forward is None:
        return
    owner, method, _ = block.forward
    yield from header_steps(owner.file, method, name, message)


def header_steps(file: SourceFile, method: Definition, name: str, message: str) -> Iterator[StoryStep]:
    """Yield the step for a parameter in the header of a method, if it has one of that name."""
    for arg, kind, _ in listed_parameters(method.function.args):
        if arg.arg == name and kind is not ParameterKind.VAR_KEYWORD:
            start = file.places.start(arg)
            yield StoryStep(file.path, start, start + len(name), message)


def gradient_steps(site: RunSite, value: ast.expr, name: str, gradients: Gradients) -> Iterator[StoryStep]:
    """Yield the steps for the origins of the gradient in the argument of the parameter ``name``."""
    origins = gradients.origins(site, value)[:_MOST_ORIGINS]
    if not origins:
        yield from _user_steps(site, value, name)
    for origin in origins:
        file = origin.scope.module.file
        shown = shortened(file.source(origin.node))
        if origin.node is site.call:
            message = f"`{name}` is the output of the previous block in the loop, so it requires grad"
        elif isinstance(origin.node, ast.Call):
            message = f"`{name}` requires grad, because it comes from `{shown}`, which has parameters"
        else:
            message = f"`{name}` requires grad, because it comes from the parameter `{shown}`"
        yield node_step(file, origin.node, message)


def _user_steps(site: RunSite, value: ast.expr, name: str) -> Iterator[StoryStep]:
    """Yield the step for a value that the method around a call receives from its own caller."""
    method = site.scope.body.definition
    if method is None or not isinstance(value, ast.Name):
        return
    message = f"`{name}` is passed in by the caller of `{site.owner.name}.{method.name}` as `{value.id}`"
    yield from header_steps(site.scope.module.file, method, value.id, message)
