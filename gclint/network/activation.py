"""Decides which arguments of a call site are activations, caches or neither."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from gclint.code.walk import Arg, alternatives, walk
from gclint.network.binding import Binding, BoundArgument, bind
from gclint.network.evaluation.classes import ClassInfo, nodes_of
from gclint.network.evaluation.signature import Parameter, Signature
from gclint.network.gradient import Carries, Gradients
from gclint.network.returned import is_whole_output
from gclint.network.runsite import RunSite
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

ACTIVATION_NAMES = "activation-names"
"""The setting with which users name further parameters that receive activations."""

_ACTIVATION_NAME = re.compile(r"(?:^|_)hidden_states?$|(?:^|_)attention_states$")
_NO_ACTIVATION = re.compile(
    r"^(?:output|use|return|is|do|should|update)_|mask|(?:^|_)(?:ids?|idx|index|indices|shapes?|sizes?|dims?"
    r"|dimensions?|lengths?|lens|len|seqlens?|ratios?|rope|rotary|cos|sin|freqs?\w*|training|dtype|device"
    r"|resolution|height|width|points|boxes|bbox|positions?|kwargs|biases_mask|cache_position)(?:$|_)"
    r"|position_embeddings|position_ids"
)
_NEVER_ACTIVATION = re.compile(
    r"^(?:output|use|return|is|do|should|update)_|(?:^|_)(?:ids?|idx|index|indices|shapes?|sizes?|dims?|dimensions?"
    r"|lengths?|lens|len|seqlens?|training|dtype|device|resolution|height|width|kwargs)(?:$|_)"
)
"""Matches the names of parameters that never receive an activation, wherever their values come from."""
_POSITION_EMBEDDINGS = "position_embeddings"
_ROTATIONS = ("rotary", "rope")
_CACHE = re.compile(r"cache|(?:^|_)past(?:$|_)")
"""Matches names of caches, including those that the base class does not know: none is passed by position."""
_TENSORLIKE = re.compile(r"Tensor|\bAny\b|\bFloat\b")
_WRITTEN_CONTAINERS = (ast.Tuple, ast.List, ast.Dict)
_CONTAINER = re.compile(
    r"^(?:(?:typing|Optional|Union|None) )*(?:[Tt]uple|[Ll]ist|[Dd]ict|Sequence|Mapping)\b"
)


class _Kind(Enum):
    """The kind of a parameter, by its annotation."""

    TENSOR = auto()
    CONTAINER = auto()
    """A list, tuple or dict of tensors."""
    OTHER = auto()


class _Role(Enum):
    """The role of an argument for a block; later ones require more of a repair."""

    OTHER = auto()
    UNCERTAIN = auto()
    """Neither the name of the parameter nor the value shows whether it requires grad."""
    NESTED = auto()
    """A list, tuple or dict that holds activations."""
    ACTIVATION = auto()


_Judged = tuple[_Role, str]
"""The role of an argument, and the reason: a clause to follow "because"."""


@dataclass(frozen=True)
class SiteBinding:
    """The arguments of a call site bound to the parameters of one block, with their roles."""

    block: ClassInfo
    signature: Signature
    binding: Binding
    activations: frozenset[str]
    """The parameters that receive an activation."""
    nested: frozenset[str]
    """The parameters that receive a list, tuple or dict of activations."""
    seen: frozenset[str]
    """The parameters that receive an activation according to a run, but not to the code."""
    tensors: frozenset[str]
    """The parameters that, by name and annotation, may receive an activation at another call."""
    why: Mapping[str, str]
    """The reason for the role of each parameter's argument: a clause to follow "because"."""
    uncertain: Mapping[str, str]
    """The parameters that may receive an activation, as far as the code shows, with the reasons."""

    @property
    def names(self) -> frozenset[str]:
        """The parameters that receive an argument."""
        return frozenset(each.name for each in self.binding.arguments if each.name)

    def with_uncertain(self, names: Collection[str]) -> SiteBinding:
        """Return the binding with further parameters that may receive an activation."""
        more = self.names.intersection(names) - self.nested
        return replace(self, uncertain={**dict.fromkeys(more, _COMPUTED), **self.uncertain})

    def positional_caches(self) -> list[BoundArgument]:
        """Return the caches that are passed by position, so that the base class cannot disable them."""
        return [bound for bound in self.binding.arguments if bound.by_position and is_live_cache(bound)]

    def keyword_activations(self) -> list[BoundArgument]:
        """Return the activations that are passed by keyword, so that reentrant checkpointing ignores them."""
        return [bound for bound in self._received_by(self.activations) if not bound.by_position]

    def positional_activations(self) -> list[BoundArgument]:
        """Return the activations that are passed by position."""
        return [bound for bound in self._received_by(self.activations) if bound.by_position]

    def defects(self) -> list[BoundArgument]:
        """Return the arguments that are passed in a wrong way."""
        return [*self.positional_caches(), *self.keyword_activations(), *self.nested_activations()]

    def is_to_be_repaired(self) -> bool:
        """Return whether the call has to be rewritten if the block becomes a checkpointing layer."""
        return bool(self.positional_caches() or self.to_be_positional())

    def to_be_positional(self) -> list[BoundArgument]:
        """Return the activations that are passed by keyword, and what may be one."""
        keywords = [bound for bound in self._received_by(self.uncertain) if not bound.by_position]
        return [*self.keyword_activations(), *keywords]

    def nested_activations(self) -> list[BoundArgument]:
        """Return the containers of activations, inside which checkpointing does not look."""
        return self._received_by(self.nested)

    def _received_by(self, names: Collection[str]) -> list[BoundArgument]:
        return [bound for bound in self.binding.arguments if bound.name in names]


