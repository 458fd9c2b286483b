"""How a script trains: which trainer gets which arguments, and what these say about checkpointing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.trainer_settings import are_settings
from gclint.code.walk import last_name, walk
from gclint.finding import Applicability, Edit, Fix, Refusal, StoryStep
from gclint.model.scripts import PACKAGES, Done, Script, is_literally, only_returned
from gclint.model.values import Returned, Value
from gclint.network.explaining.places import CodeToExplain
from gclint.releases import FIRST_NON_REENTRANT, Releases

ENABLED = ("gradient_checkpointing", "activation_checkpointing")
OPTIONS = ("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs")
ENABLING = frozenset(("gradient_checkpointing_enable", "activation_checkpointing_enable"))
PREPARING = "prepare_model_for_kbit_training"
DISABLING = frozenset(("gradient_checkpointing_disable", "activation_checkpointing_disable"))
USE_REENTRANT = "use_reentrant"
NON_REENTRANT = '{"use_reentrant": False}'
_OFF = {"True": "False", "true": "false", "TRUE": "FALSE", "yes": "no", "on": "off"}
"""What to write for what was written; YAML has more words for it than Python."""
_TRAINERS = frozenset(("Trainer", "Seq2SeqTrainer"))
_ARGUMENTS = frozenset(("TrainingArguments", "Seq2SeqTrainingArguments"))
_OTHER_WRAPPERS = ("deepspeed", "fsdp")


@dataclass(frozen=True)
class Training:
    """A trainer of transformers or trl that is made and told to train, with its arguments."""

    script: Script
    trainer: Done
    arguments: Done

    def says(self, *names: str) -> Value | None:
        """Return what the arguments say under one of some names; None for the default."""
        about = self.script.about([result_of(self.arguments)])
        if any(each.path[0] in names for each in about):
            return Value()  # What is assigned afterwards may be assigned before or after, or not at all.
        return self.script.argument(self.arguments, *names)

    @property
    def options(self) -> Value | None:
        """The options of checkpointing; None for the defaults."""
        return self.says(*OPTIONS)

    def is_reentrant(self, releases: Releases) -> bool:
        """Return whether it is known to train with reentrant checkpointing.

        That is said by the arguments, or is the default of all releases; trainers of trl have other defaults.
        """
        if not is_literally(self.says(*ENABLED), True):
            return False
        if self.options is None:
            return not self.is_of_trl and releases.end_before(FIRST_NON_REENTRANT)
        return is_literally(self.script.under(self.options, USE_REENTRANT), True)

    @property
    def is_of_trl(self) -> bool:
        """Whether the trainer is one of trl, which prepares models itself."""
        return self.trainer.name.startswith("trl.")

    @property
    def may_be_wrapped_otherwise(self) -> bool:
        """Whether something else than DistributedDataParallel may wrap the model."""
        found = (self.says(each) for each in _OTHER_WRAPPERS)
        return any(each is not None and not is_literally(each, None) for each in found)

    @property
    def model(self) -> Returned | None:
        """What is trained, if that is known."""
        return only_returned(self.script.argument(self.trainer, "model", index=0))

    @property
    def is_decided(self) -> bool:
        """Whether nothing that is unknown may change what the arguments say, also by way of the trainer."""
        made, trainer = result_of(self.arguments), result_of(self.trainer)
        is_set = any(each.name.startswith("set_") for each in self.script.about([made]))
        is_reached = any(each.path[0] == "args" for each in self.script.about([trainer]))
        return not is_set and not is_reached and not is_handed_on(self.script, [made])


def trainings(script: Script) -> Iterator[Training]:
    """Yield each trainer that trains with arguments of which it is known where they are made."""
    made = {each.node: each for each in script.called(*_names(script, _are_arguments))}
    for trainer in script.called(*_names(script, _is_trainer)):
        given = only_returned(script.argument(trainer, "args", index=1))
        arguments = None if given is None or given.path else made.get(given.node)
        if arguments is not None and any(each.name == "train" for each in script.about([result_of(trainer)])):
            yield Training(script, trainer, arguments)


def mentions(file: SourceFile, words: Collection[str]) -> bool:
    """Return whether a script has one of some words: whatever has an effect by its name has that name."""
    return file.tree is not None and any(_word(each) in words for each in walk(file.tree.module))


def is_handed_on(script: Script, things: Iterable[Returned]) -> bool:
    """Return whether something may get one of some things, or a part, of which it is not known what it does.

    Functions of torch with "checkpoint" in their names are meant to change how it checkpoints.
    """
    taking = (each for thing in things for each in script.taking(thing))
    names = (each.name for each in taking if each.receiver is None)
    return any(each.partition(".")[0] not in PACKAGES or "checkpoint" in each for each in names)


def made_of(script: Script, thing: Returned) -> Sequence[Returned]:
    """Return a thing, and what libraries have made of it, such as a model with adapters around it."""
    found = [thing]
    for each in found:
        made = (result_of(done) for done in script.taking(each) if done.receiver is None and done.name)
        found += [one for one in dict.fromkeys(made) if one not in found]
    return found


def trains_otherwise(script: Script) -> bool:
    """Return whether there are trainers of which it is not known with which arguments they train."""
    known = {each.trainer.node for each in trainings(script)}
    return any(_is_trainer(name) and node not in known for node, name in script.calls)


def is_at(explained: CodeToExplain, done: Done) -> bool:
    """Return whether what a script does is at a place."""
    start, end = done.file.places.span(done.node)
    return start < explained.end and explained.start < end


def step(done: Done, message: str) -> StoryStep:
    """Return a step of a story about what a script does at a place."""
    return StoryStep(done.file.path, *done.file.places.span(done.node), message)


def non_reentrant(script: Script, options: Value | None, file: SourceFile, reason: str) -> Fix | Refusal:
    """Return the fix that writes ``use_reentrant: False`` where the options are written."""
    is_yaml = are_settings(file.path)
    written = None if options is None else script.written(options, USE_REENTRANT)
    if isinstance(written, ast.Constant):
        start, end = file.places.span(written)
        off = _OFF.get(file.text[start:end])
        if off is not None:
            edit = Edit(file.path, start, end, off)
            what = "Make checkpointing non-reentrant" if is_yaml else "Pass `use_reentrant=False`"
            return Fix(what, (edit,), Applicability.UNSAFE, reason)
    if is_yaml:
        return Refusal("write `use_reentrant_gc: false`")
    return Refusal(f"pass `gradient_checkpointing_kwargs={NON_REENTRANT}` in the arguments")


def result_of(done: Done) -> Returned:
    """Return what a call gives."""
    assert isinstance(done.node, ast.expr)  # It is a call.
    return Returned(done.name, done.node)


def _word(node: ast.AST) -> object:
    if isinstance(node, (ast.keyword, ast.arg)):
        return node.arg
    if isinstance(node, (ast.Name, ast.Attribute)):
        return last_name(node)
    return node.value if isinstance(node, ast.Constant) else getattr(node, "name", None)


def _names(script: Script, wanted: Callable[[str], bool]) -> list[str]:
    return sorted({name for _, name in script.calls if wanted(name)})


def _is_trainer(name: str) -> bool:
    package, last = name.partition(".")[0], name.rpartition(".")[2]
    return (package == "transformers" and last in _TRAINERS) or (
        package == "trl" and last.endswith("Trainer")
    )


def _are_arguments(name: str) -> bool:
    package, last = name.partition(".")[0], name.rpartition(".")[2]
    return (package == "transformers" and last in _ARGUMENTS) or (
        package == "trl" and last.endswith("Config")
    )
