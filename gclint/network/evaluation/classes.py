"""The classes of a project: their bases, attributes, methods and parts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from gclint.code.file import SourceFile
from gclint.code.lines import mentions, normal
from gclint.code.names import names
from gclint.code.naming import MODEL_BASE
from gclint.code.outline import Definition
from gclint.code.project import reachable
from gclint.code.remembered import remembered
from gclint.code.walk import FUNCTIONS, is_constant, last_name, listing, walk
from gclint.copies.generated import is_modular
from gclint.network.evaluation.body import COMPUTING, Body
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.signature import Signature, method_signature
from gclint.network.evaluation.values import (
    NOTHING,
    ClassValue,
    Container,
    EvaluatedExternal,
    Instance,
    Value,
    Values,
    merge_containers,
)

if TYPE_CHECKING:
    from gclint.network.evaluation.modules import ModuleInfo

CHECKPOINTING_BASE = "GradientCheckpointingLayer"
_LONGEST_LINE = 200
"""How many bases are followed: real classes have fewer, and each class stores all of them."""


class ClassInfo:
    """A class of the project."""

    def __init__(self, module: ModuleInfo, definition: Definition) -> None:
        """Describe the class with this definition."""
        self.module = module
        self.definition = definition
        self.name = definition.name
        self.facts: dict[object, object] = {}
        self._attributes: dict[str, Values] = {}

    def __repr__(self) -> str:
        """Name the class and its file."""
        return f"<{self.name} of {self.module.file.path.name}>"

    @property
    def file(self) -> SourceFile:
        """The file that defines the class."""
        return self.module.file

    # -- bases

    @cached_property
    def base_names(self) -> tuple[str, ...]:
        """The bases as they are written; those that are not dotted names are left out."""
        return self.definition.bases

    @cached_property
    def bases(self) -> tuple[ClassInfo | EvaluatedExternal | None, ...]:
        """The bases; None for one that cannot be resolved."""
        resolved: list[ClassInfo | EvaluatedExternal | None] = []
        for name in self.base_names:
            values = [v for v in self.module.resolve(name) if isinstance(v, (ClassValue, EvaluatedExternal))]
            value = values[0] if len(values) == 1 else None
            resolved.append(value.info if isinstance(value, ClassValue) else value)
        return tuple(resolved)

    @cached_property
    def mro(self) -> tuple[ClassInfo, ...]:
        """The class and its bases in the project, in method resolution order."""
        seen = [self]
        waiting = [*reversed(self.bases)]
        while waiting and len(seen) < _LONGEST_LINE:
            info = waiting.pop()
            if isinstance(info, ClassInfo) and info is not self:
                seen.append(info)
                waiting.extend(reversed(info.bases))
        # A base comes after all classes that inherit from it.
        return tuple(reversed(dict.fromkeys(reversed(seen))))

    @cached_property
    def external_bases(self) -> frozenset[str]:
        """The full names of all direct and indirect bases outside the project."""
        return frozenset(
            base.name for info in self.mro for base in info.bases if isinstance(base, EvaluatedExternal)
        )

    @cached_property
    def resolved(self) -> bool:
        """Whether all bases, direct and indirect, are known."""
        return all(base is not None for info in self.mro for base in info.bases) and all(
            name in _KNOWN_BASES or name.rpartition(".")[2] == MODEL_BASE for name in self.external_bases
        )

    @cached_property
    def is_module(self) -> bool:
        """Whether the class is known to be a torch module."""
        return self.is_checkpointing or self.is_model or "torch.nn.Module" in self.external_bases

    @cached_property
    def is_checkpointing(self) -> bool:
        """Whether the class inherits from the checkpointing base class."""
        return any(name.rpartition(".")[2] == CHECKPOINTING_BASE for name in self.external_bases) or any(
            info.name == CHECKPOINTING_BASE for info in self.mro
        )

    @cached_property
    def is_model(self) -> bool:
        """Whether the class is a model, on which users enable checkpointing."""
        return any(name.rpartition(".")[2] == MODEL_BASE for name in self.external_bases) or any(
            info.name == MODEL_BASE and not info.is_namesake for info in self.mro
        )

    @property
    def is_namesake(self) -> bool:
        """Whether the class has the name of the library's base class of models, but is another class.

        Predecessors of the library have one that only handles weights, and some packages have their own.
        """
        return "torch.nn.Module" in self.external_bases and not self.names("gradient_checkpointing")

    # -- attributes and methods

    @property
    def nodes(self) -> Sequence[ast.AST]:
        """All nodes of the class's definition, each before those below it."""
        return nodes_of(self.definition)

    def names(self, *parts: str) -> bool:
        """Return whether a name or attribute in the class, or a text of one word, has one of ``parts``."""
        return may_have(self.definition, parts) and any(
            part in word for word in words_of(self.definition) for part in parts
        )

    def methods(self) -> Iterator[Definition]:
        """Yield the methods that the class defines itself."""
        return self.definition.methods()

    def find_method(self, name: str) -> tuple[ClassInfo, Definition] | None:
        """Return the method ``name`` of the class or a base, with the class that defines it."""
        for info in self.mro:
            method = info.definition.method(name)
            if method is not None:
                return info, method
        return None

    def method_scope(self, name: str) -> Scope | None:
        """Return the scope of a method of the class or of a base."""
        found = self.find_method(name)
        return None if found is None else self.scope(found[1], found[0].module)

    def scope(self, method: Definition, module: ModuleInfo | None = None) -> Scope:
        """Return the scope of a method definition, with ``self`` an instance of this class."""
        where = module or self.module
        return where.library.scope(self, method, where)

    @cached_property
    def forward(self) -> tuple[ClassInfo, Definition, Signature] | None:
        """The class that defines the ``forward`` of an instance, the method, and its signature."""
        found = self.find_method("forward")
        if found is None:
            return None
        signature = method_signature(found[1])
        if signature is None or not found[0]._is_only_forward(signature):
            return None
        return (*found, signature)

    def _is_only_forward(self, signature: Signature) -> bool:
        """Return whether the class body does not choose between definitions with different signatures."""
        functions = [child for child in self.definition.children if not child.is_class]
        level = min((child.indent for child in functions), key=len, default="")
        own = [child for child in functions if child.name == "forward"]
        return all(child.indent == level for child in own) or all(
            method_signature(child) == signature for child in own
        )

    @property
    def signature(self) -> Signature | None:
        """The signature of ``forward``."""
        return None if self.forward is None else self.forward[2]

    def attribute(self, name: str) -> Values:
        """Return the possible values of ``self.name``, as the class or its nearest base assigns it."""
        known = self._attributes.get(name)
        if known is None:
            self._attributes[name] = NOTHING
            known = self._attributes[name] = self._attribute(name)
        return known

    def _attribute(self, name: str) -> Values:
        for info in self.mro:
            values: Values = NOTHING
            for method in info.methods():
                if not may_have(method, (name, *COMPUTING)):
                    continue
                scope = self.scope(method, info.module)
                if scope.self_name is not None:
                    key = f"{scope.self_name}.{name}"
                    values |= scope.bound(key)
            values = values or info.class_attribute(name)
            if values:
                return merge_containers(self._renamed(values, info) if info.file is not self.file else values)
        return NOTHING

    def _renamed(self, values: Values, base: ClassInfo) -> Values:
        """Replace classes of a base's file by their counterparts in a modular file.

        If a modular file has `class MyModel(OtherModel)`, and `OtherModel` holds `OtherLayer`s, then in the
        generated file `MyModel` holds `MyLayer`s, which the modular file defines, perhaps from `OtherLayer`.
        """
        if not is_modular(self.file.path):
            return values
        return frozenset(self._renamed_value(value, base) for value in values)

    def _renamed_value(self, value: Value, base: ClassInfo) -> Value:
        if isinstance(value, Container):
            return Container(frozenset(self._renamed_value(item, base) for item in value.items))
        if isinstance(value, Instance) and value.info.file is not self.file:
            family = _common_prefix(value.info.name, base.name)
            suffix = value.info.name[len(family) :]
            modules = [info for info in self.module.classes.values() if info.is_module]
            inheriting = [info for info in modules if value.info in info.bases]
            inheriting = inheriting or [
                info for info in modules if family and suffix and info.name.endswith(suffix)
            ]
            if len(inheriting) == 1:
                return Instance(inheriting[0])
        return value

    def class_attribute(self, name: str) -> Values:
        """Return the values that the body of the class or a base assigns to ``name``."""
        for info in self.mro:
            for child in info.definition.children:
                if child.is_class and child.name == name:
                    return frozenset((ClassValue(info.module.info(child)),))
            if info.assigns(name):
                return Scope(info.module, info._body).name(name)
        return NOTHING

    @property
    def _body(self) -> Body:
        """The code of the class outside of its functions and classes."""
        return Body.of_definition(self.definition)

    def assigns(self, name: str) -> bool:
        """Return whether the class body itself assigns to a name."""
        return mentions(self.definition.text, name) and name in self._body.bindings

    def switch(self, name: str) -> bool | None:
        """Return the value True or False that the class body itself assigns to a name; None for any other."""
        known = [each for each in self.literals(name) if is_constant(each, True, False)]
        return is_constant(known[-1], True) if known else None

    def literals(self, name: str) -> list[ast.expr]:
        """Return what the class body itself assigns to a name, in text order."""
        return [each.unpacked[0] for each in self._body.bindings[name]] if self.assigns(name) else []

    @cached_property
    def parts(self) -> frozenset[ClassInfo]:
        """The torch modules of the project that the code of the class or its bases may create."""
        return frozenset().union(*(info.own_parts for info in self.mro)) - {self}

    @cached_property
    def own_parts(self) -> frozenset[ClassInfo]:
        """Those that the code of the class itself may create."""
        values = (value for name in _created(self) for value in _flat(self.module.lookup(name)))
        made = (value.info for value in values if isinstance(value, (ClassValue, Instance)))
        return frozenset(info for info in made if info.is_module)

    @cached_property
    def all_parts(self) -> frozenset[ClassInfo]:
        """The class, its parts, their parts, and so on."""
        return frozenset(reachable([self], lambda info: info.parts))


