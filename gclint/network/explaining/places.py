"""Finds what is at a line, or at a column in it: a class, a call site, a stack, an import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from gclint.code.outline import Definition, ImportStatement
from gclint.code.walk import all_nodes, walk
from gclint.network.evaluation.body import Body
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ClassValue, Container, ExternalInstance
from gclint.network.holders import held_classes
from gclint.network.model import Network
from gclint.network.runsite import RunSite

_IDENTIFIER = re.compile(r"\w+")


class PlaceKind(Enum):
    """The kinds of code that can be explained."""

    CLASS = "class"
    CALL_SITE = "call site"
    LOOP = "loop"
    STACK = "stack"
    ATTRIBUTE = "attribute"
    CALL = "call"
    IMPORT = "import"
    FUNCTION = "function"
    OTHER = "code"


@dataclass(frozen=True)
class CodeToExplain:
    """A piece of code at a place, with the classes and call sites that it is about."""

    kind: PlaceKind
    name: str
    start: int
    end: int
    classes: tuple[ClassInfo, ...] = ()
    sites: tuple[RunSite, ...] = ()
    method: Definition | None = None
    """The function that contains it."""
    owner: ClassInfo | None = None
    """The class that contains it."""
    call: tuple[Scope, ast.Call] | None = None
    """A call that is not a call site."""
    imported: ImportStatement | None = None


def code_at(network: Network, start: int, end: int, *, is_exact: bool) -> list[CodeToExplain]:
    """Return what is at ``[start, end)``, a line of a file's text: at least one thing.

    With ``is_exact`` it is a single character, which selects one of several things on a line.
    """
    finder = _Finder(network, start, end)
    if is_exact:
        found = [*finder.named(), *finder.sites()[-1:], *finder.calls()[-1:]]
        found += [*finder.imports(), *finder.loops(), *finder.stacks(), *finder.headers()]
        return [found[0] if found else finder.around()]
    for group in (finder.imports, finder.headers, finder.loops, finder.sites, finder.stacks):
        several = group()
        if several:
            return several
    # The outermost call is what the line does; a column selects an inner one.
    return finder.calls()[:1] or [finder.around()]


class _Finder:
    def __init__(self, network: Network, start: int, end: int) -> None:
        self._network = network
        self._start, self._end = start, max(end, start + 1)
        self._classes = classes = network.module.classes
        around = network.file.outline.around(start)
        functions = [each for each in around if not each.is_class and not each.is_local]
        owners = [info for info in classes.values() if info.definition in around]
        self._function = functions[-1] if functions else None
        self._owner = owners[-1] if owners else None

    def _touches(self, start: int, end: int) -> bool:
        return start < self._end and self._start < end

    def named(self) -> list[CodeToExplain]:
        """Return the class whose name is here."""
        for name, start in self._names():
            if start <= self._start < start + len(name):
                values = self._network.module.lookup(name)
                infos = [value.info for value in values if isinstance(value, ClassValue)]
                if len(infos) == 1:
                    return [self._of_class(infos[0], start, start + len(name))]
        return []

    def _names(self) -> Iterator[tuple[str, int]]:
        """Yield the names on the line that may be those of classes, each with its offset."""
        file = self._network.file
        row = file.position(self._start).row
        for each in file.outline.definitions:
            if each.is_class and file.position(each.header).row == row:
                yield each.name, file.text.index(each.name, each.header + len("class"))
        for statement in file.outline.imports:
            for item in statement.items:
                words = _IDENTIFIER.finditer(file.text, item.start, item.end)
                yield from ((word[0], word.start()) for word in words)
        for node in all_nodes(file.tree):
            if isinstance(node, ast.Name) and node.lineno == row:
                yield node.id, file.places.start(node)
            elif isinstance(node, ast.Attribute) and node.end_lineno == row:
                yield node.attr, file.places.end(node) - len(node.attr)

    def _of_class(self, info: ClassInfo, start: int, end: int) -> CodeToExplain:
        return CodeToExplain(
            PlaceKind.CLASS, info.name, start, end, (info,), sites_of(self._network, info), owner=info
        )

    def headers(self) -> list[CodeToExplain]:
        """Return the classes whose decorators or headers are here."""
        return [
            self._of_class(info, info.definition.header, info.definition.end)
            for info in self._classes.values()
            if self._touches(info.definition.start, info.definition.header_end)
        ]

    def imports(self) -> list[CodeToExplain]:
        """Return the import statement here."""
        return [
            CodeToExplain(
                PlaceKind.IMPORT, each.text.split("\n")[0].strip(), each.start, each.end, imported=each
            )
            for each in self._network.file.outline.imports
            if self._touches(each.start, each.end)
        ]

    def sites(self) -> list[CodeToExplain]:
        """Return the call sites here, the innermost last."""
        found = []
        for site in every_site(self._network):
            if site.scope.module.file is not self._network.file:
                continue
            start, end = site.span(site.call)
            if self._touches(start, end):
                place = site.source(site.receiver), start, end
                found.append(
                    CodeToExplain(
                        PlaceKind.CALL_SITE, *place, site.blocks, (site,), self._function, site.owner
                    )
                )
        return sorted(found, key=lambda explained: explained.start - explained.end)

    def loops(self) -> list[CodeToExplain]:
        """Return the loops around call sites whose headers are here."""
        found: dict[tuple[int, int], list[RunSite]] = {}
        for site in every_site(self._network):
            for loop in site.loops:
                start = site.span(loop)[0]
                end = site.span(loop.body[0])[0]
                if site.scope.module.file is self._network.file and self._touches(start, end):
                    found.setdefault((start, end), []).append(site)
        return [
            CodeToExplain(
                PlaceKind.LOOP,
                f"the loop over `{sites[0].source(_iterated(sites[0]))}`",
                start,
                end,
                tuple(dict.fromkeys(info for site in sites for info in site.blocks)),
                tuple(sites),
                self._function,
                sites[0].owner,
            )
            for (start, end), sites in found.items()
        ]

    def _statements(self) -> Iterator[tuple[Scope, ast.AST]]:
        """Yield the statements of the method that are here, as far as they are not in others."""
        if self._owner is None or self._function is None:
            return
        scope = self._owner.scope(self._function)
        for statement in scope.body.roots:
            if self._touches(*scope.span(statement)):
                yield scope, statement

    def stacks(self) -> list[CodeToExplain]:
        """Return the attributes to which modules are assigned here."""
        found = []
        for scope, statement in self._statements():
            start, end = scope.span(statement)
            for key in Body(self._network.file, [statement]).bindings:
                holder, _, name = key.rpartition(".")
                if holder != scope.self_name or self._owner is None:
                    continue
                values = self._owner.attribute(name)
                classes = tuple(sorted(held_classes(values), key=lambda info: info.name))
                if classes or any(map(is_list_of_others, values)):
                    is_stack = any(isinstance(value, Container) for value in values)
                    kind = PlaceKind.STACK if is_stack else PlaceKind.ATTRIBUTE
                    sites = tuple(
                        site
                        for site in every_site(self._network, {info.name for info in classes})
                        if not {*site.blocks}.isdisjoint(classes)
                    )
                    found.append(
                        CodeToExplain(kind, name, start, end, classes, sites, self._function, self._owner)
                    )
        return found

    def calls(self) -> list[CodeToExplain]:
        """Return the calls here that are not call sites, the innermost last."""
        found = []
        for scope, statement in self._statements():
            for call in walk(statement):
                if isinstance(call, ast.Call) and self._touches(*scope.span(call)):
                    place = scope.source(call.func), *scope.span(call)
                    own = self._function, self._owner
                    found.append(CodeToExplain(PlaceKind.CALL, *place, (), (), *own, call=(scope, call)))
        return sorted(found, key=lambda explained: explained.start - explained.end)

    def around(self) -> CodeToExplain:
        """Return the class or function around the place, or what stands for the module."""
        if self._owner is not None:
            definition = self._owner.definition
            explained = self._of_class(self._owner, definition.header, definition.end)
            return replace(explained, method=self._function)
        function = self._function
        if function is not None:
            return CodeToExplain(
                PlaceKind.FUNCTION, function.name, function.header, function.end, method=function
            )
        return CodeToExplain(PlaceKind.OTHER, "", self._start, self._end)


def is_list_of_others(value: object) -> bool:
    """Return whether a value is a list of modules from outside the project, such as torch's own layers."""
    return isinstance(value, Container) and any(
        isinstance(each, ExternalInstance) or is_list_of_others(each) for each in value.items
    )


def every_site(network: Network, names: set[str] | None = None) -> tuple[RunSite, ...]:
    """Return the call sites in a file, including those of single instances of the classes ``names``."""
    wanted = {*network.module.classes} if names is None else names
    return (*network.sites_running(wanted), *network.foreign_sites)


def sites_of(network: Network, info: ClassInfo) -> tuple[RunSite, ...]:
    """Return the call sites in a file that run instances of a class."""
    return tuple(site for site in every_site(network, {info.name}) if info in site.blocks)


def _iterated(site: RunSite) -> ast.expr:
    loop = site.loops[-1]
    return loop.test if isinstance(loop, ast.While) else loop.iter
