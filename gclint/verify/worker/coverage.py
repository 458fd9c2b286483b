"""Which branches no run has reached, of those that checkpointing has to do with."""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from gclint.verify.worker.branches import FUNCTIONS, Branch, Marked, marked
from gclint.verify.worker.protocol import ClassResult, Coverage, ObservedSite, Part, Unreached


def listed(found: Iterable[Unreached], most: int | None = None) -> str:
    """Return where branches are, in words: the names of files, and the lines, at most so many."""
    lines = [*dict.fromkeys((each.path, each.branch.line) for each in found)]
    by_file: dict[str, list[str]] = {}
    for path, line in lines[:most]:
        by_file.setdefault(os.path.split(path)[1], []).append(str(line))
    words = "; ".join(f"{name}:{', '.join(rows)}" for name, rows in by_file.items())
    return words if most is None or len(lines) <= most else f"{words} and {len(lines) - most} more"


def of_all(results: Collection[ClassResult]) -> list[Unreached]:
    """Return the branches in and around blocks that none of some classes has reached."""
    found = dict.fromkeys(each for result in results for each in result.unreached)
    by_path: defaultdict[tuple[str, bool], list[Coverage]] = defaultdict(list)
    for result in results:
        for coverage in result.coverage:
            by_path[coverage.path, coverage.is_inside].append(coverage)
    return [
        each
        for each in found
        if not any(_has(one, each.branch) for one in by_path[each.path, each.part == "inside"])
    ]


def _has(coverage: Coverage, branch: Branch) -> bool:
    """Tell whether a branch was executed."""
    return branch.function in coverage.entered and not any(
        each == branch or each.line < branch.line <= each.last for each in coverage.missed
    )


def is_reached(found: Collection[Coverage], text: str, line: int, column: int) -> bool | None:
    """Tell whether code has been executed, or the ``forward`` of a class whose definition is there.

    Args:
        found: what was executed of the file.
        text: its text.
        line: where the code begins.
        column: the same, in bytes.

    Returns:
        None where the text does not tell.
    """
    if not all(each.is_marked for each in found):
        return None
    with suppress(RecursionError, SyntaxError, ValueError):
        code = marked(text)
        around = [
            branch
            for branch, (first, *own) in zip(code.branches, code.nodes, strict=True)
            if any(_holds(each, line, column) for each in (own if branch.kind != "function" else [first]))
        ]
        if around:
            last = max(around, key=lambda each: (each.line, each.column))
            return any(
                last.line in one.entered if last.kind == "function" else _has(one, last) for one in found
            )
        forwards = [
            each.lineno
            for owner in ast.walk(code.tree)
            if isinstance(owner, ast.ClassDef) and owner.lineno == line
            for each in owner.body
            if isinstance(each, FUNCTIONS) and each.name == "forward"
        ]
        return any(not set(one.entered).isdisjoint(forwards) for one in found) if forwards else None
    return None


def _holds(node: Any, line: int, column: int) -> bool:
    first, last = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return first <= (line, column) < last


def unreached(
    results: Iterable[ClassResult],
    text_of: Callable[[str], str],
    concerns: Callable[[ObservedSite], bool] = lambda site: True,
) -> list[Unreached]:
    """Return the branches that no run of some classes has executed in functions that it has, in order.

    Branches that have an excuse are left out.

    Args:
        results: the classes that were run.
        text_of: returns the text of a file as it was run.
        concerns: tells which calls of blocks count.
    """
    runs = [each for each in results if each.coverage]
    sites = [site for each in runs for site in each.sites if site.calls]
    codes = dict(_read_all({each.path for run in runs for each in run.coverage}, text_of))
    used = _Used({path: code.tree for path, code in codes.items()})
    covered = [each for run in runs for each in run.coverage if each.is_inside]
    seen = {(each.path, line) for each in covered for line in each.entered}
    # What runs a block may be no method of its class, and is then not told from what is executed elsewhere.
    blocks = {site.block for site in sites if concerns(site)}
    unseen = used.functions({block for block in blocks if seen.isdisjoint(used.forwards(block))})
    others = used.functions({site.block for site in sites if not concerns(site)}) - used.functions(blocks)
    found: dict[tuple[str, Branch], Unreached] = {}
    for path, code in codes.items():
        here = [site for site in sites if concerns(site) and os.path.realpath(site.place.path) == path]
        around = (_loop(code.tree, line) for line in sorted({site.place.line for site in here}))
        loops = [loop for loop in around if loop is not None]
        nodes = dict(zip(code.branches, code.nodes, strict=True))
        for branch in code.missed(_executed(code, path, runs, is_inside=True)):
            if (path, branch.function) not in others:
                found[path, branch] = Unreached(path, branch, "inside")
        for branch in code.missed(_executed(code, path, runs, is_inside=False)):
            part: Part = "inside" if (path, branch.function) in unseen else "elsewhere"
            if part == "elsewhere" and any(each.concerns(branch, nodes[branch]) for each in loops):
                part = "around"
            found.setdefault((path, branch), Unreached(path, branch, part))
    left = (each for each in found.values() if not each.branch.excuse)
    return sorted(left, key=lambda each: (each.path, each.branch.line, each.branch.column))


