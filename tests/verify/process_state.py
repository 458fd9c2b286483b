"""All that running a model could change, of it and of the process."""

from __future__ import annotations

import os
import random
import signal
import warnings
from typing import Any


def everything(model: Any) -> dict[str, Any]:
    """Return all that a run could have changed, of a model and of the process."""
    import numpy
    import torch

    state: dict[str, Any] = {
        "random": random.getstate(),
        "numpy": [str(each) for each in numpy.random.get_state()],
        "torch": torch.get_rng_state().tolist(),
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
        "folder": os.getcwd(),  # noqa: PTH109
        "environment": dict(os.environ),
        "signals": [signal.getsignal(each) for each in (signal.SIGCHLD, signal.SIGINT, signal.SIGALRM)],
        "filters": list(warnings.filters),
        "config": model.config.to_dict() if hasattr(model, "config") else None,
        "dynamo": os.environ.get("TORCHDYNAMO_DISABLE"),
    }
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        gradient = None if tensor.grad is None else tensor.grad.tolist()
        values = None if tensor.is_meta else tensor.tolist()
        state[name] = (id(tensor), values, tensor.requires_grad, gradient, tensor._version)
    for name, module in model.named_modules():
        hooks = [list(each) for key, each in vars(module).items() if key.endswith("_hooks")]
        others = {key: id(each) for key, each in vars(module).items() if not key.startswith("_")}
        state[f"module {name}"] = (module.training, hooks, others, type(module).forward)
    return state
