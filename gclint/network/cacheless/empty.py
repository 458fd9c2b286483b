"""What is known of empty caches: they give back what they get, and have no length."""

from __future__ import annotations

from collections.abc import Sequence

from gclint.code.names import names
from gclint.network.cacheless.asking import full_name
from gclint.network.cacheless.items import Arguments, Items
from gclint.network.cacheless.terms import Term

_NUMBERS = names("get_seq_length get_usable_length")
"""Methods of caches that tell how long they are: an empty one is not."""
CONVERTING = frozenset(("to_legacy_cache", "to"))
"""Methods of caches that give the same in another form."""
_WRITTEN = "written"
"""What is noted of an index of a layer, or of the cache, once something was put there."""
_PILES = frozenset(("tuple", "list", "dict"))
_USUAL_CACHES = frozenset(("Cache", "DynamicCache"))


class EmptyCaches(Items):
    """Follows what is done with caches in which nothing is yet."""

    def in_cache(self, base: Term, name: str, given: Arguments) -> Term:
        """Return what a method of an empty cache gives: what it got, or nothing yet."""
        if base is self.terms.marks:
            return self.terms.false
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
            return (
                self.item(self.terms("extent"), given.positional[0])
                if given.positional
                else self.terms("extent")
            )
        if name == "update" and len(given.positional) >= 2:
            return self._updated(
                given.positional, given.positional[2] if len(given.positional) > 2 else index
            )
        self.has_written = True  # Nobody knows what else fills a cache.
        return base

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

        No block has that of another one, which ``gclint.model.numbering`` finds out.
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

    def note_run(self, given: Arguments) -> None:
        """Take note that a block may have filled the caches that what has run it has."""
        passed = (*given.positional, *dict(given.named).values())
        if self.has_written and any(self.terms.cache in self.terms.leaves(each) for each in passed):
            self.held[self.terms.cache, _WRITTEN] = self.terms.true
            self.fill()

    def fill(self) -> None:
        """Let caches be filled ones, if blocks were run that may have filled them."""
        if (self.terms.cache, _WRITTEN) in self.held:
            for frame in self.frames:
                frame.names.update({name: self.terms.filled_one(each) for name, each in frame.names.items()})
            self.held.update({key: self.terms.filled_one(each) for key, each in self.held.items()})

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
