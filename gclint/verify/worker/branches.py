"""Which branches functions have, and code that notes which of them are executed.

Both sides import this module, so it needs only Python: the worker marks the code that it runs, and the host
finds what was not executed in the same text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

_DEVICES = frozenset(("cuda", "hip", "hpu", "mlu", "mps", "musa", "npu", "tpu", "xla", "xpu"))
"""The kinds of hardware that a run on a CPU does not have."""
_KERNELS = frozenset(("flash_attention_2", "flash_attention_3"))
"""The implementations of attention that need it."""
_ASKING = re.compile(
    r"is_(?:(?!available)\w)*available\w*|is_flash_attn\w*"
    r"|is_(?:in_)?\w*(?:tracing|scripting|compiling|onnx_export|fx_proxy)"
)
"""The functions that ask for that, for a library, or for another use than training."""
_RELIED_ON = frozenset(("torch", "transformers"))
"""The packages whose functions of such names do what these say; anybody else's may ask for anything."""
_IN_LIBRARY = re.compile(r"[/\\]transformers[/\\]models[/\\]")
_KIND = re.compile(r"^type$|device|attn_implementation")
"""The names of what is compared with these."""
_TRAINING = "training"
_CONSTRUCTORS = frozenset(("__init__", "__new__"))
"""The methods that no step runs."""
EXECUTED, ENTERED, LEFT = "__gclint_executed__", "__gclint_entered__", "__gclint_left__"
"""The global names of the functions that note what is executed, and where methods begin and end."""
_CACHE = re.compile(r"(?:^|_)(?:past|caches?|mems)(?:_|$)")
"""The names of caches, and of what switches them on."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SAYING = frozenset(("logger", "logging", "warnings"))


@dataclass(frozen=True)
class Branch:
    """What is executed on one outcome of a condition; or a function, which is executed when it is called."""

    line: int
    column: int
    """The place of its first statement, or of its expression; of a condition without it, that of this."""
    last: int
    """The last line of its code."""
    kind: str
    """``function``, ``body``, ``else`` (also one that is not written), or ``operand``."""
    function: int
    end: int
    """The first and the last line of the innermost function around it."""
    excuse: str = field(default="", compare=False)
    """Why it need not be executed; empty if there is no reason."""
    needs_cache: bool = False
    """Whether it is executed only with a cache, which a block has only without checkpointing."""


@dataclass
class Marked:
    """The branches of a module, and the same module with code that notes which of them are executed."""

    tree: ast.Module
    branches: list[Branch] = field(default_factory=list)
    around: list[int | None] = field(default_factory=list)
    """By branch: the number of the innermost one that it is in."""
    nodes: list[Sequence[ast.AST]] = field(default_factory=list)
    """By branch: the code that decides about it, and its own."""
    methods: dict[str, list[int]] = field(default_factory=dict)
    """By name of a class: the numbers of its methods, but for constructors."""

    def missed(self, executed: frozenset[int] | set[int]) -> list[Branch]:
        """Return the branches that were not executed in functions that were; of nested ones, the outer."""
        return [
            branch
            for number, branch in enumerate(self.branches)
            for around in [self.around[number]]
            if number not in executed and branch.kind != "function" and (around is None or around in executed)
        ]

    def words(self, executed: frozenset[int] | set[int]) -> Iterator[str]:
        """Yield the names and texts in the conditions of branches that were missed without an excuse."""
        missed = set(self.missed(executed))
        for branch, (deciding, *_) in zip(self.branches, self.nodes, strict=True):
            for node in ast.walk(deciding) if branch in missed and not branch.excuse else ():
                if isinstance(node, ast.Name):
                    yield node.id
                elif isinstance(node, ast.Attribute):
                    yield node.attr
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value

    def entered(self, executed: frozenset[int] | set[int]) -> list[int]:
        """Return the lines of the functions that were executed."""
        return [
            branch.line
            for number, branch in enumerate(self.branches)
            if branch.kind == "function" and number in executed
        ]


def marked(
    text: str,
    path: str = "<text>",
    first: int | None = None,
    watched: Mapping[tuple[int, int], int] = MappingProxyType({}),
) -> Marked:
    """Find the branches of a text.

    Args:
        text: the code of a module.
        path: its file, for errors, and to tell the library's own imports from others.
        first: the number of the first branch, to mark them; None to mark nothing.
        watched: further statements to mark, by their lines, with their numbers.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = ast.parse(text, path)
    found = Marked(tree)
    _Marking(found, first, watched, _relied_on(tree, path)).visit(tree)
    ast.fix_missing_locations(tree)
    return found


