"""What the worker does with models; torch and transformers are imported only by :meth:`Models.load`."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from types import ModuleType
from typing import Any

from gclint.verify.worker.class_settings import ClassSettings
from gclint.verify.worker.estimates import EstimateRequest, MemoryEstimate
from gclint.verify.worker.practices import practices_named
from gclint.verify.worker.protocol import NO_FLAG, ClassResult, Failure, Source, Unusable
from gclint.verify.worker.tiny_model import BrokenModel, NotSynthesisable, TinyModel
from gclint.verify.worker.watch import Watch

_ENVIRONMENT = {
    # Run the code as it is written, not compiled.
    "TORCHDYNAMO_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    # Look for a GPU without initialising CUDA: a process that has done so cannot be forked.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    # Matrix products on a GPU are reproducible only with a workspace of fixed size.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}


class CannotWork(Exception):
    """Nothing can be run; the message says why, and what to do."""


class Models:
    """What is done with models: everything that needs torch or transformers."""

    _classes: Callable[[ModuleType], Sequence[Any]]
    _unsupported: Callable[[Any], str | None]
    _examine: Callable[..., ClassResult]
    _tiny_models: Callable[[Any], Iterator[TinyModel]]
    _trained: Callable[..., ClassResult]

    def __init__(self, known: Sequence[ClassSettings] = (), practices: Sequence[str] = ()) -> None:
        self._known = known
        self._practices = practices_named(practices)

    def load(self) -> tuple[str, str]:
        """Import what all need; return the versions of torch and transformers, or raise CannotWork."""
        os.environ.update(_ENVIRONMENT)
        warnings.simplefilter("ignore")
        torch, transformers = _import("torch"), _import("transformers")
        version = getattr(transformers, "__version__", None)
        if version is None:
            # A folder of that name beside the models, or a part of a checkout, comes before the library.
            folder = next(iter(transformers.__path__), "a module")
            raise CannotWork(f"{folder} is called transformers, but is not the library; rename or exclude it")
        # Threads would compete with the other processes, and would not exist after a fork.
        torch.set_num_threads(1)
        try:
            from gclint.verify.worker.classes import model_classes, unsupported
            from gclint.verify.worker.examination.examine import examine
            from gclint.verify.worker.synthesis.attempts.search import rehearsed
            from gclint.verify.worker.synthesis.configurations.class_settings import learn
            from gclint.verify.worker.training.training import trained
        except ImportError as error:
            raise CannotWork(f"transformers {version} cannot be used: {error}") from error
        learn(self._known)
        self._classes, self._unsupported = model_classes, unsupported
        self._examine, self._tiny_models = examine, rehearsed
        self._trained = trained
        return str(torch.__version__), str(version)

    def devices(self, wanted: str) -> list[tuple[str, str]]:
        """Return the devices that are wanted, with their names; raise CannotWork if none. For a fork."""
        import torch

        count = torch.cuda.device_count() if wanted != "cpu" and torch.cuda.is_available() else 0
        names = {f"cuda:{index}": torch.cuda.get_device_name(index) for index in range(count)}
        if wanted == "cpu" or (wanted == "auto" and not names):
            return [("cpu", "cpu")]
        found = [(each, name) for each, name in names.items() if wanted in ("auto", "cuda", each)]
        if not found:
            raise CannotWork(
                f"there is no device {wanted!r}; torch finds {', '.join(names) or 'only the CPU'}"
            )
        return found

    def make_reproducible(self, devices: Sequence[str]) -> tuple[str, ...]:
        """Make computation reproducible without touching a GPU; return the settings for that, in words."""
        import torch

        if devices[0] == "cpu":
            return ()
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True, warn_only=True)
        return "TF32 is disabled", "deterministic algorithms are used where torch has them"

    def classes(self, module: ModuleType) -> Sequence[Any]:
        """Return the model classes that a module defines; called in a fork."""
        return self._classes(module)

    def examine(self, source: Source, model_class: Any, device: str, watch: Watch) -> ClassResult:
        """Build tiny models of a class, and check their steps; called in a fork."""
        reason = self._unsupported(model_class)
        if reason is not None:
            return ClassResult(source.path, model_class.__name__, "not run", reason, NO_FLAG)
        try:
            waiting = self._tiny_models(model_class)
            first = next(waiting)
            result = self._examine(source, model_class, chain([first], waiting), device, watch=watch)
        except BrokenModel as error:
            return _broken(source, model_class, error)
        except NotSynthesisable as error:
            return ClassResult(source.path, model_class.__name__, "not run", str(error), error.category)
        if not self._practices or result.outcome == "not run":
            return result
        return self._trained(result, first, device, self._practices, watch)

    def estimate(
        self, source: Source, classes: Sequence[Any], question: EstimateRequest, device: str
    ) -> Iterator[MemoryEstimate | Unusable]:
        """Yield what is known for one of the classes, more each time, or why there is none.

        Called in a fork.
        """
        from gclint.verify.worker.footprint.building import CannotEstimate
        from gclint.verify.worker.footprint.estimate import estimates

        supported = [each for each in classes if self._unsupported(each) is None]
        try:
            yield from estimates(source.path, supported, question, device)
        except CannotEstimate as error:
            yield Unusable(str(error), source.path)


def _broken(source: Source, model_class: Any, error: BrokenModel) -> ClassResult:
    """Return the result of a model that raises an error of its own even without checkpointing."""
    message = f"the model cannot run: it raises {error}"
    explanation = f"The error is in the model itself, and other inputs do not avoid it: {error.reason}."
    failure = Failure("error", "plain", "default", message, places=(error.place,), explanation=explanation)
    return ClassResult(source.path, model_class.__name__, "failed", failures=(failure,))


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        what = f"{name} is not installed" if missing else f"{name} cannot be imported ({error})"
        raise CannotWork(
            f"{what} for {sys.executable}; install it there (pip install torch transformers), or choose "
            "another interpreter with --python"
        ) from error
