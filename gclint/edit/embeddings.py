"""Letting ``get_input_embeddings`` of a model return the module that feeds its first block."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gclint.code.outline import Definition
from gclint.code.walk import dotted_name, is_docstring, structure
from gclint.copies.generated import is_modular, modeling_path, modular_path
from gclint.copies.pairs import definition_region
from gclint.finding import (
    Applicability,
    Duty,
    Edit,
    Evidence,
    Finding,
    Fix,
    InheritedDefect,
    Refusal,
    StoryStep,
)
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network
from gclint.network.story import attribute_steps, definition_step
from gclint.network.support import is_like_a_model
from gclint.observations import Feeding

if TYPE_CHECKING:
    from gclint.verify.worker.protocol import ClassResult

_GETTER = "get_input_embeddings"
_REASON = (
    f"`{_GETTER}` is part of the model's interface: callers that resize, tie or replace the token "
    "embeddings get another module"
)


@dataclass(frozen=True)
class Misled:
    """A model whose ``get_input_embeddings`` does not lead to what feeds its first block."""

    info: ClassInfo
    seen: Feeding
    start: int
    end: int
    """Where it is said."""
    remedy: Fix | Refusal
    inheriting: tuple[InheritedDefect, ...] = ()

    def finding(self, rule: str, name: str, message: str) -> Finding:
        """Return what a rule has to say of it."""
        path, symbol = self.info.file.path, self.seen.model
        return Finding(
            rule,
            name,
            message,
            path,
            self.start,
            self.end,
            symbol,
            self.remedy,
            inherited_by=self.inheriting,
            evidence=Evidence.CONFIRMED,
            story=tuple(self._story()),
        )

    def _story(self) -> Iterator[StoryStep]:
        """Yield where it is said which module feeds the blocks, where that is made, and the one that does."""
        getter = f"{self.seen.model}.{_GETTER}"
        method, present = self.info.definition.method(_GETTER), self.seen.present
        leads = f"leads to `{_expression(present)}`" if present else "leads to no module of the model"
        if method is not None:
            yield definition_step(self.info.file, method, f"`{getter}` {leads}")
        else:
            message = f"`{self.info.name}` has no `{_GETTER}` of its own: the one that it inherits {leads}"
            yield definition_step(self.info.file, self.info.definition, message)
        if present:
            what = "does not return one tensor" if self.seen.fails else "does not feed the first block"
            yield from self._made(present, f"a run has seen that `{_expression(present)}` {what}")
        module = self.seen.module
        yield from self._made(module, f"a run has seen that `{_expression(module)}` feeds the first block")

    def _made(self, module: str, message: str) -> Iterator[StoryStep]:
        yield from attribute_steps(self.info, module.partition(".")[0], message)


def concerned(finding: Finding, run: ClassResult) -> bool:
    """Return whether a run has seen of the model of a finding that something else feeds its first block."""
    return any(each.model == finding.symbol for each in run.embeddings)


def misled(network: Network) -> Iterator[Misled]:
    """Yield the models of a file of which a run has seen that.

    Those of a generated file are found in the modular file that it is generated from, if that is given.
    """
    project, file = network.project, network.file
    generated = project.identify(modeling_path(file.path)) if is_modular(file.path) else file.path
    for seen in project.observations.feeding(generated):
        info = network.module.classes.get(seen.model)
        runs = network.library.module(project.consult(file, generated)).classes.get(seen.model)
        if info is None or runs is None or _returns(runs, seen.module):
            continue
        source = modular_path(runs.file)
        start, end = _anchor(info)
        if info is not runs:
            inheriting = (InheritedDefect(generated, seen.model),)
            yield Misled(info, seen, start, end, _remedy(seen, info, runs), inheriting)
        elif source is None or project.identify(source) not in project.given:
            remedy = _remedy(seen, info) if source is None else _generated(source.name)
            yield Misled(info, seen, start, end, remedy)
        elif not _is_written(network, source.name, seen.model):
            yield Misled(info, seen, start, end, _generated(source.name))


def unseen(network: Network, classes: Iterable[ClassInfo]) -> Iterator[str]:
    """Yield why nothing is said of the input embeddings of the models among some classes."""
    for info in classes:
        if is_like_a_model(info):
            yield (
                f"only a run (`gclint verify` or `--verify`) can show what feeds the blocks of `{info.name}`"
            )


def _generated(name: str) -> Refusal:
    return Refusal(f"this file is generated from {name}; repair that file instead")


def _is_written(network: Network, name: str, model: str) -> bool:
    """Return whether the modular file beside a generated one has a class of its own for a model."""
    path = network.file.path.with_name(name)
    return model in network.project.consult(network.file, path).outline.classes


def _anchor(info: ClassInfo) -> tuple[int, int]:
    """Return where a finding stands: at the method if there is one, else at the class or in it.

    In a modular file not at the class's header, which may be that of a class of another file.
    """
    definition = info.definition
    own = definition.method(_GETTER)
    if own is not None or is_modular(info.file.path):
        shown = own or next(definition.methods(), None)
        if shown is None:
            return definition.header_end, definition.end
        return shown.header, info.file.text.index(shown.name, shown.header) + len(shown.name)
    return definition.header, info.file.text.index(info.name, definition.header) + len(info.name)


def _returns(info: ClassInfo, module: str) -> bool:
    own = info.definition.method(_GETTER)
    returned = None if own is None else _returned(own)
    wanted = ast.parse(_expression(module), mode="eval").body
    return returned is not None and structure(returned) == structure(wanted)


def _expression(module: str) -> str:
    """Return the code that leads from ``self`` to a module."""
    found = "self"
    for part in module.split("."):
        if not part.isidentifier() and not part.isdigit():
            return f'self.get_submodule("{module}")'
        found += f"[{part}]" if part.isdigit() else f".{part}"
    return found


def _remedy(seen: Feeding, *classes: ClassInfo) -> Fix | Refusal:
    edits: list[Edit] = []
    for info in classes:
        found = _edits(info, _expression(seen.module))
        if isinstance(found, Refusal):
            return found
        edits += found
    generated = classes[-1].file.path
    duties = (Duty(generated, f"{generated.name} has to be regenerated"),) if len(classes) > 1 else ()
    message = f"Return `{_expression(seen.module)}` from `{seen.model}.{_GETTER}`"
    return Fix(message, tuple(edits), Applicability.UNSAFE, _REASON, duties=duties)


def _edits(info: ClassInfo, expression: str) -> list[Edit] | Refusal:
    """Return what lets a class return something else, in its own method or in a new one."""
    own, file = info.definition.method(_GETTER), info.file
    if own is None:
        return [_new_method(info, expression)]
    returned = _returned(own)
    if returned is None:
        return Refusal(f"`{info.name}.{_GETTER}` does more than return a module")
    edits = [Edit(file.path, *file.places.span(returned), expression)]
    annotation = own.function.returns
    if annotation is not None and dotted_name(annotation) != "nn.Module":
        # It named the class of what was returned before.
        start, end = file.places.span(annotation)
        arrow = file.text.rindex("->", own.start, start)
        before = len(file.text[:arrow].rstrip())
        edits.append(Edit(file.path, before, end, ""))
    return edits


def _returned(own: Definition) -> ast.expr | None:
    """Return what a method returns if it does nothing else."""
    body = [each for each in own.function.body if not is_docstring(each)]
    statement = body[0] if len(body) == 1 else None
    return statement.value if isinstance(statement, ast.Return) else None


def _new_method(info: ClassInfo, expression: str) -> Edit:
    """Return the method, behind the constructor or the first method of the class."""
    file, definition = info.file, info.definition
    before = definition.method("__init__") or next(definition.methods(), None)
    indent = before.indent if before is not None else f"{definition.indent}    "
    step = indent[len(definition.indent) :]
    newline = file.newline
    lines = f"{indent}def {_GETTER}(self):{newline}{indent}{step}return {expression}{newline}"
    end = definition_region(file, before or definition).spans[-1][1]
    is_last = not file.text[:end].endswith(("\n", "\r"))
    content = f"{newline}{newline}{lines.removesuffix(newline)}" if is_last else f"{newline}{lines}"
    return Edit(file.path, end, end, content)