_ASKING = frozenset(("isinstance", "issubclass"))
_KNOWN_BASES = names(
    """
    torch.nn.Module object abc.ABC typing.Generic typing.Protocol typing_extensions.Generic
    typing_extensions.Protocol
    """
)


def may_have(definition: Definition, words: Iterable[str]) -> bool:
    """Return whether the text of a definition contains one of some words; this may only save a walk."""
    text = definition.text
    return any(word in text for word in words)


def nodes_of(definition: Definition) -> Sequence[ast.AST]:
    """Return all nodes of a definition, each before those below it."""
    tree = definition.outline.file.tree
    assert tree is not None  # the definition was found in it
    nodes, parts = listing(tree)
    start, end = parts[definition.node]
    return nodes[start:end]


def words_of(definition: Definition) -> frozenset[str]:
    """Return the names and attributes in a definition, those that it binds, and texts of a single word."""
    tree = definition.outline.file.tree
    assert tree is not None  # the definition was found in it
    key = (words_of, definition.number)
    if key not in tree.facts:
        tree.facts[key] = frozenset(filter(None, map(_word, nodes_of(definition))))
    return cast("frozenset[str]", tree.facts[key])


def _word(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and node.value.isidentifier() else None
    word = getattr(node, "arg", None) or getattr(node, "name", None)
    return word if isinstance(word, str) else None


@remembered
def _created(info: ClassInfo) -> frozenset[str]:
    """Return the names of parts in a class's code that are called or passed on, of what it may create.

    What a parameter is annotated with may be passed to it, and be kept.
    """
    text = normal(info.definition.text)
    # Its own name stands in its header, too.
    wanted = {name for name in info.module.part_names if text.count(name) > (name == info.name)}
    found: set[str] = set()
    left_out: set[ast.AST] = set()
    for node in info.nodes if wanted else ():
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = last_name(node)
            if name in wanted and node not in left_out:
                found.add(name)
            if isinstance(node, ast.Attribute):
                left_out.add(node.value)
        elif isinstance(node, ast.Call) and last_name(node.func) in _ASKING:
            left_out.update(each for arg in node.args[1:] for each in walk(arg))
        elif isinstance(node, ast.AnnAssign):
            left_out.update(walk(node.annotation))
        elif isinstance(node, FUNCTIONS) and node.returns is not None:
            left_out.update(walk(node.returns))
    return frozenset(found)


def _common_prefix(one: str, other: str) -> str:
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    return one[:length]


def _flat(values: Values) -> Iterator[object]:
    for value in values:
        if isinstance(value, Container):
            yield from _flat(value.items)
        else:
            yield value
