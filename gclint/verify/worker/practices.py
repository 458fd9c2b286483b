"""The table of set-ups in which people train, other than in one process with everything trainable.

Each is requested by name, runs with the same tiny model and batch as the scenarios, and makes one row of a
class's result. Both sides import this module, so it needs only Python.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from gclint.verify.worker.modes import Mode

MISSING_LIBRARY = "missing library"
"""The symptom if the interpreter lacks a library for a practice; the message says which extra has it."""
NOTHING_RECOMPUTED, LOST, WRONG = "nothing recomputed", "lost gradients", "wrong gradients"
"""The symptoms of steps that raise nothing."""
BUFFER = "buffer "
"""What the names of buffers begin with among those of parameters."""
ALL = "all"
"""Requests every usual practice."""
_SHORT: dict[str, Mode] = {"N": "non-reentrant", "R": "reentrant"}
TEXT, IMAGES, MIXED = "text", "images", "images and videos"
ONE_IMAGE, TWO_FORWARDS, TWO_RANKS = "image on one rank", "two forwards", "two ranks"
"""The contents of batches."""
SHARDED = "fully_shard"
DDP, PEFT, WRAPPER, AUTOCAST, COMPILE = "ddp", "peft", "wrapper", "autocast", "compile"
TRAINER = "trainer"
"""The group of those that a Trainer of the user's decides, which no name requests."""
AS_IT_IS, OFF, SWITCHED = "as it is", "without checkpointing", "with checkpointing"
KNOWN = "known"
"""The symptom of a set-up that was not run, of which something is known without that."""
INPUTS, REENTRANT = "model.enable_input_require_grads()", "use_reentrant"
FIND_UNUSED, STATIC = "ddp_find_unused_parameters", "ddp_static_graph"


class UnknownPractice(ValueError):
    """There is no such practice; the message lists those that exist."""


@dataclass(frozen=True)
class Practice:
    """A way in which people train; the module of its group implements it."""

    group: str
    """The name by which it is requested, together with others of its kind."""
    name: str
    """Unique in its group, together with ``data``."""
    mode: Mode
    """How checkpointing is enabled."""
    data: str = ""
    """The content of the batches, if not the usual one."""
    is_usual: bool = True
    """Whether it runs if all practices, or all of its group, are requested."""
    ranks: int = 1
    """How many processes train together."""
    is_tentative: bool = False
    """Whether some classes cannot be trained this way; these have no row if the reference cannot be run."""

    @property
    def is_together(self) -> bool:
        """Whether there are several processes, which exchange gradients."""
        return self.ranks > 1

    @property
    def title(self) -> str:
        """The name by which this practice alone is requested."""
        return title_of(self.group, self.name, self.data)

    def reference(self) -> Practice:
        """Return the practice whose gradients it must match."""
        return replace(self, mode="plain")

    def controls(self) -> tuple[tuple[Practice, str], ...]:
        """Return what to try if it fails, each with what it leaves out, as words that follow "without"."""
        return ()


def title_of(group: str, name: str, data: str) -> str:
    """Return the name by which a practice alone is requested, without spaces."""
    return ":".join((group, name, *([data.replace(" ", "-")] if data else [])))


_SPELLED = {
    "N": "use_reentrant=False",
    "R": "use_reentrant=True",
    "plain": "",
    "find-unused": "find_unused_parameters=True",
    "static": "static_graph=True",
    "first": "enabled before the adapters",
    "cache": "with a cache",
    "no-cache": "without a cache",
    "named": "classes named",
}
"""What the parts of names mean, for readers who have not seen the tables of the documentation."""


def spelled_out(name: str) -> str:
    """Return the name of a practice in words."""
    parts = name.split("/")
    # Of a name that is not a setting alone, each part says something.
    return ", ".join(filter(None, (_SPELLED.get(each, each) for each in parts))) or name


