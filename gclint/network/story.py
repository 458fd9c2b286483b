"""Why something is a finding, step by step: the stack, the block, the call, where a gradient comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from gclint.finding import Step
from gclint.network.evaluation.body import Binding
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.gradient import Gradients, Origin
from gclint.network.holders import held_classes, holding_attributes
from gclint.network.runsite import RunSite
from gclint.source.file import SourceFile
from gclint.source.fragment import Fragment
from gclint.source.outline import Definition
from gclint.source.tokens import Kind, one_line, tokens
from gclint.wording import listed_code

_ORIGINS_TOLD = 2
_LONGEST_CODE = 60
_BEFORE_PARAMETERS = frozenset(("(", ",", "*"))
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")


def call_story(site: RunSite, block: ClassInfo) -> tuple[Step, ...]:
    """Return how a call comes to run a block: the stack, the block and the call."""
    return (*stack_steps(site, block), class_step(block), call_step(site, block))


def stack_steps(site: RunSite, block: ClassInfo) -> Iterator[Step]:
    """Yield where the stack is made that a call runs a block of, and where else it is filled."""
    others = (info for info in site.owner.module.classes.values() if info is not site.owner)
    for owner in (site.owner, *others):
        held = _stacks(owner, block)
        for name in sorted(held & _names_around(site) or held):
            yield from _filled(owner, name, block)
        if held:
            return


def _filled(owner: ClassInfo, name: str, block: ClassInfo) -> Sequence[Step]:
    """Return where an attribute is filled with a block: in the first class that does so."""
    key = (_filled, name, block)
    known = owner.facts.get(key)
    if not isinstance(known, tuple):
        # Each call of the block has this in its story, and there may be hundreds.
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
    """Return the names in what is called, and in what the loops around the call run over."""
    nodes = [site.receiver, *(loop.iter for loop in site.loops if isinstance(loop, cst.For))]
    return {word for node in nodes for word in _words(site.source(node))}


def _words(code: str) -> list[str]:
    return "".join(each if each.isidentifier() or each.isdigit() else " " for each in code).split()


def _fillings(base: ClassInfo, name: str, owner: ClassInfo, block: ClassInfo) -> Iterator[Step]:
    """Yield where a class's own methods fill an attribute."""
    for key, fragment, binding in _settings(base, name):
        holds = f"`{key}` of `{owner.name}` holds `{block.name}`"
        what = f"`{block.name}` is added to `{key}` here" if binding.added else holds
        yield node_step(fragment, binding.value, what)


def _settings(base: ClassInfo, name: str) -> Iterator[tuple[str, Fragment, Binding]]:
    """Yield where a class's own methods set an attribute or add to it, with its name there."""
    for method in base.methods():
        scope = base.scope(method)
        if scope.self_name is None or scope.body is None:
            continue
        key = f"{scope.self_name}.{name}"
        for piece in scope.body.pieces(key):
            for binding in piece.bindings.get(key, ()):
                if piece.fragment is not None and piece.fragment.holds(binding.value):
                    yield key, piece.fragment, binding


def class_step(block: ClassInfo) -> Step:
    """Return where a block is defined, and whether the library recomputes it."""
    if not block.is_checkpointing:
        message = f"`{block.name}` is not a `{CHECKPOINTING_BASE}`"
    else:
        between = [base.name for base in block.mro[1:] if base.is_checkpointing]
        between = [each for each in between if each != CHECKPOINTING_BASE]
        through = f", through `{between[0]}`" if between else ""
        message = f"`{block.name}` is a `{CHECKPOINTING_BASE}`{through}: its calls are recomputed"
    return definition_step(block.file, block.definition, message)


def definition_step(file: SourceFile, definition: Definition, message: str) -> Step:
    """Return where a class or function is defined: from its keyword to its name.

    Args:
        file: where it is defined.
        definition: what is defined.
        message: what is to be said about it.
    """
    # The keyword is no part of the name that is looked for.
    after = definition.header + len("class" if definition.is_class else "def")
    end = file.text.index(definition.name, after) + len(definition.name)
    return Step(file.path, definition.header, end, message)


