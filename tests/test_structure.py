"""The rooms of the house, from what modules import: data flows one way, and nothing goes in circles."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import gclint
import gclint.rules
from gclint.code.questions import Topic
from gclint.run import memory
from tests.environment import PROJECT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LAYERS: tuple[tuple[str, ...], ...] = (
    ("gclint.__main__",),
    ("gclint.launch",),
    ("gclint.cli.main",),
    ("gclint.cli",),
    ("gclint.testing",),
    ("gclint.server",),
    ("gclint.report",),
    ("gclint.proof",),
    ("gclint.run", "gclint.write"),
    ("gclint.own",),
    ("gclint.rules", "gclint.verify"),
    ("gclint.block_rule",),
    ("gclint.rule",),
    ("gclint.edit",),
    ("gclint.network",),
    ("gclint.network.evaluation",),
    ("gclint.model",),
    ("gclint.copies",),
    ("gclint.code",),
    ("gclint.settings",),
    ("gclint.releases",),
    ("gclint.observations",),
    ("gclint.cache",),
    ("gclint.userfolder",),
    ("gclint.facts",),
    ("gclint.trace",),
    ("gclint.finding", "gclint.git", "gclint.verify.worker"),
    ("gclint",),
)
"""From the top: a room imports from those below it, and from none beside or above it."""

_SYNTHESIS = tuple(
    (f"gclint.verify.worker.synthesis.{name}",) for name in ("attempts", "hints", "inputs", "configurations")
)
"""The same for the rooms inside of this one."""

_DOOR = ("gclint", ("gclint.testing.model_check", "gclint.testing.callback"))
"""What ``import gclint`` offers, and imports only when it is asked for."""

_ASKING = (
    "gclint.run",
    "gclint.write",
    "gclint.proof",
    "gclint.rules",
    "gclint.edit",
    "gclint.network",
    "gclint.model",
    "gclint.copies",
    "gclint.code",
)
"""The rooms that ask which files something holds for."""

_CIRCLES = (
    "gclint.network.evaluation",
    "gclint.model.values",
    "gclint.model.frames",
    "gclint.model.spaces",
    "gclint.model.star_imports",
)
"""Names, scopes, classes and modules: mutually recursive by nature."""

_WORKER = "gclint.verify.worker"
_WORKERS_LANGUAGE = {
    f"{_WORKER}.{name}"
    for name in (
        "branches",
        "cause",
        "coverage",
        "estimates",
        "class_settings",
        "modes",
        "practices",
        "processes",
        "protocol",
        "scenarios",
        "training.answer",
        "vocabulary",
    )
}
"""What the host imports of the worker; these need nothing but Python."""
_IN_PROCESS = {
    ("gclint.testing.model_check", f"{_WORKER}.live"),
    ("gclint.testing.model_check", f"{_WORKER}.trainers"),
    ("gclint.testing.callback", f"{_WORKER}.beginning"),
}
"""Who examines models in the process that they were built in, by what."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_REPLACED_WORDS = {
    "case": "comparison, scenario or test",
    "heard": "received",
    "heir": "subclass or inherited defect",
    "onlooker": "what reads it",
    "specimen": "tiny model",
    "spot": "what is at a place",
    "standing": "still valid",
    "subject": "model under test, or what it is",
    "symptom": "failed check",
    "told": "reported",
    "twin": "copy pair",
}
"""Words that were names for something, and the field's own words for it."""
_FORMER_WORDS_IN = {
    "gclint.model": {"case", "subject", "told"},
    "gclint.network": {"case", "subject"},
    "gclint.verify.worker.training": {"symptom"},
    # A field of set-ups in the output as JSON.
    "gclint.verify.worker.protocol": {"symptom"},
}
"""Where some of them are left: none may be added."""
_GLOSSARY = re.compile(r"^## Words$(.*?)^## ", re.MULTILINE | re.DOTALL)
_MOST_WORDS = 15


@cache
def _imports() -> Mapping[str, frozenset[str]]:
    """Return the modules of gclint that each of its modules imports, wherever in its text."""
    files = dict(_modules())
    return {
        name: frozenset(
            imported
            for imported in _imported(path)
            if imported in files and not (name == _DOOR[0] and imported in _DOOR[1])
        )
        for name, path in files.items()
    }


def _modules() -> Iterator[tuple[str, Path]]:
    folders = {"gclint": Path(gclint.__file__).parent, "gclint.rules": Path(gclint.rules.__file__).parent}
    for prefix, folder in folders.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join((prefix, *(part for part in parts if part != "__init__"))), path


def _names(path: Path) -> Iterator[str]:
    """Yield the names that a module gives to something, and its own."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr if isinstance(node.value, ast.Name) and node.value.id == "self" else ""
        elif isinstance(node, ast.alias):
            yield node.asname or ""


@cache
def _classes() -> Mapping[str, Sequence[str]]:
    """Return the modules that define a class of each name, with one entry a class."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module, path in _modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    return found


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _room(module: str, layers: Sequence[Sequence[str]]) -> str | None:
    """Return the innermost room that a module lies in; None if it lies in none of these."""
    rooms = [room for layer in layers for room in layer]
    return max((each for each in rooms if _is_in(module, each)), key=len, default=None)


def _is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


