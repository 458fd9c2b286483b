"""The messages between the two sides of the verifier: JSON objects, one per line.

The host writes one :class:`Request` to the worker's standard input; the worker answers with messages until
it is done. Both sides import this module, so it needs only Python.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field, is_dataclass
from functools import cache, lru_cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gclint.verify.worker.branches import Branch
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.class_settings import ClassSettings
from gclint.verify.worker.estimates import EstimateRequest, MemoryEstimate
from gclint.verify.worker.modes import Mode as Mode
from gclint.verify.worker.modes import SourcePlace as SourcePlace
from gclint.verify.worker.practices import title_of
from gclint.verify.worker.scenarios import scenario_named

Outcome = Literal["passed", "failed", "not run"]
"""``not run``: there is no defect, but the class cannot be judged; its ``reason`` says why."""

NO_FLAG = "no support flag"
"""The category of classes whose code uses checkpointing, but for which it cannot be enabled."""


@dataclass(frozen=True)
class Source:
    """A modeling file to verify."""

    path: str
    """Absolute."""
    module: str
    """The dotted name under which it is imported."""
    package_folder: str | None = None
    """For a file outside of any package: the base folder of its relative imports."""
    only: tuple[str, ...] = ()
    """The names of the classes to run; empty for all."""
    complete: bool = False
    """Whether to run everything that a comparison of two versions of a model needs."""


@dataclass(frozen=True)
class Request:
    """The task of the worker, its only line of input."""

    sources: tuple[Source, ...]
    search_path: tuple[str, ...] = ()
    """Folders to prepend to ``sys.path``, from which the tree under test is imported."""
    overlay: dict[str, str] = field(default_factory=dict)
    """Texts to import in place of the files at these absolute paths."""
    device: str = "cpu"
    """``auto``, ``cpu``, ``cuda`` or ``cuda:n``."""
    jobs: int | None = None
    """The number of processes; by default one per core, or per GPU."""
    seconds: float = 120.0
    """The time limit of one class, in CPU time of all its processes."""
    gigabytes: float = 8.0
    """The memory limit of one class on a CPU, of all its processes together."""
    watched: tuple[SourcePlace, ...] = ()
    """The places in the overlay's texts to watch for execution."""
    also_marked: tuple[str, ...] = ()
    """Further files whose branches are watched, if they are imported."""
    home: str = ""
    """An empty folder for data of the user; if there is none, the real folders are used."""
    gpu_gigabytes: float | None = None
    """The limit of one process on GPU memory."""
    known: tuple[ClassSettings, ...] = ()
    """The user's settings for classes."""
    practices: tuple[str, ...] = ()
    """The names of the practices to run in addition to the scenarios."""
    question: EstimateRequest | None = None
    """What to estimate, instead of running the classes of the only source."""
    is_listing: bool = False
    """Whether only to list the classes of the sources, instead of running them."""
    script: str | None = None
    """The script to run, instead of any classes."""


@dataclass(frozen=True)
class Environment:
    """The environment of the worker; its first message."""

    python: str
    torch: str
    transformers: str
    device: str
    """``cpu``, or the name of the GPU."""
    isolation: tuple[str, ...] = field(default=(), compare=False)
    """How the code is isolated from the machine, in words."""
    numerics: tuple[str, ...] = ()
    """The settings for reproducible numbers, in words."""


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
class Divergence:
    """Where two passes begin to differ.

    These are the forward pass and its recomputation, or the forward passes without and with checkpointing.
    """

    operation: str
    """The operation in the first of them."""
    first: tuple[SourcePlace, ...]
    """Its line and those of its callers, the innermost first."""
    second: tuple[SourcePlace, ...]
    """The same in the other pass."""


@dataclass(frozen=True)
class Coverage:
    """What was executed of a file in steps that could be judged."""

    path: str
    is_inside: bool
    """Whether only what was executed inside of blocks counts."""
    entered: tuple[int, ...]
    """The lines of the functions that were executed."""
    missed: tuple[Branch, ...]
    """The branches of these that were not; of nested ones, the outer."""
    is_marked: bool = True
    """Whether it could be seen at all: a file may be nested too deeply."""


