"""Examines a trainer in a fresh process, with a shrunk model, where this one cannot be copied.

The trainer there has the same classes, adapters, arguments and first batches; what cannot be sent is left
out, and named. Nothing there sees a GPU.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.hooks import RemovableHandle
from transformers import Trainer

from gclint.verify.worker.live import NotExaminable, copied, own_model
from gclint.verify.worker.practices import TrainerPractice
from gclint.verify.worker.protocol import ClassResult, decode, encode
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes, shrink
from gclint.verify.worker.training.by_trainer import first_batches, is_checkpointed

SMALL = 10**6
"""How many parameters a model has at most that is not shrunk."""
_BATCHES, _ROWS, _FIRST = 2, 2, 16
_SIZES = (
    Sizes(fits_inputs=True),
    Sizes(fits_inputs=True, multiples=True),
    Sizes(fits_inputs=True, proportional=True),
    Sizes(fits_inputs=True, plain=True),
)
"""How the model is shrunk; the next one counts if a step fails with it. The last only takes layers away."""
_START = """\
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from gclint.verify.worker.trainers import answer_afresh
answer_afresh(*pickle.load(sys.stdin.buffer))
"""
_OF_LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_SCRIPT = "__main__"
_HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
_OF_ACCELERATE = frozenset(("_original_forward", "_hf_hook", "_old_forward"))
_GIVEN = ("processing_class", "compute_loss_func")
"""What a trainer is made with, beside the model, the arguments and the data."""
_OF_PLACE = (
    *("distributed_state", "_setup_devices", "__cached__setup_devices", "_n_gpu", "local_rank"),
    *("place_model_on_device", "deepspeed_plugin", "hf_deepspeed_config", "fsdp_plugin_args"),
)
"""What trainers and arguments know of the process in which they were made."""


_Parts = dict[str, frozenset[str]]
"""The classes of modules, by their names without the numbers of layers."""
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")


@dataclass(frozen=True)
class Parcel:
    """What is sent to the fresh process."""

    model_class: Any
    config: Any
    dtype: torch.dtype
    adapters: dict[str, Any]
    """The configurations of peft, by the names of the adapters."""
    trained: frozenset[str]
    """The names of the parameters that require grad."""
    requires_inputs: bool
    parts: _Parts
    """The classes of its modules; none if quantising has replaced some, which does not happen there."""
    checkpointed: dict[str, Any] | None
    """With which arguments checkpointing is enabled already, whatever the trainer will do."""
    trainer_class: Any
    attributes: dict[str, Any]
    """What the trainer has beside what every trainer has."""
    arguments_class: Any
    arguments: dict[str, Any]
    batches: list[dict[str, Any]]
    data: Any
    """The first rows of the data, for trainers that look at them; None if they cannot be sent."""
    parameters: int
    """How many parameters the model has, before it is shrunk."""
    is_small: bool
    """Whether it need not be shrunk."""
    left_out: tuple[str, ...]
    """What cannot be sent."""


def examine_afresh(trainer: Any, practices: Sequence[TrainerPractice], seconds: float) -> ClassResult:
    """Return what another process says of a trainer.

    Raises:
        NotExaminable: the model cannot be built there, or does not run there.
    """
    parcel = _parcel(trainer)
    variables = {name: value for name, value in os.environ.items() if name not in _OF_LAUNCHERS}
    variables |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
    variables = {
        name: value for name, value in variables.items() if "FSDP" not in name and "DEEP" not in name
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answer")
        given = pickle.dumps(sys.path) + pickle.dumps((parcel, practices, seconds, path))
        try:
            ended = subprocess.run(
                [sys.executable, "-I", "-c", _START],
                input=given,
                env=variables,
                cwd=folder,
                capture_output=True,
                timeout=2 * len(_SIZES) * seconds * (1 + len(practices)),
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotExaminable(f"no other process can be used: {error}") from error
        if not path.exists():
            lines = ended.stderr.decode(errors="replace").strip().splitlines()
            raise NotExaminable(f"another process ended early: {lines[-1] if lines else ended.returncode}")
        result = decode(path.read_text(encoding="utf-8"))
    assert isinstance(result, ClassResult)
    if not result.setups:
        raise NotExaminable(result.reason or "")
    return result


def tell(path: Path, result: ClassResult) -> None:
    """Leave a result where the process that has asked for it finds it."""
    path.write_text(encode(result), encoding="utf-8")


def _parcel(trainer: Any) -> Parcel:
    """Return what can be sent of a trainer, which does not change."""
    model, own = trainer.model, own_model(trainer.model)
    if type(own).__module__ == _SCRIPT:
        raise NotExaminable(f"{type(own).__name__} is defined in the script itself, so it cannot be sent")
    for name in _changed(model):
        raise NotExaminable(f"`{name or 'model'}` has hooks or a forward of its own, which cannot be sent")
    names = {
        name: value.cpu() if isinstance(value, torch.Tensor) else value
        for name, value in vars(trainer).items()
        if _is_own(name, value)
    }
    attributes = {name: value for name, value in names.items() if _is_portable(value)}
    arguments = {name: value for name, value in vars(trainer.args).items() if _is_portable(value)}
    kinds = [
        next(each for each in type(whole).__mro__ if each.__module__ != _SCRIPT)
        for whole in (trainer, trainer.args)
    ]
    left_out = [f"`{name}`" for name in names if name not in attributes]
    if kinds[0] is not type(trainer):
        left_out.insert(
            0, f"what {type(trainer).__name__} does otherwise, since the script itself defines it"
        )
    parcel = Parcel(
        type(own),
        own.config,
        own.dtype,
        dict(getattr(model, "peft_config", {})),
        frozenset(name for name, each in model.named_parameters() if each.requires_grad),
        hasattr(own, "_require_grads_hook"),
        {} if hasattr(own, "hf_quantizer") else _parts(model),
        is_checkpointed(model),
        kinds[0],
        attributes,
        kinds[1],
        {name: value for name, value in arguments.items() if name not in _OF_PLACE},
        [_cropped(copied(each)) for each in first_batches(trainer, _BATCHES)],
        _first_rows(trainer.train_dataset) if kinds[0] is not Trainer else None,
        (count := sum(each.numel() for each in model.parameters())),
        count <= SMALL,
        tuple(left_out),
    )
    if not _is_portable(parcel):
        raise NotExaminable(f"{type(own).__name__} or its configuration cannot be sent to another process")
    return parcel


def _changed(model: nn.Module) -> Iterator[str]:
    """Yield the names of modules of which somebody else than the libraries has changed what they do."""
    values = [each for module in model.modules() for each in vars(module).values()]
    values += [each for value in values if isinstance(value, list) for each in value]
    known = {each.id for each in values if isinstance(each, RemovableHandle)}
    for name, module in model.named_modules():
        attributes = vars(module)
        hooks = {number for each in attributes if each.endswith(_HOOKS) for number in attributes[each]}
        is_wrapped = "forward" in attributes and attributes.keys().isdisjoint(_OF_ACCELERATE)
        if is_wrapped or not hooks <= known:
            yield name


def _parts(model: nn.Module) -> _Parts:
    """Return the classes of a model's modules."""
    found: dict[str, set[str]] = {}
    for name, each in model.named_modules():
        kind = type(each)
        found.setdefault(_NUMBER.sub("#", name), set()).add(f"{kind.__module__}.{kind.__qualname__}")
    return {name: frozenset(kinds) for name, kinds in found.items()}


