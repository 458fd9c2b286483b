"""All regular expressions of gclint, and texts on which one that is not linear takes for ever.

``python -m tests.patterns`` gives each pattern every text, in a process with a limit on its CPU time, and
prints those that do not get through.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from tests.environment import PROJECT

_PARSER, _COMPILER, _CONSTANTS = (
    ("re._parser", "re._compiler", "re._constants")
    if sys.version_info >= (3, 11)
    else ("sre_parse", "sre_compile", "sre_constants")
)
parser: Any = importlib.import_module(_PARSER)
compiler: Any = importlib.import_module(_COMPILER)
constants: Any = importlib.import_module(_CONSTANTS)

_Node = tuple[Any, Any]
"""What a part of a pattern is, and what belongs to it."""

LENGTH = 100_000
SECONDS = 2
"""Of CPU time for all texts of one length class; linear patterns need some hundredths each."""
_USES = {"match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split"}
_PLACEHOLDER = "4"
"""What stands for a name that is known at run time only: an identifier's end, and a number."""


@dataclass(frozen=True)
class Used:
    """A pattern, and the methods by which it is used."""

    place: str
    pattern: str
    flags: int
    methods: frozenset[str]


@cache
def all_patterns() -> list[Used]:
    """Return the patterns of all modules; raises if one cannot be made out."""
    found: list[Used] = []
    # What imports these has no part in a pattern, and takes longer than all the rest.
    with pytest.MonkeyPatch.context() as patch:
        for name in ("torch", "transformers"):
            patch.setitem(sys.modules, name, None)
        for path in _modules():
            found += _patterns_in(path)
    return found


def _modules() -> list[Path]:
    return [path for name in ("gclint", "rules") for path in sorted((PROJECT / name).rglob("*.py"))]


class _Names(dict[str, object]):
    """A module's names, where every unknown one has the same value."""

    def __missing__(self, name: str) -> object:
        if name in vars(__import__("builtins")):
            raise KeyError(name)
        return _PLACEHOLDER


def _patterns_in(path: Path) -> Iterator[Used]:
    text = path.read_text(encoding="utf-8")
    if re.search(r"^\s*import re\b", text, re.MULTILINE) is None:
        return
    tree = ast.parse(text)
    names = _names(tree)
    place = path.relative_to(PROJECT)
    methods: dict[str, set[str]] = {}
    nodes = list(ast.walk(tree))
    for node in nodes:
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            assert isinstance(node, ast.Call)
            # What is matched from an offset on is matched from many.
            method = "search" if len(node.args) > 1 else function.attr
            if function.attr in _USES:
                methods.setdefault(function.value.id, set()).add(method)
    calls = [node for node in nodes if isinstance(node, ast.Call) and _is_regular(node)]
    holders = {
        id(node.value): target.id
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        used = {call.func.attr} if call.func.attr in _USES else methods.get(holders.get(id(call), ""), _USES)
        for pattern in _values(call.args[0], tree, names):
            flags = 0
            for each in (*call.args[1:], *(keyword.value for keyword in call.keywords)):
                with contextlib.suppress(Exception):
                    value = _value(each, names)
                    flags |= int(value) if isinstance(value, re.RegexFlag) else 0
            yield Used(f"{place}:{call.lineno}", pattern, flags, frozenset(used))


def _is_regular(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in {*_USES, "compile"}
    )


def _names(tree: ast.Module) -> _Names:
    """Return what a module's constants are, without importing the module itself."""
    names = _Names()
    names["__builtins__"] = __builtins__
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            with contextlib.suppress(ImportError):
                _import(node, names)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None and _is_name(node.returns, "str"):
            # It may make a pattern of others.
            with contextlib.suppress(Exception):
                exec(compile(ast.Module([node], []), "<function>", "exec"), names)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                with contextlib.suppress(Exception):
                    names[target.id] = _value(node.value, names)
    return names


def _import(node: ast.Import | ast.ImportFrom, names: _Names) -> None:
    module = node.module if isinstance(node, ast.ImportFrom) else None
    for alias in node.names:
        bound = alias.asname or alias.name
        if module is None:
            names[bound] = importlib.import_module(alias.name)
        elif hasattr(found := importlib.import_module(module), alias.name):
            names[bound] = getattr(found, alias.name)


def _value(node: ast.expr, names: _Names) -> object:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), names, names)