@dataclass(frozen=True)
class ParallelPractice(Practice):
    """Training with DistributedDataParallel."""

    find_unused: bool = False
    """The value of ``find_unused_parameters``."""
    static: bool = False
    """The value of ``static_graph``."""
    by_trainer: bool = False
    """Whether the Trainer of transformers chooses both."""
    has_adapters: bool = False
    """Whether adapters are trained, on a frozen model."""
    is_wrapped: bool = True
    """Whether the model is wrapped at all; if not, this is the reference."""

    @property
    def is_together(self) -> bool:
        """Whether there are several processes, which exchange gradients."""
        return self.ranks > 1 and self.is_wrapped

    def reference(self) -> Practice:
        """Return training without DistributedDataParallel and checkpointing, one for all settings."""
        return replace(self._alone(), mode="plain")

    def controls(self) -> tuple[tuple[Practice, str], ...]:
        """Return the same without either of the two; several settings share these."""
        alone = (self._alone(), "DistributedDataParallel")
        if self.by_trainer:
            # Without checkpointing, the Trainer would choose something else.
            return (alone,)
        setting = self.name.partition("/")[2]
        return (replace(self, name=setting, mode="plain"), "checkpointing"), alone

    def _alone(self) -> ParallelPractice:
        return ParallelPractice(
            self.group,
            "alone",
            self.mode,
            self.data,
            ranks=self.ranks,
            is_tentative=self.is_tentative,
            has_adapters=self.has_adapters,
            is_wrapped=False,
        )


@dataclass(frozen=True)
class AdapterPractice(Practice):
    """Training with adapters of peft on a frozen model."""

    adapters: str = "LoRA"
    """Their kind: ``LoRA``, ``modules_to_save``, ``prompt tuning``, ``p-tuning`` or ``prefix tuning``."""
    enabling: str = ""
    """When checkpointing is enabled: ``before`` or ``after`` the adapters are added, or as ``k-bit``,
    ``k-bit without arguments`` or ``k-bit, not quantised`` have it."""

    def reference(self) -> Practice:
        """Return the same adapters without checkpointing: one run for all ways to enable it."""
        return replace(self, name=self.adapters, mode="plain", enabling="")


@dataclass(frozen=True)
class WrapperPractice(Practice):
    """Training with blocks that something other than transformers checkpoints."""

    by: str = ""
    """What does so: accelerate for ``fsdp`` or ``fsdp2``; for ``fully_shard`` it is transformers."""
    is_cached: bool = False
    """Whether ``use_cache`` is left at its default, instead of being disabled."""
    has_dropout: bool = False
    are_named: bool = False
    """Whether the classes of the blocks are named, instead of the model's `_no_split_modules`."""

    def reference(self) -> Practice:
        """Return the plain run without a cache, which all share."""
        return replace(self, name="plain", mode="plain", by="", is_cached=False, are_named=False)

    def controls(self) -> tuple[tuple[Practice, str], ...]:
        """Return the same without checkpointing, if that is not the reference."""
        if self.by == SHARDED:
            return ((replace(self, mode="plain"), "checkpointing"),)
        cached = replace(self, name="cache", mode="plain", by="")
        return ((cached, "checkpointing"),) if self.is_cached else ()


@dataclass(frozen=True)
class CompilePractice(Practice):
    """Training a model compiled by torch.compile."""

    is_cached: bool = False
    """Whether ``use_cache`` is left at its default, instead of being disabled."""
    is_compiled: bool = True

    def reference(self) -> Practice:
        """Return the plain run without compilation, which all share."""
        return replace(self, name="plain", mode="plain", is_cached=False, is_compiled=False)

    def controls(self) -> tuple[tuple[Practice, str], ...]:
        """Return the same without checkpointing."""
        return ((replace(self, name="compiled", mode="plain"), "checkpointing"),)


