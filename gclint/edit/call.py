"""Rewriting a run site: activations by position, caches by keyword."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.remembered import remembered
from gclint.code.walk import all_nodes, arguments, walk
from gclint.edit.edits import LINE_LENGTH
from gclint.edit.places import argument_spans
from gclint.finding import Applicability, Edit, Refusal
from gclint.network.activation import SiteBinding, is_constant, is_live_cache
from gclint.network.binding import Binding, BoundArgument
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.signature import Parameter, ParameterKind, Signature
from gclint.network.runsite import RunSite
from gclint.verify.worker.vocabulary import PLAIN_CACHES, USE_CACHE
from gclint.wording import listed, listed_code

_KEYWORD = re.compile(r"\w+(?:\s|\\|#.*)*=\s*")
"""The name of an argument, up to its value."""
CACHES_IN_ORDER = PLAIN_CACHES | {USE_CACHE}
"""What no repair may pass by position."""


@dataclass(frozen=True)
class NeedsReordering(Refusal):
    """A repair becomes possible only when the signature changes its order."""


@dataclass(frozen=True)
class Slot:
    """A place in the new argument list: an argument of the call, or a default written out."""

    source: BoundArgument | None
    keyword: str | None
    default: str | None = None


@dataclass(frozen=True)
class CallRepair:
    """What makes a run site right."""

    edits: tuple[Edit, ...]
    doubts: tuple[str, ...] = ()
    """Why someone should look at it all the same."""
    evidence: tuple[str, ...] = ()
    """What it rests on that a run saw and the text does not say."""
    outside_doubts: tuple[str, ...] = ()
    """Why what else gets the arguments, or sees them, may mind."""
    slots: tuple[Slot, ...] = ()
    """The new arguments, in order."""


def repair_call(
    file: SourceFile,
    call: ast.Call,
    bindings: Sequence[SiteBinding],
    others: Sequence[SiteBinding] = (),
) -> CallRepair | Refusal:
    """Return what makes a run site right for every block it can run.

    What may require grad moves along with the activations; where it cannot, someone has to look.

    Args:
        file: the file that the call is in.
        call: the run site.
        bindings: its arguments bound to each of the blocks that are checkpointing layers.
        others: the same of all else that it may run.
    """
    written = arguments(call)
    if any(bound.arg not in written for binding in bindings for bound in binding.binding.arguments):
        return Refusal("the call unpacks a list or dict; pass its items one by one")
    for binding in bindings:
        shift = shifted_argument(binding.binding, binding.signature)
        if shift is not None:
            return shift
    activations = frozenset(name for binding in bindings for name in binding.activations)
    uncertain = frozenset(name for binding in bindings for name in binding.uncertain) - activations
    # Copies of a call are rewritten alike, so what moves does not depend on what each of them passes.
    tensors = (
        frozenset(name for binding in bindings for name in binding.tensors) if activations else uncertain
    )
    movable = {
        name
        for name in tensors | uncertain
        if all(binding.signature.index(name) is not None for binding in bindings)
    }
    every = (*bindings, *others)
    slots = _arrange_for_all(file, every, activations | movable)
    for moved in (movable & uncertain, frozenset[str]()):
        if isinstance(slots, Refusal):
            slots = _arrange_for_all(file, every, activations | moved)
    if isinstance(slots, Refusal):
        return slots
    left = sorted({slot.keyword for slot in slots if slot.keyword in uncertain and slot.source is not None})
    seen = frozenset(name for binding in bindings for name in binding.seen)
    doubts = [
        f"`{name}` is still passed by keyword, and required grad in a run"
        if name in seen
        else f"`{name}` is still passed by keyword, so check that it never requires grad"
        for name in left
    ]
    edits = write_call(file, call, slots)
    if isinstance(edits, Refusal):
        return edits
    return CallRepair(edits, tuple(doubts), _evidence(seen - {*left}), slots=tuple(slots))


def applicability(doubts: Collection[str], evidence: Collection[str]) -> Applicability:
    """Return that of a fix which is doubtful for these reasons, and rests on this evidence."""
    if doubts:
        return Applicability.UNSAFE
    return Applicability.PROVABLE if evidence else Applicability.SAFE


def seen_blocks(site: RunSite, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield what a run says of the blocks that a call runs, where the text does not."""
    for info in sorted(site.only_seen.intersection(blocks), key=lambda each: each.name):
        row, _ = site.rows
        yield f"a run showed that the call on line {row} runs `{info.name}`"


def _evidence(seen: frozenset[str]) -> tuple[str, ...]:
    names = [f"`{name}`" for name in sorted(seen)]
    verb = "requires" if len(names) == 1 else "require"
    return (f"a run showed that {listed(names)} {verb} grad",) if names else ()