@pytest.mark.parametrize("layers", [_LAYERS, _SYNTHESIS], ids=["house", "synthesis"])
def test_every_room_imports_from_below_only(layers: Sequence[Sequence[str]]) -> None:
    height = {room: -number for number, layer in enumerate(layers) for room in layer}
    arrows = [
        (user, used, _room(user, layers), _room(used, layers))
        for user, imported in _imports().items()
        for used in imported - {"gclint"}
    ]
    between = [
        (user, used, height[above] - height[below])
        for user, used, above, below in arrows
        if above and below and above != below
    ]
    assert between
    assert sorted(f"{user} imports {used}" for user, used, steps in between if steps <= 0) == []


def test_nothing_of_the_synthesis_lies_outside_of_its_rooms() -> None:
    inside = {name for name in _imports() if name.startswith("gclint.verify.worker.synthesis.")}
    assert inside
    assert sorted(name for name in inside if _room(name, _SYNTHESIS) is None) == []


def test_no_module_imports_itself_through_others() -> None:
    reached = {name: _reached(name) for name in _imports()}
    circles = {
        name for name, others in reached.items() if any(name in reached[each] for each in others - {name})
    }
    assert sorted(name for name in circles if not any(_is_in(name, each) for each in _CIRCLES)) == []


def _reached(module: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [*_imports()[module]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imports()[name]
    return frozenset(found)


def test_the_worker_imports_nothing_but_itself_and_the_host_only_its_language() -> None:
    leaving: defaultdict[str, set[str]] = defaultdict(set)
    entering: defaultdict[str, set[str]] = defaultdict(set)
    for user, imported in _imports().items():
        for used in imported - {"gclint", "gclint.verify", _WORKER}:
            if _is_in(user, _WORKER) and not _is_in(used, _WORKER):
                leaving[user].add(used)
            elif _is_in(used, _WORKER) and not (
                _is_in(user, _WORKER) or used in _WORKERS_LANGUAGE or (user, used) in _IN_PROCESS
            ):
                entering[user].add(used)
    assert (leaving, entering) == ({}, {})


def test_what_gclint_offers_is_found_where_it_is_defined() -> None:
    # The callback takes transformers.
    offered = [getattr(gclint, name) for name in ("check", "CheckError", "CheckResult")]
    assert {each.__module__ for each in offered} == {_DOOR[1][0]}


def test_only_the_worker_imports_torch() -> None:
    heavy = {"torch", "transformers"}
    users = {
        name
        for name, path in _modules()
        if heavy.intersection(imported.partition(".")[0] for imported in _imported(path))
    }
    assert users
    assert all(_is_in(name, _WORKER) for name in users)


def test_every_package_is_listed_for_the_wheel() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {
        ".".join(path.parent.relative_to(PROJECT).parts) for path in PROJECT.glob("gclint/**/__init__.py")
    }
    assert set(settings["tool"]["setuptools"]["packages"]) == folders | {"gclint.rules"}


def test_the_map_of_the_code_names_every_package() -> None:
    page = (PROJECT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    packages = [path.parent.name for path in PROJECT.glob("gclint/*/__init__.py")]
    assert packages
    assert [name for name in packages if f"`gclint/{name}/`" not in page] == []


def test_the_cache_knows_all_questions() -> None:
    """What holds the answer to another one is not read again."""
    modules = [import_module(name) for name in _imports() if _room(name, _LAYERS) in _ASKING]
    found = {
        each.name: each for module in modules for each in vars(module).values() if isinstance(each, Topic)
    }
    assert len(found) > 5
    assert found == memory._TOPICS


def test_no_two_classes_have_one_name() -> None:
    assert {name: modules for name, modules in _classes().items() if len(modules) > 1} == {}


def test_no_module_gives_a_name_two_meanings() -> None:
    for module, path in _modules():
        bound: list[str] = []
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            bound += [each.id for each in targets if isinstance(each, ast.Name)]
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                bound.append(node.name)
        assert len(bound) == len(set(bound)), f"{module}: {sorted(bound)}"


def test_names_are_made_of_the_words_of_the_field() -> None:
    used = {
        (module, word): name
        for module, path in _modules()
        for name in _names(path)
        for word in {each.lower().removesuffix("s") for each in _WORDS.findall(name)} & _REPLACED_WORDS.keys()
    }
    exceptions = {(room, word) for room, words in _FORMER_WORDS_IN.items() for word in words}
    needed = {
        (room, word)
        for room, word in exceptions
        for module, each in used
        if each == word and _is_in(module, room)
    }
    assert exceptions == needed, "these rooms have no such names any more: take them out of the table"
    assert [
        f"{module} has {name}: say {_REPLACED_WORDS[word]}"
        for (module, word), name in used.items()
        if not any(word == each and _is_in(module, room) for room, each in exceptions)
    ] == []


def test_the_glossary_is_short_and_names_classes_that_exist() -> None:
    page = (PROJECT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    glossary = _GLOSSARY.search(page)
    assert glossary is not None
    words = re.findall(r"\*\*(.+?)\*\*", glossary[1])
    assert len(set(words)) == len(words) <= _MOST_WORDS
    classes = re.findall(r"`([A-Z]\w+)`", glossary[1])
    assert "Comparison" in classes
    assert [name for name in classes if name not in _classes() and name != "GradientCheckpointingLayer"] == []
