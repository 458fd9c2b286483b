"""What the two sides of the verifier tell each other: JSON objects, one a line.

The host writes one :class:`Request` to the worker's standard input; the worker answers with messages until
it is done. Both sides import this module, so it needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.estimates import MemoryEstimate, Question
from gclint.verify.worker.known import Known
from gclint.verify.worker.modes import Mode as Mode
from gclint.verify.worker.modes import Place as Place
from gclint.verify.worker.practices import title_of
from gclint.verify.worker.scenarios import scenario_named

Outcome = Literal["passed", "failed", "not run"]
"""``not run``: no defect, but the class cannot be judged; its ``reason`` says why."""

NO_FLAG = "no support flag"
"""The category of classes that checkpoint, and in which checkpointing cannot be switched on."""


@dataclass(frozen=True)
class Source:
    """A modeling file to verify."""

    path: str
    """Absolute."""
    module: str
    """The dotted name that it is imported under."""
    package_folder: str | None = None
    """For a file outside of any package: the folder that its relative imports are relative to."""
    only: tuple[str, ...] = ()
    """The names of the classes to run; none means all."""
    complete: bool = False
    """Whether to run also what only a comparison of two texts of a model needs."""


@dataclass(frozen=True)
class Request:
    """What the worker shall do, in its first and only line of input."""

    sources: tuple[Source, ...]
    search_path: tuple[str, ...] = ()
    """Folders to put in front of ``sys.path``: where the tree under test is imported from."""
    overlay: dict[str, str] = field(default_factory=dict)
    """Texts to import in place of what is in the files at these absolute paths."""
    device: str = "cpu"
    """``auto``, ``cpu``, ``cuda`` or ``cuda:n``."""
    jobs: int | None = None
    """How many processes run at once; one for each core, or for each GPU, if that is not said."""
    seconds: float = 120.0
    """The time limit of one class, of wall-clock time."""
    gigabytes: float = 8.0
    """The memory limit of one process on a CPU."""
    watched: tuple[Place, ...] = ()
    """The places in the overlay's texts of which to say whether they were run."""
    home: str = ""
    """An empty folder for what is kept for a user; the real one is used if there is none."""
    gpu_gigabytes: float | None = None
    """The limit of what one process takes of a GPU's memory."""
    known: tuple[Known, ...] = ()
    """What users say about classes of theirs."""
    practices: tuple[str, ...] = ()
    """The names of the practices in training that are run beside the scenarios."""
    question: Question | None = None
    """What to estimate, in place of running classes of the one source."""
    is_listing: bool = False
    """Whether only to say which classes the sources have, in place of running them."""


@dataclass(frozen=True)
class Environment:
    """What the worker runs in; its first message."""

    python: str
    torch: str
    transformers: str
    device: str
    """``cpu``, or the name of the GPU."""
    isolation: tuple[str, ...] = field(default=(), compare=False)
    """What keeps the code that is run apart from the machine, in words."""
    numerics: tuple[str, ...] = ()
    """What is set for its numbers to be the same each time, in words."""


@dataclass(frozen=True)
class Discovered:
    """The model classes of a source that will be run, before any of them is."""

    source: str
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Unusable:
    """A source that cannot be imported, or a worker that cannot work (then without a source)."""

    message: str
    source: str | None = None


@dataclass(frozen=True)
class Difference:
    """Where two passes begin to do different things.

    These are the forward pass and its recomputation, or the forward passes without and with checkpointing.
    """

    operation: str
    """What was done in the first of them."""
    first: tuple[Place, ...]
    """The line that did it, and those that called it, the innermost first."""
    second: tuple[Place, ...]
    """The same in the other pass."""


@dataclass(frozen=True)
class Failure:
    """One check that does not hold."""

    check: str
    """The name of the check, such as ``gradients``."""
    mode: Mode
    scenario: str
    """The name of one of the table's, such as ``default``, ``cache`` or ``cross-attention``."""
    message: str
    """What was seen."""
    parameters: tuple[str, ...] = ()
    """The parameters that it is about."""
    places: tuple[Place, ...] = ()
    """The run sites that it is about."""
    cause: Cause | None = None
    """What it comes from, where that is known."""
    explanation: str = ""
    """The cause in sentences, with the source's names and lines, and what to do about it."""
    difference: Difference | None = None
    """The first operation that differs, where that was seen."""
    blocks: tuple[str, ...] = ()
    """The names of the blocks that it is about."""

    @property
    def text(self) -> str:
        """What was seen, and what it comes from."""
        return f"{self.message}. {self.explanation}" if self.explanation else self.message

    def __post_init__(self) -> None:
        scenario_named(self.scenario)  # What has no scenario cannot be shown by a script.


