"""Recognises errors of a model itself, which occur with any configuration and inputs.

Only errors that the code of the model proves count; all others may come from the generated configuration
and inputs.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from transformers import PretrainedConfig

from gclint.verify.worker.protocol import SourcePlace
from gclint.verify.worker.tiny_model import BrokenModel

_PASSING_ON = ("torch.nn.modules.module", "transformers.modeling_layers")
"""Modules that pass on calls with any arguments."""
_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")
_METHOD = re.compile(r"(\w+)\.\w+\(\)")
_COUNTED = re.compile(
    r"missing \d+ required |takes .{0,20}\b\d+ positional arguments? but \d+ (?:was|were) given"
)


def own_error(errors: Sequence[BaseException], model_class: Any) -> BrokenModel | None:
    """Return the error of a model that cannot run at all; None if other inputs may help."""
    package = model_class.__module__.rpartition(".")[0] or model_class.__module__
    found = [(error, _frame(error, package)) for error in errors]
    for error, frame in found:
        reason = frame and _reason(error, frame, package)
        if frame and reason:
            return _broken(error, frame, reason)
    kinds = {
        (type(error), frame.tb_frame.f_code, frame.tb_lineno) if frame else None for error, frame in found
    }
    error, frame = found[0]
    if isinstance(error, UnboundLocalError) and frame and len(kinds) == 1:
        return _broken(error, frame, "every attempt failed on this line")
    return None


def _broken(error: BaseException, frame: TracebackType, reason: str) -> BrokenModel:
    line = frame.tb_lineno
    place = SourcePlace(frame.tb_frame.f_code.co_filename, line, line)
    what = f"{type(error).__name__}: {error} (in {frame.tb_frame.f_code.co_name}, line {line})"
    return BrokenModel(what, reason, place)


def _frame(error: BaseException, package: str) -> TracebackType | None:
    """Return the frame of the model's own code that raised an error; None if other code did."""
    found: TracebackType | None = None
    at = error.__traceback__
    while at is not None:
        name = str(at.tb_frame.f_globals.get("__name__", ""))
        if name == package or name.startswith(f"{package}."):
            found = at
        elif not (name in _PASSING_ON or at.tb_frame.f_code.co_name in ("__getattr__", "__getattribute__")):
            found = None
        at = at.tb_next
    return found


def _reason(error: BaseException, frame: TracebackType, package: str) -> str | None:
    """Return why an error cannot be avoided."""
    module = str(frame.tb_frame.f_globals["__name__"])
    if isinstance(error, UnboundLocalError):
        return None
    if isinstance(error, NameError):
        name = error.name
        return f"`{name}` is not defined in this file" if name and _is_unknown(name, [module]) else None
    if isinstance(error, AttributeError):
        return _about_attribute(error, package)
    if isinstance(error, TypeError):
        return _about_call(str(error), frame)
    if isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError):
        return "the installed library has no such name" if error.name in sys.modules else None
    return None


def _about_attribute(error: AttributeError, package: str) -> str | None:
    """Return why no instance of a class has an attribute, if the class is the model's own."""
    name, kind = error.name, type(error.obj)
    # The configuration of a published checkpoint may have the attribute.
    if not name or not kind.__module__.startswith(package) or isinstance(error.obj, PretrainedConfig):
        return None
    modules = [each.__module__ for each in kind.__mro__]
    own = [each for each in modules if each.partition(".")[0] not in ("builtins", "torch")]
    return f"no code sets an attribute `{name}` on `{kind.__name__}`" if _is_unknown(name, own) else None


def _about_call(message: str, frame: TracebackType) -> str | None:
    """Return why a call can never work, if the code shows that."""
    callee = _METHOD.match(message)
    text = "".join(linecache.getlines(frame.tb_frame.f_code.co_filename))
    name = callee[1] if callee else ""
    if name and not re.search(rf"\b{name}\b", text):
        # The configuration chooses this part; another one may choose another class.
        return None
    calls = list(_calls(frame))
    unexpected = _UNEXPECTED.search(message)
    if unexpected and any(each.arg == unexpected[1] for call in calls for each in call.keywords):
        return f"this call passes `{unexpected[1]}` explicitly"
    is_plain = (
        calls
        and not any(each.arg is None for call in calls for each in call.keywords)
        and not any(isinstance(each, ast.Starred) for call in calls for each in call.args)
    )
    return "this call passes all its arguments explicitly" if is_plain and _COUNTED.search(message) else None


def _calls(frame: TracebackType) -> Iterator[ast.Call]:
    tree = _tree(frame.tb_frame.f_code.co_filename)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and node.lineno <= frame.tb_lineno <= (node.end_lineno or 0):
            yield node


def _is_unknown(name: str, modules: Sequence[str]) -> bool:
    """Return whether no file of these modules binds a name."""
    for module in modules:
        path = getattr(sys.modules.get(module), "__file__", None)
        tree = _tree(path) if path else None
        if tree is None or not _bound(tree).isdisjoint((name, "*")):
            return False
    return True


@cache
def _tree(path: str) -> ast.Module | None:
    # The imported text may differ from the one on the disk.
    lines = linecache.getlines(path)
    try:
        return ast.parse("".join(lines) or Path(path).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


@cache
def _bound(tree: ast.Module) -> frozenset[str]:
    """Return every name that is bound in a file, in any scope, or that occurs there as a string."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            # The names of a star import are unknown here.
            names.update({node.asname or node.name.partition(".")[0], node.name.rpartition(".")[2]})
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(re.findall(r"\w+", node.value) if len(node.value) < 200 else ())
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
    return frozenset(names)
