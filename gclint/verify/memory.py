"""Finds the file and the configuration that the user names, and lets a worker estimate the memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gclint.facts import read_json
from gclint.verify.model_files import ModelFiles
from gclint.verify.process import work
from gclint.verify.settings import GIGABYTES, RunSettings
from gclint.verify.sources import Target, UnknownModel, installed_models, target_of
from gclint.verify.worker.estimates import EstimateRequest, MemoryEstimate
from gclint.verify.worker.protocol import Environment, Request, Unusable

_MODEL_TYPE = re.compile(r"""^    model_type\b[^=\n]*= *["']([\w.-]+)["']""", re.MULTILINE)
_NAME = re.compile(r"[\w.-]+")


class NoEstimate(Exception):
    """There is no estimate; the message says why, and what to do."""


@dataclass(frozen=True)
class Estimated:
    """An estimate, and the environment in which it was made."""

    environment: Environment
    estimate: MemoryEstimate


def named_target(named: str, config: Path | None, python: Path) -> tuple[Target, dict[str, Any] | None]:
    """Return the modeling file that the user means, and the content of a ``config.json`` if there is one.

    The user names a model of the installed transformers, a modeling file, a ``config.json`` or its folder.

    Raises:
        NoEstimate: this is not one of these, or cannot be read.
        OSError: the interpreter cannot be started.
    """
    path = Path(named)
    if path.is_dir() and (path / "config.json").is_file():
        path /= "config.json"
    content = None if config is None else _content(config)
    if path.suffix == ".json":
        content = _content(path)
        return _target_for(content, path, python), content
    if path.suffix == ".py":
        if not path.is_file():
            raise NoEstimate(f"{named} does not exist")
        return target_of(path), content
    return _installed(named, python), content


def ask(target: Target, question: EstimateRequest, settings: RunSettings) -> Estimated:
    """Return the estimate that a worker makes of a class of a file, or what is known of it where it ends.

    Raises:
        NoEstimate: nothing is known.
    """
    request = Request(
        (target.source,),
        () if target.tree is None else (target.tree,),
        device=settings.device,
        jobs=1,
        seconds=settings.seconds,
        gigabytes=settings.gigabytes or GIGABYTES,
        known=settings.known,
        question=question,
    )
    environment: Environment | None = None
    known: MemoryEstimate | None = None
    with closing(work(settings.python, request)) as messages:
        for message in messages:
            if isinstance(message, Environment):
                environment = message
            elif isinstance(message, MemoryEstimate):
                known = message
            elif isinstance(message, Unusable) and known is not None:
                known = replace(known, ended=message.message)
            elif isinstance(message, Unusable):
                raise NoEstimate(message.message)
    if known is None or environment is None:
        raise NoEstimate("the worker did not answer")
    return Estimated(environment, known)


def _content(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except OSError as error:
        raise NoEstimate(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise NoEstimate(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise NoEstimate(f"{path} is not a configuration: it is not a JSON object")
    return content


def _target_for(content: Mapping[str, Any], path: Path, python: Path) -> Target:
    """Return the modeling file of a configuration: the one that it names, beside it, or the library's."""
    auto_map = content.get("auto_map")
    for named in auto_map.values() if isinstance(auto_map, dict) else ():
        module = str(named[0] if isinstance(named, list) and named else named).rpartition(".")[0]
        beside = path.parent / f"{module}.py"
        # A name, not a path to code that lies elsewhere.
        if module.startswith("modeling") and module.isidentifier() and beside.is_file():
            return target_of(beside)
    kind = content.get("model_type")
    if not isinstance(kind, str) or not _NAME.fullmatch(kind):
        raise NoEstimate(f"{path} has no field model_type with a name, so its model is unknown")
    try:
        return _installed(kind, python)
    except NoEstimate:
        library = installed_models(python, ["bert"])[0].parents[2]
        for configuration in library.glob("models/*/configuration_*.py"):
            if kind in _MODEL_TYPE.findall(configuration.read_text(encoding="utf-8")):
                return _modeling_beside(configuration)
        raise


def _modeling_beside(configuration: Path) -> Target:
    modeling = configuration.with_name(configuration.name.replace("configuration_", "modeling_"))
    if not modeling.is_file():
        raise NoEstimate(f"there is no modeling file next to {configuration}")
    return target_of(modeling)


def _installed(name: str, python: Path) -> Target:
    try:
        files = installed_models(python, [name])
    except UnknownModel as error:
        raise NoEstimate(str(error)) from None
    models = ModelFiles()
    defining = [each for each in files if models.defines_model(each)]
    own = f"modeling_{name.replace('-', '_')}.py"
    if not defining:
        raise NoEstimate(f"no file of the model {name!r} defines a model")
    return target_of(next((each for each in defining if each.name == own), defining[0]))


def with_architecture(question: EstimateRequest, content: Mapping[str, Any] | None) -> EstimateRequest:
    """Return the question, with the class that the configuration names if the user names none."""
    named = (content or {}).get("architectures")
    if question.model_class or not isinstance(named, list) or not named:
        return question
    return replace(question, model_class=str(named[0]))
