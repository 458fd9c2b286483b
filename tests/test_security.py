"""SECURITY.md names each piece of code that writes, deletes, replaces, starts, ends or imports something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.environment import PROJECT

_CALLS = {
    "writes": (
        *(
            "write_text",
            "write_bytes",
            "touch",
            "mkdir",
            "makedirs",
            "symlink_to",
            "hardlink_to",
            "chmod",
            "fchmod",
        ),
        *("mkstemp", "mkdtemp", "TemporaryDirectory", "TemporaryFile", "NamedTemporaryFile", "memfd_create"),
        *("os.truncate", "ftruncate", "setxattr", "fchown", "copyfile", "copytree", "os.link", "os.symlink"),
    ),
    "deletes": ("unlink", "rmdir", "rmtree", "os.remove", "removedirs"),
    "replaces": ("os.replace", "rename"),
    "starts": (
        *("Popen", "subprocess.run", "subprocess.call", "check_output", "check_call", "os.fork", "os.system"),
        *("os.popen", "posix_spawn", "execv", "execve", "execvp", "get_context", "webbrowser.open"),
    ),
    "ends": ("os.kill", "killpg"),
    "imports": ("import_module", "exec_module", "run_path", "run_module", "__import__", "exec", "eval"),
}
"""What code does to the machine, by the names that it calls: the last part of a dotted one, or all of it."""
_ROW = re.compile(r"^\| `([\w/]+\.py)` \| ([^|]+) \|", re.MULTILINE)


@cache
def _in_code() -> dict[str, frozenset[str]]:
    """Return what each module does, if anything."""
    found = {}
    for path in (*PROJECT.glob("gclint/**/*.py"), *PROJECT.glob("rules/*.py")):
        kinds = frozenset(_kinds(ast.parse(path.read_text(encoding="utf-8"))))
        if kinds:
            found[path.relative_to(PROJECT).as_posix()] = kinds
    return found


def _kinds(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            dotted = ast.unparse(node.func)
            name = dotted.rpartition(".")[2]
            called = {dotted, name} if name != "eval" else {dotted}  # A model has a method of that name.
            yield from (kind for kind, names in _CALLS.items() if not called.isdisjoint(names))
            if name == "open" and _is_for_writing(node):
                yield "writes"


def _is_for_writing(call: ast.Call) -> bool:
    """Return whether a call of some ``open`` may write: whatever is not plainly for reading."""
    # Only a method of a path takes the mode first.
    is_method = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) not in ("os", "io")
    positional = call.args if is_method else call.args[1:]
    named = (each.value for each in call.keywords if each.arg in ("mode", "flags"))
    written = " ".join(map(ast.unparse, (*positional, *named)))
    return (
        re.search(r"""O_(?:WRONLY|RDWR|CREAT|TRUNC)|_NEW_FILE|flags|["'][rbt]*[wax+]""", written) is not None
    )


def _in_documentation() -> dict[str, frozenset[str]]:
    text = (PROJECT / "SECURITY.md").read_text(encoding="utf-8")
    return {
        path: frozenset(kind for kind in _CALLS if re.search(rf"\b{kind}\b", kinds))
        for path, kinds in _ROW.findall(text)
    }


def test_security_md_lists_what_the_code_does() -> None:
    assert _in_documentation() == _in_code()


def test_each_test_that_security_md_names_exists() -> None:
    text = (PROJECT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 10
    for path, test in named:
        assert test in (PROJECT / path).read_text(encoding="utf-8"), path


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("open(path)", set()),
        ("open(path, 'rb')", set()),
        ("open(path, 'w')", {"writes"}),
        ("path.open('a')", {"writes"}),
        ("os.open(path, os.O_RDONLY | _FLAGS)", set()),
        ("os.open(path, os.O_RDWR)", {"writes"}),
        ("names.remove(name)", set()),
        ("os.remove(name)", {"deletes"}),
        ("text.replace('a', 'b')", set()),
        ("os.replace(a, b)", {"replaces"}),
        ("subprocess.run(command)", {"starts"}),
    ],
)
def test_a_call_is_known_for_what_it_does(code: str, kinds: set[str]) -> None:
    assert set(_kinds(ast.parse(code))) == kinds


def _print() -> None:
    """Print the code's part of the table, for whoever updates it."""
    for path, kinds in sorted(_in_code().items()):
        print(f"| `{path}` | {', '.join(sorted(kinds))} |")


if __name__ == "__main__":
    _print()
