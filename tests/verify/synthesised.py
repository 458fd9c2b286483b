"""Every class of the installed models is built and run once, and none is checked: which cannot be, and why.

Run by the interpreter that has the release, from the root of the checkout, in minutes where a sweep takes a
quarter of an hour::

    .cache/environments/4.57.6/bin/python -m tests.verify.synthesised [--features] [--json FILE] [MODEL ...]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gclint.verify.worker.isolation import go_offline
from gclint.verify.worker.models import Models
from gclint.verify.worker.protocol import ClassResult, Message, Request, Source, Unusable
from gclint.verify.worker.server import serve
from gclint.verify.worker.tiny_model import NotSynthesisable
from gclint.verify.worker.watch import Watch


class _Synthesis(Models):
    """Builds and runs each class, and does not examine it."""

    def __init__(self, *, features: bool) -> None:
        super().__init__()
        self._features = features

    def examine(self, source: Source, model_class: Any, device: str, watch: Watch) -> ClassResult:
        name = model_class.__name__
        found = []
        try:
            for tiny_model in self._tiny_models(model_class):
                found.append(tiny_model)
                if not self._features:
                    break
        except NotSynthesisable as error:
            return ClassResult(source.path, name, "not run", str(error), error.category)
        scenarios = tuple(each.scenario for each in found)
        return ClassResult(source.path, name, "passed", scenarios=scenarios, not_covered=found[0].not_covered)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print which classes cannot be run, by the kinds of the reasons, and those that run in part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["*"], help="names of models, with * and the like")
    parser.add_argument("--features", action="store_true", help="build the optional features, too")
    parser.add_argument("--json", type=Path, help="where to write what came of each class")
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args(arguments)
    results: list[ClassResult] = []

    def take(message: Message) -> None:
        if isinstance(message, ClassResult):
            results.append(message)
            if message.outcome == "not run":
                print(_line(message), flush=True)
        elif isinstance(message, Unusable):
            print(f"{message.source}: {message.message}", file=sys.stderr)

    go_offline()
    request = Request(tuple(_sources(options.models)), device="cpu", seconds=options.seconds)
    serve(request, take, _Synthesis(features=options.features))
    _print(results)
    if options.json:
        content = {
            f"{Path(each.source).parent.name}.{each.name}": [
                each.outcome, each.category, each.reason, each.not_covered, each.scenarios, each.seconds
            ]
            for each in results
        }  # fmt: skip
        options.json.write_text(json.dumps(content, indent=0), encoding="utf-8")
    return 0


def _sources(patterns: Sequence[str]) -> list[Source]:
    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("transformers is not installed here")
    library = Path(spec.submodule_search_locations[0])
    return [
        Source(str(path), ".".join(path.relative_to(library.parent).with_suffix("").parts))
        for path in sorted(library.glob("models/**/modeling_*.py"))
        if any(fnmatchcase(path.parent.name, pattern) for pattern in patterns)
        and not path.name.startswith(("modeling_tf_", "modeling_flax_"))
    ]


def _line(result: ClassResult) -> str:
    reason = " ".join((result.reason or "").split())
    return f"{Path(result.source).parent.name}.{result.name}: {reason[:200]}"


def _print(results: Sequence[ClassResult]) -> None:
    kinds: dict[str, list[ClassResult]] = defaultdict(list)
    for each in results:
        if each.outcome == "not run":
            kinds[each.category or ""].append(each)
    for kind, members in sorted(kinds.items()):
        print(f"== {kind}: {len(members)}")
        for each in members:
            print(_line(each))
    partly = [each for each in results if each.not_covered]
    print(f"== in part: {len(partly)}")
    for each in partly:
        print(f"{Path(each.source).parent.name}.{each.name}: without {', '.join(each.not_covered)[:160]}")
    run = sum(each.outcome != "not run" for each in results)
    share = 100 * run / max(1, len(results))
    seconds = sum(each.seconds for each in results)
    print(f"{run} of {len(results)} classes run ({share:.1f} %), {len(partly)} in part; {seconds:.0f} s")


if __name__ == "__main__":
    raise SystemExit(main())