Part = Literal["inside", "around", "elsewhere"]
"""Where a branch is: in a block, or in what that uses; between the loop that runs blocks and the end of its
function, as far as it depends on the loop; or neither."""


@dataclass(frozen=True)
class Unreached:
    """A branch that no run has executed, although its function was."""

    path: str
    branch: Branch
    part: Part


@dataclass(frozen=True)
class Failure:
    """One check that does not hold."""

    check: str
    """The name of the check, such as ``gradients``."""
    mode: Mode
    scenario: str
    """The name of a scenario, such as ``default``, ``cache`` or ``cross-attention``."""
    message: str
    """What was observed."""
    parameters: tuple[str, ...] = ()
    """The parameters that it is about."""
    places: tuple[SourcePlace, ...] = ()
    """The call sites that it is about."""
    cause: Cause | None = None
    """Its cause, if known."""
    explanation: str = ""
    """The cause in sentences, with the source's names and lines, and what to do about it."""
    difference: Divergence | None = None
    """The first operation that differs, if it was seen."""
    blocks: tuple[str, ...] = ()
    """The names of the blocks that it is about."""
    step: int = 0
    """The step in which an error is raised, counted from 0."""

    @property
    def text(self) -> str:
        """The observation, and the explanation."""
        return f"{self.message}. {self.explanation}" if self.explanation else self.message

    def __post_init__(self) -> None:
        scenario_named(self.scenario)  # Without a scenario, no script can show it.


@dataclass(frozen=True)
class ObservedSite:
    """What one call site did with blocks of one class, over all steps."""

    place: SourcePlace
    block: str
    """The name of the block's class."""
    definition: SourcePlace
    """Where the block's class is defined."""
    is_layer: bool
    """Whether the class is a ``GradientCheckpointingLayer``."""
    is_trunk: bool
    """Whether the blocks are stacked, feed one another, and mix tokens."""
    calls: int
    """The number of calls in the forward passes of checkpointed steps."""
    recomputed: bool | None
    """Whether all of them were recomputed in the backward pass; None if unknown."""
    keyword_activations: tuple[str, ...] = ()
    """Keyword arguments that required grad."""
    contained_activations: tuple[str, ...] = ()
    """Arguments that are containers with tensors that required grad."""
    positional_caches: tuple[str, ...] = ()
    """The parameters to which a cache was passed by position."""
    rewritten_caches: tuple[str, ...] = ()
    """The classes of the caches that were written to during recomputation."""
    shared_activations: tuple[str, ...] = ()
    """Those of these arguments in which several calls received tensors of one graph."""


@dataclass(frozen=True)
class InputEmbedding:
    """The module that ``get_input_embeddings()`` of a class should return, since it feeds a first block."""

    place: SourcePlace
    """Where the class is defined."""
    model: str
    """The name of the class."""
    module: str
    """The path from the model to the module, such as ``embeddings.projection``."""
    present: str | None = None
    """What it returns now: the path to a module, empty for one outside of the model; None for nothing."""
    fails: bool = False
    """Whether the output of that is not a single tensor, so that the hook on it raises."""


@dataclass(frozen=True)
class Cost:
    """The cost of steps in one mode, in the default scenario without dropout."""

    mode: Mode
    saved_bytes: int
    """Bytes that autograd saved for the backward pass of one step, without parameters."""
    seconds: float
    """Wall-clock time of one step."""
    peak_bytes: int | None = None
    """The peak of GPU memory in a step, beyond what was allocated before; None on a CPU."""


@dataclass(frozen=True)
class Fingerprint:
    """A fingerprint of what a plain step computed, to compare two versions of a model."""

    scenario: str
    digest: str
    """SHA-256 of the bytes of everything that it computed."""
    loss: float
    parts: dict[str, str] = field(default_factory=dict)
    """The beginnings of the digests of all losses, outputs, gradients and buffers, by name."""
    sketches: dict[str, list[float]] = field(default_factory=dict)
    """On a GPU, where bits may differ between runs: for each of these its norm, the difference to a second
    run, and its products with a few fixed random vectors."""


