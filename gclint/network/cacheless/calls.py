"""Follows calls: what runs is followed, and of what is not known only the arguments count."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gclint.code.names import names
from gclint.code.walk import FUNCTIONS
from gclint.model import known, tensors
from gclint.network.cacheless.asking import full_name, is_known, is_mixed, is_random
from gclint.network.cacheless.empty import CONVERTING
from gclint.network.cacheless.functions import Functions
from gclint.network.cacheless.items import Arguments
from gclint.network.cacheless.state import TermFrame
from gclint.network.cacheless.terms import TESTS, Term, constant_of
from gclint.network.evaluation.values import (
    ClassValue,
    EvaluatedExternal,
    EvaluatedFunction,
    EvaluatedMethod,
    ExternalInstance,
    Instance,
)

_PURE = tensors.FRESH | tensors.VIEWS | tensors.FUNCTIONAL | tensors.METHODS_ONLY_READ | known.READING_METHODS
_GIVING_TENSORS = (
    (tensors.FRESH | tensors.VIEWS | tensors.FUNCTIONAL) - tensors.METHODS_ONLY_READ - known.READING_METHODS
)
_LOOKING = names("len isinstance tuple list bool hasattr getattr callable")
"""Functions that do something else with None, a cache, or a container."""
_SEEING_NAMES = names("locals vars dir eval exec")
"""Functions to which all names are known where they are called."""
_HOLDING = frozenset(("DynamicCache", "EncoderDecoderCache", "from_legacy_cache"))
"""What makes caches of others, or of what was in others."""
_OPTIONS = frozenset(("config", "offloading", "offload_only_non_sliding"))
"""Arguments by which these are not filled."""
_EMPTY = frozenset(("argument", "cache", "constant", "entry"))
"""Operations that give what makes an empty cache."""
_BUILTINS = names("enumerate zip sorted reversed list tuple dict set")


class CallTerms(Functions):
    """Follows what calls give."""

    def call(self, function: Term, given: Arguments, node: ast.AST) -> Term:
        """Return what a call gives."""
        function = self.settle(function)
        if function.op == "either":
            return self.each_of(function, lambda each: self.call(each, given, node))
        if function in (self.terms.none, self.terms.unbound):
            raise self.fail()
        if function.op == "partial":
            inner, more = function.args
            assert isinstance(inner, Term)
            assert isinstance(more, Arguments)
            named = tuple((dict(more.named) | dict(given.named)).items())
            return self.call(
                inner, Arguments(more.positional + given.positional, named, more.rest + given.rest), node
            )
        if function in self.functions:
            return self.enter_local(function, given)
        kinds = sorted(self.kinds_of(function), key=repr)
        output = self._output(kinds, given)
        if output is not None:
            return output
        if function.op == "method" and isinstance(kind := kinds[0], EvaluatedMethod):
            return self.run_method(kind.instance.info, kind.method, function.args[0], given)  # type: ignore[arg-type]
        return self._call_one_of(function, kinds, given, node)

    def _output(self, kinds: Sequence[object], given: Arguments) -> Term | None:
        """Return what a class of outputs makes, or one of caches."""
        kind = kinds[0] if len(kinds) == 1 else None
        name = full_name(kind)
        is_own = isinstance(kind, ClassValue) and not kind.info.module.is_library
        if is_known(name, known.CACHES) and not is_own:
            return self._cache_of(name.rpartition(".")[2], given)
        bases = kind.info.external_bases if isinstance(kind, ClassValue) else ()
        if any(is_known(each, known.CACHES | known.CACHE_BASES) for each in bases):
            return self.terms.filled  # Nobody knows what it gives back.
        is_output = any(is_known(each, known.OUTPUTS) for each in (name.rpartition(".")[0], *bases) if each)
        if not is_output or given.positional or given.rest:
            return None
        return self.terms("output", name, tuple(sorted(given.named)))

    def _cache_of(self, kind: str, given: Arguments) -> Term:
        """Return what a class of caches makes: an empty one, if nothing is in what it gets."""
        named = [each for name, each in given.named if name not in _OPTIONS]
        made_of = {each.op for one in (*given.positional, *named) for each in self.terms.leaves(one)}
        is_filled = not made_of <= _EMPTY if kind in _HOLDING else "filled" in made_of
        return self.terms.filled if is_filled or kind in known.STATIC_CACHES else self.terms.cache

    def _call_one_of(self, function: Term, kinds: Sequence[object], given: Arguments, node: ast.AST) -> Term:
        if not kinds:
            return self.unknown(function, given)
        first, *others = kinds
        if others:
            test = self.terms("is a", function, repr(first))
            return self.choose(
                test,
                lambda: self._call_one_of(function, [first], given, node),
                lambda: self._call_one_of(function, others, given, node),
            )
        if (
            isinstance(first, EvaluatedFunction)
            and first.scope.parent is None
            and isinstance(first.node, FUNCTIONS)
        ):
            return self.enter_function(first.node, TermFrame(first.scope.module), given, function)
        if isinstance(first, Instance) and first.info.is_module:
            result = self.run_method(first.info, "forward", function, given)
            if not self.is_inside:
                self.note_run(given)
            return result
        if isinstance(first, (EvaluatedExternal, ExternalInstance)):
            return self.call_external(first, function, given, node)
        return self.unknown(function, given)

    def call_method(self, base: Term, name: str, given: Arguments, node: ast.Call) -> Term:
        """Return what a method of a value gives."""
        base = self.settle(base)
        if is_mixed(base):
            return self.each_of(base, lambda each: self.call_method(each, name, given, node))
        if base is self.terms.none:
            raise self.fail()
        if base in (self.terms.cache, self.terms.marks):
            return self.in_cache(base, name, given)
        if base.op == "extent":
            return self.terms.constant(0)
        if base.op == "filled":
            return base if name in CONVERTING else self.terms("held", name, given, self.log)
        if base.op in ("tuple", "list", "dict"):
            found = self.in_container(base, name, given)
            if found is not None:
                return found
            if name in known.FILLING_METHODS and any(map(self.terms.keeps_cache, given.positional)):
                self.replace(base, self.terms("changed by", name, base, given, self.log))
        if name in ("forward", "__call__") and (self.kinds_of(base) or base in self.functions):
            return self.call(base, given, node)
        if self.kinds_of(base) or (base, name) in self.held:
            return self.call(self.attribute(base, name), given, node)
        if name in known.LOGGING:
            return self.terms.none
        if name in _PURE and not is_random(name):
            return self._computed_by(name, (base, *given.positional), given)
        return self.unknown(self.terms("attribute", base, name), given)

    def call_external(
        self, what: EvaluatedExternal | ExternalInstance, function: Term, given: Arguments, node: ast.AST
    ) -> Term:
        """Return what a function of another package gives, or a module of one."""
        name = what.name
        parent, _, last = name.rpartition(".")
        if isinstance(what, ExternalInstance):
            if name in known.MODULES and not is_random(last.lower()):
                return self._computed_by("module", (function, *given.positional), given)
            return self.unknown(function, given)
        if name == "functools.partial" and given.positional:
            return self.terms("partial", given.positional[0], given._replace(positional=given.positional[1:]))
        if last in ("cat", "concat", "concatenate") and parent in known.TORCH and given.positional:
            found = self.joined_tensors(given.positional[0])
            if found is not None:
                return found
        if not parent:
            if last in _SEEING_NAMES:
                seen = tuple(sorted(self.frame.names.items()))
                return self.unknown(self.terms("names", function, seen), given)
            found = self._builtin(last, given, node)
            if found is not None:
                return found
        is_tensors = parent in known.TORCH and last in _PURE
        if (is_tensors or name in known.FUNCTIONS or last in _BUILTINS) and not is_random(last):
            if is_tensors and any(each is self.terms.none for each in given.positional[:1]):
                raise self.fail()
            return self._computed_by(last, given.positional, given)
        return self.unknown(function, given)

    def _builtin(self, name: str, given: Arguments, node: ast.AST) -> Term | None:
        first, second, *_ = (*given.positional, None, None)
        if name == "dict" and first is None:
            return self.terms("dict", self.place(node), given.rest, given.named)
        if first is None:
            return None
        if first.op == "either" and name in _LOOKING:
            return self.each_of(
                first,
                lambda each: (
                    self._builtin(name, given._replace(positional=(each, *given.positional[1:])), node)
                    or self._computed_by(name, (each, *given.positional[1:]), given)
                ),
            )
        if name == "getattr" and first is self.terms.none and len(given.positional) > 2:
            return given.positional[2]
        if name == "getattr" and second is not None and isinstance(attribute := constant_of(second), str):
            return self.attribute(first, attribute)
        if name == "len" and (items := self.items(first)) is not None:
            return self.terms.constant(len(items))
        if name == "bool" and (holds := self.decide(first)) is not None:
            return self.terms.constant(holds)
        if name == "isinstance" and second is not None:
            return self.is_instance(first, second)
        if name == "hasattr" and first is self.terms.none:
            return self.terms.false
        if name in ("tuple", "list") and first.op in ("chosen", "many"):
            return first
        if name == "tuple" and (items := self.items(first)) is not None:
            return self.terms("tuple", items)
        if name == "bool" and first.op in TESTS:
            return first
        if first is self.terms.none and name in ("len", "tuple", "list", "enumerate", "zip", "iter"):
            raise self.fail()
        return None

    def _computed_by(self, name: str, operands: tuple[Term, ...], given: Arguments) -> Term:
        is_tensor = name in _GIVING_TENSORS or name == "module"
        bare = tuple(map(self.bare, operands))
        return self.terms("computed" if is_tensor else "read", name, given._replace(positional=bare))