def _values(node: ast.expr, tree: ast.Module, names: _Names) -> list[str]:
    """Return the patterns that an argument can be; of a parameter, what its function is called with."""
    if isinstance(node, ast.Name) and node.id not in names:
        found = _arguments(node.id, tree, names)
        if found:
            return found
    value = _value(node, names)
    value = value.decode("latin-1") if isinstance(value, bytes) else value
    assert isinstance(value, str), ast.unparse(node)
    return [value]


def _arguments(name: str, tree: ast.Module, names: _Names) -> list[str]:
    """Return what a name can be: set in a function, handed to a parameter, or from a table."""
    found: list[object] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            found.append(_known(node.value, names))
        elif isinstance(node, ast.FunctionDef) and name in [each.arg for each in node.args.args]:
            found += [_known(call.args[0], names) for call in _calls(node.name, tree)]
    for key, table in names.items():
        if key != "__builtins__" and isinstance(table, dict | tuple | list):
            found += [row[0] if isinstance(row, tuple) and row else row for row in table]
    return [each for each in found if isinstance(each, str) and each != _PLACEHOLDER]


def _known(node: ast.expr, names: _Names) -> object:
    with contextlib.suppress(TypeError, AttributeError, IndexError):
        return _value(node, names)
    return None


def _calls(name: str, tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of a module's own function, and of a method in all modules."""
    methods = [] if name.startswith("_") else _method_calls().get(name, [])
    own = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_name(node.func, name))
    yield from (call for call in (*own, *methods) if call.args)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@cache