class _Marking(ast.NodeTransformer):
    """Notes the branches of functions, and puts marks into them, without moving lines."""

    def __init__(
        self,
        found: Marked,
        first: int | None,
        watched: Mapping[tuple[int, int], int],
        relied_on: Set[str],
    ) -> None:
        self._found = found
        self._first = first
        self._watched = watched
        self._function: tuple[int, int] | None = None
        """The first and the last line of the innermost function."""
        self._around: int | None = None
        self._class: str | None = None
        """The name of the class whose body this is."""
        self._relied_on = relied_on
        """What the module has imported of torch and the library."""
        self._tests = set(_tests(found.tree))
        """The conditions whose outcomes are branches of their own."""

    # -- what has branches

    def visit(self, node: ast.AST) -> Any:
        """Mark what has branches in functions, and the watched statements, but for those right in classes."""
        if self._function is None and not isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            return self.generic_visit(node)
        number = None
        if isinstance(node, ast.stmt) and self._function is not None and self._class is None:
            number = self._watched.get((node.lineno, node.end_lineno or node.lineno))
        made = super().visit(node)
        return made if number is None else [self._noted(number, made), made]

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """Tell its methods from other functions."""
        outer, self._class = self._class, node.name
        self.generic_visit(node)
        self._class = outer
        return node

    def _followed_function(self, node: Any) -> Any:
        function, around, owner = self._function, self._around, self._class
        self._function, self._around, self._class = (node.lineno, node.end_lineno), None, None
        number = self._add(node, "function", (node,))
        after = _has_docstring(node.body)
        node.body = self._suite(node.body, number, after=after)
        if owner is not None and node.name not in _CONSTRUCTORS:
            self._found.methods.setdefault(owner, []).append(number)
            if self._first is not None:
                node.body = [*node.body[:after], *self._enclosed(node.body[after:], number)]
        self._function, self._around, self._class = function, around, owner
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _followed_function  # noqa: N815

    def visit_If(self, node: ast.If) -> ast.If:
        """Mark both suites; one that is not written is an empty one."""
        test = node.test
        node.test = self.visit(node.test)
        body = self._add(node.body[0], "body", (test, *node.body), self._why(test, node.body, holds=True))
        first: ast.AST = node.orelse[0] if node.orelse else node
        other = self._add(first, "else", (test, *node.orelse), self._why(test, node.orelse, holds=False))
        node.body, node.orelse = self._suite(node.body, body), self._suite(node.orelse, other, at=node)
        return node

    def _followed_loop(self, node: Any) -> Any:
        deciding = node.test if isinstance(node, ast.While) else node.iter
        for name in ("target", "iter", "test"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        body = self._add(node.body[0], "body", (deciding, *node.body), self._why(None, node.body))
        node.body = self._suite(node.body, body)
        node.orelse = self._otherwise(node.orelse, deciding)
        return node

    visit_For = visit_AsyncFor = visit_While = _followed_loop  # noqa: N815

    def visit_Try(self, node: Any) -> Any:
        """Mark the handlers, and what is executed without an exception."""
        tried = tuple(node.body)
        node.body = self._each(node.body)
        for handler in node.handlers:
            number = self._add(handler.body[0], "body", (handler,), self._why(None, handler.body))
            handler.body = self._suite(handler.body, number)
        node.orelse = self._otherwise(node.orelse, *tried)
        node.finalbody = self._each(node.finalbody)
        return node

    visit_TryStar = visit_Try  # noqa: N815

    def visit_Match(self, node: Any) -> Any:
        """Mark the cases."""
        matched = node.subject
        node.subject = self.visit(node.subject)
        for arm in node.cases:
            if arm.guard is not None:
                arm.guard = self.visit(arm.guard)
            number = self._add(arm.body[0], "body", (matched, *arm.body), self._why(None, arm.body))
            arm.body = self._suite(arm.body, number)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        """Mark both arms."""
        test = node.test
        node.test = self.visit(node.test)
        node.body = self._arm(node.body, "body", test, self._why(test, (), holds=True))
        node.orelse = self._arm(node.orelse, "else", test, self._why(test, (), holds=False))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        """Mark what is evaluated only if what is in front of it does not decide."""
        holds = isinstance(node.op, ast.And)
        first, *others = node.values
        values = [self.visit(first)]
        for each in others:
            # The outcomes of a condition are branches anyway; a call does something besides.
            if node not in self._tests or any(isinstance(one, ast.Call) for one in ast.walk(each)):
                values.append(self._arm(each, "operand", first, self._why(first, (), holds=holds)))
            else:
                values.append(self.visit(each))
        node.values = values
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        """Mark where it begins."""
        function, around = self._function, self._around
        self._function, self._around = (node.lineno, node.end_lineno or node.lineno), None
        node.body = self._expression(node.body, self._add(node, "function", (node,)))
        self._function, self._around = function, around
        return node

    def _followed_comprehension(self, node: Any) -> Any:
        is_filtered = any(each.ifs for each in node.generators)
        first = node.generators[0].iter
        for each in node.generators:
            each.iter = self.visit(each.iter)
            each.ifs = [self._filter(test) for test in each.ifs]
        for name in ("key", "elt", "value"):
            item = getattr(node, name, None)
            if item is not None:  # What comes through a filter is executed; a key with its value.
                is_known = is_filtered or name == "key"
                setattr(node, name, self.visit(item) if is_known else self._arm(item, "body", first))
        return node

    def _filter(self, test: ast.expr) -> ast.expr:
        """Return the condition of a comprehension that notes both outcomes."""
        arms = (ast.copy_location(ast.Constant(outcome), test) for outcome in (True, False))
        return self.visit_IfExp(ast.copy_location(ast.IfExp(test, *arms), test))

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _followed_comprehension  # noqa: N815

    # -- marks

    def _enclosed(self, statements: list[ast.stmt], number: int) -> list[ast.stmt]:
        """Return statements with notes before and behind them, however they end."""
        entered, left = (ast.Expr(self._call(number, name)) for name in (ENTERED, LEFT))
        ast.copy_location(entered, statements[0])
        whole = ast.Try(statements, [], [], [ast.copy_location(left, statements[-1])])
        return [entered, ast.copy_location(whole, statements[0])]

    def _add(self, at: Any, kind: str, nodes: Sequence[ast.AST], why: _Why | None = None) -> int:
        found = self._found
        assert self._function is not None
        last = max([at.lineno, *(getattr(each, "end_lineno", at.lineno) for each in nodes[1:])])
        excuse, needs_cache = ("", False) if why is None else (why.excuse(), why.needs_cache())
        found.branches.append(
            Branch(at.lineno, at.col_offset, last, kind, *self._function, excuse, needs_cache)
        )
        found.around.append(self._around)
        found.nodes.append(nodes)
        return len(found.branches) - 1

    def _why(self, test: ast.expr | None, suite: Sequence[ast.stmt], *, holds: bool = True) -> _Why:
        return _Why(test, suite, holds=holds, relied_on=self._relied_on)

    def _otherwise(self, statements: list[ast.stmt], *deciding: ast.AST) -> list[ast.stmt]:
        """Return the marked ``else`` of a loop or of ``try``, if there is one."""
        if not statements:
            return []
        number = self._add(statements[0], "else", (deciding[0], *statements), self._why(None, statements))
        return self._suite(statements, number)

    def _each(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        made = (self.visit(each) for each in statements)
        return [new for each in made for new in (each if isinstance(each, list) else [each])]

    def _suite(
        self, statements: list[ast.stmt], number: int, *, after: int = 0, at: ast.AST | None = None
    ) -> list[ast.stmt]:
        """Return the statements of a branch with a mark in front of them, or after some."""
        around, self._around = self._around, number
        inside = self._each(statements)
        self._around = around
        if self._first is None:
            return inside
        place = statements[min(after, len(statements) - 1)] if statements else at
        assert place is not None
        return [*inside[:after], self._noted(number + self._first, place), *inside[after:]]

    def _arm(self, value: ast.expr, kind: str, test: ast.expr, why: _Why | None = None) -> ast.expr:
        return self._expression(value, self._add(value, kind, (test, value), why))

    def _expression(self, value: ast.expr, number: int) -> ast.expr:
        """Return an expression that notes the number of its branch."""
        around, self._around = self._around, number
        inside: ast.expr = self.visit(value)
        self._around = around
        if self._first is None:
            return inside
        both = ast.BoolOp(ast.Or(), [self._call(number), inside])  # The mark is None.
        return ast.copy_location(both, value)

    def _call(self, number: int, name: str = EXECUTED) -> ast.Call:
        return _call(number + (self._first or 0), name)

    @staticmethod
    def _noted(number: int, place: ast.AST) -> ast.Expr:
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(_call(number)), place))


