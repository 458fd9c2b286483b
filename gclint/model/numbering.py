"""Whether the layers of a stack are numbered, so that none writes to another one's slot of a cache."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.code.walk import COMPREHENSIONS, LOOPS, children, last_name, walk
from gclint.model.attributes import new_spaces
from gclint.model.cache_values import CacheValues
from gclint.model.frames import Frame
from gclint.model.objects import TooLong
from gclint.model.values import NEVER, NONE, Class, Object, Turn, Value, join, of

_LOOPS = (*LOOPS, *COMPREHENSIONS)
_MAKING = "__init__"
_APPENDING = "append"
_FILLING = frozenset(("extend", "insert"))


class _Reader(CacheValues):
    """Follows what makes models, and tells what is passed by its name from the rest of a call."""

    def argument(self, node: ast.arg, default: ast.expr | None, frame: Frame) -> Value:
        """Return what anybody passes to a function: nobody calls one here."""
        return NEVER


def unnumbered(
    project: Project, file: SourceFile, owner: str, block: str, paths: Iterable[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Yield which attributes of a model's layers may not be the number that each has for itself.

    Args:
        project: the files of a run.
        file: what defines the model.
        owner: the name of its class.
        block: the name of the layers' class.
        paths: the names of attributes that lead from a layer to a number, in an order that stays.
    """
    space = new_spaces(project).of(file)
    reader = _Reader(space.spaces, is_quiet=True)
    try:
        kinds = [each for each in (space.value(owner) or NEVER).things if isinstance(each, Class)]
        made = join(reader.make_anyhow(each, space.frame) for each in kinds)
        makers = [maker for kind in kinds for each in reader.line(kind) for maker in _makers(each)]
        stacks = dict(_stacks(reader, made, makers))
        inside = [each for every in stacks.values() for each in every]
        # In a modular file, a base from another model makes layers of its own class in their place.
        layers = [each for each in inside if each.kind.node.name == block] or inside
        line = [one for each in layers for one in reader.line(each.kind) if isinstance(one, Class)]
    except (TooLong, RecursionError):
        yield from paths
        return
    spaces = {space, *(each.space for each in line)}
    is_filled = any(_fills(maker, stacks.keys()) for maker in makers)
    is_certain = not (is_filled or _is_made_in_a_loop(space.tree, owner))
    loops = [loop for maker in makers for loop in _loops(maker)]
    first: Turn | None = None
    for path in paths:
        found = (thing for each in layers for thing in _at(each, path).things)
        numbers = [*{each for each in found if each not in NONE.things}]  # No cache takes None for an index.
        number = numbers[0] if len(numbers) == 1 else None
        is_changed = any(path[-1] in each.usage.set_up for each in spaces)
        if (
            not (is_certain and isinstance(number, Turn) and number.loop in loops)
            or is_changed
            or (first := first or number) != number
        ):
            yield path


def _is_made_in_a_loop(tree: ast.AST | None, owner: str) -> bool:
    """Tell whether a file makes several objects of a class in one place, with the same numbers."""
    loops = [each for each in (() if tree is None else walk(tree)) if isinstance(each, _LOOPS)]
    nodes = (node for loop in loops for node in walk(loop))
    return any(isinstance(node, ast.Call) and last_name(node.func) == owner for node in nodes)


def _makers(kind: Class | str | None) -> Iterator[ast.FunctionDef]:
    """Yield what makes the objects of a class."""
    for each in kind.node.body if isinstance(kind, Class) else ():
        if isinstance(each, ast.FunctionDef) and each.name == _MAKING:
            yield each


def _stacks(
    reader: _Reader, made: Value, makers: Sequence[ast.FunctionDef]
) -> Iterator[tuple[str, list[Object]]]:
    """Yield the attributes of a model that hold modules, with the modules."""
    names = {each.attr for maker in makers for each in walk(maker) if isinstance(each, ast.Attribute)}
    for name in names:
        values = (each.attributes.get(name) or NEVER for each in made.things if isinstance(each, Object))
        inside = reader.inside(join(values))
        held = [each for one in inside for each in one.things if isinstance(each, Object)]
        if held:
            yield name, held


def _at(layer: Object, path: Sequence[str]) -> Value:
    """Return what stands at the end of a path of attributes."""
    value = of(layer)
    for name in path:
        parts = (each for each in value.things if isinstance(each, Object))
        value = join(each.attributes.get(name) or NEVER for each in parts)
    return value