def _read_all(paths: Collection[str], text_of: Callable[[str], str]) -> Iterator[tuple[str, Marked]]:
    for path in sorted(paths):
        with suppress(OSError, RecursionError, SyntaxError, ValueError):
            yield path, marked(text_of(path), path)


def _executed(code: Marked, path: str, runs: Iterable[ClassResult], *, is_inside: bool) -> set[int]:
    """Return the numbers of the branches that some run has executed."""
    executed: set[int] = set()
    for run in runs:
        for each in run.coverage:
            if each.path == path and each.is_inside == is_inside:
                entered, missed = set(each.entered), set(each.missed)
                left_out: set[int] = set()
                for number, branch in enumerate(code.branches):
                    line = branch.line if branch.kind == "function" else branch.function
                    if line not in entered or branch in missed or code.around[number] in left_out:
                        left_out.add(number)
                executed |= set(range(len(code.branches))) - left_out
    return executed


class _Used:
    """What definitions of some modules use, by names."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._definitions: defaultdict[str, list[tuple[str, ast.stmt]]] = defaultdict(list)
        for path, tree in trees.items():
            for statement in tree.body:
                for name in _defined(statement):
                    self._definitions[name].append((path, statement))

    def functions(self, names: Collection[str]) -> frozenset[tuple[str, int]]:
        """Return the files and lines of the functions that some classes have, or may call."""
        found: set[tuple[str, int]] = set()
        waiting, met = list(names), set(names)
        while waiting:
            for path, statement in self._definitions.get(waiting.pop(), ()):
                for each in ast.walk(statement):
                    if isinstance(each, FUNCTIONS):
                        found.add((path, each.lineno))
                new = {*_mentioned(statement)} - met
                met |= new
                waiting += sorted(new)
        return frozenset(found)

    def forwards(self, name: str) -> frozenset[tuple[str, int]]:
        """Return the files and lines of the ``forward`` of a class, and of its bases."""
        found: set[tuple[str, int]] = set()
        waiting, met = [name], {name}
        while waiting:
            for path, statement in self._definitions.get(waiting.pop(), ()):
                if isinstance(statement, ast.ClassDef):
                    methods = (each for each in statement.body if isinstance(each, FUNCTIONS))
                    found |= {(path, each.lineno) for each in methods if each.name == "forward"}
                    new = {each for base in statement.bases for each in _mentioned(base)} - met
                    met |= new
                    waiting += sorted(new)
        return frozenset(found)


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.ClassDef, *FUNCTIONS)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from (each.asname for each in statement.names if each.asname is not None)
    else:
        yield from _stored(statement)


def _mentioned(statement: ast.AST) -> Iterator[str]:
    """Yield the names of what a statement uses, and of attributes, which may be those of modules."""
    for each in ast.walk(statement):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.alias):
            yield each.name


def _loop(tree: ast.Module, line: int) -> _BlockLoop | None:
    """Return the outermost loop around a line within its function, or the statement if there is none."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    functions = [each for each in around if isinstance(each, FUNCTIONS)]
    if not functions:
        return None
    function = max(functions, key=lambda each: each.lineno)
    within = [each for each in around if each.lineno > function.lineno]
    loops = [each for each in within if isinstance(each, (ast.For, ast.AsyncFor, ast.While))]
    if not within:
        return None
    return _BlockLoop(function, min(loops or within[-1:], key=lambda each: each.lineno))


class _BlockLoop:
    """A statement that runs blocks, with what depends on it in its function."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> None:
        self._function = function
        self._statement = statement
        self._end = statement.end_lineno or statement.lineno
        self._given = _stored(statement)
        size = -1
        while size != len(self._given):
            size = len(self._given)
            for each in ast.walk(function):
                value = getattr(each, "value", None) or getattr(each, "iter", None)
                if (
                    isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For))
                    and each.lineno > self._end
                    and isinstance(value, ast.expr)
                    and not self._given.isdisjoint(_read(value))
                ):
                    self._given |= _stored(each)

    def concerns(self, branch: Branch, nodes: Iterable[ast.AST]) -> bool:
        """Tell whether a branch is in the loop, or depends on what that gives."""
        last = self._function.end_lineno or self._function.lineno
        if self._statement.lineno <= branch.line <= self._end:
            return True
        is_behind = self._end < branch.line <= last and branch.function >= self._function.lineno
        return is_behind and any(not self._given.isdisjoint(_read(each)) for each in nodes)


def _stored(node: ast.AST) -> set[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in names if not isinstance(each.ctx, ast.Load)}


def _read(node: ast.AST) -> set[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in names if isinstance(each.ctx, ast.Load)}