@dataclass(frozen=True)
class Observation:
    """One thing that was wrong in one run; a failure summarises all those with one cause."""

    check: str
    """The name of the check that saw it, the same with a frozen base as without."""
    message: str
    about: tuple[str, ...] = ()
    """Everything that it is about: parameters, buffers, blocks, outputs or attributes."""
    cause: Cause | None = None
    explanation: str = ""


@dataclass(frozen=True)
class Verdict:
    """Everything that one scenario showed in one mode, to compare two versions of a model."""

    scenario: str
    mode: Mode
    observations: tuple[Observation, ...] = ()
    compared: int = 0
    """How many parameters' gradients were compared, including those that are zero except for rounding."""
    not_compared: tuple[str, ...] = ()
    """What had a value without checkpointing, but could not be judged."""
    recomputed: tuple[str, ...] = ()
    """The names of the blocks that were recomputed."""
    saved_bytes: int | None = None
    """Bytes kept for the backward pass of the first step, by autograd and by checkpoints."""


@dataclass(frozen=True)
class Recipe:
    """What it takes to run a class as it was run here, with a feature that its configuration enables."""

    config_class: str
    """Its dotted name."""
    config: dict[str, Any]
    """Its keyword arguments; as few as make the same configuration."""
    inputs: dict[str, str]
    """The keyword arguments of ``forward``, as Python expressions of ``torch``."""
    other_inputs: dict[str, str] = field(default_factory=dict)
    """Those of a batch of another length, if two batches alternate."""
    keeps_cache: bool = False
    """Whether the model makes its own cache, since it cannot be run without one."""
    feature: str = "default"
    has_cache: bool = True
    """Whether anything in the model, or an argument of its ``forward``, enables a cache."""
    has_dropout: bool = True
    """Whether the model drops anything at random."""
    is_enabled: bool = False
    """Whether checkpointing is enabled in a new model."""


@dataclass(frozen=True)
class NotCompared:
    """Parameters whose gradients could not be compared."""

    reason: str
    """``rounding``: its effect on them is too large; ``not reproducible``: plain runs differ in them;
    ``not finite``: all of their values are zero, infinite or NaN without checkpointing."""
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Stability:
    """How the gradients of a mixture of experts react to noise in the recomputation."""

    experts: str
    """How the experts were computed, such as ``eager``."""
    grade: Literal["stable", "amplifies", "raises"]
    moved: float
    """The largest change of the gradient of a parameter, relative to its norm."""
    error: str = ""


SetUpOutcome = Literal["works", "fails", "not run"]
"""``works``: blocks were recomputed, and the gradients match those without checkpointing."""


@dataclass(frozen=True)
class SetUp:
    """The result of training a class in one set-up."""

    group: str
    """The group of the practice, such as ``ddp``."""
    name: str
    """The name of the practice, such as ``R/static``."""
    data: str
    """The content of the batches, such as ``text``; empty for the usual one."""
    outcome: SetUpOutcome
    symptom: str = ""
    """The kind of failure, or of the reason not to run it, in two or three words."""
    message: str = ""
    """What was observed, or why it was not run."""
    parameters: tuple[str, ...] = ()
    """The parameters that it is about."""
    recomputed: int | None = None
    """How many blocks were recomputed; None if unknown."""
    blocks: int | None = None
    """How many blocks ran."""
    saved_bytes: int | None = None
    """Bytes that autograd saved for the backward pass of one step, without parameters; None if unknown."""

    @property
    def title(self) -> str:
        """The name by which the practice is requested."""
        return title_of(self.group, self.name, self.data)