def attribute_steps(owner: ClassInfo, name: str, message: str) -> Iterator[Step]:
    """Yield where the methods of a class, or those that it inherits, set an attribute first, if they do.

    Args:
        owner: the class.
        name: the attribute.
        message: what is to be said about it.
    """
    for base in owner.mro:
        for _, fragment, binding in _settings(base, name):
            yield node_step(fragment, binding.value, message)
            return


def node_step(fragment: Fragment, node: cst.CSTNode, message: str) -> Step:
    """Return where some code stands.

    Args:
        fragment: what it is a part of.
        node: the code.
        message: what is to be said about it.
    """
    return Step(fragment.file.path, *fragment.span(node), message)


def call_step(site: RunSite, block: ClassInfo) -> Step:
    """Return where a block is run."""
    owner = site.owner.name
    if site.checkpointed:
        message = f"`{owner}` calls a checkpoint function for `{block.name}` here"
    elif site.stream:
        goes = "goes" if len(site.stream) == 1 else "go"
        names = listed_code(sorted(site.stream))
        message = f"`{owner}` runs `{block.name}` here, and {names} {goes} from each call to the next"
    else:
        message = f"`{owner}` runs `{block.name}` here"
    return node_step(site.fragment, site.call, message)


def parameter_steps(block: ClassInfo, name: str, message: str) -> Iterator[Step]:
    """Yield where the ``forward`` of a block has a parameter, if it has one of that name.

    Args:
        block: the block.
        name: the parameter.
        message: what is to be said about it.
    """
    if block.forward is None:
        return
    owner, method, _ = block.forward
    yield from header_steps(owner.file, method, name, message)


def header_steps(file: SourceFile, method: Definition, name: str, message: str) -> Iterator[Step]:
    """Yield where the header of a method has a parameter, if it has one of that name.

    Args:
        file: where the method is defined.
        method: the method.
        name: the parameter.
        message: what is to be said about it.
    """
    # By its tokens, since places of LibCST's nodes take long.
    depth, previous = 0, ""
    for token in tokens(file.text, method.header, method.header_end):
        if token.kind in (Kind.NEWLINE, Kind.COMMENT, Kind.JOIN):
            continue
        if token.text == name and depth == 1 and previous in _BEFORE_PARAMETERS:
            yield Step(file.path, token.start, token.end, message)
            return
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        previous = token.text


def gradient_steps(
    site: RunSite, value: cst.BaseExpression, name: str, gradients: Gradients
) -> Iterator[Step]:
    """Yield where the gradient comes from that an argument carries to the parameter ``name``."""
    origins = gradients.origins(site, value)[:_ORIGINS_TOLD]
    if not origins:
        yield from _user_steps(site, value, name)
    for origin in origins:
        fragment = _fragment(origin)
        if fragment is None:
            continue
        code = one_line(fragment.source(origin.node))
        shown = code if len(code) <= _LONGEST_CODE else f"{code[:_LONGEST_CODE]}…"
        if origin.node is site.call:
            message = f"`{name}` is the output of the previous block in the loop, so it requires grad"
        elif isinstance(origin.node, cst.Call):
            message = f"`{name}` requires grad, because it comes from `{shown}`, which has parameters"
        else:
            message = f"`{name}` requires grad, because it comes from the parameter `{shown}`"
        yield node_step(fragment, origin.node, message)


def _user_steps(site: RunSite, value: cst.BaseExpression, name: str) -> Iterator[Step]:
    """Yield where the method that holds a call gets an argument from its own caller."""
    method = None if site.scope.body is None else site.scope.body.definition
    if method is None or not isinstance(value, cst.Name):
        return
    message = f"`{name}` is passed in by the caller of `{site.owner.name}.{method.name}` as `{value.value}`"
    yield from header_steps(site.fragment.file, method, value.value, message)


def _fragment(origin: Origin) -> Fragment | None:
    """Return the parsed text that an expression is a part of."""
    scope = origin.scope
    at = origin.at
    while True:
        if scope.body is not None:
            pieces = scope.body.pieces() if at is None else scope.body.pieces_at([at])
            for piece in pieces:
                if piece.fragment is not None and piece.fragment.holds(origin.node):
                    return piece.fragment
        if scope.parent is None:
            return None
        scope, at = scope.parent, None
