"""The arguments of a call site, and why each is an activation, a cache or neither."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gclint.code.tokens import shortened
from gclint.code.walk import Arg
from gclint.network.activation import CACHE_NAME, SiteBinding, bind_site, is_constant
from gclint.network.binding import BoundArgument, bind
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Container, EvaluatedExternal, ExternalInstance, Instance
from gclint.network.exclusion import Exclusion
from gclint.network.explaining.facts import Fact
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.story import gradient_steps
from gclint.network.switch import names_checkpointing
from gclint.network.traits import mixes_sequence
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS
from gclint.wording import listed_code


def call_of(network: Network, site: RunSite, wanted: Collection[ClassInfo] = ()) -> Fact:
    """Return a call site with its arguments and their roles, for the ``wanted`` blocks if it runs any."""
    inner: list[Fact] = [*_circumstances(site)]
    blocks = [info for info in site.blocks if info in wanted] or [*site.blocks]
    for block in blocks:
        arguments = tuple(_arguments(network, site, block))
        inner += (
            arguments if len(site.blocks) == 1 else [Fact(f"where it runs `{block.name}`:", None, arguments)]
        )
    place = site.scope.module.file.path, site.span(site.call)[0]
    names = " or ".join(f"`{info.name}`" for info in site.blocks)
    how = "calls a checkpoint function for" if site.checkpointed else "runs"
    return Fact(
        f"`{site.owner.name}` {how} {names}: `{shortened(site.source(site.call))}`",
        place,
        tuple(inner),
        {"receiver": site.source(site.receiver), "blocks": [info.name for info in site.blocks]},
    )


def _circumstances(site: RunSite) -> Iterator[Fact]:
    """Yield the facts about the code around a call."""
    if site.whole:
        yield Fact("the call runs a whole `nn.Sequential`, which passes the output of each block to the next")
    elif site.stream:
        names = listed_code(sorted(site.stream))
        yield Fact(f"its output is passed to the next iteration in {names}: this is a stack of layers")
    elif site.loops:
        yield Fact("its output does not reach the next iteration: this is not a stack of layers")
    else:
        yield Fact("it is not in a loop")
    for arm in site.arms:
        if names_checkpointing(arm.node.test):
            side = "under" if arm.taken else "in the other branch of"
            yield Fact(f"it is {side} `if {shortened(site.source(arm.node.test))}`")
    if site.function is not None:
        yield Fact("an inner function of the method runs the block; its calls are examined instead")
    if site.seen:
        yield Fact("a run has seen this call")


def _arguments(network: Network, site: RunSite, block: ClassInfo) -> Iterator[Fact]:
    """Yield each argument with the parameter of ``forward`` that receives it."""
    signature = block.signature
    if signature is None:
        yield Fact(f"the `forward` of `{block.name}` could not be read, so the arguments are not judged")
        return
    known = bind_site(site, block, network.gradients)
    if known is None:
        yield Fact(
            f"the arguments are not judged: the call unpacks a list, or `{block.name}.forward` would "
            "reject it"
        )
    for bound in bind(site.args, signature).arguments:
        yield _argument(network, site, block, known, bound)


def _argument(
    network: Network, site: RunSite, block: ClassInfo, known: SiteBinding | None, bound: BoundArgument
) -> Fact:
    written = shortened(site.source(bound.arg.value))
    stands = _written(site, bound.arg)
    place = None if stands is None else (site.scope.module.file.path, site.span(stands)[0])
    if bound.parameter is None:
        what = {
            "**": "its names are unknown, so its content is not judged",
            "*": "its length is unknown",
        }.get(bound.arg.star, f"`{block.name}.forward` has no parameter of that name and collects it")
        return Fact(
            f"`{bound.arg.star}{written}`: {what}", place, data={"argument": written, "parameter": None}
        )
    name = bound.parameter.name
    how = "by position" if bound.by_position else "by keyword"
    given = f"`{name}`" if written == name else f"`{name}` receives `{written}`"
    role, why = _role(network, site, block, known, bound)
    origin: tuple[Fact, ...] = ()
    if role in ("activation", "container of activations"):
        steps = gradient_steps(site, bound.arg.value, name, network.gradients)
        origin = tuple(Fact.of(step) for step in steps)
    return Fact(
        f"{given}, {how}: {role}{f', because {why}' if why else ''}",
        place,
        origin,
        {"argument": written, "parameter": name, "passed": how, "role": role, "why": why},
    )


def _written(site: RunSite, arg: Arg) -> ast.AST | None:
    """Return an argument with its keyword or star; None if other code than that around the call passes it."""
    nodes = site.scope.body.nodes if arg.value in site.scope.body.nodes else ()
    whole = (each for each in nodes if isinstance(each, (ast.keyword, ast.Starred)))
    return next((each for each in whole if each.value is arg.value), arg.value) if nodes else None


def _role(
    network: Network, site: RunSite, block: ClassInfo, known: SiteBinding | None, bound: BoundArgument
) -> tuple[str, str | None]:
    """Return the role of an argument, and the reason if it is known."""
    name = bound.name
    why = None if known is None else known.why.get(name)
    if name in CACHE_ARGUMENTS:
        if is_constant(bound.arg.value):
            return "not a cache here", "it is a literal"
        disabling = _disabling(network, name, by_position=bound.by_position)
        if site.checkpointed or not block.is_checkpointing:
            disabling = f"`{block.name}` is not a checkpointing layer, so nothing disables it"
            if site.checkpointed and block.is_checkpointing:
                disabling = "the checkpoint function passes it on unchanged"
        return "cache", f"{why or CACHE_NAME}; {disabling}"
    if known is None:
        return "not judged", None
    if name in known.activations:
        return "activation", why
    if name in known.nested:
        return "container of activations", why
    if name in known.uncertain:
        return "perhaps an activation", known.uncertain[name]
    return "not an activation", why


def _disabling(network: Network, name: str, *, by_position: bool) -> str:
    """Return how the base class treats a cache with this name."""
    if name not in EVER_NEUTRALISED:
        return "no release disables a cache of this name"
    if by_position:
        return "the base class cannot disable it, since it is passed by position"
    left_on = network.releases.not_neutralising(name)
    off = "False" if name == "use_cache" else "None"
    return f"the base class {f'does not disable it in {left_on}' if left_on else f'sets it to {off}'}"


def why_no_site(call: tuple[Scope, ast.Call]) -> str:
    """Return why a call does not run a block, as far as it is known."""
    scope, node = call
    values = scope.evaluate(node.func)
    modules = [value.info for value in values if isinstance(value, Instance) and value.info.is_module]
    if modules:
        info = modules[0]
        reason = "it is the only one" if mixes_sequence(info) else Exclusion.NO_MIXER.of(info, None)
        return f"it runs `{info.name}`, which is not in a stack of blocks: {reason}"
    if any(isinstance(value, Container) for value in values):
        return "it calls a list or sequence of modules, none of which is a block"
    for value in values:
        if isinstance(value, ExternalInstance):
            return f"it runs a {value.name}, which is not a class of the project"
        if isinstance(value, EvaluatedExternal):
            return f"it calls {value.name}, which is not a class of the project"
    if values:
        return "it calls a method, function or class, not a block"
    return "the class of what it calls could not be found"