@dataclass(frozen=True)
class TrainerPractice(Practice):
    """Training as a Trainer that the user has built does it, with some of its settings changed."""

    requires_inputs: bool = False
    """Whether ``enable_input_require_grads()`` is called before."""
    options: tuple[tuple[str, bool], ...] = ()
    """The arguments of DistributedDataParallel."""
    others: tuple[tuple[str, str], ...] = ()
    """Further arguments of checkpoints, as code."""
    word: str = "gradient"
    """What the release calls this kind of checkpointing in the Trainer's arguments."""
    made_by: str = "TrainingArguments"
    """The class of the Trainer's arguments."""
    switch: tuple[str, ...] | None = None
    """The lines that switch checkpointing on; None if the Trainer does."""

    @property
    def is_own(self) -> bool:
        """Whether nothing is changed."""
        return self.name == AS_IT_IS

    def reference(self) -> Practice:
        """Return the same without checkpointing, with what lets any batch pass through all processes."""
        options = ((FIND_UNUSED, True), (STATIC, False)) if self.options else ()
        return replace(self, name=OFF, mode="plain", requires_inputs=False, options=options, others=())

    def controls(self) -> tuple[tuple[Practice, str], ...]:
        """Return the same without checkpointing, if that is not the reference."""
        alone = replace(self, name=OFF, mode="plain", requires_inputs=False, others=())
        return () if alone == self.reference() or self.mode == "plain" else ((alone, "checkpointing"),)

    def settings(self) -> dict[str, object]:
        """Return all that may be set otherwise."""
        return {
            f"{self.word}_checkpointing": self.mode != "plain",
            REENTRANT: self.mode == "reentrant",
            INPUTS: self.requires_inputs,
            **dict((*self.options, *self.others)),
        }

    def lines(self) -> tuple[str, ...]:
        """Return the lines of code that set it."""
        if self.switch is not None:
            return self.switch if self.mode != "plain" else ()
        chosen = [f"{self.word}_checkpointing={self.mode != 'plain'}"]
        if self.mode != "plain":
            chosen.append(f'{self.word}_checkpointing_kwargs={{"{REENTRANT}": {self.mode == "reentrant"}}}')
        chosen += [f"{name}={value}" for name, value in self.options if value or name == FIND_UNUSED]
        first = (INPUTS,) if self.requires_inputs else ()
        return (*first, f"{self.made_by}(", "    ...,", *(f"    {each}," for each in chosen), ")")


def trainer_practices(own: TrainerPractice, *, is_frozen: bool) -> tuple[TrainerPractice, ...]:
    """Return what is tried for a trainer: its own setting first, then those that it could have.

    Args:
        own: its own setting.
        is_frozen: whether parameters are frozen.
    """
    usual, is_parallel = replace(own, others=()), bool(own.options)
    found = [own, replace(usual, name=OFF, mode="plain")]
    if own.switch is not None:
        found.append(replace(usual, name=SWITCHED, mode="non-reentrant"))
        return tuple(each for each in found if each.is_own or each.mode != own.mode)
    ddp: list[dict[str, bool]] = [{}]
    for short, mode in _SHORT.items():
        if is_parallel:
            ddp = [{FIND_UNUSED: False}, {FIND_UNUSED: True} if short == "N" else {STATIC: True}]
        for options in ddp:
            values = {FIND_UNUSED: False, STATIC: False, **options} if is_parallel else {}
            chosen = ", ".join(f"{k}={v}" for k, v in {REENTRANT: mode == "reentrant", **options}.items())
            made = replace(usual, name=chosen, mode=mode, options=tuple(values.items()))
            found.append(made)
            if is_frozen and mode == "reentrant":
                found.append(replace(made, name=f"{chosen} after {INPUTS}", requires_inputs=True))
    return (own, *(each for each in found[1:] if replace(each, name=AS_IT_IS) != own))


def _adapters() -> Iterator[Practice]:
    make = partial(AdapterPractice, PEFT)
    for short, mode in _SHORT.items():
        yield make(f"LoRA/{short}", mode, enabling="after")
        yield make(f"LoRA/{short}/first", mode, enabling="before")
    for short, mode in _SHORT.items():
        yield make(f"k-bit/{short}", mode, enabling="k-bit")
    yield make("k-bit/default", "reentrant", enabling="k-bit without arguments")
    yield make("k-bit/unquantised", "non-reentrant", enabling="k-bit, not quantised")
    for kind in ("modules_to_save", "prompt tuning", "p-tuning", "prefix tuning"):
        for short, mode in _SHORT.items():
            yield make(f"{kind.replace(' ', '-')}/{short}", mode, adapters=kind, enabling="after")


