"""Follows statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from gclint.code.walk import dotted_name
from gclint.network.cacheless.loops import Loops
from gclint.network.cacheless.state import Dead, Exit
from gclint.network.cacheless.terms import Term
from gclint.network.evaluation.values import EvaluatedExternal


class Statements(Loops):
    """Follows what statements do."""

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Follow statements until one ends the function."""
        for each in statements:
            self.count()
            follow: Callable[[ast.stmt], None] | None = getattr(
                self, f"_follow_{type(each).__name__.lower()}", None
            )
            if follow is None:
                self.opaque("statement", each)
            else:
                follow(each)

    def _ignored(self, node: ast.stmt) -> None:
        pass

    _follow_pass = _ignored

    def _follow_expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _follow_return(self, node: ast.Return) -> None:
        value = self.terms.none if node.value is None else self.value(node.value)
        self.frame.exits.append(Exit(self.path, value, self.state()))
        raise Dead

    def _follow_raise(self, node: ast.Raise) -> None:
        raise self.fail()

    def _follow_assert(self, node: ast.Assert) -> None:
        self.choose(self.value(node.test), lambda: self.terms.none, self._failing)

    def _failing(self) -> Term:
        raise self.fail()

    def _follow_assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for each in node.targets:
            self.assign(each, value)

    def _follow_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def _follow_augassign(self, node: ast.AugAssign) -> None:
        load = _as_load(node.target)
        old = self.value(load)
        added = self.value(node.value)
        new = self.combine(node.op, old, added)
        if new is old:
            return  # It adds nothing.
        if not self._never_changes(old):
            self.do(self.terms("changed", type(node.op).__name__, old, added))
        self.assign(node.target, new)

    def _never_changes(self, term: Term) -> bool:
        """Tell whether a value is such that an augmented assignment makes another one."""
        if term.op == "either":
            return all(self._never_changes(each) for each in term.args[1:])  # type: ignore[arg-type]
        return term.op in ("constant", "tuple") or (
            term in self.entries and self._never_changes(self.entries[term])
        )

    def _follow_delete(self, node: ast.Delete) -> None:
        for each in node.targets:
            if isinstance(each, ast.Name):
                self.frame.names[each.id] = self.terms.unbound
            else:
                self.opaque("deleted", each)

    def _follow_functiondef(self, node: ast.FunctionDef) -> None:
        self.frame.names[node.name] = self.function(node)

    def _follow_global(self, node: ast.Global) -> None:
        self.opaque("statement", node)
        self.frame.outer.update(dict.fromkeys(node.names))

    def _follow_nonlocal(self, node: ast.Nonlocal) -> None:
        self.opaque("statement", node)
        for name in node.names:
            around = self.frame.parent
            while around is not None and name not in around.names:
                around = around.parent
            self.frame.outer[name] = around

    def _follow_import(self, node: ast.Import) -> None:
        for each in node.names:
            found = self.terms("import", each.name)
            self.kinds[found] = frozenset((EvaluatedExternal(each.name),))
            self.frame.names[(each.asname or each.name).partition(".")[0]] = found

    def _follow_importfrom(self, node: ast.ImportFrom) -> None:
        for each in node.names:
            found = self.terms("import", node.module, node.level, each.name)
            self.kinds[found] = frozenset((EvaluatedExternal(f"{node.module}.{each.name}"),))
            self.frame.names[each.asname or each.name] = found

    # -- ways

    def _follow_if(self, node: ast.If) -> None:
        self.choose(self.value(node.test), lambda: self._all_of(node.body), lambda: self._all_of(node.orelse))

    def _all_of(self, statements: Sequence[ast.stmt]) -> Term:
        self.body(statements)
        return self.terms.none

    def _follow_with(self, node: ast.With) -> None:
        for each in node.items:
            value = self.value(each.context_expr)
            self.do(self.terms("entered", value))
            if each.optional_vars is not None:
                self.assign(each.optional_vars, self.terms("context", value))
        self.body(node.body)

    def _follow_try(self, node: ast.Try) -> None:
        before = dict(self.raised)
        self._handled([(node, [*node.body, *node.orelse]), *((each, each.body) for each in node.handlers)])
        if any(map(_catches_all, node.handlers)):
            self.raised = before
        self.body(node.finalbody)

    def _handled(self, ways: Sequence[tuple[ast.AST, Sequence[ast.stmt]]]) -> Term:
        """Follow each of some ways, of which nobody knows which is taken."""
        (node, statements), *others = ways
        if not others:
            return self._all_of(statements)
        test = self.terms("taken", node, self.log)
        return self.choose(test, lambda: self._all_of(statements), lambda: self._handled(others))

    def _follow_match(self, node: ast.Match) -> None:
        subject = self.value(node.subject)
        self._cases(subject, node.cases)

    def _cases(self, subject: Term, cases: Sequence[ast.match_case]) -> Term:
        if not cases:
            return self.terms.none
        first, *others = cases
        bound = [
            name
            for each in ast.walk(first.pattern)
            if isinstance(name := getattr(each, "name", None) or getattr(each, "rest", None), str)
        ]

        def follow() -> Term:
            for name in bound:
                self.frame.names[name] = self.terms("matched", first.pattern, name, subject)
            return self._all_of(first.body)

        test = self.terms("matches", first.pattern, subject)
        if first.guard is not None:
            test = self.terms("and", test, self.opaque("guard", first.guard))
        return self.choose(test, follow, lambda: self._cases(subject, others))

    # -- targets

    def assign(self, target: ast.expr, value: Term) -> None:
        """Assign a value to a target."""
        if isinstance(target, ast.Name):
            self.frame.names[target.id] = value
            if target.id in self.frame.outer:
                self.do(self.terms("assigned", target.id, value))
                around = self.frame.outer[target.id]
                if around is not None:
                    around.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            if base.op in ("cache", "filled"):
                self.has_written = True
                self.held[base, target.attr] = value
                return
            if base is self.terms.none:
                raise self.fail()
            self.do(self.terms("set", base, target.attr, value))
            self.held[base, target.attr] = value
        elif isinstance(target, ast.Subscript):
            self._set_item(self.value(target.value), self.value(target.slice), value)

    def _unpack(self, targets: Sequence[ast.expr], value: Term) -> None:
        value = self.settle(value)
        starred = [index for index, each in enumerate(targets) if isinstance(each, ast.Starred)]
        items = self.items(value)
        if items is not None and not starred and len(items) != len(targets):
            raise self.fail()
        if items is not None and starred:
            self._unpack_starred(targets, starred[0], items)
            return
        for index, each in enumerate(targets):
            if starred and index >= starred[0]:
                self.assign(each, self.terms("behind", value, index, len(targets)))
            else:
                self.assign(each, self.item(value, self.terms.constant(index)))

    def _unpack_starred(self, targets: Sequence[ast.expr], place: int, items: tuple[Term, ...]) -> None:
        """Assign known items to targets of which one gets a list of those that the others leave."""
        left = len(items) - len(targets) + 1
        if left < 0:
            raise self.fail()
        rest = self.terms("list", self.place(targets[place]), items[place : place + left])
        values = (*items[:place], rest, *items[place + left :])
        for target, value in zip(targets, values, strict=True):
            self.assign(target, value)

    def _set_item(self, base: Term, index: Term, value: Term) -> None:
        if base.op in ("cache", "filled", "marks"):
            self.has_written = True
            if base.op == "marks":
                self.set_mark(index)
        elif base is self.terms.none:
            raise self.fail()
        elif base.op == "dict" and index.op == "constant" and isinstance(key := index.args[1], str):
            place, rest, pairs = base.args
            more = dict(pairs) | {key: value}  # type: ignore[call-overload]
            self.replace(base, self.terms("dict", place, rest, tuple(more.items())))
        else:
            new = self.terms("put", base, index, value)
            self.do(new)
            self.replace(base, new)


def _catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or dotted_name(handler.type) in ("Exception", "BaseException")


def _as_load(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.copy_location(ast.Name(node.id, ast.Load()), node)
    if isinstance(node, ast.Attribute):
        return ast.copy_location(ast.Attribute(node.value, node.attr, ast.Load()), node)
    assert isinstance(node, ast.Subscript)
    return ast.copy_location(ast.Subscript(node.value, node.slice, ast.Load()), node)