def _method_calls() -> dict[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for path in _modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found.setdefault(node.func.attr, []).append(node)
    return found


# -- texts


def texts(pattern: str, flags: int) -> Iterator[str]:
    """Yield what is hard for patterns in general, and for this one."""
    pieces = [*_GENERAL, *_own(parser.parse(pattern, flags))]
    for piece in dict.fromkeys(pieces):
        if piece:
            yield (piece * (LENGTH // len(piece) + 1))[:LENGTH]
    repeated = _repeats(parser.parse(pattern, flags))
    for prefix, piece in dict.fromkeys(repeated):
        if piece:
            run = (piece * (LENGTH // len(piece) + 1))[: max(LENGTH - len(prefix), 0)]
            yield f"{prefix}{run}\x00"


_GENERAL = (
    " ", "\t", "\n", "\r\n", "\f", " \n", "a", "A", "a.", "a,", "a=", "a:", "=", ",", ".", "(", ")", "[", "{",
    "#", "# ", "-", "->", "\\", "\\\n", '"', "'", '"""', "'\\", "@", "self.a", "self.a:", "self.a=",
    "self.a[", "self.a,", "class A", "class A(", "def a(", "nn.A(", "a(", "a[", "f'{", 'f"', "0", "_", "0_",
    "é", "#\n", "# a\n", " #", "a b ", "import a,", "from . import a\n", "    a: a\n", "modeling_a.", "a->b,",
    "\x00",
)  # fmt: skip


def _own(tree: Any) -> Iterator[str]:
    """Yield what begins like a match, in several lengths."""
    nodes = list(tree)
    for count in range(1, len(nodes) + 1):
        yield _sample(nodes[:count])
    for node in _inner(nodes):
        yield _sample([node])


def _repeats(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield for each repetition what leads to it, and what it repeats."""
    yield from _repeats_of(list(tree), "")


def _repeats_of(nodes: list[_Node], prefix: str) -> Iterator[tuple[str, str]]:
    for index, (kind, value) in enumerate(nodes):
        before = prefix + _sample(nodes[:index])
        if _repeated(kind) is not None:
            inner = list(value[2])
            yield before, _sample(inner)
            for rest in range(index + 1, len(nodes)):
                yield before, _sample(inner) + _sample(nodes[index + 1 : rest + 1])
            yield from _repeats_of(inner, before)
        else:
            for branch in _branches(kind, value):
                yield from _repeats_of(branch, before)


def _inner(nodes: list[_Node]) -> Iterator[_Node]:
    for kind, value in nodes:
        branches = [list(value[2])] if _repeated(kind) is not None else _branches(kind, value)
        for branch in branches:
            yield from branch
            yield from _inner(branch)


def _repeated(kind: object) -> object | None:
    names = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
    return kind if str(kind) in names else None


def _branches(kind: Any, value: Any) -> list[list[_Node]]:
    name = str(kind)
    if name == "BRANCH":
        return [list(each) for each in value[1]]
    if name == "SUBPATTERN":
        return [list(value[-1])]
    if name in ("ASSERT", "ATOMIC_GROUP"):
        return [list(value[1] if name == "ASSERT" else value)]
    return []


def _sample(nodes: list[_Node]) -> str:
    """Return a short text that these nodes match, as far as that is easily said."""
    return "".join(_sample_of(kind, value) for kind, value in nodes)


def _sample_of(kind: Any, value: Any) -> str:
    name = str(kind)
    if name == "LITERAL":
        return chr(int(value))
    if name == "NOT_LITERAL":
        return "b" if value == ord("a") else "a"
    if name == "ANY":
        return "a"
    if name == "IN":
        return _member(value)
    if _repeated(kind) is not None:
        return _sample(list(value[2])) * max(int(value[0]), 1)
    branches = _branches(kind, value) if name != "ASSERT" else []
    return _sample(branches[0]) if branches else ""


def _member(value: Any) -> str:
    matches: Callable[[str], object] = _compiled_set(value)
    # What also matches elsewhere is the hardest.
    return next((each for each in "a ,.=(:[_0A\n\t#'\"\\" if matches(each)), "")


def _compiled_set(value: Any) -> Callable[[str], object]:
    tree = parser.SubPattern(parser.State())
    tree.append((constants.IN, value))
    return cast("Callable[[str], object]", compiler.compile(tree).match)


# -- the run


def use(pattern: re.Pattern[str], method: str, text: str) -> None:
    """Use a pattern as gclint does: over all of the text."""
    if method in ("finditer", "findall", "sub", "subn", "split", "search"):
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, method)(text)


def _run(used: Used, seconds: int) -> None:
    pattern = re.compile(used.pattern, used.flags)
    for text in texts(used.pattern, used.flags):
        for method in {"search" if each not in ("match", "fullmatch") else each for each in used.methods}:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            resource.setrlimit(resource.RLIMIT_CPU, (int(before) + seconds + 1, resource.RLIM_INFINITY))
            sys.stdout.write(f"{text[:60]!r} {method}\n")
            sys.stdout.flush()
            use(pattern, method, text)


def too_slow(used: Used, seconds: int = SECONDS) -> str | None:
    """Return the text on which a pattern does not get through in so much CPU time, or None."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.close(reading)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        _run(used, seconds)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        last = ""
        for line in stream:
            last = line
    _, status = os.waitpid(child, 0)
    if status == 0:
        return None
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
    return last.strip() if killed else f"exit status {status}: {last.strip()}"


def main() -> None:
    """Print the patterns that do not get through."""
    number = 0
    for used in all_patterns():
        if len(sys.argv) > 1 and sys.argv[1] not in used.place:
            continue
        number += 1
        slow = too_slow(used)
        if slow is not None:
            print(f"{used.place}: {used.pattern!r}\n    {slow}", flush=True)
    print(f"{number} patterns")


if __name__ == "__main__":
    main()
