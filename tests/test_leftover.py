"""A checkpoint function that is called in a way nobody knows is never left beside the new base class."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Finding, Refusal
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.toy_models import IMPORTS, LAYERS, LOOP, STACK, model

_TORCH = "import torch.utils.checkpoint\nfrom torch.utils.checkpoint import checkpoint\n"


def find(folder: Path, text: str, **others: str) -> Finding:
    """Return what GC001 finds in a model, ``others`` being further files by their names."""
    paths = []
    for name, content in {"modeling_toy": text, **others}.items():
        path = folder / f"{name}.py"
        compile(content, name, "exec", dont_inherit=True)
        path.write_text(content, encoding="utf-8")
        paths.append(path)
    rules = [rule for rule in all_rules() if "GC001" in rule.codes]
    result = check(Project(Settings(), paths), rules)
    assert result.problems == ()
    (finding,) = (each for each in result.findings if each.symbol == "ToyLayer")
    return finding


def toy(
    loop: str = LOOP, *, init: str = STACK, more: str = "", before: str = "", layers: str = LAYERS
) -> str:
    """Write a model like ``model``, with imports and code before it."""
    parts = (IMPORTS, _TORCH, layers, textwrap.dedent(before))
    return "".join(parts) + "\n\n" + model(init, textwrap.dedent(loop), more=textwrap.dedent(more))


_SELF = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = self.{0}(layer, hidden_states)
    else:
        hidden_states = layer(hidden_states)
"""
_UNKNOWN = {
    "a method": toy(
        _SELF.format("_ckpt"), more="def _ckpt(self, layer, states):\n    return checkpoint(layer, states)"
    ),
    "a method without the word": toy(
        _SELF.format("_run"), more="def _run(self, run, states):\n    return checkpoint(run, states)"
    ),
    "a function": toy(
        _SELF.replace("self.{0}", "run"),
        before="""
        def run(layer, states):
            return torch.utils.checkpoint.checkpoint(layer, states)
        """,
    ),
    "a function of a function": toy(
        _SELF.replace("self.{0}", "outer"),
        before="""
        def inner(layer, states):
            return checkpoint(layer, states)


        def outer(layer, states):
            return inner(layer, states)
        """,
    ),
    "a partial function": toy(
        _SELF.replace("self.{0}", "run"), before="\nrun = partial(checkpoint, use_reentrant=False)\n"
    ),
    "a local partial function": toy(
        "run = partial(checkpoint, use_reentrant=False)\n" + _SELF.replace("self.{0}", "run")
    ),
    "another name": toy(
        _SELF.replace("self.{0}", "rerun"), before="from torch.utils.checkpoint import checkpoint as rerun\n"
    ),
    "a getter": toy(
        "run = self._get()\n" + _SELF.replace("self.{0}", "run"),
        more="def _get(self):\n    return self._gradient_checkpointing_func",
    ),
    "getattr": toy(_SELF.replace("self.{0}", 'getattr(self, "_gradient_checkpointing_func")')),
    "a decorator": toy(
        LOOP + LOOP.replace("layer(", "self._one(layer, "),
        more="@checkpointed\ndef _one(self, layer, states):\n    return layer(states)",
        before="""
        def checkpointed(function):
            return partial(checkpoint, function)
        """,
    ),
    "a callable that is chosen": toy(
        """
        for layer in self.layers:
            run = partial(checkpoint, layer) if self.gradient_checkpointing else layer
            hidden_states = run(hidden_states)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        """
    ),
    "a conditional expression": toy(
        """
        for layer in self.layers:
            hidden_states = self.ckpt(layer, hidden_states) if self.training else layer(hidden_states)
        """
    ),
    "only in training": toy(
        """
        for layer in self.layers:
            if self.training:
                hidden_states = self.ckpt(layer, hidden_states)
            else:
                hidden_states = layer(hidden_states)
        """
    ),
    "the whole sequence": toy(
        """
        if self.gradient_checkpointing:
            return torch.utils.checkpoint.checkpoint_sequential(self.layers, 2, hidden_states)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        """
    ),
    "the whole sequence at once": toy(
        """
        if self.gradient_checkpointing and self.training:
            hidden_states = self._gradient_checkpointing_func(self.layers.__call__, hidden_states)
        else:
            hidden_states = self.layers(hidden_states)
        """,
        init="self.layers = nn.Sequential(*[ToyLayer(config) for _ in range(2)])",
    ),
    "a segment": toy(
        """
        def segment(states):
            for layer in self.layers:
                states = layer(states)
            return states
        if self.gradient_checkpointing:
            return checkpoint(lambda states: segment(states), hidden_states)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        """
    ),
    "a wrapper around each": toy(
        init="self.layers = nn.ModuleList([checkpoint_wrapper(ToyLayer(config)) for _ in range(2)])",
        more="def helper(self):\n    self.layers = nn.ModuleList([ToyLayer(self.config)])",
        before="from fairscale.nn.checkpoint import checkpoint_wrapper\n",
    ),
    "a class of wrappers": toy(
        init="self.layers = nn.ModuleList([ToyLayer(config) for _ in range(2)])\nself.wrapped = Wrapped()",
        before="""
        class Wrapped(nn.Module):
            def forward(self, layer, states):
                return checkpoint(layer, states)
        """,
    ),
    "a base": toy(
        before="""
        class Base(PreTrainedModel):
            def run(self, layer, states):
                return checkpoint(layer, states)
        """
    ).replace("class ToyModel(PreTrainedModel)", "class ToyModel(Base)"),
    "the block itself": toy(
        layers=LAYERS.replace("self.attention(hidden_states)", "checkpoint(self.attention, hidden_states)")
    ),
    "a free function": toy(
        before="""
        def run_layers(model, states):
            for layer in model.layers:
                states = checkpoint(layer, states)
            return states
        """
    ),
    "deepspeed": toy(
        _SELF.replace(
            "self.{0}(layer,", "deepspeed.checkpointing.checkpoint(lambda *all: unknown(layer, all),"
        ),
        before="import deepspeed\n",
    ),
    **{
        f"a function of a module called {name}": toy(
            _SELF.replace("self.{0}(layer,", "recompute(lambda *all: unknown(layer, all),"),
            before=f"from somewhere.{name} import recompute\n",
        )
        for name in ("checkpoint", "checkpointing")
    },
}


