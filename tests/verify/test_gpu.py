"""What holds on a GPU, seen without one: nothing touches it before a fork, and its memory is told apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from gclint.verify.sources import target_of
from gclint.verify.worker import memory_limits
from gclint.verify.worker.ending import end_of_exception
from gclint.verify.worker.memory_limits import apply_gpu_limit, is_crowded_out, limit_gpu_memory
from gclint.verify.worker.models import CannotWork, Models
from gclint.verify.worker.protocol import Request, encode

_REFUSED = (
    "CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 79.15 GiB of which 1.19 "
    "GiB is free. {others}Including non-PyTorch memory, this process has 3.00 GiB memory in use. {allowed}Of "
    "the allocated memory {own} is allocated by PyTorch, and 22.51 MiB is reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF."
)
_OTHERS = "Process 4711 has 74.96 GiB memory in use. "


@pytest.mark.parametrize(
    ("tried", "own", "allowed", "is_others"),
    [
        ("2.00 GiB", "2.50 GiB", "", True),
        ("2.00 GiB", "2.50 GiB", "8.00 GiB allowed; ", True),
        ("2.00 GiB", "2.50 GiB", "4.00 GiB allowed; ", False),
        ("20.00 GiB", "70.50 GiB", "", False),
        ("512.00 GiB", "0 bytes", "", False),
    ],
)
def test_memory_that_a_neighbour_has_is_not_the_models_doing(
    tried: str, own: str, allowed: str, is_others: bool
) -> None:
    error = RuntimeError(_REFUSED.format(tried=tried, own=own, allowed=allowed, others=_OTHERS))
    assert is_crowded_out(error) is is_others
    assert end_of_exception(error).cause == ("crowded out" if is_others else "memory limit")


@pytest.mark.parametrize(
    "text",
    ["CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"],
)
def test_a_gpu_that_is_full_before_anything_is_allocated_is_not_the_models_doing(text: str) -> None:
    assert end_of_exception(RuntimeError(text)).cause == "crowded out"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_memory_of_a_cpu_is_the_models_own(error: Exception) -> None:
    assert end_of_exception(error).cause == "memory limit"


class _Cuda:
    """Takes note of what torch.cuda is told."""

    def __init__(self) -> None:
        self.cuda = self
        self.total_memory = 80e9
        self.fraction: float | None = None

    def get_device_properties(self, _device: str) -> _Cuda:
        return self

    def set_per_process_memory_fraction(self, fraction: float, _device: str) -> None:
        self.fraction = fraction


@pytest.mark.parametrize(("gigabytes", "fraction"), [(None, None), (8.0, 0.1), (800.0, 1.0)])
def test_the_memory_limit_is_one_of_gpu_memory(
    monkeypatch: pytest.MonkeyPatch, gigabytes: float | None, fraction: float | None
) -> None:
    monkeypatch.setattr(memory_limits, "_gpu_limit", [])
    if gigabytes:
        limit_gpu_memory(gigabytes)
    torch = _Cuda()
    apply_gpu_limit(torch, "cuda:0")
    assert torch.fraction == fraction


@pytest.mark.parametrize(
    ("wanted", "number", "found"),
    [
        ("cpu", 2, ["cpu"]),
        ("auto", 0, ["cpu"]),
        ("auto", 2, ["cuda:0", "cuda:1"]),
        ("cuda", 2, ["cuda:0", "cuda:1"]),
        ("cuda:1", 2, ["cuda:1"]),
        ("cuda", 0, "there is no device 'cuda'; torch finds only the CPU"),
        ("cuda:2", 2, "there is no device 'cuda:2'; torch finds cuda:0, cuda:1"),
    ],
)
def test_gpus_are_used_where_there_are_some_and_none_is_made_up(
    monkeypatch: pytest.MonkeyPatch, wanted: str, number: int, found: list[str] | str
) -> None:
    cuda = SimpleNamespace(
        is_available=lambda: number > 0, device_count=lambda: number, get_device_name="GPU {}".format
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    if isinstance(found, list):
        assert [device for device, _ in Models().devices(wanted)] == found
    else:
        with pytest.raises(CannotWork) as caught:
            Models().devices(wanted)
        assert str(caught.value) == found


# A GPU that says it is there; whatever else is asked of it raises, in the processes that are forked from.
_SERVE = """
import os, sys
from pathlib import Path
import torch

served, levels = os.getpid(), {{}}

def touch(*_args, **_kwargs):
    Path({touched!r}).open("a").write("forked\\n" if os.getpid() != served else "served\\n")
    raise RuntimeError("no GPU is there")

torch.cuda._lazy_init = touch
from gclint.verify.worker.models import Models
from gclint.verify.worker.protocol import decode, encode
from gclint.verify.worker.server import serve

class ModelsOnGpu(Models):
    def load(self):
        versions = super().load()
        # Only now: a build of torch for CPUs lacks what it would import.
        torch.cuda.is_available = lambda: True
        torch.cuda.device_count = lambda: 1
        torch.cuda.get_device_name = lambda index: "a GPU"
        return versions

serve(decode(sys.stdin.readline()), lambda message: print(encode(message)), ModelsOnGpu())
print(torch.are_deterministic_algorithms_enabled(), torch.backends.cuda.matmul.allow_tf32)
"""


@pytest.mark.torch
def test_nothing_touches_a_gpu_before_the_fork_that_runs_there(tmp_path: Path) -> None:
    from tests.verify.test_verify_models import HEALTHY, write_model

    target = target_of(write_model(tmp_path, HEALTHY))
    touched = tmp_path / "touched"
    program = dedent(_SERVE).format(touched=str(touched))
    request = Request((target.source,), device="auto")
    done = subprocess.run(
        [sys.executable, "-c", program], input=encode(request) + "\n", capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    *messages, settings = done.stdout.splitlines()
    assert '"device":"a GPU"' in messages[0]
    assert '"numerics":["TF32 is disabled"' in messages[0]
    assert settings == "True False"
    # It was run up to where a model is brought to its device, in a fork.
    assert "no GPU is there" in messages[-2]
    assert set(touched.read_text().split()) == {"forked"}


@pytest.mark.torch
def test_the_peak_is_what_a_step_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from gclint.verify.worker.examination.observers import Clock

    state: dict[str, Any] = {"now": 700, "peak": 5000}
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: None)
    monkeypatch.setattr(
        torch.cuda, "reset_peak_memory_stats", lambda _device: state.update(peak=state["now"])
    )
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: state["now"])
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _device: state["peak"])
    clock = Clock(torch.device("cuda"))
    with clock:
        state.update(now=750, peak=1000)
    assert clock.peak_bytes == 300
    assert Clock(torch.device("cpu")).peak_bytes is None
