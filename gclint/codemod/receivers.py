"""Who receives the arguments of a call that is rewritten: every class that it may run, as each is called.

A call whose arguments change between position and keyword has to stay right for all of them, not only for
the blocks that the text shows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from gclint.finding import Refusal
from gclint.network.activation import SiteBinding, bind_site
from gclint.network.changes import FILLING
from gclint.network.evaluation.body import Binding, nodes_in
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.signature import header_fragment
from gclint.network.evaluation.values import Bound, External, ExternalInstance, Function
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.network.holders import held_classes
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.source.file import SourceFile
from gclint.source.generated import is_modular
from gclint.source.words import has_word

_KEEPING = frozenset(("cpu", "cuda", "eval", "float", "half", "requires_grad_", "to", "train"))
"""Methods that return the module itself."""
_NAMING = frozenset(("add_module", "register_module", "setattr"))
"""What puts a module into another one under a name."""
_REPLACED = re.compile(r"(?<![\w.])\w{1,99}\.forward[ \t]{0,99}=(?!=)")


def others_run(network: Network, site: RunSite) -> tuple[ClassInfo, ...]:
    """Return the modules that a call may run: here, and in subclasses of its class in other files."""
    found = dict.fromkeys(site.blocks)
    names = [name for name in network.holding_attributes if _is_held(site, name)]
    for heir in subclasses(network.project, site.owner) if names else ():
        if heir.file is not network.file and not is_modular(heir.file.path):
            for name in names:
                held = held_classes(heir.attribute(name)) - held_classes(site.owner.attribute(name))
                found |= dict.fromkeys(info for info in sorted(held, key=_key) if info.is_module)
    return tuple(found)


def other_bindings(
    network: Network, site: RunSite, bindings: Sequence[SiteBinding]
) -> tuple[SiteBinding, ...] | Refusal:
    """Return a call's arguments bound to all that it may run beside those that are bound already."""
    known = {binding.block for binding in bindings}
    found = []
    for info in others_run(network, site):
        if info not in known:
            binding = bind_site(site, info, network.gradients)
            if binding is None:
                return Refusal(
                    f"the call also runs `{info.name}`, whose parameters do not match its arguments"
                )
            found.append(binding)
    return tuple(found)


def _key(info: ClassInfo) -> tuple[str, str]:
    return info.name, str(info.file.path)


def _is_held(site: RunSite, name: str) -> bool:
    return not held_classes(site.owner.attribute(name)).isdisjoint(site.blocks)


def receiver_doubts(network: Network, site: RunSite) -> Iterator[str]:
    """Yield why a call that is rewritten may run something that takes its arguments otherwise."""
    for info in site.blocks:
        yield from _block_doubts(info)
    for value in sorted(_unknown(site), key=str):
        yield f"the call also runs `{value}`, whose parameters are not known"
    held = [name for name in sorted(network.holding_attributes) if _is_held(site, name)]
    texts = [site.source(site.receiver)]
    texts += [site.source(loop.iter) for loop in site.loops if isinstance(loop, cst.For)]
    named = [name for name in held if any(has_word(text, name, 0, len(text)) for text in texts)]
    for name in named or held:
        yield from _stack_doubts(network, site, name)


def _unknown(site: RunSite) -> set[str]:
    values = site.scope.evaluate(site.receiver)
    made = {value.name for value in values if isinstance(value, ExternalInstance)}
    return {name for name in made if not name.startswith("torch.")}


def _block_doubts(info: ClassInfo) -> Iterator[str]:
    """Yield why a class may take other arguments than its ``forward`` seems to."""
    calling = info.find_method("__call__")
    if calling is not None and calling[0].name != CHECKPOINTING_BASE:
        yield f"`{calling[0].name}` overrides `__call__`, which may take other arguments than `forward`"
    if any(_REPLACED.search(base.text) for base in info.mro):
        yield f"`{info.name}` replaces its `forward`, and the new one may take other arguments"
    file, name = info.file, re.escape(info.name)
    again = re.compile(rf"^[ \t]*{name}(?:\.forward)?[ \t]*=(?!=)", re.MULTILINE)
    for match in again.finditer(file.outline.code):
        if file.outline.is_code(match.end() - 1) and not _is_in_definition(file, match.start()):
            yield f"`{info.name}` is replaced on line {file.position(match.end() - 1).row}"
            break
    decorator = changing_decorator(info)
    if decorator is not None:
        yield f"`{info.name}.forward` is decorated with `{decorator}`, which may take other arguments"


def _is_in_definition(file: SourceFile, offset: int) -> bool:
    return any(each.header <= offset < each.end for each in file.outline.definitions)


def changing_decorator(info: ClassInfo) -> str | None:
    """Return the decorator of ``forward`` that may hand on other arguments than it gets; None without one."""
    if info.forward is None:
        return None
    owner, method, _ = info.forward
    header = header_fragment(owner.file, method)
    node = None if header is None else header.body[0]
    for decorator in node.decorators if isinstance(node, cst.FunctionDef) else ():
        called = decorator.decorator
        func = called.func if isinstance(called, cst.Call) else called
        name = dotted_name(func)
        for value in owner.module.resolve(name) if name is not None else ():
            if isinstance(value, Function) and not _hands_on(value):
                return name
    return None


