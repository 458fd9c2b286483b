"""What is known of empty caches: they give back what they get, and have no length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from gclint.code.names import names
from gclint.network.cacheless.asking import full_name
from gclint.network.cacheless.items import Arguments, Items
from gclint.network.cacheless.state import State
from gclint.network.cacheless.terms import Term

_NUMBERS = names("get_seq_length get_usable_length")
"""Methods of caches that tell how long they are: an empty one is not."""
CONVERTING = frozenset(("to_legacy_cache", "to"))
"""Methods of caches that give the same in another form."""
_WRITTEN = "written"
"""What is noted of an index of a layer, or of the cache, once something was put there."""
_MARKED = "marked"
_WRITTEN_BY_ANY = "written by another module"
_PILES = frozenset(("tuple", "list", "dict"))
_USUAL_CACHES = frozenset(("Cache", "DynamicCache"))


class EmptyCaches(Items):
    """Follows what is done with caches in which nothing is yet."""

    def in_cache(self, base: Term, name: str, given: Arguments) -> Term:
        """Return what a method of an empty cache gives: what it got, or nothing yet."""
        if base is self.terms.marks:
            return self.mark(given.positional[0] if name == "get" and given.positional else None)
        if name in CONVERTING:
            return base
        index = next((value for key, value in given.named if key == "layer_idx"), None)
        if name in _NUMBERS:
            slots = (self._slot(each) for each in (*given.positional, index) if each is not None)
            own = next((each for each in slots if each is not None), None)
            self.slots.update(() if own is None else (own.args[1],))  # type: ignore[arg-type]
            is_empty = not (self.is_inside and self.are_written) or (
                own is not None and (own, _WRITTEN) not in self.held
            )
            return self.terms.constant(0) if is_empty else self.terms("held", name, given, self.log)
        if name == "sum":
            return self.terms.constant(0)
        if name == "size":
            return self.item(self.extent(), given.positional[0]) if given.positional else self.extent()
        if name == "update" and len(given.positional) >= 2:
            return self._updated(
                given.positional, given.positional[2] if len(given.positional) > 2 else index
            )
        self.has_written = True  # Nobody knows what else fills a cache.
        return base

    def mark(self, index: Term | None) -> Term:
        """Return whether a cache says that it was filled: not of a block's own slot before it writes."""
        slot = None if index is None else self._slot(index)
        is_set = slot is not None and (slot, _MARKED) in self.held
        if self.is_inside and (slot is None or is_set or self._may_be_written(slot)):
            return self.terms("held", index or self.terms.none, self.log)
        self.slots.update(() if slot is None else (slot.args[1],))  # type: ignore[arg-type]
        return self.terms.false

    def set_mark(self, index: Term) -> None:
        """Take note that a block says of its slot that it is filled."""
        slot = self._slot(index)
        if slot is not None:
            self.held[slot, _MARKED] = self.terms.true

    def extent(self) -> Term:
        """Return the shape of what is in a cache: nothing, unless a block has put something there."""
        is_written = self.are_written or any(what == _WRITTEN for _, what in self.held)
        return self.terms("held", self.log) if self.is_inside and is_written else self.terms("extent")

    def _updated(self, given: Sequence[Term], index: Term | None) -> Term:
        """Return what a cache gives back that gets keys and values: these, if it had none of the layer."""
        self.has_written = True
        slot = None if index is None else self._slot(index)
        if slot is None or self.is_repeating or self._may_be_written(slot):
            return self.terms("held", tuple(given), index, self.log)
        self.held[slot, _WRITTEN] = self.terms.true
        self.slots.add(slot.args[1])  # type: ignore[arg-type]
        self.filled.update(given[:2])
        return self.terms("tuple", tuple(given[:2]))

    def _slot(self, index: Term) -> Term | None:
        """Return what stands for the slot of an index that is an attribute of the block, or of a part.

        No block has that of another one, which ``gclint.model.slots.numbering`` finds out.
        """
        path: list[object] = []
        while index.op == "attribute":
            path.append(index.args[1])
            index = index.args[0]  # type: ignore[assignment]
        return self.terms("slot", index, tuple(reversed(path))) if path and index is self.block else None

    def _may_be_written(self, slot: Term) -> bool:
        """Tell whether a block has written to a slot: to any one, unless its cache has parts."""
        written = {each for each, what in self.held if what == _WRITTEN and each.op == "slot"}
        return slot in written or any(each.args[0] is slot.args[0] for each in written if not self.has_parts)

    def note_run(self, given: Arguments, *, by_layers: bool = False) -> None:
        """Take note that something may have filled the caches that what has run it has.

        Args:
            given: the arguments.
            by_layers: whether it was a block, and no other module.
        """
        passed = (*given.positional, *dict(given.named).values())
        if self.has_written and any(self.terms.cache in self.terms.leaves(each) for each in passed):
            self.held[self.terms.cache, _WRITTEN if by_layers else _WRITTEN_BY_ANY] = self.terms.true
            self.fill()

    def marks_of(self, state: State, before: State) -> Iterator[tuple[tuple[Term, str], Term]]:
        """Yield what a state notes of caches that have been filled since another one."""
        for each in (_WRITTEN, _WRITTEN_BY_ANY):
            key = self.terms.cache, each
            if key in state.held and key not in before.held:
                yield key, state.held[key]

    def fill(self, *, by_others: bool = False) -> None:
        """Let caches be filled ones, if blocks were run that may have filled them.

        Args:
            by_others: whether these are layers of the loop whose next turn begins here.
        """
        if self.is_inside:
            return  # Of the cache that it got, a block sees its own slot.
        is_any = (self.terms.cache, _WRITTEN_BY_ANY) in self.held
        if is_any or (self.terms.cache, _WRITTEN) in self.held:
            filled = partial(self.terms.filled_one, by_others=by_others and not is_any)
            kept = [self.log]
            for frame in self.known_frames():
                frame.names.update({name: filled(each) for name, each in frame.names.items()})
                kept += frame.names.values()
            self.held.update({key: filled(each) for key, each in self.held.items()})
            if any(map(self.terms.keeps_cache, (*kept, *self.held.values()))):
                self.do(self.terms("filled where nobody follows it"))

    def joined_tensors(self, given: Term) -> Term | None:
        """Return what concatenating tensors to an empty cache gives: the same tensors."""
        items = self.items(self.settle(given))
        if items is None or self.terms.cache not in items:
            if items is not None and self.terms.none in items:
                raise self.fail()
            return None
        left = [each for each in items if each is not self.terms.cache]
        return left[0] if len(left) == 1 else None if left else self.terms.cache

    def is_instance(self, value: Term, kind: Term) -> Term | None:
        """Return whether a value is of a class, if that is known: an empty cache is no container."""
        if kind.op == "tuple":
            found = [self.is_instance(value, each) for each in kind.terms()]
            return self.terms.false if all(each is self.terms.false for each in found) else None
        names = set(map(full_name, self.kinds_of(kind)))
        if not names or value.op not in ("constant", "cache", "operation", "tuple", "list"):
            return None
        if names <= _PILES:
            return self.terms.constant(value.op in names)
        is_usual = value is self.terms.cache and all(
            name.rpartition(".")[2] in _USUAL_CACHES for name in names
        )
        return self.terms.true if is_usual else self.terms.false if value is self.terms.none else None
