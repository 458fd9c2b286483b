"""What verifying costs, measured in one run: ``python3 -m tests.verify.benchmark``.

Prints the time of examining models as a ratio to the bare steps that it takes, and how many classes a
minute go through the whole command with one process and with two. Needs an otherwise idle machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gclint.verify.results_file import read
from tests.ecosystem.environments import release_environment
from tests.environment import PROJECT, EnvironmentUnavailable

_RELEASE = "5.23.0"
_SCRIPT = Path(__file__).with_name("bare_steps.py")
# One of each sort: text, text to text, images, speech, state spaces, experts, several towers.
_CLASSES = (
    "bert.modeling_bert.BertForMaskedLM",
    "llama.modeling_llama.LlamaForCausalLM",
    "t5.modeling_t5.T5ForConditionalGeneration",
    "vit.modeling_vit.ViTForImageClassification",
    "wav2vec2.modeling_wav2vec2.Wav2Vec2Model",
    "mamba.modeling_mamba.MambaForCausalLM",
    "mixtral.modeling_mixtral.MixtralForCausalLM",
    "clip.modeling_clip.CLIPModel",
)
_MODELS = ("albert", "bart", "bert", "clip", "gemma", "gpt2", "llama", "opt", "roberta", "swin", "t5", "vit")


def main() -> int:
    """Measure, and print what came out; return 0 unless nothing could be measured."""
    try:
        python = release_environment(_RELEASE)
    except EnvironmentUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    names = [f"transformers.models.{name}" for name in _CLASSES]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    run = subprocess.run(
        [python, _SCRIPT, *names], env=environment, capture_output=True, text=True, check=True
    )
    synthesising, examining, bare = map(float, run.stdout.split())
    print(f"{len(names)} classes of transformers {_RELEASE}, on a CPU")
    print(f"examining, to the bare steps: {examining / bare:.2f}")
    print(f"making configurations and inputs as well: {(synthesising + examining) / bare:.2f}")
    for jobs in (1, 2):
        count, seconds = _whole_command(python, jobs)
        print(f"classes a minute with {jobs} process{'es' if jobs > 1 else ''}: {60 * count / seconds:.0f}")
    return 0


def _whole_command(python: Path, jobs: int) -> tuple[int, float]:
    """Return how many classes went through, and how many seconds that took."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.jsonl")
        models = [option for name in _MODELS for option in ("--model", name)]
        options = ["--python", str(python), "--jobs", str(jobs), "--device", "cpu", "--results", str(results)]
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "gclint", "verify", *models, *options], stdout=subprocess.DEVNULL
        )
        seconds = time.perf_counter() - begin
        _, found = read(results)
    return len(found.classes), seconds


if __name__ == "__main__":
    raise SystemExit(main())