@dataclass(frozen=True)
class RunSite:
    """What one call in the source did with blocks of one class, over all steps."""

    place: Place
    block: str
    """The name of the block's class."""
    definition: Place
    """Where the block's class is defined."""
    is_layer: bool
    """Whether the class is a ``GradientCheckpointingLayer``."""
    is_trunk: bool
    """Whether the blocks are stacked, feed one another, and mix the places of a sequence."""
    calls: int
    """How many calls in the forward passes of checkpointed steps."""
    recomputed: bool | None
    """Whether all of them were recomputed in the backward pass; None where that was not seen."""
    keyword_activations: tuple[str, ...] = ()
    """Keyword arguments that carried gradient."""
    contained_activations: tuple[str, ...] = ()
    """Arguments that held tensors which require grad inside of containers."""
    positional_caches: tuple[str, ...] = ()
    """The parameters that a cache was passed to by position."""
    rewritten_caches: tuple[str, ...] = ()
    """The classes of the caches that were written to during recomputation."""
    shared_activations: tuple[str, ...] = ()
    """The arguments among those above that several calls were passed tensors of one graph in."""


@dataclass(frozen=True)
class InputEmbedding:
    """What ``get_input_embeddings()`` of a model class has to return, so that a first block is fed by it."""

    place: Place
    """Where the class is defined."""
    model: str
    """The name of the class."""
    module: str
    """The way from the model to the module, such as ``embeddings.projection``."""
    present: str | None = None
    """What it returns now: the way to a module, empty for one that is outside; None for nothing."""
    fails: bool = False
    """Whether that returns something other than one tensor, so that the hook on it raises."""


@dataclass(frozen=True)
class Cost:
    """What steps of one mode cost, in the default scenario without dropout."""

    mode: Mode
    saved_bytes: int
    """Bytes that autograd kept for the backward pass of one step, parameters left out."""
    seconds: float
    """Wall-clock time of one step."""
    peak_bytes: int | None = None
    """The most memory that a step allocated on the GPU, beyond what was allocated before; only on one."""


@dataclass(frozen=True)
class Fingerprint:
    """What a plain step computed, to compare two texts of the same model."""

    scenario: str
    digest: str
    """SHA-256 over the bytes of everything that it computed."""
    loss: float
    parts: dict[str, str] = field(default_factory=dict)
    """The beginnings of the digests of all losses, outputs, gradients and buffers, by name."""
    sketches: dict[str, list[float]] = field(default_factory=dict)
    """On a GPU, where bits may differ from run to run: for each of these its norm, how far a second run was
    off, and what a few fixed vectors of random numbers give with it."""


@dataclass(frozen=True)
class Observation:
    """One thing that was wrong in one run; failures tell several of one cause together, and once for all."""

    check: str
    """The name of the check that saw it; with a frozen base, too, what is seen without."""
    message: str
    about: tuple[str, ...] = ()
    """All that it is about: parameters, buffers, blocks, outputs or attributes."""
    cause: Cause | None = None
    explanation: str = ""


@dataclass(frozen=True)
class Verdict:
    """Everything that one scenario showed in one mode, so that two texts of a model can be compared."""

    scenario: str
    mode: Mode
    observations: tuple[Observation, ...] = ()
    compared: int = 0
    """How many parameters' gradients were compared; what is zero but for rounding in both runs is, too."""
    not_compared: tuple[str, ...] = ()
    """What had a value without checkpointing, and could not be judged."""
    recomputed: tuple[str, ...] = ()
    """The names of the blocks that were recomputed."""
    saved_bytes: int | None = None
    """What was kept for the backward pass of the first step, by autograd and by the checkpoints."""


@dataclass(frozen=True)
class Recipe:
    """What somebody needs in order to run a class as it was run here."""

    config_class: str
    """Its dotted name."""
    config: dict[str, Any]
    """What to give to its ``from_dict``."""
    inputs: dict[str, str]
    """The keyword arguments of ``forward``, as Python expressions of ``torch``."""
    other_inputs: dict[str, str] = field(default_factory=dict)
    """Those of a batch of another length; the two take turns."""
    keeps_cache: bool = False
    """Whether the model makes the cache that it likes, as it cannot be run without."""


@dataclass(frozen=True)
class NotCompared:
    """Parameters whose gradients could not be compared."""

    reason: str
    """``rounding``: it changes them as much; ``not reproducible``: each plain run has others."""
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Stability:
    """How the gradients of a mixture of experts bear noise that only the recomputation has."""

    experts: str
    """How the experts were computed, such as ``eager``."""
    grade: Literal["stable", "amplifies", "raises"]
    moved: float
    """How far the gradient of a parameter was moved at most, as a part of its norm."""
    error: str = ""


SetUpOutcome = Literal["works", "fails", "not run"]
"""``works``: blocks were recomputed, and the gradients are those without checkpointing."""