@pytest.mark.parametrize("case", _UNKNOWN)
def test_no_block_is_checkpointed_twice(case: str, tmp_path: Path) -> None:
    finding = find(tmp_path, _UNKNOWN[case])
    assert isinstance(finding.remedy, Refusal)
    assert "checkpointing skips it" not in finding.message
    assert "line " in finding.remedy.reason


_WEIGHTS = {
    "loading": toy(
        more="def load(self, checkpoint_path):\n    return load_checkpoint(self, checkpoint_path)"
    ),
    "checking what was loaded": toy(
        more="def check(self):\n    return validate_checkpoint_with_golden(self), sorted_checkpoints(self)"
    ),
    "resuming": toy(more="def resume(self, path):\n    return deepspeed_load_checkpoint(self.layers, path)"),
    "from a checkpoint": toy(more="def load(self, path):\n    return self.from_checkpoint(path)"),
    "a name for the documentation": toy(before='\n_CHECKPOINT_FOR_DOC = "toy"\n'),
    "a comment": toy("# checkpoint(layer, hidden_states)\n" + LOOP),
    "the switch": toy(
        more="""
        def gradient_checkpointing_enable(self, **kwargs):
            super().gradient_checkpointing_enable()
            self._gradient_checkpointing_func = partial(checkpoint, **kwargs)
        """
    ),
    "the function that is set": toy(
        more="def enable(self, function):\n    self._gradient_checkpointing_func = function"
    ),
    "a switch of its own": toy(
        more="""
        def set_gradient_checkpointing(self, value=False):
            self.run = partial(checkpoint, use_reentrant=value)
        """
    ),
    "another model of the file": toy(
        before="""
        class Other(nn.Module):
            def forward(self, states):
                return checkpoint(self.part, states)
        """
    ),
}


@pytest.mark.parametrize("case", _WEIGHTS)
def test_weights_and_switches_are_no_such_function(case: str, tmp_path: Path) -> None:
    finding = find(tmp_path, _WEIGHTS[case])
    assert finding.fix is not None
    assert "checkpointing skips it" in finding.message


def test_another_file_that_checkpoints_the_block(tmp_path: Path) -> None:
    other = IMPORTS + _TORCH + "from modeling_toy import ToyModel\n\n" + textwrap.dedent(
        """
        def forward(self, states):
            for layer in self.layers:
                states = checkpoint(layer, states)
            return states

        ToyModel.forward = forward
        """
    )  # fmt: skip
    finding = find(tmp_path, toy(), patches=other)
    assert isinstance(finding.remedy, Refusal)
    assert "of " in finding.remedy.reason
    assert "patches.py" in finding.remedy.reason


def test_script_around_the_file_that_checkpoints_the_block(tmp_path: Path) -> None:
    script = (
        "from torch.utils.checkpoint import checkpoint\nfrom modeling_toy import ToyModel\n"
        + textwrap.dedent(
            """
        def run(model, states):
            for layer in model.layers:
                states = checkpoint(layer, states)
            return states
        """
        )
    )
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    finding = find(tmp_path, toy())
    assert isinstance(finding.remedy, Refusal)
    assert "train.py" in finding.remedy.reason


def test_branch_of_another_file_that_cannot_go(tmp_path: Path) -> None:
    other = IMPORTS + _TORCH + "from .modeling_toy import ToyLayer\n\n" + model(
        loop=_SELF.format("_gradient_checkpointing_func").replace("self.training", "mask is None")
    ).replace("ToyModel", "OtherModel")  # fmt: skip
    finding = find(tmp_path, toy(), modeling_other=other)
    assert isinstance(finding.remedy, Refusal)
    assert "modeling_other.py" in finding.remedy.reason
