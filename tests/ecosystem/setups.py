"""One class of each of many model types is trained in further set-ups, and what came of it is written down.

Run by the interpreter that has the release and the libraries, from the root of the checkout::

    .cache/environments/5.23.0/bin/python -m tests.ecosystem.setups GROUP [MODEL ...]

Writes the reviewed snapshot of a group anew, or prints what comes of some models. Read the difference
before you commit it: each row has to be a true statement about the model, the library, or both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from gclint.verify.worker.isolation import go_offline
from gclint.verify.worker.models import Models
from gclint.verify.worker.protocol import ClassResult, Message, Request, Source, Unusable
from gclint.verify.worker.server import serve
from gclint.verify.worker.watch import Watch
from tests.ecosystem.regenerate import SNAPSHOTS

RELEASE = "5.23.0"
"""The release whose rows are kept."""
MODELS = (
    *("bamba", "bart", "bert", "blip_2", "clip", "deepseek_v3", "falcon_mamba", "florence2", "gemma3"),
    *("gemma3_text", "gpt2", "gpt_bigcode", "hubert", "idefics3", "internvl", "jamba", "llama", "llava"),
    *("llava_next", "mamba", "mamba2", "mixtral", "mllama", "musicgen", "olmoe", "paligemma"),
    *("qwen2_5_vl", "qwen2_vl", "qwen3", "qwen3_moe", "qwen3_vl", "recurrent_gemma", "roberta", "siglip"),
    *("smolvlm", "speecht5", "swiftformer", "t5", "vit", "wav2vec2", "whisper", "xlstm", "zamba", "zamba2"),
)
"""Model types that stand for their kinds, and those that gclint was first written for."""
_FOLDERS = {"gemma3_text": "gemma3"}
"""Where the models of a type are, if not in a folder of its name."""
_KINDS = (
    "ForConditionalGeneration",
    "ForMaskedLM",
    "ForCausalLM",
    "LMHeadModel",
    "ForCTC",
    "ForSpeechToText",
    "ForImageClassification",
    "Model",
)
"""The ends of the names of classes that people train; the first one that a model type has is run."""


class _Training(Models):
    """Trains one class of each module in the set-ups, and does without the scenarios."""

    def classes(self, module: ModuleType) -> Sequence[Any]:
        found = list(super().classes(module))
        for kind in _KINDS:
            # A model type that is a part of others has the shortest name.
            named = sorted((each for each in found if each.__name__.endswith(kind)), key=_length)
            if named:
                return _both(named, found) if "gemma3" in module.__name__ else named[:1]
        return found[:1]

    def examine(self, source: Source, model_class: Any, device: str, watch: Watch) -> ClassResult:
        tiny_model = next(self._tiny_models(model_class))
        bare = ClassResult(source.path, model_class.__name__, "passed")
        return self._trained(bare, tiny_model, device, self._practices, watch)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, and write the snapshots or print what they would say."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem.setups", description=__doc__)
    parser.add_argument("group", help="the name of a group of set-ups, or several, with commas")
    parser.add_argument(
        "models", nargs="*", help="model types; all that stand for their kinds if there are none"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args(arguments)
    practices = options.group.split(",")
    groups = dict.fromkeys(each.partition(":")[0] for each in practices)
    found = trained(practices, options.models or MODELS, jobs=options.jobs, seconds=options.seconds)
    for group in groups:
        text = "".join(f"{line}\n" for line in snapshot_lines(found, group))
        if options.models:
            print(text, end="")
        else:
            snapshot(group).write_text(text, encoding="utf-8", newline="\n")
    return 0


def snapshot(group: str) -> Path:
    """Return where the rows of a group are written down."""
    return SNAPSHOTS / f"setups-{group}-{RELEASE}.txt"


def snapshot_lines(results: Iterable[ClassResult], group: str) -> Iterator[str]:
    """Yield the rows of a group, and the advice, class by class."""
    for result in sorted(results, key=lambda each: each.name):
        for row in result.setups:
            if row.group == group:
                seen = "" if row.recomputed is None else f"{row.recomputed}/{row.blocks} blocks"
                cells = (result.name, row.name, row.data, row.outcome, row.symptom, seen, row.message)
                yield " | ".join(each for each in cells if each)
        for advice in result.advice:
            if advice.group == group:
                yield f"{result.name} | use | {advice.setting or 'nothing'}"


def trained(
    practices: Sequence[str], models: Iterable[str], *, jobs: int = 1, seconds: float = 120.0
) -> list[ClassResult]:
    """Train one class of each model type in some set-ups."""
    results: dict[tuple[str, str], ClassResult] = {}

    def take(message: Message) -> None:
        if isinstance(message, ClassResult):
            results[message.source, message.name] = message
            if len(message.setups) < 2:
                print(f"{message.name} {message.reason or ''}", file=sys.stderr, flush=True)
        elif isinstance(message, Unusable):
            print(f"{message.source}: {message.message}", file=sys.stderr)

    go_offline()
    sources, asked = tuple(_sources(models)), tuple(practices)
    request = Request(sources, device="cpu", seconds=seconds, jobs=jobs, practices=asked)
    serve(request, take, _Training(practices=practices))
    return list(results.values())


def _sources(models: Iterable[str]) -> Iterator[Source]:
    spec = find_spec("transformers")
    assert spec is not None
    assert spec.origin is not None
    for folder in dict.fromkeys(_FOLDERS.get(each, each) for each in models):
        for file in (Path(spec.origin).parent / "models" / folder).glob(f"modeling_{folder}.py"):
            yield Source(str(file), f"transformers.models.{folder}.{file.stem}")


def _both(named: Sequence[Any], found: Sequence[Any]) -> Sequence[Any]:
    """Return the first class, and that of the text model beside it."""
    return [named[0], *(each for each in found if each.__name__.endswith("ForCausalLM"))]


def _length(model_class: Any) -> int:
    return len(model_class.__name__)


if __name__ == "__main__":
    raise SystemExit(main())