def _is_rotary(site: RunSite) -> bool:
    """Return whether ``position_embeddings``, which may be learned, are computed from positions alone."""
    method = site.scope.body.definition
    return method is not None and any(
        _is_rotation(value, method.first_parameter)
        for node in nodes_of(method)
        for value in _given_to(node, _POSITION_EMBEDDINGS)
    )


def _given_to(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what a node itself assigns to a variable, or passes under its name."""
    if isinstance(node, ast.keyword):
        if node.arg == name:
            yield node.value
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            yield node.value


def _is_rotation(value: ast.expr, self_name: str | None) -> bool:
    """Return whether a value comes from a rotary embedding of the object."""
    ways = alternatives(value)
    if ways:
        return any(_is_rotation(each, self_name) for each in ways)
    while isinstance(value, (ast.Call, ast.Subscript, ast.Attribute)):
        holder = value.func if isinstance(value, ast.Call) else value.value
        if isinstance(value, ast.Attribute) and isinstance(holder, ast.Name):
            return holder.id == self_name and any(each in value.attr for each in _ROTATIONS)
        value = holder
    return False


def bind_site(site: RunSite, block: ClassInfo, gradients: Gradients) -> SiteBinding | None:
    """Bind the arguments of a call site to the ``forward`` of a block; None if the binding is not certain."""
    plain = _bind(site, site.args, block, gradients)
    if not any(arg.star for arg in site.args):
        return plain
    written = _bind(site, site.written_args, block, gradients)
    # What is wrong about the call itself can be repaired without its unpacked list or dict.
    is_enough = written is None or all(bound.arg in site.args for bound in written.defects())
    return plain if is_enough and plain is not None else written


def _bind(site: RunSite, args: Sequence[Arg], block: ClassInfo, gradients: Gradients) -> SiteBinding | None:
    signature = block.signature
    if signature is None:
        return None
    binding = bind(args, signature)
    if not binding.complete:
        return None
    arguments = _judged_arguments(site, block, binding, gradients)
    roles = arguments.roles

    # A name or an annotation does not make an activation, but what is learned must be passed like one.
    learned = (
        parameter.name
        for arg, parameter in (arguments.others if roles[_Role.ACTIVATION] else ())
        if Carries.GRADIENT in gradients.at(site, arg.value)
    )
    unknown = {name: arguments.reasons[name] for name in roles[_Role.UNCERTAIN]}
    tensors = {
        bound.name
        for bound in binding.arguments
        if bound.parameter is not None and may_require_grad(bound.arg, bound.parameter)
    }
    return SiteBinding(
        block,
        signature,
        binding,
        frozenset(roles[_Role.ACTIVATION]),
        frozenset(roles[_Role.NESTED]),
        frozenset(arguments.seen),
        frozenset(tensors - roles[_Role.NESTED]),
        arguments.reasons,
        unknown | dict.fromkeys(learned, _COMPUTED),
    )


@dataclass
class _Arguments:
    """The arguments of a call, judged one by one."""

    roles: dict[_Role, set[str]] = field(default_factory=lambda: {role: set() for role in _Role})
    """The names of the parameters by role."""
    seen: set[str] = field(default_factory=set)
    """Those whose role only a run has shown."""
    others: list[tuple[Arg, Parameter]] = field(default_factory=list)
    """Those that are no activations by their names and annotations, which may be learned all the same."""
    reasons: dict[str, str] = field(default_factory=dict)


def _judged_arguments(site: RunSite, block: ClassInfo, binding: Binding, gradients: Gradients) -> _Arguments:
    found = _Arguments()
    for bound in binding.arguments:
        if bound.parameter is None:
            continue
        name = bound.parameter.name
        if is_whole_output(site, block, bound):
            found.roles[_Role.NESTED].add(name)
            found.reasons[name] = f"`{block.name}` returns a tuple, and the loop passes all of it on"
            continue
        is_mask = "mask" in name and name not in gradients.named
        role, why = _MASK if is_mask else _role(site, bound, bound.parameter, gradients)
        if role.value < (seen_role := _seen_role(site, block, name)).value:
            role, why = seen_role, "it required grad in a run"
            found.seen.add(name)
        elif role is _Role.OTHER and name not in CACHE_ARGUMENTS and not is_constant(bound.arg.value):
            found.others.append((bound.arg, bound.parameter))
        found.roles[role].add(name)
        found.reasons[name] = why
    return found


def _seen_role(site: RunSite, block: ClassInfo, name: str) -> _Role:
    """Return the role of an argument according to runs."""
    seen = [each for each in site.seen if each.block == block.name and name not in CACHE_ARGUMENTS]
    if any(name in each.losing_inside for each in seen):
        return _Role.NESTED
    if any(name in each.losing | each.about_to_lose for each in seen):
        return _Role.ACTIVATION
    return _Role.UNCERTAIN if any(name in each.keywords for each in seen) else _Role.OTHER


def may_require_grad(arg: Arg, parameter: Parameter) -> bool:
    """Return whether a parameter may receive a tensor that requires grad, by its name and annotation."""
    name = parameter.name
    return (
        name not in CACHE_ARGUMENTS
        and not any(pattern.search(name) for pattern in (_NO_ACTIVATION, _NEVER_ACTIVATION, _CACHE))
        and _annotated_kind(parameter) is _Kind.TENSOR
        and not is_constant(arg.value)
    )


def is_never_activation(name: str) -> bool:
    """Tell whether the name of a parameter is one of a flag, a size or the like, that is never a tensor."""
    return _NEVER_ACTIVATION.search(name) is not None


CACHE_NAME = "it is named like a cache"
"""The reason for the role of a cache."""
_MASK: _Judged = (_Role.OTHER, "its name contains `mask`")


def _role(site: RunSite, bound: BoundArgument, parameter: Parameter, gradients: Gradients) -> _Judged:
    name, arg = parameter.name, bound.arg
    if name in CACHE_ARGUMENTS:
        return _Role.OTHER, CACHE_NAME
    if is_constant(arg.value):
        return _Role.OTHER, "it is a literal"
    if name not in gradients.named:
        never = _NEVER_ACTIVATION.search(name)
        if never is not None:
            return _Role.OTHER, f"its name contains `{never[0].strip('_')}`"
        if name == _POSITION_EMBEDDINGS and _is_rotary(site):
            return _Role.OTHER, "it is computed by a rotary embedding from positions alone"
    is_stream = isinstance(arg.value, ast.Name) and arg.value.id in site.stream
    # Models return tuples, and some blocks annotate an activation they receive as a tuple, too.
    is_named = is_named_activation(parameter) or name in gradients.named
    kind = _annotated_kind(parameter)
    if kind is _Kind.OTHER and not is_named:
        return _Role.OTHER, f"its annotation `{parameter.annotation}` is not that of a tensor"
    if is_stream and bound.by_position and not _is_collected(site, arg.value):
        return _Role.ACTIVATION, _STREAM
    # An argument with such a name is an activation unless its value is known not to be.
    carries = gradients.at(site, arg.value)
    return _carried_role(name, arg, kind, carries, gradients, is_stream=is_stream, is_named=is_named)


def _is_collected(site: RunSite, value: ast.expr) -> bool:
    """Return whether a variable holds a list or tuple that the loop fills."""
    return isinstance(value, ast.Name) and value.id in site.scope.body.collections


_STREAM = "it is the output of the previous block in the loop"
_COMPUTED = "it is computed from parameters"


def _carried_role(
    name: str,
    arg: Arg,
    kind: _Kind,
    carries: Carries,
    gradients: Gradients,
    *,
    is_stream: bool,
    is_named: bool,
) -> _Judged:
    """Return the role of an argument, given where its gradients come from."""
    if not carries:
        return _Role.OTHER, "it is None on every path to this call"
    named = "your settings name it" if name in gradients.named else "it is named like an activation"
    if is_named and isinstance(arg.value, _WRITTEN_CONTAINERS) and carries is not Carries.CONSTANT:
        return _Role.NESTED, f"it is a list, tuple or dict, and {named}"
    is_mixed = is_named and carries & (Carries.GRADIENT | Carries.UNKNOWN)
    # The hidden states may be unpacked on the way, but a list that grows in the loop stays a list.
    may_be_tensor = is_mixed or (is_stream and Carries.GRADIENT in carries)
    if Carries.NESTED in carries and not may_be_tensor:
        return _Role.NESTED, "it is a list, tuple or dict of values computed from parameters"
    if kind is _Kind.CONTAINER and not is_named:
        if Carries.GRADIENT in carries:
            return _Role.NESTED, f"its annotation is that of a container, and {_COMPUTED}"
        return _Role.OTHER, (
            "its annotation is that of a container, and nothing in it is computed from parameters"
        )
    if is_named:
        return _Role.ACTIVATION, named
    if Carries.GRADIENT in carries:
        return _Role.ACTIVATION, _COMPUTED
    other = _NO_ACTIVATION.search(name)
    if other is not None:
        return _Role.OTHER, f"its name contains `{other[0].strip('_')}`"
    if is_stream:
        return _Role.ACTIVATION, _STREAM
    if Carries.UNKNOWN not in carries:
        return _Role.OTHER, "none of its possible values is computed from parameters"
    if _CACHE.search(name) is not None:
        return _Role.OTHER, CACHE_NAME
    return _Role.UNCERTAIN, "where it is computed could not be determined"


def is_named_activation(parameter: Parameter) -> bool:
    """Return whether a parameter's name alone says that it is an activation."""
    return _ACTIVATION_NAME.search(parameter.name) is not None and not _NO_ACTIVATION.search(parameter.name)


def _annotated_kind(parameter: Parameter) -> _Kind:
    if parameter.annotation is None:
        return _Kind.TENSOR
    if _TENSORLIKE.search(parameter.annotation) is None:
        return _Kind.OTHER
    return _Kind.CONTAINER if _CONTAINER.match(parameter.annotation) else _Kind.TENSOR


def is_constant(value: ast.expr) -> bool:
    """Return whether an argument is a literal, which neither holds a cache nor requires grad."""
    return isinstance(value, ast.Constant)


def is_live_cache(bound: BoundArgument) -> bool:
    """Return whether an argument is a cache, or switches one on, rather than a constant."""
    return bound.name in EVER_NEUTRALISED and not is_constant(bound.arg.value)


def is_guarded(value: ast.expr) -> bool:
    """Return whether the code disables a cache argument at the call while the model checkpoints."""
    return isinstance(value, ast.IfExp) and any(
        isinstance(node, ast.Attribute) and node.attr == "gradient_checkpointing" for node in walk(value.test)
    )
