"""``gclint verify --executor ray`` on a real cluster of Ray, whose nodes are processes of this machine."""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gclint
from gclint.verify.cluster import driver
from gclint.verify.sources import digest, target_of
from gclint.verify.worker.protocol import Request, Unusable, decode, encode
from tests.environment import PROJECT
from tests.verify import stand_in
from tests.verify.command_line import MODEL, failing, passing

_SECONDS = 60
"""After which what a test waits for does not come any more."""
_WAITING = """
class {name}:
    @staticmethod
    def run(watch, known):
        import fcntl, os
        above = [os.getppid()]
        while above[-1] > 1:
            stat = open(f"/proc/{{above[-1]}}/stat").read()
            above.append(int(stat.rpartition(")")[2].split()[1]))
        fifo = os.open({folder!r} + "/started", os.O_WRONLY)
        os.write(fifo, f"{name} {{' '.join(map(str, above))}}\\n".encode())
        with open({folder!r} + "/gate") as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
"""
_HEAD = "from dataclasses import replace\nfrom gclint.verify.worker.protocol import *\n"

Command = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Start gclint in an empty folder, with an interpreter that runs the stand-in whatever it is given."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable} {stand_in.__file__}\n")
    python.chmod(0o755)

    def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
        own = ["--python", str(python)] if "merge" not in arguments else []
        return subprocess.Popen(
            [sys.executable, "-m", "gclint", "verify", *arguments, *own],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(PROJECT), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of one node with one core."""
    with _cluster() as made:
        yield made


@contextmanager
def _cluster() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        made = Cluster(head_node_args={**_of_node(), "include_dashboard": False}, initialize_head=True)
        try:
            yield made
        finally:
            made.shutdown()


def _of_node(cores: int = 1, gpus: int = 0) -> dict[str, Any]:
    return {"num_cpus": cores, "num_gpus": gpus, "object_store_memory": 80 * 2**20}


def _write(folder: Path, name: str, text: str) -> None:
    (folder / f"modeling_{name}.py").write_text(_HEAD + text + MODEL)


class Gate:
    """Lets no class end, and says which have begun."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        os.mkfifo(folder / "started")
        # Open for both, so that neither side waits for the other.
        self._started = os.open(folder / "started", os.O_RDWR)
        self._gate = (folder / "gate").open("w")
        fcntl.flock(self._gate, fcntl.LOCK_EX)

    def waiting(self, *names: str) -> str:
        return "".join(_WAITING.format(name=name, folder=self._folder) for name in names)

    def begun(self, number: int) -> dict[str, list[int]]:
        """Wait until so many classes have begun since the last call; return the processes above them."""
        found = b""
        while found.count(b"\n") < number:
            ready, _, _ = select.select([self._started], [], [], _SECONDS)
            assert ready, f"of {number} classes, {found!r} have begun"
            found += os.read(self._started, 1)
        lines = [line.split() for line in found.decode().splitlines()]
        return {name: list(map(int, above)) for name, *above in lines}

    def open(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_UN)

    def close(self) -> None:
        self._gate.close()
        os.close(self._started)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path)
    yield made
    made.close()


def _ended(process: subprocess.Popen[str], status: int) -> tuple[str, str]:
    out, err = process.communicate(timeout=2 * _SECONDS)
    assert process.returncode == status, err
    return out, err


def _without_times(text: str) -> Any:
    found = json.loads(text)
    return {**found, "results": [{**result, "seconds": 0} for result in found["results"]]}


@pytest.mark.ray
def test_what_a_lost_node_was_at_is_run_again(
    command: Command, cluster: Any, gate: Gate, tmp_path: Path
) -> None:
    other = cluster.add_node(**_of_node())
    _write(tmp_path, "a", gate.waiting("A", "B"))
    _write(tmp_path, "b", passing("C") + failing("D"))
    _write(tmp_path, "c", passing("E"))
    on_cluster = ("--executor", "ray", "--output-format", "json")
    first = command(*on_cluster, "--shard", "1/2", "--results", "1.jsonl", RAY_ADDRESS=cluster.address)
    begun = gate.begun(2)
    raylet = other.all_processes["raylet"][0].process.pid
    (lost,) = (name for name, above in begun.items() if raylet in above)  # There is one on each node.
    worker = os.pidfd_open(begun[lost][begun[lost].index(raylet) - 1])
    cluster.remove_node(other, allow_graceful=False)
    assert select.select([worker], [], [], _SECONDS)[0]
    os.close(worker)
    gate.open()
    assert list(gate.begun(1)) == [lost]
    _ended(first, 0)
    _ended(command(*on_cluster, "--shard", "2/2", "--results", "2.jsonl", RAY_ADDRESS=cluster.address), 1)
    merged, _ = _ended(command("merge", "1.jsonl", "2.jsonl", "--output-format", "json"), 1)
    here, _ = _ended(command("--output-format", "json"), 1)
    assert [each["name"] for each in json.loads(here)["results"]] == ["A", "B", "C", "D", "E"]
    assert _without_times(merged) == _without_times(here)


