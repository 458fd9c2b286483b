"""Which results of a run are believed, and which of an earlier one are kept: nothing of another text."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gclint.userfolder import UserFolder
from gclint.verify import process
from gclint.verify.files import FileRunner, NothingRuns, ResultsFiles, Runner
from gclint.verify.results import UnusableResults
from gclint.verify.results_file import Header, ResultsFile, header, merge, read
from gclint.verify.run import ReceivedMessage, verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import Target, digest, target_of
from gclint.verify.worker.estimates import EstimateRequest, MemoryEstimate
from gclint.verify.worker.protocol import (
    ClassResult,
    Discovered,
    Environment,
    Finished,
    Message,
    Progress,
    Request,
    Source,
    Unusable,
)
from tests.decisions.reports import GOOD

_SETTINGS = RunSettings(Path("python"))
_ENVIRONMENT = Environment("3.12.1", "2.13.0", "5.23.0", "cpu")
_MODEL, _OTHER = "modeling_otter.py", "modeling_seal.py"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (_MODEL, _OTHER, "configuration_otter.py", "configuration_otter_vision.py"):
        Path(name).write_text(GOOD, encoding="utf-8")


def _target(name: str = _MODEL) -> Target:
    return target_of(Path(name))


@pytest.mark.parametrize(
    ("changed", "is_other"),
    [
        (_MODEL, True),
        ("configuration_otter.py", True),
        # A model may have several configurations, and use one of another model.
        ("configuration_otter_vision.py", True),
        ("configuration_seal.py", True),
        (_OTHER, False),
        ("image_processing_otter.py", False),
        ("notes/configuration_otter.py", False),
    ],
)
def test_a_file_is_another_if_it_or_a_configuration_beside_it_is(changed: str, is_other: bool) -> None:
    source = _target().source
    before = digest(source, {})
    Path(changed).parent.mkdir(exist_ok=True)
    Path(changed).write_text("x = 1\n", encoding="utf-8")
    assert (digest(source, {}) != before) is is_other


@pytest.mark.parametrize(
    ("replaced", "text", "is_other"),
    [
        (_MODEL, GOOD, False),
        (_MODEL, GOOD + "# other\n", True),
        (_MODEL, "", True),
        ("configuration_otter_vision.py", "x = 1\n", True),
        (_OTHER, "x = 1\n", False),
    ],
)
def test_a_text_in_place_of_a_file_counts_as_its_text(replaced: str, text: str, is_other: bool) -> None:
    source = _target().source
    overlay = {str(Path(replaced).absolute()): text}
    assert (digest(source, overlay) != digest(source, {})) is is_other


def test_text_that_has_moved_from_one_file_to_the_next_is_another() -> None:
    Path("configuration_otter_vision.py").unlink()
    source = _target().source
    texts = [("ab", "c"), ("a", "bc")]
    paths = [str(Path(name).absolute()) for name in (_MODEL, "configuration_otter.py")]
    one, other = (digest(source, dict(zip(paths, each, strict=True))) for each in texts)
    assert one != other


class _Worker:
    """An executor; each class has the text that it was run with among its notes."""

    def __init__(self, *, environment: Environment = _ENVIRONMENT, category: str = "") -> None:
        self.requests: list[Request] = []
        self._environment = environment
        self._category = category

    def __call__(self, _python: Path, request: Request) -> Iterator[Message]:
        self.requests.append(request)
        yield self._environment
        for source in request.sources:
            text = request.overlay.get(source.path, "as it is")
            if text == "broken":
                yield Unusable("it cannot be imported", source.path)
                continue
            known = ("Otter", "Pup")
            yield Discovered(source.path, known)
            for name in source.only or known:
                ended: dict[str, Any] = {"category": self._category} if self._category else {}
                outcome: Any = "not run" if ended else "passed"
                yield ClassResult(source.path, name, outcome, notes=(text,), **ended)
        yield Finished()

    @property
    def ran(self) -> list[list[str]]:
        """The names of the files of each request."""
        return [[Path(source.path).name for source in each.sources] for each in self.requests]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Callable[..., _Worker]:
    """Return a function that makes an executor, and lets runs use it."""

    def use(**facts: Any) -> _Worker:
        made = _Worker(**facts)
        monkeypatch.setattr("gclint.verify.run.EXECUTORS", {"local": made})
        return made

    return use


def _notes(run: Runner, *paths: str, **texts: str) -> list[str]:
    """Return the texts that files were run with, where ``otter`` and ``seal`` have others."""
    overlay = {Path(f"modeling_{name}.py"): text for name, text in texts.items()}
    found = run([Path(each) for each in paths], overlay)
    return [note for each in found.values() for result in each.results[:1] for note in result.notes]


def test_another_text_of_a_file_is_run_and_the_same_is_not(worker: Callable[..., _Worker]) -> None:
    run, used = FileRunner(_SETTINGS), worker()
    assert _notes(run, _MODEL) == ["as it is"]
    assert _notes(run, _MODEL, otter="first") == ["first"]
    assert _notes(run, _MODEL, otter="second") == ["second"]
    assert _notes(run, _MODEL, otter="first") == ["first"]
    assert _notes(run, _MODEL) == ["as it is"]
    assert len(used.requests) == 3


def test_a_file_is_run_again_if_one_that_it_may_import_has_another_text(
    worker: Callable[..., _Worker],
) -> None:
    run, used = FileRunner(_SETTINGS), worker()
    for text in ("first", "second", "first"):
        assert _notes(run, _MODEL, seal=text) == ["as it is"]
    assert used.ran == [[_MODEL], [_MODEL]]
    assert [list(each.overlay.values()) for each in used.requests] == [["first"], ["second"]]


def test_of_several_files_only_those_that_are_new_are_run(worker: Callable[..., _Worker]) -> None:
    run, used = FileRunner(_SETTINGS), worker()
    _notes(run, _MODEL, otter="first")
    assert _notes(run, _MODEL, _OTHER, otter="first") == ["first", "as it is"]
    assert _notes(run, _OTHER, otter="second") == ["as it is"]
    assert used.ran == [[_MODEL], [_OTHER], [_OTHER]]


def test_a_run_is_complete_whatever_the_settings_say(worker: Callable[..., _Worker]) -> None:
    used = worker()
    FileRunner(_SETTINGS)([Path(_MODEL)], {})
    assert [source.complete for each in used.requests for source in each.sources] == [True]


def test_each_file_has_its_own_results_and_its_own_problem(worker: Callable[..., _Worker]) -> None:
    worker()
    paths = [Path(_MODEL), Path(_OTHER), Path("configuration_otter.py")]
    Path(paths[-1]).write_text("x = 1\n", encoding="utf-8")
    good, bad, none = FileRunner(_SETTINGS)(paths, {paths[1]: "broken"}).values()
    assert (len(good.results), good.problem, good.environment) == (2, None, _ENVIRONMENT)
    assert {Path(each.source).name for each in good.results} == {_MODEL}
    assert (bad.results, bad.problem) == ((), "it cannot be imported")
    assert (none.results, none.problem, none.environment) == ((), None, None)


def test_a_run_in_which_nothing_runs_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_python: Path, _request: Request) -> Iterator[Message]:
        yield Unusable("there is no torch")

    monkeypatch.setattr("gclint.verify.run.EXECUTORS", {"local": broken})
    with pytest.raises(NothingRuns, match="there is no torch"):
        FileRunner(_SETTINGS)([Path(_MODEL)], {})


def _results_files(tmp_path: Path, *files: str) -> ResultsFiles:
    folder = UserFolder(tmp_path / "kept", create=True)
    return ResultsFiles(folder, "0123456789abcdef", [Path(each) for each in files])


_USUAL = {"otter": "first", "seal": "first", "whale": "first"}


@pytest.mark.parametrize(
    ("texts", "changed", "settings", "is_again"),
    [
        ({}, "", {}, False),
        ({"otter": "second"}, "", {}, True),
        # Any file of the project may be imported, and another one as well if a repair is about it.
        ({"seal": "second"}, "", {}, True),
        ({"whale": "second"}, "", {}, True),
        ({}, "configuration_otter.py", {}, True),
        # No digest of the model's file knows of this one.
        ({}, "layers_otter.py", {}, True),
        ({}, "README.md", {}, False),
        ({}, "", {"seconds": 7.0}, True),
        ({}, "", {"jobs": 1}, False),
    ],
)
def test_results_of_an_interrupted_run_are_those_of_the_same_texts(
    texts: dict[str, str],
    changed: str,
    settings: Any,
    is_again: bool,
    tmp_path: Path,
    worker: Callable[..., _Worker],
) -> None:
    for name in ("modeling_whale.py", "layers_otter.py"):
        Path(name).write_text(GOOD, encoding="utf-8")
    files = (_MODEL, _OTHER, "configuration_otter.py", "layers_otter.py")
    worker()
    _notes(FileRunner(_SETTINGS, results_files=_results_files(tmp_path, *files)), _MODEL, **_USUAL)
    if changed:
        Path(changed).write_text(GOOD + "# changed\n", encoding="utf-8")
    used = worker()
    later = FileRunner(replace(_SETTINGS, **settings), results_files=_results_files(tmp_path, *files))
    assert _notes(later, _MODEL, **{**_USUAL, **texts}) == [texts.get("otter", "first")]
    assert used.ran == [[_MODEL] if is_again else []]


def test_results_that_were_cleared_or_are_of_another_project_are_not_kept(
    tmp_path: Path, worker: Callable[..., _Worker]
) -> None:
    journals = _results_files(tmp_path, _MODEL)
    other = replace(journals, project="fedcba9876543210")
    worker()
    for each in (journals, other):
        _notes(FileRunner(_SETTINGS, results_files=each), _MODEL)
    journals.clear()
    used = worker()
    for each in (other, journals):
        _notes(FileRunner(_SETTINGS, results_files=each), _MODEL)
    assert used.ran == [[], [_MODEL]]


def _verified(earlier: Any = None, texts: Any = None, only: tuple[str, ...] = ()) -> Any:
    target = replace(_target(), source=replace(_target().source, only=only))
    return verify([target], _SETTINGS, earlier=earlier, texts=texts)


@pytest.mark.parametrize(
    ("change", "category", "ran"),
    [
        ("", "", [[]]),
        (_MODEL, "", [[_MODEL]]),
        ("configuration_otter_vision.py", "", [[_MODEL]]),
        # What others have killed is run again.
        ("", "killed", [[_MODEL]]),
        ("", "reference", [[]]),
    ],
)
def test_earlier_results_are_kept_only_of_what_has_not_changed(
    change: str, category: str, ran: list[list[str]], worker: Callable[..., _Worker]
) -> None:
    worker(category=category)
    earlier = _verified()
    if change:
        Path(change).write_text(GOOD + "# changed\n", encoding="utf-8")
    used = worker()
    results = _verified(earlier)
    assert used.ran == ran
    assert [each.name for each in results.sorted()] == ["Otter", "Pup"]
    kept = ran == [[]] and bool(category)
    assert {each.outcome for each in results.sorted()} == {"not run" if kept else "passed"}


@pytest.mark.parametrize(("text", "is_again"), [("first", False), ("second", True), (None, True)])
def test_earlier_results_of_another_text_are_not_kept(
    text: str | None, is_again: bool, worker: Callable[..., _Worker]
) -> None:
    worker()
    earlier = _verified(texts={Path(_MODEL): "first"})
    used = worker()
    results = _verified(earlier, {} if text is None else {Path(_MODEL): text})
    assert used.ran == [[_MODEL] if is_again else []]
    assert {each.notes for each in results.sorted()} == {(text or "as it is",)}


@pytest.mark.parametrize(
    ("only", "left"),
    [((), [("Pup",)]), (("Pup",), [("Pup",)]), (("Otter",), []), (("Otter", "Pup"), [("Pup",)])],
)
def test_only_classes_that_are_missing_and_wanted_are_run_again(
    only: tuple[str, ...], left: list[tuple[str, ...]], worker: Callable[..., _Worker]
) -> None:
    worker()
    earlier = _verified()
    del earlier.classes[str(Path(_MODEL).absolute()), "Pup"]
    used = worker()
    results = _verified(earlier, only=only)
    assert [each.name for each in results.sorted()] == ["Otter", *(["Pup"] if left else [])]
    assert [source.only for each in used.requests for source in each.sources] == left


@pytest.mark.parametrize(
    ("changes", "is_another"),
    [
        ({}, False),
        ({"torch": "2.12.0"}, True),
        ({"numerics": ("deterministic",)}, True),
        ({"device": "a GPU"}, True),
        # It does not change a number.
        ({"isolation": ("without a network",)}, False),
        ({"python": "3.13.0", "isolation": ("without a network",)}, True),
    ],
)
def test_results_of_another_environment_are_not_continued(
    changes: Any, is_another: bool, worker: Callable[..., _Worker]
) -> None:
    worker()
    earlier = _verified()
    worker(environment=replace(_ENVIRONMENT, **changes))
    if is_another:
        with pytest.raises(UnusableResults, match=next(iter(changes))) as raised:
            _verified(earlier)
        assert "isolation" not in str(raised.value)
    else:
        assert len(_verified(earlier).classes) == 2


_FOUND = Discovered("a.py", ("A", "B"))
_A, _B, _C = (ClassResult("a.py", name, "passed") for name in "ABC")
_FAILED = ClassResult("a.py", "A", "failed")
_OF_B = (Discovered("b.py", ("A",)), ClassResult("b.py", "A", "passed"))
_UNUSABLE = Unusable("it cannot be imported", "a.py")
_ESTIMATE = MemoryEstimate("a.py", "A", batch=1)
_TWO = ("a.py", "b.py")


def _believed(
    monkeypatch: pytest.MonkeyPatch, messages: Sequence[Message], sources: Sequence[str], **facts: Any
) -> tuple[list[Message], bool]:
    """Return what is believed of the messages of a worker, and whether it is all that they say."""
    monkeypatch.setattr(process, "converse", lambda *_: (each for each in messages))
    request = Request(tuple(Source(each, each) for each in sources), **facts)
    found = list(process.work(Path(sys.executable), request))
    is_forged = isinstance(found[-1], Unusable) and "cannot be believed" in found[-1].message
    return (found[:-1] if is_forged else found), not is_forged


@pytest.mark.parametrize(
    ("messages", "sources"),
    [
        ((_FOUND, _A, _B, Finished()), ("a.py",)),
        ((_FOUND, _B, _A, Finished()), ("a.py",)),
        ((Discovered("a.py", ()), Finished()), ("a.py",)),
        ((_UNUSABLE, Finished()), ("a.py",)),
        ((_UNUSABLE, *_OF_B, Finished()), _TWO),
        # Several files are run at once, and classes of the same name are others in them.
        ((_OF_B[0], _FOUND, _A, _OF_B[1], _B, Finished()), _TWO),
        ((_FOUND, _A, Unusable("there is no torch")), ("a.py",)),
        ((Unusable("there is no torch"),), _TWO),
        ((Finished(),), ()),
    ],
)
def test_a_worker_that_answers_for_all_sources_is_believed(
    messages: Sequence[Message], sources: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _believed(monkeypatch, messages, sources) == (list(messages), True)


@pytest.mark.parametrize(
    ("messages", "left", "sources"),
    [
        # It says that it is done before it has said what is in a source.
        ((Finished(),), 1, ("a.py",)),
        ((Finished(), _FOUND, _A, _B, Finished()), 5, ("a.py",)),
        ((*_OF_B, Finished()), 1, _TWO),
        ((_UNUSABLE, Finished()), 1, _TWO),
        ((_OF_B[0], _OF_B[1], _FOUND, _A, Finished()), 1, _TWO),
        # Or before each class has a result.
        ((_FOUND, Finished()), 1, ("a.py",)),
        ((_FOUND, _A, Finished()), 1, ("a.py",)),
        # A class has two results, was not announced, or is one of another source.
        ((_FOUND, _A, _A, _B, Finished()), 3, ("a.py",)),
        ((_FOUND, _A, _FAILED, _B, Finished()), 3, ("a.py",)),
        ((_FOUND, _C, _A, _B, Finished()), 4, ("a.py",)),
        ((_A, _FOUND, _A, _B, Finished()), 5, ("a.py",)),
        ((_FOUND, _OF_B[1], _A, _B, Finished()), 4, ("a.py",)),
        ((_OF_B[0], _B, *_OF_B, Finished()), 4, _TWO),
        ((_UNUSABLE, _A, Finished()), 2, ("a.py",)),
    ],
)
def test_a_worker_that_says_what_cannot_be_is_not_believed_from_there_on(
    messages: Sequence[Message], left: int, sources: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _believed(monkeypatch, messages, sources) == (list(messages[:-left]), False)


@pytest.mark.parametrize("again", [(), ("A",)])
def test_a_source_is_announced_once(again: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[Message] = [_FOUND, Discovered("a.py", again), *[_A for _ in again], Finished()]
    assert not _believed(monkeypatch, messages, ("a.py",))[1]


@pytest.mark.parametrize(
    "message",
    [
        Discovered("elsewhere.py", ()),
        Unusable("it cannot be imported", "elsewhere.py"),
        Progress("elsewhere.py", "A", "default", "plain", "the forward pass"),
    ],
)
def test_a_message_about_another_source_is_not_believed(
    message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _target().source.path
    messages = (_ENVIRONMENT, Discovered(source, ()), message, Finished())
    monkeypatch.setattr(process, "converse", lambda *_: (each for each in messages))
    results = verify([_target()], replace(_SETTINGS, python=Path(sys.executable)))
    assert "cannot be believed" in str(results.problem)


@pytest.mark.parametrize(
    ("facts", "messages", "is_believed"),
    [
        ({"is_listing": True}, (_FOUND, Finished()), True),
        ({"is_listing": True}, (_UNUSABLE, Finished()), True),
        ({"is_listing": True}, (Finished(),), False),
        ({"is_listing": True}, (_FOUND, _A), False),
        # A question has an answer of its own, and no classes.
        ({"question": EstimateRequest("A")}, (_ESTIMATE, Finished()), True),
        ({"question": EstimateRequest("A")}, (_UNUSABLE, Finished()), True),
        ({"question": EstimateRequest("A")}, (_A, Finished()), False),
    ],
)
def test_a_worker_that_runs_no_class_has_no_result(
    facts: Any, messages: Sequence[Message], is_believed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _believed(monkeypatch, messages, ("a.py",), **facts)[1] is is_believed


_OLD, _NEW = Header(files="before"), Header(files="after")


def _written(known: Header, *messages: Message, finish: bool, resume: bool = True) -> None:
    """Write or continue a file of results, as a run does that finishes or is killed."""
    path = Path("results.jsonl")
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with ResultsFile(handle, path, known, resume=resume) as journal:
        for each in messages:
            journal.write(ReceivedMessage(each, None, known.files))
        if finish:
            journal.finish()


@pytest.mark.parametrize(
    ("second", "messages", "finish", "is_finished"),
    [
        # Nothing had changed, and nothing was left to run.
        (_OLD, (), False, True),
        (_OLD, (), True, True),
        (_OLD, (_A,), False, False),
        (_OLD, (_A,), True, True),
        # A run that goes on with other files was killed before, between and after its results.
        (_NEW, (), False, False),
        (_NEW, (_FOUND, _A), False, False),
        (_NEW, (_FOUND, _A, _B), True, True),
    ],
)
def test_a_run_that_goes_on_has_to_finish_again(
    second: Header, messages: Sequence[Message], finish: bool, is_finished: bool
) -> None:
    _written(_OLD, _FOUND, _A, _B, finish=True)
    _written(second, *messages, finish=finish)
    found, results = read(Path("results.jsonl"))
    assert (found, results.is_finished) == (second, is_finished)
    if is_finished:
        assert [each.name for each in merge([Path("results.jsonl")]).sorted()] == ["A", "B"]
    else:
        with pytest.raises(UnusableResults, match="has not finished; continue it with --resume"):
            merge([Path("results.jsonl")])


def test_results_of_a_whole_release_are_read_though_no_source_file_is_so_large() -> None:
    large = replace(_A, notes=("a note " * 2_000_000,))
    _written(_OLD, _FOUND, large, finish=True)
    assert read(Path("results.jsonl"))[1].is_finished
    assert merge([Path("results.jsonl")]).sorted() == [large]


@pytest.mark.parametrize("finish", [True, False])
def test_a_run_that_begins_anew_keeps_nothing(finish: bool) -> None:
    _written(_OLD, _FOUND, _A, finish=True)
    _written(_NEW, _FOUND, _B, finish=finish, resume=False)
    found, results = read(Path("results.jsonl"))
    assert (found, results.is_finished) == (_NEW, finish)
    assert [each.name for each in results.sorted()] == ["B"]


def test_only_what_later_runs_need_is_kept() -> None:
    step = Progress("a.py", "A", "default", "plain", "the forward pass")
    kept = (_ENVIRONMENT, _FOUND, _FAILED, Unusable("it cannot be imported", "b.py"))
    # What ended one run may not end the next.
    _written(_OLD, *kept, step, _ESTIMATE, Unusable("there is no torch"), Finished(), finish=True)
    path = Path("results.jsonl")
    kinds = [json.loads(line).get("kind") for line in path.read_text(encoding="utf-8").splitlines()]
    assert kinds == [None, "Environment", "Discovered", "ClassResult", "Unusable", None]
    results = merge([path])
    assert results.environments == {None: _ENVIRONMENT}
    assert results.discovered == {"a.py": ("A", "B")}
    assert [each.outcome for each in results.sorted()] == ["failed"]
    assert list(results.unusable) == ["b.py"]
    assert results.digests == {"a.py": "before", "b.py": "before"}


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({}, None),
        # The files may have changed: that decides what is run, not whether.
        ({"files": "after"}, None),
        ({"gclint": "0.0.1"}, "gclint is"),
        ({"shard": 2, "shards": 2}, "the shard is 1/1 instead of 2/2"),
        ({"settings": {"seconds": 7.0}}, "seconds is None instead of 7.0"),
    ],
)
def test_a_file_is_continued_only_by_a_run_that_would_have_written_it(
    change: Any, difference: str | None
) -> None:
    _written(_OLD, _FOUND, _A, finish=False)
    if difference is None:
        _written(replace(_OLD, **change), _B, finish=True)
        return
    with pytest.raises(UnusableResults, match=difference):
        _written(replace(_OLD, **change), _B, finish=True)
    assert [each.name for each in read(Path("results.jsonl"))[1].sorted()] == ["A"]


@pytest.mark.parametrize(
    ("names", "settings", "is_other"),
    [
        ((_MODEL, _OTHER), {}, False),
        ((_OTHER, _MODEL), {}, False),
        ((_MODEL,), {}, True),
        ((_MODEL, _OTHER), {"seconds": 7.0}, True),
        ((_MODEL, _OTHER), {"device": "cuda"}, True),
        ((_MODEL, _OTHER), {"practices": ("ddp:R/static",)}, True),
        ((_MODEL, _OTHER), {"gigabytes": 4.0}, True),
        ((_MODEL, _OTHER), {"jobs": 3, "python": Path("other"), "executor": "ray"}, False),
    ],
)
def test_runs_are_the_same_if_their_files_and_what_results_depend_on_are(
    names: Sequence[str], settings: Any, is_other: bool
) -> None:
    usual = header(map(_target, (_MODEL, _OTHER)), _SETTINGS)
    assert (header(map(_target, names), replace(_SETTINGS, **settings)) != usual) is is_other


def test_files_that_have_swapped_their_texts_are_others() -> None:
    Path(_OTHER).write_text("x = 1\n", encoding="utf-8")
    before = header(map(_target, (_MODEL, _OTHER)), _SETTINGS)
    Path(_MODEL).rename("swapped")
    Path(_OTHER).rename(_MODEL)
    Path("swapped").rename(_OTHER)
    assert header(map(_target, (_MODEL, _OTHER)), _SETTINGS) != before
