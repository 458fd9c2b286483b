"""Code that writes into the pipe for results: nothing of it is believed, and it ends no run but its own."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from textwrap import dedent, indent

import pytest

from gclint.verify import process
from gclint.verify.worker import child
from gclint.verify.worker.child import Task, run
from gclint.verify.worker.ending import End
from gclint.verify.worker.protocol import ClassResult, Environment, Finished, Request, Source, Unusable
from tests.environment import PROJECT
from tests.verify import stand_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists descriptors so")

_HEAD = """
import fcntl, json, os, stat

VICTIM = {victim!r}

def write(text):
    for name in os.listdir("/proc/self/fd"):
        try:
            is_pipe = stat.S_ISFIFO(os.fstat(int(name)).st_mode)
            if is_pipe and fcntl.fcntl(int(name), fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                os.write(int(name), text.encode() + b"\\n")
        except OSError:
            pass

def send(kind, **content):
    write("=" + json.dumps(dict(content, kind=kind)))

def claim(source, name):
    send("ClassResult", source=source, name=name, outcome="passed")

def go_on(name="Guest"):
    send("Progress", source=__file__, name=name, scenario="default", mode="plain", step="x")
"""
_DEFECT = "    @staticmethod\n    def run(watch, known): raise ValueError('a defect')\n"
_DEEDS = {
    "a class speaks for another": "claim(__file__, 'Other')",
    "a class speaks for another file": "claim(VICTIM, 'Victim')",
    "a class ends the run": "send('Finished')",
    "a class ends it with a reason": "send('Unusable', message='x', source=None)",
    "a class writes nonsense": "write('=nonsense')",
    "a class writes no message": "write('nonsense')",
    "a class reports another's progress without end": "while True: go_on('Other')",
}
"""What each does to the results of others: the class is not run, and the one beside it is judged."""


def _guest(folder: Path, victim: str, deed: str, *, at_import: bool) -> Source:
    folder.mkdir()
    deed = dedent(deed)
    run = indent("pass" if at_import else deed, " " * 8)
    text = f"class Guest:\n    @staticmethod\n    def run(watch, known):\n{run}\n"
    other = f"class Other:\n{_DEFECT}"
    path = folder / "modeling_toy.py"
    path.write_text(f"{_HEAD.format(victim=victim)}\n{deed if at_import else ''}\n{text}{other}")
    return Source(str(path), f"{folder.name}.modeling_toy", str(folder))


def test_what_code_writes_into_the_pipe_is_not_believed_and_ends_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a program of its own: the pipes of this one are not those of an attack.
    monkeypatch.setattr(process, "_PROGRAM", Path(stand_in.__file__))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    path = tmp_path / "modeling_victim.py"
    path.write_text(f"class Victim:\n{_DEFECT}")
    victim = Source(str(path), "victim.modeling_victim", str(tmp_path))
    running = [
        _guest(tmp_path / f"run{number}", str(path), deed, at_import=False)
        for number, deed in enumerate(_DEEDS.values())
    ]
    importing = [
        _guest(tmp_path / f"import{number}", str(path), deed, at_import=True)
        for number, deed in enumerate(_DEEDS.values())
    ]
    request = Request((*running, *importing, victim), seconds=60.0, jobs=2)
    with closing(process.work(Path(sys.executable), request)) as messages:
        heard = list(messages)
    assert isinstance(heard[0], Environment)
    assert isinstance(heard[-1], Finished)
    found = {
        (each.source, each.name): (each.outcome, each.category)
        for each in heard
        if isinstance(each, ClassResult)
    }
    assert found == {
        **{(each.path, "Guest"): ("not run", "tampering") for each in running},
        **{(each.path, "Other"): ("not run", "verifier") for each in running},
        (victim.path, "Victim"): ("not run", "verifier"),
    }
    unusable = {each.source for each in heard if isinstance(each, Unusable)}
    assert unusable == {each.path for each in importing}


_INTO_THE_OUTPUT = """
process = int(open(f"/proc/{{os.getppid()}}/stat").read().rpartition(")")[2].split()[1])
for name in os.listdir(f"/proc/{{process}}/fd"):
    try:
        pipe = os.open(f"/proc/{{process}}/fd/{{name}}", os.O_WRONLY | os.O_NONBLOCK)
        if stat.S_ISFIFO(os.fstat(pipe).st_mode):
            os.write(pipe, json.dumps({message}).encode() + b"\\n")
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    "message",
    [
        "dict(kind='ClassResult', source=VICTIM, name='Victim', outcome='passed')",
        "dict(kind='ClassResult', source=__file__, name='Other', outcome='passed')",
        "dict(kind='Finished')",
    ],
)
def test_what_a_class_writes_into_the_output_of_the_worker_ends_the_run_loudly(
    message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_PROGRAM", Path(stand_in.__file__))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    path = tmp_path / "modeling_victim.py"
    path.write_text(f"class Victim:\n{_DEFECT}")
    deed = _INTO_THE_OUTPUT.format(message=message)
    guest = _guest(tmp_path / "guest", str(path), deed, at_import=False)
    sources = (guest, Source(str(path), "victim.modeling_victim", str(tmp_path)))
    with closing(process.work(Path(sys.executable), Request(sources, seconds=60.0, jobs=1))) as messages:
        *_, last = messages
    assert isinstance(last, Unusable)
    assert last.source is None
    assert "cannot be believed" in last.message


def test_a_line_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_LONGEST_LINE", 1 << 17)
    task = Task(lambda send, _slot: send("x" * (1 << 20)), 60.0)
    assert [event for _, event in run([task], 1)] == [
        End("tampering", "something in the pipe for results that gclint has not written")
    ]