@pytest.mark.ray
def test_a_lost_cluster_leaves_what_is_known(command: Command, gate: Gate, tmp_path: Path) -> None:
    _write(tmp_path, "a", passing("A"))
    _ended(command("modeling_a.py"), 0)
    _write(tmp_path, "b", gate.waiting("B"))
    with _cluster() as cluster:
        options = ("--executor", "ray", "--resume")
        limit = {"RAY_gcs_rpc_server_reconnect_timeout_s": "2"}
        process = command(*options, RAY_ADDRESS=cluster.address, **limit)
        assert list(gate.begun(1)) == ["B"]
    out, _ = _ended(process, 2)
    assert "the connection to the Ray cluster has ended" in out
    gate.open()
    out, _ = _ended(command("--resume", "--output-format", "json"), 0)
    assert [each["name"] for each in json.loads(out)["results"]] == ["A", "B"]
    assert list(gate.begun(1)) == ["B"]


@pytest.mark.ray
def test_classes_share_a_gpu(command: Command, cluster: Any, gate: Gate, tmp_path: Path) -> None:
    _write(tmp_path, "a", gate.waiting("A", "B"))
    options = ("--executor", "ray", "--device", "cuda")
    out, _ = _ended(command(*options, RAY_ADDRESS=cluster.address), 2)
    assert "the Ray cluster has no GPU" in out
    other = cluster.add_node(**_of_node(cores=2, gpus=1))
    process = command(*options, RAY_ADDRESS=cluster.address)
    raylet = other.all_processes["raylet"][0].process.pid
    # The other node is free, but has none.
    assert all(raylet in above for above in gate.begun(2).values())
    gate.open()
    _ended(process, 0)
    cluster.remove_node(other)


@pytest.mark.ray
def test_a_run_that_is_killed_leaves_the_cluster(
    command: Command, cluster: Any, gate: Gate, tmp_path: Path
) -> None:
    _write(tmp_path, "a", gate.waiting("A"))
    process = command("--executor", "ray", RAY_ADDRESS=cluster.address)
    gate.begun(1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    (driver,) = map(os.pidfd_open, map(int, children.split()))
    process.kill()
    assert select.select([driver], [], [], _SECONDS)[0]
    os.close(driver)
    gate.open()
    process.communicate()


@pytest.mark.ray
def test_a_node_without_the_interpreter_is_named(command: Command, cluster: Any, tmp_path: Path) -> None:
    _write(tmp_path, "a", passing("A"))
    process = command("--executor", "ray", RAY_ADDRESS=cluster.address)
    (tmp_path / "python").unlink()
    out, _ = _ended(process, 2)
    assert f"on the node {socket.gethostname()}: {tmp_path / 'python'} cannot be started" in out


@pytest.mark.ray
def test_an_address_where_nobody_answers_is_named(command: Command, tmp_path: Path) -> None:
    _write(tmp_path, "a", passing("A"))
    with socket.socket() as refusing:
        # Bound, and listened to by nobody.
        refusing.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{refusing.getsockname()[1]}"
        out, _ = _ended(command("--executor", "ray", RAY_ADDRESS=address), 2)
    assert f"no Ray cluster answers at {address}, the value of RAY_ADDRESS: Connection refused" in out


@pytest.mark.ray
def test_an_address_where_somebody_else_listens_is_named(command: Command, tmp_path: Path) -> None:
    _write(tmp_path, "a", passing("A"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        out, _ = _ended(command("--executor", "ray", RAY_ADDRESS=address, GCLINT_RAY_TIMEOUT="1"), 2)
    assert f"there is no Ray cluster at {address}: no answer in 1 s" in out


def test_a_missing_library_is_named(command: Command, tmp_path: Path) -> None:
    _write(tmp_path, "a", passing("A"))
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError(\"No module named 'ray'\")")
    out, _ = _ended(command("--executor", "ray", PYTHONPATH=f"{tmp_path}:{PROJECT}"), 2)
    assert "install it with: pip install 'gclint[ray]'" in out


@pytest.mark.parametrize(
    ("content", "version", "words"),
    [
        ("", gclint.__version__, "differs from the file here"),
        (None, gclint.__version__, "No such file or directory; the files must be at the same path"),
        (passing("A"), "0.0.1", f"gclint is {gclint.__version__} there, and 0.0.1 here"),
    ],
)
def test_a_node_with_other_files_is_not_used(
    tmp_path: Path, content: str | None, version: str, words: str
) -> None:
    _write(tmp_path, "a", passing("A"))
    path = tmp_path / "modeling_a.py"
    source = target_of(path).source
    digests = {str(path): digest(source, {})}
    if content is None:
        path.unlink()
    elif not content:
        path.write_text(content)
    found = driver.answer(sys.executable, encode(Request((source,))), digests, version)
    (message,) = map(decode, found.lines)
    assert isinstance(message, Unusable)
    assert (message.source, found.node) == (None, socket.gethostname())
    assert words in message.message