def shifted_argument(binding: Binding, signature: Signature) -> Refusal | None:
    """Return why a call is left alone in which a name arrives at another parameter than the one it names.

    So look the calls of a signature that changed its order, where only a part of them was rewritten.
    """
    for bound in binding.arguments:
        if not bound.by_position or bound.parameter is None or not isinstance(bound.arg.value, ast.Name):
            continue
        name = bound.arg.value.id
        own = binding.argument(name)
        is_own = own is not None and isinstance(own.arg.value, ast.Name) and own.arg.value.id == name
        if name != bound.parameter.name and signature.get(name) is not None and not is_own:
            return Refusal(
                f"its arguments look shifted: `{name}` is passed to the parameter `{bound.parameter.name}`"
            )
    return None


def _arrange_for_all(
    file: SourceFile, bindings: Sequence[SiteBinding], activations: frozenset[str]
) -> list[Slot] | Refusal:
    """Return the arguments in an order that is right for every block."""
    first = bindings[0]
    slots = _arrange(file, first.binding, first.signature, activations)
    if isinstance(slots, Refusal):
        return slots
    for other in bindings[1:]:
        arranged = _arrange(file, other.binding, other.signature, activations)
        if (
            isinstance(arranged, Refusal)
            or _places(arranged) != _places(slots)
            or _names(other) != _names(first)
        ):
            return Refusal("the blocks that this call runs order their parameters differently")
    return slots


def _places(slots: Sequence[Slot]) -> list[tuple[int | None, str | None, str | None]]:
    return [
        (None if slot.source is None else slot.source.index, slot.keyword, slot.default) for slot in slots
    ]


def _names(site: SiteBinding) -> list[str | None]:
    """Return what receives each argument; one passed by keyword may also go to ``**kwargs``."""
    return [bound.arg.keyword or bound.name or None for bound in site.binding.arguments]


def _arrange(
    file: SourceFile, binding: Binding, signature: Signature, activations: frozenset[str]
) -> list[Slot] | Refusal:
    """Return the call's arguments in a right order: activations by position, caches by keyword."""
    positional = signature.positional
    last = -1
    for name in activations:
        index = signature.index(name)
        if index is None:
            return Refusal(f"`{name}` can only be passed by keyword")
        last = max(last, index)
    slots: list[Slot] = []
    for index, parameter in enumerate(positional[: last + 1]):
        later = [each.name for each in positional[index:] if each.name in activations]
        slot = _positional_slot(binding, parameter, later)
        if isinstance(slot, Refusal):
            return slot
        slots.append(slot)
    placed = {slot.source.index for slot in slots if slot.source is not None}
    by_position = True
    for bound in binding.arguments:
        if bound.index in placed:
            continue
        if bound.by_position and bound.parameter is None:
            return Refusal("the call passes more positional arguments than `forward` takes")
        by_position = by_position and bound.by_position and not is_live_cache(bound)
        if by_position or bound.arg.star:
            slots.append(Slot(bound, None))
        elif bound.parameter is not None and bound.parameter.kind is ParameterKind.POSITIONAL_ONLY:
            return Refusal(f"`{bound.name}` can only be passed by position")
        else:
            slots.append(Slot(bound, bound.name or bound.arg.keyword))
    return in_order_of_effects(slots, file)


def _positional_slot(binding: Binding, parameter: Parameter, later: Sequence[str]) -> Slot | Refusal:
    """Return the slot of a parameter that has to be passed by position, for the sake of ``later`` ones."""
    bound = binding.argument(parameter.name)
    out_of_order = NeedsReordering(
        f"`{parameter.name}` has to be passed by keyword, but stands before {listed_code(later)}"
    )
    if bound is not None:
        is_cache = parameter.name in CACHES_IN_ORDER and not is_constant(bound.arg.value)
        return out_of_order if is_cache else Slot(bound, None)
    if binding.unpacks_mapping:
        return Refusal(
            f"`{parameter.name}` stands before what has to be passed by position, and may be among the "
            "unpacked keywords; take it out of these first"
        )
    if parameter.default is None or not _is_literal(parameter.default):
        return Refusal(
            f"`{parameter.name}` stands before what has to be passed by position, is not passed, and has no "
            "literal default"
        )
    if parameter.name in CACHES_IN_ORDER and parameter.default not in ("None", "False"):
        return out_of_order
    return Slot(None, None, parameter.default)


def _is_literal(code: str) -> bool:
    """Return whether an expression is the same wherever it stands."""
    node = ast.parse(f"({code})", mode="eval").body
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    is_empty = isinstance(node, ast.Tuple) and not node.elts
    return is_empty or (isinstance(node, ast.Constant) and not isinstance(node.value, bytes))


def in_order_of_effects(slots: list[Slot], file: SourceFile) -> list[Slot] | Refusal:
    """Refuse an order in which arguments change places and it may matter which is evaluated first."""
    args = [slot.source for slot in slots if slot.source is not None]
    for position, before in enumerate(args):
        for behind in args[position + 1 :]:
            if behind.index < before.index and _may_not_swap(before.arg.value, behind.arg.value, file):
                return Refusal("its arguments would be evaluated in another order, which may matter")
    return slots


