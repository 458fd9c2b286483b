"""Which functions of other files run a block by a checkpoint function, themselves or by others."""

from __future__ import annotations

from tests.decisions.outside import FILE, LAYER, Files, Pair, decided, found
from tests.decisions.toy import toy

_RUNS = "from torch.utils.checkpoint import checkpoint\n\n\ndef {0}(x, y):\n    return checkpoint(x, y)\n"
_HANDING_ON = "def {0}(x, y):\n    return {1}(x, y)\n"


def _running(function: str, imports: str, files: Files) -> Files:
    """Write a file that runs a block by a function that it imports, or that those do which it imports."""
    run = f"def go(model, x):\n    return {function}(model.layers[0], x)\n"
    return {
        FILE: toy(),
        "modeling_other.py": f"{imports}\nfrom modeling_toy import ToyLayer\n\n{run}",
        **files,
    }


_SAFE = [found(LAYER, "safe")]
_LEFT = [found(LAYER, "none", "leftover")]


test_what_another_file_checkpoints_by = decided(
    Pair(
        "a function by one of a third file",
        _running(
            "wrap",
            "from modeling_ckpt import wrap",
            {
                "modeling_ckpt.py": "from modeling_runs import run\n" + _HANDING_ON.format("wrap", "run"),
                "modeling_runs.py": _RUNS.format("run"),
            },
        ),
        ("return run(x, y)", "return x(y)"),
        _LEFT,
        _SAFE,
    ),
    Pair(
        "a function by one of a third file that is looked into later",
        _running(
            "wrap",
            "from modeling_ckpt import wrap\nfrom modeling_runs import run",
            {
                "modeling_ckpt.py": "from modeling_runs import run\n" + _HANDING_ON.format("wrap", "run"),
                "modeling_runs.py": "from modeling_start import start\n" + _HANDING_ON.format("run", "start"),
                "modeling_start.py": _RUNS.format("start"),
            },
        ),
        ("return run(x, y)", "return x(y)"),
        _LEFT,
        _SAFE,
    ),
    Pair(
        "a function by one by another of the same file",
        _running(
            "wrap",
            "from modeling_ckpt import wrap",
            {
                "modeling_ckpt.py": _HANDING_ON.format("wrap", "inner")
                + _HANDING_ON.format("inner", "run")
                + _RUNS.format("run"),
            },
        ),
        ("return inner(x, y)", "return x(y)"),
        _LEFT,
        _SAFE,
    ),
    Pair(
        "a function under another name",
        _running(
            "go_on", "from modeling_ckpt import run as go_on", {"modeling_ckpt.py": _RUNS.format("run")}
        ),
        ("return checkpoint(", "return print("),
        _LEFT,
        _SAFE,
    ),
    Pair(
        "a method with the name of a function",
        {
            FILE: toy(),
            "modeling_other.py": "from modeling_ckpt import run\nfrom modeling_toy import ToyLayer\n\n"
            "class Other:\n    def go(self, model, x):\n        return run(model.layers[0], x)\n",
            "modeling_ckpt.py": _RUNS.format("run"),
        },
        ("return run(", "return self.run("),
        _LEFT,
        _SAFE,
    ),
    Pair(
        "a method with the name of a function, in a function",
        _running("run", "from modeling_ckpt import run", {"modeling_ckpt.py": _RUNS.format("run")}),
        ("return run(", "return model.run("),
        _LEFT,
        _SAFE,
    ),
    Pair(
        "a function of another package",
        _running("run", "from deepspeed import checkpoint as run", {}),
        ("checkpoint as", "forward as"),
        _LEFT,
        _SAFE,
    ),
    Pair(
        "a function of a file whose name says nothing",
        _running(
            "run", "from modeling_runs import run", {"modeling_runs.py": _HANDING_ON.format("run", "print")}
        ),
        ("def run(x, y):\n    return print(", _RUNS.format("run").removesuffix("x, y)\n")),
        _SAFE,
        _LEFT,
        wrong="a file without a word of checkpointing is not looked into, whatever it imports",
    ),
)