def _wrappers() -> Iterator[Practice]:
    make = partial(WrapperPractice, WRAPPER, mode="non-reentrant")
    for by in ("fsdp", "fsdp2"):
        yield make(f"{by}/cache", by=by, is_cached=True)
        yield make(f"{by}/no-cache", by=by)
        yield make(f"{by}/named", by=by, are_named=True)
        yield make(f"{by}/dropout", by=by, has_dropout=True, are_named=True)
    yield make(SHARDED, by=SHARDED)


def _parallel() -> Iterator[Practice]:
    options = {"plain": {}, "find-unused": {"find_unused": True}, "static": {"static": True}}
    cells = ("N/plain", "N/find-unused", "R/plain", "R/static")
    wanted = [(cell, data) for data in ("", TEXT, IMAGES, MIXED, TWO_FORWARDS) for cell in cells]
    # This fails on any data, and with one process as well as with two.
    wanted += [("R/find-unused", data) for data in ("", IMAGES)]
    wanted += [(cell, ONE_IMAGE) for cell in cells] + [(cell, TWO_RANKS) for cell in ("N/plain", "R/static")]
    for name, data in wanted:
        mode, _, option = name.partition("/")
        ranks = 2 if data in (ONE_IMAGE, TWO_RANKS) else 1
        is_tentative = data in (TEXT, IMAGES, MIXED, ONE_IMAGE)
        yield ParallelPractice(
            DDP, name, _SHORT[mode], data, ranks=ranks, is_tentative=is_tentative, **options[option]
        )
    make = partial(ParallelPractice, DDP, by_trainer=True)
    for short, mode in _SHORT.items():
        yield make(f"{short}/Trainer", mode)
        yield make(f"{short}/Trainer/LoRA", mode, has_adapters=True, is_tentative=True)


def _compiled() -> Iterator[Practice]:
    make = partial(CompilePractice, COMPILE, is_usual=False)
    yield make("N/cache", _SHORT["N"], is_cached=True)
    for short, mode in _SHORT.items():
        yield make(f"{short}/no-cache", mode)


PRACTICES: tuple[Practice, ...] = (
    *_parallel(),
    *_adapters(),
    *_wrappers(),
    *(Practice(AUTOCAST, short, mode) for short, mode in _SHORT.items()),
    *_compiled(),
)
"""All practices, group by group, in the order in which they are run."""


def groups() -> tuple[str, ...]:
    """Return the names of the groups."""
    return tuple(dict.fromkeys(each.group for each in PRACTICES))


def practice_titled(title: str) -> Practice | None:
    """Return the practice with a title; None if there is none, as for the name of a scenario."""
    return next((each for each in PRACTICES if each.title == title), None)


def practices_named(names: Iterable[str]) -> tuple[Practice, ...]:
    """Return the practices that ``all``, names of groups and titles request, each once, in the table's order.

    Raise UnknownPractice if one of the names is unknown.
    """
    requested = set()
    for name in names:
        found = [each for each in PRACTICES if _is_requested(each, name)]
        if not found:
            raise UnknownPractice(_unknown(name))
        requested.update(found)
    return tuple(each for each in PRACTICES if each in requested)


def _is_requested(practice: Practice, name: str) -> bool:
    if name == practice.title:
        return True
    # A group without usual practices is requested only by its name.
    is_usual = practice.is_usual or (name != ALL and not _has_usual(practice.group))
    return name in (ALL, practice.group) and is_usual


def _has_usual(group: str) -> bool:
    return any(each.is_usual for each in PRACTICES if each.group == group)


def _unknown(name: str) -> str:
    known = [ALL, *groups(), *(each.title for each in PRACTICES)]
    near = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    if ":" in name and (group := name.partition(":")[0]) in groups():
        choices = [each.title for each in PRACTICES if each.group == group]
    else:
        choices = [ALL, *groups()]
    return f"there is no set-up {name!r}{meant} (choose from {', '.join(choices)})"