def _may_not_swap(one: ast.expr, other: ast.expr, file: SourceFile) -> bool:
    """Tell whether it may matter which of two expressions is evaluated first.

    Any attribute, item or operator may run code. That can only change what a local name holds, and not what
    it stands for, unless a function inside says that the name is its own, too.
    """
    if any(isinstance(node, ast.NamedExpr) for each in (one, other) for node in walk(each)):
        return True
    return not any(_stands_still(each, file) for each in (one, other))


def _stands_still(node: ast.expr, file: SourceFile) -> bool:
    if isinstance(node, ast.Tuple):
        return all(_stands_still(each, file) for each in node.elts)
    return is_constant(node) or (isinstance(node, ast.Name) and node.id not in _bound_from_inside(file))


@remembered
def _bound_from_inside(file: SourceFile) -> frozenset[str]:
    """Return the names of a file that functions bind outside of themselves."""
    tree = file.tree if any(mentions(file.text, word) for word in ("global", "nonlocal")) else None
    return frozenset(
        name
        for each in all_nodes(tree)
        if isinstance(each, (ast.Global, ast.Nonlocal))
        for name in each.names
    )


def write_call(file: SourceFile, call: ast.Call, slots: Sequence[Slot]) -> tuple[Edit, ...] | Refusal:
    """Return the edits that give a call these arguments; none where it has them already."""
    if _place(call) in _calls_in_texts(file):
        return Refusal("the call stands in an f-string, which may show its code, and not take all quotes")
    private = next(filter(_is_private, (slot.keyword or "" for slot in slots)), None)
    if private is not None:
        return Refusal(f"`{private}` is a private name, by which no call passes an argument")
    edits = _edits_in_place(file, call, slots)
    if edits is not None and _still_fits(file, file.places.end(call) - 2, edits):
        return edits
    # Only what is written anew needs LibCST.
    from gclint.edit.layout import Item, argument_list

    existing = argument_list(file, call)
    if isinstance(existing, Refusal):
        return existing
    items: list[Item] = []
    for slot in slots:
        item = Item(slot.default or "") if slot.source is None else existing.items[slot.source.index]
        if slot.keyword is not None:
            is_bare = slot.source is not None and _is_bare_walrus(slot.source.arg.value, item.code)
            value = f"({item.code})" if is_bare else item.code
            item = replace(item, code=f"{slot.keyword}={value}")
        items.append(item)
    return (existing.written(items),)


def _is_bare_walrus(node: ast.expr, code: str) -> bool:
    """Return whether the code of an argument is an assignment, which only brackets let have a keyword."""
    return isinstance(node, ast.NamedExpr) and not code.startswith("(")


def _is_private(name: str) -> bool:
    """Return whether a parameter of a method has another name than its text says."""
    return name.startswith("__") and not name.endswith("__")


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


@remembered
def _calls_in_texts(file: SourceFile) -> frozenset[tuple[int, int]]:
    """Return where calls in f-strings stand."""
    texts = (each for each in all_nodes(file.tree) if isinstance(each, ast.JoinedStr))
    return frozenset(_place(node) for text in texts for node in walk(text) if isinstance(node, ast.Call))


def _edits_in_place(file: SourceFile, call: ast.Call, slots: Sequence[Slot]) -> tuple[Edit, ...] | None:
    """Return the edits that write or drop keywords; None where arguments move or are added."""
    args = arguments(call)
    if [None if slot.source is None else slot.source.index for slot in slots] != [*range(len(args))]:
        return None
    edits: list[Edit] = []
    for slot, arg, (start, end) in zip(slots, args, argument_spans(file, call), strict=True):
        if arg.keyword is not None and slot.keyword is None:
            # Its name may be as long as written otherwise: Python reads some letters as others.
            written = _KEYWORD.match(file.text[start:end])
            edits.append(Edit(file.path, start, start if written is None else start + written.end(), ""))
        elif arg.keyword is None and slot.keyword is not None:
            is_bare = _is_bare_walrus(arg.value, file.text[start:end])
            edits.append(Edit(file.path, start, start, f"{slot.keyword}={'(' * is_bare}"))
            edits += [Edit(file.path, end, end, ")")] * is_bare
    return tuple(edits)


def _still_fits(file: SourceFile, last: int, edits: Sequence[Edit]) -> bool:
    """Return whether arguments that share a line do not make it too long by what is written into them."""
    row = file.position(last).row
    if "," not in file.line(row).rstrip().rstrip(",") or not edits:
        return True
    first = file.line_starts[row - 1]
    added = sum(len(edit.content) - (edit.end - edit.start) for edit in edits if edit.start >= first)
    return added <= 0 or len(file.line(row)) + added <= LINE_LENGTH
