"""Work on files in several processes: all answers, each once, whatever happens to a process."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.rule import all_rules
from gclint.run import jobs
from gclint.run.check import LintResult, check, check_again
from gclint.run.fix import fix
from gclint.run.jobs import fitting_jobs, spread
from gclint.settings import Settings
from tests.trees import GCL, IMPORTS, MODEL, model

METHODS = [each for each in ("fork", "start") if each != "fork" or hasattr(os, "fork")]


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(jobs, "_start_method", lambda: request.param)
    return str(request.param)


@dataclass
class Work:
    """Answers with the name of a file and the process; may die, fail, or say what cannot be sent."""

    dies_at: str = ""
    fails_at: str = ""
    home: int = field(default_factory=os.getpid)

    def __call__(self, path: Path) -> tuple[str, int]:
        if os.getpid() != self.home and path.name == self.dies_at:
            os._exit(9)
        if os.getpid() != self.home and path.name == self.fails_at:
            raise RuntimeError
        return path.name, os.getpid()

    def prepare(self) -> None:
        """Need nothing."""


class Unsendable(Work):
    def __call__(self, path: Path) -> tuple[str, int]:
        return super().__call__(path)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError


PATHS = [Path(f"folder{number // 3}", f"{number}.py") for number in range(20)]
NAMES = sorted(path.name for path in PATHS)


def _names(answers: list[tuple[Path, tuple[str, int]]]) -> list[str]:
    assert all(path.name == name for path, (name, _) in answers)
    return sorted(name for _, (name, _) in answers)


def test_each_file_is_answered_for_once_by_other_processes(method: str) -> None:
    answers = list(spread(Work(), PATHS, 2))
    assert _names(answers) == NAMES
    assert os.getpid() not in {process for _, (_, process) in answers}


def test_one_process_is_this_one() -> None:
    assert {process for _, (_, process) in spread(Work(), PATHS, 1)} == {os.getpid()}


@pytest.mark.parametrize("work", [Work(dies_at="7.py"), Work(fails_at="7.py")], ids=["killed", "fails"])
def test_what_a_process_owes_that_has_ended_is_done_here(method: str, work: Work) -> None:
    answers = list(spread(work, PATHS, 2))
    assert _names(answers) == NAMES
    assert ("7.py", os.getpid()) in [answer for _, answer in answers]


def test_work_that_cannot_be_sent_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_start_method", lambda: "start")
    answers = list(spread(Unsendable(), PATHS, 2))
    assert _names(answers) == NAMES
    assert {process for _, (_, process) in answers} == {os.getpid()}


def test_no_process_is_left_when_the_reader_stops(method: str) -> None:
    with pytest.raises(KeyboardInterrupt), closing(spread(Work(), PATHS, 2)) as answers:
        next(answers)
        raise KeyboardInterrupt
    assert not multiprocessing.active_children()


def test_neighbours_are_worked_on_together(method: str) -> None:
    processes: dict[Path, set[int]] = {}
    for path, (_, process) in spread(Work(), PATHS, 3):
        processes.setdefault(path.parent, set()).add(process)
    assert all(len(each) == 1 for each in processes.values())


def _in_daemon(connection: Connection) -> None:
    connection.send(_names(list(spread(Work(), PATHS, 2))))


def test_a_process_that_may_have_no_children_works_alone() -> None:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_in_daemon, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    assert ours.recv() == NAMES
    process.join()


def test_processes_that_cannot_be_started_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)
    assert _names(list(spread(Work(), PATHS, 2))) == NAMES


# -- how many


@pytest.mark.parametrize(("sizes", "expected"), [([], 1), ([10], 1), ([3_000_000] * 2, 3), ([10**8], 4)])
def test_processes_are_used_where_there_is_work_for_them(
    sizes: list[int], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_cores", lambda: 4)
    monkeypatch.setattr(jobs, "_start_method", lambda: "fork")
    paths = [tmp_path / f"{number}.py" for number in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        with path.open("wb") as file:
            file.truncate(size)
    assert fitting_jobs([*paths, tmp_path / "gone.py"]) == expected


@pytest.mark.parametrize(("limit", "most"), [("150000 100000\n", 1), ("max 100000\n", None), ("?", None)])
def test_a_limit_on_processors_counts(
    limit: str, most: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    unlimited = jobs._cores()
    monkeypatch.setattr(jobs, "_CGROUP_LIMIT", tmp_path / "cpu.max")
    assert jobs._cores() == (most or unlimited)


# -- checks


def _tree(folder: Path) -> list[Path]:
    """Write models that need each other: stacks of foreign layers, a broken one, an ignored finding."""
    texts: dict[str, str] = {}
    for name in "ABCDEF":
        texts[f"models/{name.lower()}/modeling_{name.lower()}.py"] = model(
            name, base=GCL if name == "A" else "nn.Module"
        )
    stack = MODEL.format("G", True).replace("GLayer", "BLayer")
    texts["models/g/modeling_g.py"] = f"{IMPORTS}from ..b.modeling_b import BLayer\n{stack}"
    texts["models/h/modeling_h.py"] = "def f(:\n"
    texts["models/i/modeling_i.py"] = model("I").replace(
        "class ILayer(nn.Module):", "class ILayer(nn.Module):  # gclint: ignore"
    )
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sorted(folder.rglob("*.py"))


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    return [path.relative_to(tmp_path) for path in _tree(tmp_path)]


def _project(paths: list[Path]) -> Project:
    return Project(Settings(), paths, [Path()])


def _same(one: LintResult, other: LintResult) -> bool:
    assert list(one.verdicts) == list(other.verdicts)
    return (one.findings, one.problems, one.files, one.ran, one.groups) == (
        other.findings,
        other.problems,
        other.files,
        other.ran,
        other.groups,
    )


@pytest.mark.drawn(first=1)
@pytest.mark.parametrize(
    "do",
    [check, lambda *given, **how: fix(*given, unsafe=True, known=check(*given, **how))],
    ids=["check", "fix"],
)
def test_the_result_is_the_same(method: str, paths: list[Path], do: Callable[..., LintResult]) -> None:
    seen: list[Path] = []
    alone = do(_project(paths), all_rules())
    together = do(_project(paths), all_rules(), advance=seen.append, jobs=3)
    assert alone.problems
    assert alone.files == len(paths) - 1
    assert _same(alone, together)
    assert sorted(seen) == paths


def test_what_hangs_on_what_is_known_afterwards(method: str, paths: list[Path]) -> None:
    results = []
    changed = Path("models/b/modeling_b.py")
    for number in (1, 3):
        project = _project(paths)
        result = check(project, all_rules(), jobs=number)
        text = project.file(changed).text
        project.replace(
            changed,
            text.replace("class BLayer(nn.Module)", f"class BLayer({GCL})").replace(
                "from ...modeling_utils", f"from ...modeling_layers import {GCL}\nfrom ...modeling_utils"
            ),
        )
        assert Path("models/g/modeling_g.py") in project.dependents([changed])
        results.append(check_again(project, result, {changed}, all_rules()))
    assert _same(*results)
