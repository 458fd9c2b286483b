"""Which copies in a tree hold what their origin holds; a check of its own that shares nothing with gclint.

It does what transformers' repository asks for: the origin's code with the replacements made, and
formatted by ruff, is the copy's code. The name in the first line may differ.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_COMMENT = re.compile(r"^\s*(?:@\w+\s+)?#.*[Cc]opied from transformers\.models\.(\S+?)\.?(\s.*)?$")
_REPLACEMENT = re.compile(r"^\s*(?:with\s+)?(\S+)->(\S+)(.*)$")
_NAME = re.compile(r"^(class|async def|def) \w+")
_FORMAT = ("ruff", "format", "--quiet", "--isolated", "--line-length=119")


def identical_copies(models: Path) -> dict[str, bool]:
    """Return whether each copy below ``models`` is what its origin makes of it, by file and line of text."""
    pairs = dict(_pairs(models))
    differing = {key: pair for key, pair in pairs.items() if _anonymous(pair[0]) != _anonymous(pair[1])}
    formatted = _formatted(differing)
    return {key: key not in differing or formatted[key] for key in pairs}


def _pairs(models: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the expected and the actual code of each copy, under a key that no repair changes."""
    definitions = cache(_definitions)
    for path in sorted(models.rglob("mod*.py")):
        if "opied from transformers.models" not in path.read_text(encoding="utf-8"):
            continue
        own = definitions(path)
        for row, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            match = _COMMENT.match(line)
            if match is None or "NO LONGER" in line:
                continue
            below = min((each for each in own.values() if each[0] > row), default=None)
            if below is None:
                continue
            *folders, module, name = _split(match[1])
            origin = models.joinpath(*folders, f"{module}.py")
            found = definitions(origin).get(name) if origin.exists() else None
            if found is not None:
                ignored = set(_ignored(below[1]))
                expected = _replaced(_without(found[1], ignored), match[2] or "")
                key = f"{path.relative_to(models)} {below[2]}: {line.strip()}"
                yield key, (expected, _without(below[1], ignored))


def _split(path: str) -> list[str]:
    parts = path.split(".")
    module = next((i for i, part in enumerate(parts) if part.startswith(("modeling_", "modular_"))), 0)
    return [*parts[: module + 1], ".".join(parts[module + 1 :])]


def _definitions(path: Path) -> dict[str, tuple[int, str, str]]:
    """Return the row and the code of each class and function, by its dotted name."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found: dict[str, tuple[int, str, str]] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                code = "\n".join(lines[child.lineno - 1 : child.end_lineno])
                found[prefix + child.name] = (child.lineno, textwrap.dedent(code), prefix + child.name)
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(text), "")
    return found


def _ignored(code: str) -> Iterator[str]:
    """Yield the methods of a copy that say that they are none."""
    for match in re.finditer(r"^    # Ignore copy.*\n(?:    [#@].*\n)*    def (\w+)", code, re.MULTILINE):
        yield match[1]


def _without(code: str, names: set[str]) -> str:
    """Return a class's code without some of its methods and the comments above them."""
    for name in names:
        method = rf"^(?:    [#@].*\n)*    def {name}\b.*\n(?:(?:     .*)?\n)*"
        code = re.sub(method, "", code + "\n", flags=re.MULTILINE).rstrip("\n")
    return code


def _replaced(code: str, replacements: str) -> str:
    for part in replacements.split(","):
        match = _REPLACEMENT.match(part)
        if match is not None:
            old, new, option = match.groups()
            code = re.sub(old, new, code)
            if option.strip() == "all-casing":
                code = re.sub(old.lower(), new.lower(), code)
                code = re.sub(old.upper(), new.upper(), code)
    return code


def _anonymous(code: str) -> str:
    return _NAME.sub(r"\1 _", code).strip()


def _formatted(pairs: dict[str, tuple[str, str]]) -> dict[str, bool]:
    """Return which pairs are the same once ruff has formatted them."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, pair in enumerate(pairs.values()):
            for side, code in zip("ab", pair, strict=True):
                files.append(Path(folder, f"{number}{side}.py"))
                files[-1].write_text(_anonymous(code) + "\n", encoding="utf-8")
        # What the replacements leave as something else than Python stays as it is.
        subprocess.run([sys.executable, "-m", *_FORMAT, folder], capture_output=True)
        texts = [file.read_text(encoding="utf-8") for file in files]
    return {key: texts[2 * number] == texts[2 * number + 1] for number, key in enumerate(pairs)}