@dataclass(frozen=True)
class Advice:
    """Which practice of a group to use with a class."""

    group: str
    setting: str
    """Such as ``use_reentrant=False, find_unused_parameters=True``; empty if nothing that was run works."""
    sentence: str
    """The same as a sentence, with the failures that it avoids."""


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
    """Whether its process ended before all scenarios were run."""
    not_covered: tuple[str, ...] = ()
    """Parts of the model that no scenario ran, such as the tower of a modality."""
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks that are not failures."""
    blocks: int = 0
    """How many blocks ran in the forward pass."""
    recomputed: int = 0
    """How many of them were recomputed, in the mode that recomputed fewer."""
    sites: tuple[ObservedSite, ...] = ()
    costs: tuple[Cost, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    """How to reproduce its failures: one for each feature with which something failed."""
    seconds: float = 0.0
    compared: int = 0
    """How many parameters' gradients were compared, in the run with the smallest share."""
    parameters: int = 0
    """How many parameters had a gradient there."""
    not_compared: tuple[NotCompared, ...] = ()
    """The others, by the reason."""
    verdicts: tuple[Verdict, ...] = ()
    """What each scenario showed in each mode, including what failures do not repeat."""
    executed: tuple[SourcePlace, ...] = ()
    """The watched places in changed texts that were executed."""
    coverage: tuple[Coverage, ...] = ()
    """What was executed of its file, and of those with other texts."""
    unreached: tuple[Unreached, ...] = ()
    """The branches in and around its blocks that were not, but need not be left out."""
    embeddings: tuple[InputEmbedding, ...] = ()
    """The modules that would give the first blocks inputs that require grad with a frozen base."""
    made_of: tuple[str, ...] = ()
    """The classes of its modules and their bases, as ``path::name``; only to compare two versions."""
    stability: tuple[Stability, ...] = ()
    """How it reacts to noise in the recomputation, if it has experts."""
    setups: tuple[SetUp, ...] = ()
    """The results of the requested practices."""
    advice: tuple[Advice, ...] = ()
    """Which of them to use, by group."""

    @property
    def saved(self) -> dict[Mode, int]:
        """The bytes that autograd saves for the backward pass, by mode."""
        return {cost.mode: cost.saved_bytes for cost in self.costs}

    def recipe_of(self, failure: Failure) -> Recipe | None:
        """Return how to reproduce a failure, if it is known."""
        feature = scenario_named(failure.scenario).feature
        return next((each for each in self.recipes if each.feature == feature), None)


@dataclass(frozen=True)
class Progress:
    """A step that a class begins."""

    source: str
    name: str
    scenario: str
    mode: Mode
    step: str
    """Words that follow "during", such as ``the backward pass``."""
    seconds: float = field(default=0.0, compare=False)
    """The CPU time that the class has used before."""


@dataclass(frozen=True)
class Demonstration:
    """What came of a script that shows a failure."""

    status: int
    """Its exit status: 1 if it shows the failure; -1 if it has raised an error."""
    output: str


@dataclass(frozen=True)
class Finished:
    """The last message: everything was run."""


Message = (
    Environment | Discovered | Unusable | Progress | ClassResult | MemoryEstimate | Demonstration | Finished
)
_KINDS = {kind.__name__: kind for kind in (*get_args(Message), Request)}


def encode(message: Message | Request) -> str:
    """Return one line of JSON, without its end."""
    content = {"kind": type(message).__name__, **vars(message)}
    return json.dumps(content, separators=(",", ":"), default=vars)


def write_message(handle: int, message: Message) -> None:
    """Write a complete message to an open file; a pipe may take only a part of it at a time."""
    data = f"{encode(message)}\n".encode()
    while data:
        data = data[os.write(handle, data) :]


@lru_cache(maxsize=1)  # A line is looked at before it is taken.
def decode(line: str) -> Message | Request:
    """Return the message that :func:`encode` has encoded; raise ValueError if it is something else."""
    try:
        content = json.loads(line)
        kind = _KINDS[content.pop("kind")]
        decoded: Message | Request = _restore(kind, content)
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"not a message of the verifier: {line[:80]!r}") from error
    return decoded


def message_or_none(line: str) -> Message | Request | None:
    """Return the same, or None if ``line`` is something else."""
    try:
        return decode(line)
    except ValueError:
        return None


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
