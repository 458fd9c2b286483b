"""The command ``gclint memory``: what it makes of options and files, and of what goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gclint.verify.worker.estimates import EstimateRequest
from tests.verify.command_line import Gclint, Outcome, passing, write

_LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "vocab_size": 128,
}


def _memory(gclint: Gclint, *arguments: str) -> Outcome:
    return gclint(*arguments, command=("memory",))


def test_the_answer_is_printed_with_what_was_asked(gclint: Gclint) -> None:
    path = str(write("toy", passing("Toy")))
    outcome = _memory(gclint, path, "--class", "Toy", "--batch", "3", "--output-format", "json")
    assert outcome.status == 0, outcome.err
    found = outcome.json()
    assert (found["estimate"]["name"], found["estimate"]["batch"]) == ("Toy", 3)
    assert found["environment"]["transformers"] == "5.23.0"
    text = _memory(gclint, path, "--class", "Toy")
    assert text.status == 0
    assert text.out.startswith("Toy (modeling_toy.py), torch 2.13.0, transformers 5.23.0\nbatch 1, ")


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("config.json", "{", "config.json is not JSON"),
        ("config.json", "[]", "config.json is not a configuration"),
        ("config.json", "{}", "config.json has no field model_type"),
        ("other.json", None, "other.json cannot be read: No such file"),
        ("modeling_gone.py", None, "does not exist"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    gclint: Gclint, name: str, text: str | None, complaint: str
) -> None:
    if text is not None:
        Path(name).write_text(text)
    outcome = _memory(gclint, name)
    assert outcome.status == 2
    assert complaint in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--budget", "much", "is not a size such as 24GiB"),
        ("--set", "hidden_size", "is not of the form FIELD=VALUE"),
        ("--batch", "0", "is not in the range"),
        ("--dtype", "int8", "is not one of"),
        ("--optimizer", "lion", "is not one of"),
        ("--device", "tpu", "'tpu' is not auto, cpu, cuda or cuda:N"),
        ("--lora", "16", "is not of the form r=16 or r=16,targets=q_proj+v_proj"),
        ("--shard", "zero4:8", "is not of the form zero2:8 or fsdp:8"),
        ("--shard", "zero2:0", "is not of the form zero2:8 or fsdp:8"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    gclint: Gclint, option: str, value: str, complaint: str
) -> None:
    outcome = _memory(gclint, "llama", option, value)
    assert outcome.status == 2
    assert complaint in outcome.err


def test_autocast_is_for_weights_in_float32(gclint: Gclint) -> None:
    outcome = _memory(gclint, "llama", "--autocast", "--dtype", "bfloat16")
    assert (outcome.status, outcome.out) == (2, "")
    assert "--autocast is for weights in float32, not in bfloat16" in outcome.err


def test_what_the_worker_cannot_do_is_said_in_one_line(gclint: Gclint) -> None:
    path = str(write("toy", passing("Toy")))
    outcome = _memory(gclint, path, "--class", "Tuy")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "Error: there is no model class 'Tuy'\n"


def test_what_is_known_at_the_time_limit_is_printed(gclint: Gclint) -> None:
    endless = "class Toy:\n    @staticmethod\n    def run(watch, known):\n        while True: pass\n"
    path = str(write("toy", endless))
    asked = (path, "--class", "Toy", "--batch", "3", "--time-limit", "0.5")
    outcome = _memory(gclint, *asked)
    why, name, sizes, *_ = outcome.out.splitlines()
    assert why == (
        "This is not complete, since there was no end within 0.5 s of CPU time. "
        "Not known: no checkpointing, options."
    )
    assert (name.partition(" ")[0], sizes.partition(",")[0]) == ("Toy", "batch 3")
    assert outcome.status == 2
    assert outcome.err == (
        "Error: the estimate is not complete; --time-limit and --memory-limit extend the limits\n"
    )
    found = _memory(gclint, *asked, "--output-format", "json").json()["estimate"]
    assert found["missing"] == ["plain", "options"]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"fields": {"hiden_size": 8}}, "LlamaConfig has no field 'hiden_size'; did you mean hidden_size"),
        ({"fields": {"text_config.depth": 8}}, "LlamaConfig has no field 'text_config.depth'"),
        ({"fields": {"hidden_size": 100, "num_attention_heads": 7}}, "LlamaConfig rejects these sizes"),
        ({"fields": {"hidden_size": "wide"}}, "LlamaConfig rejects these sizes"),
        ({"model_class": "LlamaForCausalML"}, "did you mean LlamaForCausalLM?"),
        ({"dtype": "int8"}, "no floating-point type 'int8'"),
        ({"bits": 4}, "4-bit weights are not trained themselves; add --lora"),
    ],
)
def test_a_question_without_an_answer(settings: dict[str, Any], complaint: str) -> None:
    from transformers import LlamaForCausalLM

    from gclint.verify.worker.footprint.building import CannotEstimate
    from gclint.verify.worker.footprint.estimate import estimates

    with pytest.raises(CannotEstimate) as raised:
        list(estimates("modeling_llama.py", [LlamaForCausalLM], EstimateRequest(**settings), "cpu"))
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.torch
def test_positions_that_the_model_does_not_have_are_refused() -> None:
    from transformers import GPT2LMHeadModel

    from gclint.verify.worker.footprint.building import CannotEstimate
    from gclint.verify.worker.footprint.estimate import estimates

    fields = {"hidden_size": 32, "num_attention_heads": 2, "n_positions": 20}
    question = EstimateRequest(sequence=24, layers=2, fields=fields)
    with pytest.raises(CannotEstimate, match="index 23 is out of range for an embedding of 20"):
        list(estimates("modeling_gpt2.py", [GPT2LMHeadModel], question, "cpu"))


@pytest.mark.torch
def test_fields_and_depths_are_set_with_what_follows_from_them() -> None:
    from transformers import Gemma3ForCausalLM

    from gclint.verify.worker.footprint.building import trainee_of

    config = trainee_of(
        [Gemma3ForCausalLM], EstimateRequest(layers=9, fields={"hidden_size": 64})
    ).situation.config
    assert (config.num_hidden_layers, config.hidden_size, len(config.layer_types)) == (9, 64, 9)


@pytest.mark.torch
def test_a_configuration_is_estimated_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(_LLAMA))
    command = (sys.executable, "-m", "gclint", "memory", str(tmp_path), "--seq", "16", "--measure")
    run = subprocess.run([*command, "--budget", "20MB"], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "batch 1 x 16 tokens, bfloat16" in run.stdout
    assert run.stdout.count("as estimated, to the byte") == 3
    assert "each additional block adds its boundary, 1 x 16 x 64 = 2.05 kB, and nothing else." in run.stdout
    assert "batch, non-reentrant: " in run.stdout
    assert "sequence, no checkpointing: " in run.stdout