def _is_built_alike(parts: _Parts, smaller: _Parts) -> bool:
    """Return whether a model has the parts that its class gives it, as a smaller one shows."""
    packages = {kind.partition(".")[0] for kinds in smaller.values() for kind in kinds}
    return all(
        kinds & smaller.get(name, kinds) and packages.issuperset(kind.partition(".")[0] for kind in kinds)
        for name, kinds in parts.items()
    )


def _first_rows(data: Any) -> Any:
    """Return the beginning of a data set that can be sent; None if there is none."""
    if not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        return None
    numbers = range(min(len(data), _FIRST))
    rows = data.select(numbers) if hasattr(data, "select") else [data[number] for number in numbers]
    return rows if _is_portable(rows) else None


def _is_own(name: str, value: Any) -> bool:
    """Return whether an attribute of a trainer may matter for its steps, and is not made anew."""
    if name in _GIVEN:
        return value is not None
    if name.startswith("is_") or name in _OF_PLACE or isinstance(value, nn.Module):
        return False
    # A class that derives from Trainer may set what that sets otherwise.
    return name not in _names_in_trainer() or type(value) in (bool, int, float, str)


@cache
def _names_in_trainer() -> frozenset[str]:
    """Return the names of all attributes that the code of Trainer itself mentions."""
    functions = (each for each in vars(Trainer).values() if hasattr(each, "__code__"))
    return frozenset(name for each in functions for name in each.__code__.co_names)