def _fills(maker: ast.FunctionDef, stacks: Collection[str]) -> bool:
    """Tell whether something else puts layers into stacks than what makes them: one may be there twice."""
    for node in walk(maker):
        held = (
            node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else getattr(node, "target", None)
        )
        is_filling = not isinstance(node, ast.Attribute) or node.attr in _FILLING
        if is_filling and isinstance(held, ast.Attribute) and held.attr in stacks:
            return True
    return False


def _loops(maker: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield what the loops go over of which each turn makes one thing with its number."""
    parents = {child: node for node in walk(maker) for child in children(node)}
    loops = [each for each in parents if isinstance(each, _LOOPS)]
    for loop in loops:
        others = [each for each in loops if each is not loop]
        is_inner = any(loop in walk(each) for each in others)
        names = {each.id for target in _targets(loop) for each in walk(target) if isinstance(each, ast.Name)}
        used = (node for each in others if each in walk(loop) for node in walk(each))
        has_inner = any(isinstance(each, ast.Name) and each.id in names for each in used)
        is_alone = not (is_inner or has_inner) and _most_made(_made_in(loop), names) == 1
        if is_alone and (
            _is_appended(loop, parents) if isinstance(loop, LOOPS) else _is_assigned(loop, parents)
        ):
            yield from _iterated(loop)


def _is_assigned(made: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Tell whether something becomes a stack as it is, the only argument of what is assigned."""
    call = parents[made]
    while isinstance(call, ast.Starred):
        call = parents[call]
    statement = parents[call]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    is_only = isinstance(call, ast.Call) and len(call.args) == 1
    return is_only and bool(targets) and all(isinstance(each, ast.Attribute) for each in targets)


def _is_appended(loop: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Tell whether each turn of a loop appends one thing to a stack, or to a list that becomes one."""
    appending = [each for each in parents if isinstance(each, ast.Attribute) and each.attr == _APPENDING]
    inside = [each.value for each in appending if each in walk(loop)]
    if not inside or _most(_made_in(loop), lambda call: call.func in appending) != 1:
        return False
    (stack, *others) = dict.fromkeys(map(ast.unparse, inside))
    outside = [each for each in appending if each.value not in inside and ast.unparse(each.value) == stack]
    if others or outside:
        return False
    loads = (each for each in parents if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
    uses = [each for each in loads if each.id == stack and each not in inside]
    return not stack.isidentifier() or (len(uses) == 1 and _is_assigned(uses[0], parents))


def _made_in(loop: ast.AST) -> Sequence[ast.AST]:
    """Return the code that is run in each turn of a loop."""
    if isinstance(loop, LOOPS):
        return loop.body
    return [each for each in (getattr(loop, part, None) for part in ("elt", "value")) if each is not None]


def _most_made(code: Iterable[ast.AST], names: Collection[str]) -> int:
    """Return how many calls that get one of some names are run, at most."""

    def is_given(call: ast.Call) -> bool:
        given = (*call.args, *(each.value for each in call.keywords))
        return any(isinstance(each, ast.Name) and each.id in names for each in map(_first_of_sum, given))

    return _most(code, is_given)


def _most(code: Iterable[ast.AST], counts: Callable[[ast.Call], bool]) -> int:
    """Return how many calls of a kind are run, at most."""
    count = 0
    for node in code:
        if isinstance(node, (ast.If, ast.IfExp)):
            arms = (node.body, node.orelse) if isinstance(node, ast.If) else ((node.body,), (node.orelse,))
            count += max(_most(arm, counts) for arm in arms)
            continue
        count += isinstance(node, ast.Call) and counts(node)
        count += _most(children(node), counts)
    return count


def _first_of_sum(node: ast.expr) -> ast.expr:
    """Return what something is added to."""
    while isinstance(node, ast.BinOp):
        node = node.left if isinstance(node.left, (ast.Name, ast.BinOp)) else node.right
    return node


def _targets(loop: ast.AST) -> list[ast.expr]:
    return [loop.target] if isinstance(loop, ast.For) else [each.target for each in _generators(loop)]


def _iterated(loop: ast.AST) -> list[ast.expr]:
    generators = _generators(loop)
    return (
        [loop.iter]
        if isinstance(loop, ast.For)
        else [each.iter for each in generators if len(generators) == 1]
    )


def _generators(loop: ast.AST) -> list[ast.comprehension]:
    return getattr(loop, "generators", [])