def _call(number: int, name: str = EXECUTED) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(number)], [])


def _has_docstring(body: Sequence[ast.stmt]) -> int:
    first = body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return int(is_text and isinstance(first.value.value, str))  # type: ignore[attr-defined]


def _tests(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the conditions of statements and expressions, and those that they consist of."""
    for node in ast.walk(tree):
        waiting = [getattr(node, "test", None), *getattr(node, "ifs", ())]
        while waiting:
            test = waiting.pop()
            if isinstance(test, (ast.BoolOp, ast.UnaryOp)):
                yield test
                waiting += test.values if isinstance(test, ast.BoolOp) else [test.operand]


def _relied_on(tree: ast.Module, path: str) -> frozenset[str]:
    """Return the names that a module has from the packages that are relied on, and binds in no other way."""
    is_librarys = _IN_LIBRARY.search(path) is not None
    found, others = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            level, module = getattr(node, "level", 0), getattr(node, "module", None)
            for each in node.names:
                root = (module or each.name).partition(".")[0]
                is_relied_on = is_librarys if level else root in _RELIED_ON
                (found if is_relied_on else others).add(each.asname or each.name.partition(".")[0])
        elif isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            others.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            others.add(node.id)
    return frozenset(found - others)


class _Why:
    """Why a branch may not be executed."""

    def __init__(
        self, test: ast.expr | None, suite: Sequence[ast.stmt], *, holds: bool, relied_on: Set[str]
    ) -> None:
        self._suite = suite
        self._relied_on = relied_on
        self._needed = [] if test is None else list(_needed(test, holds=holds))

    def excuse(self) -> str:
        """Return why it need not be executed, or nothing."""
        if self._suite and isinstance(self._suite[-1], ast.Raise):
            return "it only raises"
        if self._suite and all(map(_only_says, self._suite)):
            return "it only says something"
        for leaf, wanted in self._needed:
            is_unequal = isinstance(leaf, ast.Compare) and isinstance(leaf.ops[0], (ast.NotEq, ast.NotIn))
            if _asks_for_hardware(leaf, self._relied_on) and wanted is not is_unequal:
                return f"it needs what no run here has: {ast.unparse(leaf)}"
            if isinstance(leaf, ast.Attribute) and leaf.attr == _TRAINING and not wanted:
                return "it is not executed in training"
        return ""

    def needs_cache(self) -> bool:
        """Tell whether it is executed only if something that is named like a cache is there."""
        return any(_is_there(leaf, wanted=wanted) for leaf, wanted in self._needed)


def _is_there(leaf: ast.expr, *, wanted: bool) -> bool:
    if isinstance(leaf, ast.Compare) and isinstance(leaf.ops[0], (ast.Is, ast.IsNot)):
        is_none = isinstance(leaf.comparators[0], ast.Constant) and leaf.comparators[0].value is None
        wanted = is_none and wanted is isinstance(leaf.ops[0], ast.IsNot)
        leaf = leaf.left
    name = leaf.id if isinstance(leaf, ast.Name) else leaf.attr if isinstance(leaf, ast.Attribute) else ""
    return wanted and _CACHE.search(name) is not None


def _asks_for_hardware(leaf: ast.expr, relied_on: Set[str]) -> bool:
    """Tell whether a condition asks for what a run on a CPU does not have."""
    if isinstance(leaf, ast.Attribute):
        is_own = isinstance(leaf.value, ast.Name) and leaf.value.id == "self"
        return not is_own and leaf.attr.startswith("is_") and leaf.attr[len("is_") :] in _DEVICES
    if isinstance(leaf, ast.Call):
        path = ast.unparse(leaf.func).split(".")
        return path[0] in relied_on and _ASKING.fullmatch(path[-1]) is not None
    if not isinstance(leaf, ast.Compare):
        return False
    asked = leaf.left.attr if isinstance(leaf.left, ast.Attribute) else getattr(leaf.left, "id", "")
    texts = [
        each.value for other in leaf.comparators for each in ast.walk(other) if isinstance(each, ast.Constant)
    ]
    return (
        _KIND.search(asked) is not None
        and bool(texts)
        and all(isinstance(each, str) and each in _DEVICES | _KERNELS for each in texts)
    )


def _needed(test: ast.expr, *, holds: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what has to be true or false if a condition holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _needed(test.operand, holds=not holds)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is holds:
            for each in test.values:
                yield from _needed(each, holds=holds)
    else:
        yield test, holds


def _only_says(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return False
    given = (node for each in (*call.args, *call.keywords) for node in ast.walk(each))
    base = call.func.value
    is_plain = not any(isinstance(node, ast.Call) for node in given)
    return is_plain and isinstance(base, ast.Name) and base.id in _SAYING