def _is_portable(value: Any) -> bool:
    try:
        data = pickle.dumps(value)
    except Exception:  # Anything may be raised.
        return False
    # The script is not run again.
    return _SCRIPT.encode() not in data


def _cropped(batch: dict[str, Any]) -> dict[str, Any]:
    """Return the first rows of a batch, if each of its tensors has one for each text."""
    counts = {each.shape[:1] for each in batch.values() if isinstance(each, torch.Tensor)}
    if len(counts) != 1 or not all(isinstance(each, torch.Tensor) and each.dim() for each in batch.values()):
        return batch
    return {name: each[:_ROWS].clone() for name, each in batch.items()}


def unpacked(parcel: Parcel) -> Iterator[Any]:
    """Yield trainers with smaller models, for one of which a step should work.

    Instead of a trainer, the error that prevents it may be yielded.
    """
    ways = (True, False) if parcel.data is not None else (False,)
    for sizes, by_own_means in product((None, *_SIZES) if parcel.is_small else _SIZES, ways):
        try:
            model = _model(parcel, parcel.config if sizes is None else shrink(parcel.config, sizes))
            yield _trainer(parcel, model, by_own_means=by_own_means)
        except Exception as error:  # The classes are the user's.
            yield error


def notes_of(parcel: Parcel, trainer: Any) -> Iterator[str]:
    """Yield what is otherwise than in the trainer itself."""
    count = sum(each.numel() for each in trainer.model.parameters())
    size = (
        "" if count == parcel.parameters else f", and {count:,} parameters instead of {parcel.parameters:,}"
    )
    yield f"it was run in a process of its own on the CPU: the same classes, adapters and arguments{size}"
    if parcel.arguments.get("fp16"):
        yield "float16 was replaced by bfloat16 there, in which a CPU computes"
    if parcel.left_out:
        yield f"left out there, since it cannot be sent: {', '.join(parcel.left_out)}"


def _model(parcel: Parcel, config: Any) -> Any:
    for name in ("quantization_config", "_attn_implementation_internal"):
        # Weights are not quantised here, and kernels for GPUs are not there.
        if getattr(config, name, None) is not None:
            delattr(config, name) if name in vars(config) and "quant" in name else setattr(config, name, None)
    torch.manual_seed(0)
    model = parcel.model_class(config).to(parcel.dtype)
    for name, adapter in parcel.adapters.items():
        import peft

        model = peft.get_peft_model(model, adapter, adapter_name=name)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in parcel.trained)
    if parcel.requires_inputs:
        model.enable_input_require_grads()
    if not _is_built_alike(parcel.parts, _parts(model)):
        raise NotExaminable("modules of the model have been replaced, which cannot be sent")
    if parcel.checkpointed is not None:
        model.gradient_checkpointing_enable(parcel.checkpointed)
    return model


def _trainer(parcel: Parcel, model: nn.Module, *, by_own_means: bool) -> Any:
    """Return a trainer made by the code of its own class, or one that gets what the other has."""
    arguments = parcel.arguments_class.__new__(parcel.arguments_class)
    vars(arguments).update(parcel.arguments)
    arguments.use_cpu, arguments.output_dir = True, tempfile.gettempdir()
    if arguments.fp16:  # CPUs cannot.
        arguments.bf16, arguments.fp16, arguments.mixed_precision = True, False, "bf16"
    arguments.fsdp, arguments.deepspeed = [], None
    arguments.deepspeed_plugin = arguments.hf_deepspeed_config = arguments.fsdp_plugin_args = None
    arguments.report_to, arguments.torch_compile = [], False
    arguments.distributed_state, arguments._n_gpu = None, 0
    assert arguments.device.type == "cpu"  # Asking for it makes what was left out.
    given = {name: parcel.attributes[name] for name in _GIVEN if name in parcel.attributes}
    if by_own_means:
        trainer = parcel.trainer_class(model=model, args=arguments, train_dataset=parcel.data, **given)
    else:
        trainer = parcel.trainer_class.__new__(parcel.trainer_class)
        Trainer.__init__(trainer, model, arguments, train_dataset=parcel.batches, **given)
        vars(trainer).update(parcel.attributes)
    trainer.get_train_dataloader = lambda: DataLoader(parcel.batches, batch_size=None)
    return trainer
