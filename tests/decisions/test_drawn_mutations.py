"""Decisions that no other test here noticed when a mutation of the code got them wrong."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from gclint.code.project import Project
from gclint.facts import package_locations
from gclint.finding import Edit
from gclint.network.checkpoints import checkpoint_calls
from gclint.network.model import Network
from gclint.report.formats import written_as
from gclint.report.report import Report
from gclint.run.fix import damage
from gclint.settings import Settings
from gclint.verify.cluster.driver import TaskResult, messages
from gclint.verify.memory import with_architecture
from gclint.verify.results import Results
from gclint.verify.worker.estimates import EstimateRequest
from gclint.verify.worker.protocol import Finished, Message, Request, Unusable, encode
from tests.decisions.outside import BRANCHES, LAYER, Outside, Pair, decided, found, silent
from tests.decisions.toy import BRANCH, FLAG, STACK, block, call, model, toy

test_silence = decided(
    Pair(
        "a call that goes through a checkpoint function is compared",
        toy(block(), model(BRANCH, init=f"{STACK}\n{FLAG}")),
        ("self._gradient_checkpointing_func(layer.__call__, hidden_states, mask)", "layer(hidden_states)"),
        [found(LAYER, "safe"), silent(BRANCHES, "same arguments")],
        [found(LAYER, "safe"), silent(BRANCHES, "no branch")],
        at="for layer in self.layers",
    ),
)


@pytest.mark.parametrize(
    ("arguments", "is_judged"), [("hidden_states, mask", True), ("*mask", False), ("mask, other=mask", False)]
)
def test_arguments_that_cannot_be_matched_are_said_to_be_unjudged(
    outside: Outside, arguments: str, is_judged: bool
) -> None:
    outside.write({"modeling_toy.py": call(arguments)})
    facts = [
        each["text"]
        for subject in outside.explained("layer(")
        for one in subject["calls"]
        for each in one["details"]
    ]
    assert any(each.startswith("the arguments are not judged") for each in facts) is not is_judged


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _project(**texts: str) -> Project:
    """Return a project of modeling files."""
    paths = [Path(f"modeling_{name}.py") for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return Project(Settings(), paths)


@pytest.mark.parametrize(
    ("contents", "is_damaged"), [(("a", "b"), False), (("a", "("), True), (("(", "b"), True)]
)
def test_one_broken_piece_breaks_a_file(folder: Path, contents: tuple[str, str], is_damaged: bool) -> None:
    text = "def f():\n    x\n\n\ndef g():\n    y\n"
    file = _project(toy=text).file(Path("modeling_toy.py"))
    edits = [
        Edit(file.path, text.index(old), text.index(old) + 1, new)
        for old, new in zip("xy", contents, strict=True)
    ]
    assert (damage(file, edits) is not None) is is_damaged


def test_a_checkpoint_function_of_any_name_stands_where_it_begins(folder: Path) -> None:
    text = "from .checkpointing import run\n\nprint.run(1)\nprint(run)\n"
    project = _project(toy=text)
    network = Network(project, project.file(Path("modeling_toy.py")))
    assert checkpoint_calls(network.module) == [text.rindex("run")]


def test_a_verdict_depends_on_what_the_files_it_uses_use(folder: Path) -> None:
    project = _project(a="from modeling_b import B\n", b="from modeling_c import C\n", c="C = 1\n", d="")
    a, b, c, _ = files = [project.file(path) for path in project.paths]
    assert project.module(a, "modeling_b", 0) is b
    assert project.module(b, "modeling_c", 0) is c
    assert project.used_by(a.path) == {each.path for each in files[:3]}


@pytest.mark.parametrize(("name", "number"), [("gclint", 1), ("no_such_package", 0), ("ast", 0)])
def test_only_a_package_that_is_there_has_folders(name: str, number: int) -> None:
    assert len(package_locations(name)) == number


@pytest.mark.parametrize(
    ("asked", "content", "model_class"),
    [
        ("", {"architectures": ["ToyModel", "Other"]}, "ToyModel"),
        ("Mine", {"architectures": ["ToyModel"]}, "Mine"),
        ("", {"architectures": []}, ""),
        ("", {"architectures": "ToyModel"}, ""),
        ("", None, ""),
    ],
)
def test_a_configuration_names_the_class(
    asked: str, content: dict[str, object] | None, model_class: str
) -> None:
    assert with_architecture(EstimateRequest(asked), content).model_class == model_class


def test_what_cannot_be_run_is_in_the_formats_for_programs(folder: Path) -> None:
    runs = Results()
    runs.add(Unusable("it cannot be imported", "modeling_toy.py"), tree=None)
    runs.add(Unusable("there is no torch"), tree=None)
    report = Report(_project(toy=""), runs=runs)
    texts = {}
    for name in ("json", "junit", "github"):
        stream = StringIO()
        written_as(name)(report, stream)
        texts[name] = stream.getvalue()
    found = json.loads(texts["json"])
    assert (found["problem"], found["unusable"]) == (
        "there is no torch", [{"message": "it cannot be imported", "source": "modeling_toy.py"}],
    )  # fmt: skip
    (case,) = ElementTree.fromstring(texts["junit"]).iterfind("testsuite[@name='gclint']/testcase")
    assert (case.get("name"), case.get("line")) == ("verify", "1")
    assert "::error title=gclint verify::there is no torch" in texts["github"].splitlines()


class _Cluster:
    """A cluster of one machine, on which everything has been done."""

    exceptions = SimpleNamespace(LocalRayletDiedError=TimeoutError, RayError=OSError)

    def __init__(self, *messages: Message) -> None:
        self._answer = TaskResult("here", tuple(map(encode, messages)))

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}

    def remote(self, *given: object, **_options: object) -> Any:
        """Make a task of a function, or start it."""
        return self if given else lambda _function: self

    def options(self, **_options: object) -> _Cluster:
        return self

    def wait(self, running: list[object], timeout: float) -> tuple[list[object], list[object]]:
        return running, []

    def get(self, _reference: object) -> TaskResult:
        return self._answer


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (Unusable("there is no torch"), Unusable("on the node here: there is no torch")),
        (Unusable("it is no model", "modeling_toy.py"), Unusable("it is no model", "modeling_toy.py")),
        (Finished(), Finished()),
    ],
)
def test_what_a_node_cannot_do_is_said_of_it(sent: Message, message: Message) -> None:
    first, *_ = messages(_Cluster(sent), Path("python"), Request(()))
    assert first == message