def _hands_on(function: Function) -> bool:
    """Tell whether a decorator returns what it gets, or what hands on all arguments as they are."""
    inner = [node for node in walk(function.node) if isinstance(node, (cst.FunctionDef, cst.Lambda))]
    inner.remove(function.node)
    wrappers = [node for node in inner if isinstance(node.params.star_arg, cst.Param)]
    if not inner:
        return True
    return bool(wrappers) and all(_passes_all(node) for node in wrappers)


def _passes_all(wrapper: cst.FunctionDef | cst.Lambda) -> bool:
    params = wrapper.params
    if params.kwonly_params or params.posonly_params or not isinstance(params.star_arg, cst.Param):
        return False
    double = None if params.star_kwarg is None else params.star_kwarg.name.value
    expected = [*(param.name.value for param in params.params), f"*{params.star_arg.name.value}"]
    expected += [] if double is None else [f"**{double}"]
    calls = [node for node in walk(wrapper.body) if isinstance(node, cst.Call)]
    given = [[arg.star + (dotted_name(arg.value) or "") for arg in call.args] for call in calls]
    return any(each == expected for each in given)


# -- how the stack is filled


def _stack_doubts(network: Network, site: RunSite, name: str) -> Iterator[str]:
    """Yield what else may stand in a stack."""
    for base in site.owner.mro:
        for method in base.methods():
            scope = site.owner.scope(method, base.module)
            key = f"{scope.self_name}.{name}"
            values = [_value_of(each) for each in scope.bindings(key) if not each.iterated]
            lists = {key, *(word for value in values for word in _lists_in(scope, value))}
            if _hands_out(scope, name, lists) or any(_is_opaque(scope, value) for value in values):
                yield f"it is not known what else `{base.name}.{method.name}` puts into `{name}`"
                return
    code = network.file.outline.code
    for match in re.finditer(rf"\b(\w+)\.{name}[ \t]*\[[^\[\]\n]{{0,400}}\][ \t]*=[ \t]*(\w+)\(", code):
        made = network.module.classes.get(match[2])
        if made is not None and made.is_module and made not in site.blocks:
            row = network.file.position(match.start()).row
            yield f"an item of `{name}` is replaced by `{made.name}` on line {row}"
            return


def _value_of(binding: Binding) -> cst.BaseExpression:
    """Return what a name is bound to, where a tuple that is written down is unpacked its own part."""
    value = binding.value
    for index in binding.path:
        if not isinstance(value, (cst.Tuple, cst.List)) or index >= len(value.elements):
            break
        value = value.elements[index].value
    return value.value if isinstance(value, cst.NamedExpr) else value


def _lists_in(scope: Scope, value: cst.BaseExpression) -> Iterator[str]:
    """Yield the variables of a function that a stack is made of."""
    for arg in value.args if isinstance(value, cst.Call) else ():
        if isinstance(arg.value, cst.Name) and not scope.parameters.has(arg.value.value):
            yield arg.value.value


def _hands_out(scope: Scope, name: str, lists: Collection[str]) -> bool:
    """Tell whether a function is called that may put something into a stack, or a list that becomes one."""
    pieces = [] if scope.body is None else scope.body.pieces_naming({name, *lists})
    calls = (node.value for node in nodes_in(pieces) if isinstance(node, cst.Expr))
    return any(
        isinstance(call, cst.Call)
        and any(dotted_name(arg.value) in lists for arg in call.args)
        and _may_fill(scope, call)
        for call in calls
    )


def _may_fill(scope: Scope, call: cst.Call) -> bool:
    """Tell whether a function may put something into what it is given, as far as its own code says."""
    values = scope.evaluate(call.func)
    inner: list[Scope | None] = []
    for value in values:
        if isinstance(value, Function):
            inner.append(scope.enter(value, call.args))
        elif isinstance(value, Bound):
            inner.append(scope.enter_method(value.instance.info, value.method, call.args))
    bodies = [None if each is None else each.body for each in inner]
    return not values or any(body is None or any(map(_fills, nodes_in(body.pieces()))) for body in bodies)


def _fills(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else dotted_name(node.func)
        return name in FILLING or name in _NAMING
    return isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript)


def _is_opaque(scope: Scope, node: cst.BaseExpression) -> bool:
    """Tell whether what is put into a stack, or a part of it, cannot be followed."""
    if isinstance(node, cst.IfExp):
        return _is_opaque(scope, node.body) or _is_opaque(scope, node.orelse)
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return _is_chosen(scope, node.elt) or not scope.evaluate(node)
    if isinstance(node, (cst.List, cst.Tuple)):
        return any(_is_opaque(scope, each.value) for each in node.elements)
    if not isinstance(node, cst.Call):
        return False
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _KEEPING:
        return _is_opaque(scope, node.func.value)
    functions = scope.evaluate(node.func)
    if any(isinstance(value, External) for value in functions):
        return any(_is_opaque(scope, arg.value) for arg in node.args if arg.keyword is None)
    return _is_chosen(scope, node) or not scope.evaluate(node)


def _is_chosen(scope: Scope, node: cst.BaseExpression) -> bool:
    """Tell whether a class is made that a parameter of the function hands in."""
    func = node.func if isinstance(node, cst.Call) else None
    if not isinstance(func, cst.Name) or not scope.parameters.has(func.value):
        return False
    return scope.argument(func.value) is None and not scope.binds(func.value)
