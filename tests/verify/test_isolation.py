"""What keeps models apart from the machine: namespaces, variables, and a home for the time of a run."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import dedent

import pytest

from gclint.verify.home import harmless, temporary_home
from gclint.verify.worker import isolation

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

_PREPARE = """
import os, signal, socket, subprocess, sys
from gclint.verify.worker.isolation import isolate, use_home
told = isolate(1.0)
"""


@pytest.fixture(scope="module")
def namespaces() -> None:
    if isolation._allowed() is None:
        pytest.skip("namespaces are not allowed here")


def _start(program: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PREPARE + dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        start_new_session=True,
    )


def _run(program: str, **variables: str) -> str:
    out, err = _start(program, **variables).communicate()
    assert not err, err
    return out.strip()


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("address", ["this machine's", "192.0.2.1"])
def test_programs_that_are_started_reach_no_network(address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = server.getsockname()
        reach = f"import socket; socket.create_connection({here!r}); print('reached')"
        assert subprocess.run([sys.executable, "-c", reach], capture_output=True, check=True).stdout
        # What is listening outside is not listening on the loopback interface in there.
        refusal = "ConnectionRefusedError: [Errno 111] Connection refused"
        if address == "192.0.2.1":
            reach, refusal = (
                reach.replace("127.0.0.1", address),
                "OSError: [Errno 101] Network is unreachable",
            )
        program = f"""
        done = subprocess.run([sys.executable, "-c", {reach!r}], capture_output=True, text=True)
        print(told[0], done.returncode, done.stderr.splitlines()[-1])
        """
        assert _run(program) == f"no network 1 {refusal}"


@pytest.mark.usefixtures("namespaces")
def test_processes_reach_one_another_as_a_process_group_has_to() -> None:
    program = """
    with socket.create_server(("127.0.0.1", 0)) as server:
        reach = f"import socket; socket.create_connection({server.getsockname()!r}); print('reached')"
        print(told[0], subprocess.run([sys.executable, "-c", reach], capture_output=True).stdout)
    """
    assert _run(program) == "no network b'reached\\n'"


_DAEMON = """
held = os.open(os.environ["HELD"], os.O_RDWR)
import fcntl
fcntl.flock(held, fcntl.LOCK_EX)
if not os.fork():
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not os.fork():
        os.closerange(0, held)
        signal.pause()
    os._exit(0)
os.close(held)
print(told[1], flush=True)
"""


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)", "signal.pause()"])
def test_a_daemon_ends_with_the_worker(tmp_path: Path, end: str) -> None:
    held = tmp_path / "held"
    held.touch()
    process = _start(_DAEMON + end, HELD=str(held))
    assert process.stdout
    assert process.stdout.readline() == "processes that it starts end with it\n"
    if end == "signal.pause()":
        # As the host does it.
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.communicate()
    with held.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    process.communicate()


@pytest.mark.usefixtures("namespaces")
def test_the_variables_of_other_processes_cannot_be_read() -> None:
    program = """
    found = [each for each in os.listdir("/proc") if each.isdigit()]
    print(told[2:], len(found), os.getpid(), os.getuid())
    """
    told = _run(program)
    if "hidden" in told:
        assert told == f"('other processes are hidden',) 1 1 {os.getuid()}"


@pytest.mark.usefixtures("namespaces")
def test_a_death_in_the_namespaces_is_told() -> None:
    out, err = _start("import ctypes; ctypes.string_at(0)").communicate()
    assert (out, err) == ("", "it was killed (SIGSEGV)\n")


def test_a_system_without_namespaces_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    network, _ = isolation.isolate(1.0)
    assert network.startswith("the network is blocked for Python code, but not for other programs")


def test_everything_that_is_kept_for_a_user_is_kept_in_the_home(tmp_path: Path) -> None:
    program = """
    import tempfile
    use_home(os.environ["WANTED"])
    with tempfile.NamedTemporaryFile() as file:
        print(os.path.expanduser("~"), os.environ["HF_HOME"], os.path.dirname(file.name))
    """
    wanted = str(tmp_path / "home")
    printed = _run(program, WANTED=wanted)
    assert printed == f"{wanted} {wanted}/huggingface {wanted}/tmp"


def test_only_variables_that_are_no_secrets_are_passed_on() -> None:
    kept = {
        "PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "VIRTUAL_ENV", "CUBLAS_WORKSPACE_CONFIG",
    }  # fmt: skip
    dropped = {
        "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE",
        "SSH_AUTH_SOCK", "OPENAI_API_KEY", "WANDB_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "PGPASSWORD",
        "http_proxy", "TORCH_TOKEN", "PYTHON_KEYRING_BACKEND", "KUBECONFIG", "DATABASE_URL", "PATHS",
    }  # fmt: skip
    assert set(harmless(dict.fromkeys(kept | dropped, "x"))) == kept


def test_a_home_is_removed_with_all_that_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o500)
    with temporary_home() as folder:
        (folder / "link").symlink_to(precious)
        (folder / "closed" / "inner").mkdir(parents=True)
        (folder / "closed").chmod(0)
    assert list(tmp_path.iterdir()) == [precious]
    assert precious.stat().st_mode & 0o777 == 0o500