@dataclass(frozen=True)
class SetUp:
    """What came of training a class in one of the ways in which people train."""

    group: str
    """Such as ``ddp``; with the name, that of a practice in the table."""
    name: str
    """Such as ``R/static``."""
    data: str
    """What the batches held, such as ``text``; empty for what the synthesis makes."""
    outcome: SetUpOutcome
    symptom: str = ""
    """The kind of failure, or of the reason not to run it, in two or three words."""
    message: str = ""
    """What was seen, or why it was not run."""
    parameters: tuple[str, ...] = ()
    """The parameters that it is about."""
    recomputed: int | None = None
    """How many blocks were recomputed; None where that was not seen."""
    blocks: int | None = None
    """How many blocks ran."""

    @property
    def title(self) -> str:
        """The name of the practice, as it is asked for."""
        return title_of(self.group, self.name, self.data)


@dataclass(frozen=True)
class Advice:
    """Which of the practices of a group to use with a class."""

    group: str
    setting: str
    """Such as ``use_reentrant=False, find_unused_parameters=True``; empty if nothing that was run works."""
    sentence: str
    """The same for people, with what it avoids."""


@dataclass(frozen=True)
class ClassResult:
    """Everything that is known about one model class."""

    source: str
    name: str
    outcome: Outcome
    reason: str | None = None
    """Why it was not run."""
    category: str | None = None
    """The kind of that reason in a word or two, to count them by."""
    scenarios: tuple[str, ...] = ()
    is_cut_short: bool = False
    """Whether its process ended before all scenarios were run, so that nobody knows what the others show."""
    not_covered: tuple[str, ...] = ()
    """Parts of the model that no scenario ran, such as the tower of a modality."""
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    """What is worth knowing and no failure."""
    blocks: int = 0
    """How many blocks ran in the forward pass."""
    recomputed: int = 0
    """How many of them were recomputed, in the mode that recomputed fewer."""
    sites: tuple[RunSite, ...] = ()
    costs: tuple[Cost, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    recipe: Recipe | None = None
    """How to reproduce it, where something failed."""
    seconds: float = 0.0
    compared: int = 0
    """How many parameters' gradients were compared, in the run in which that was the smallest share."""
    parameters: int = 0
    """How many parameters had a gradient there."""
    not_compared: tuple[NotCompared, ...] = ()
    """The others, by the reason."""
    verdicts: tuple[Verdict, ...] = ()
    """What each scenario showed in each mode, also what no failure tells again."""
    executed: tuple[Place, ...] = ()
    """The places in changed texts that were to be watched, and that were run."""
    embeddings: tuple[InputEmbedding, ...] = ()
    """What lets the first blocks be fed by what requires grad, where nothing does with a frozen base."""
    made_of: tuple[str, ...] = ()
    """The classes of its modules and their bases, as ``path::name``; for a comparison of two texts only."""
    stability: tuple[Stability, ...] = ()
    """How it bears noise in what is recomputed, where it has experts."""
    setups: tuple[SetUp, ...] = ()
    """What came of the practices in training that were asked for."""
    advice: tuple[Advice, ...] = ()
    """Which of them to use, for each group."""


@dataclass(frozen=True)
class Progress:
    """What a class begins with."""

    source: str
    name: str
    scenario: str
    mode: Mode
    step: str
    """Words that follow "during", such as ``the backward pass``."""


@dataclass(frozen=True)
class Done:
    """The last message: everything was run."""


Message = Environment | Discovered | Unusable | Progress | ClassResult | MemoryEstimate | Done
_KINDS = {kind.__name__: kind for kind in (*get_args(Message), Request)}


def encode(message: Message | Request) -> str:
    """Return one line of JSON, without its end."""
    content = {"kind": type(message).__name__, **vars(message)}
    return json.dumps(content, separators=(",", ":"), default=vars)


def write_message(handle: int, message: Message) -> None:
    """Write a message to an open file, whole: a pipe may take a part of it at a time."""
    data = f"{encode(message)}\n".encode()
    while data:
        data = data[os.write(handle, data) :]


def decode(line: str) -> Message | Request:
    """Return what :func:`encode` was given.

    Raises:
        ValueError: ``line`` is something else.
    """
    try:
        content = json.loads(line)
        kind = _KINDS[content.pop("kind")]
        decoded: Message | Request = _restore(kind, content)
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"not a message of the verifier: {line[:80]!r}") from error
    return decoded


def _restore(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(hint, type) and is_dataclass(hint):
        hints = _hints(hint)
        return hint(**{name: _restore(hints[name], each) for name, each in value.items()})
    if get_origin(hint) is tuple:
        return tuple(_restore(get_args(hint)[0], each) for each in value)
    if hint is Cause:
        return _cause(value)
    # The only unions are those with None.
    inner = [each for each in get_args(hint) if is_dataclass(each) or each is Cause]
    return _restore(inner[0], value) if inner else value


def _cause(value: Any) -> Cause:
    try:
        return Cause(value)
    except ValueError:
        raise ValueError(f"this version of gclint knows no cause {value!r}") from None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, vars(sys.modules[kind.__module__]))
