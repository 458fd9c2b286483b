"""Finds where the code of generated files is written: in a modular file, or in the file of a parent model.

A modular file defines classes, and may inherit methods from classes of another model. The generator also
copies other classes that the parent's classes need, under the new model's name.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.outline import Definition
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.copies.generated import is_modular, modeling_path, modular_path
from gclint.copies.pairs import CopyPair, Region, Renaming, definition_region, header_region
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.modules import Library, ModuleInfo
from gclint.network.evaluation.values import EvaluatedExternal

_STEM = re.compile(r"(?:modeling|modular)_")
_MODELING = re.compile(r"\bmodeling_\w*")
_MODULE = frozenset((EvaluatedExternal("torch.nn.Module"),))


@dataclass(frozen=True)
class ClassPlace:
    """The header of a class, or one of the methods that it defines."""

    info: ClassInfo
    method: str | None = None

    @property
    def file(self) -> SourceFile:
        """The file that contains it."""
        return self.info.file

    @property
    def definition(self) -> Definition | None:
        """The definition of the method; None for a header, and if the class has no such method."""
        return None if self.method is None else self.info.definition.method(self.method)

    @property
    def region(self) -> Region:
        """The region of its code."""
        definition = self.definition
        if definition is None:
            return header_region(self.file, self.info.definition)
        return definition_region(self.file, definition)


def place_at(module: ModuleInfo, offset: int) -> ClassPlace | None:
    """Return the header or method at an offset; None for any other place."""
    for info in module.classes.values():
        definition = info.definition
        if definition.start <= offset < definition.end:
            for child in definition.methods():
                if child.start <= offset < child.end:
                    return ClassPlace(info, child.name)
            start, end = header_region(info.file, definition).spans[0]
            return ClassPlace(info) if start <= offset < end else None
    return None


class Lineage:
    """Finds the sources of generated code, and the code that is generated from a source."""

    def __init__(self, library: Library, paths: tuple[Path, ...]) -> None:
        """Take the files of a run; outside of them, only generated files in a file's own folder are found."""
        self._library = library
        self._modulars = [path for path in paths if is_modular(path)]

    def scan(self) -> None:
        """Read all modular files at once."""
        _ = self._naming

    def source(self, place: ClassPlace) -> ClassPlace | None:
        """Return the place that a header or method is generated from; None if it is not generated."""
        if is_modular(place.file.path):
            return self._header_source(place.info) if place.method is None else None
        path = modular_path(place.file)
        modular = None if path is None else self._module(path)
        if modular is None:
            return None
        own = modular.classes.get(place.info.name)
        if own is None:
            return _pulled(place, modular)
        if place.method is None:
            return ClassPlace(own)
        found = own.find_method(place.method)
        return None if found is None else ClassPlace(found[0], place.method)

    def copy_pair(self, place: ClassPlace) -> CopyPair | None:
        """Return a generated header or method together with its source."""
        source = self.source(place)
        if source is not None and source.method is None and is_modular(source.file.path):
            source = self.source(source) or source
        if source is None or is_modular(place.file.path):
            return None
        is_other = self._folder(source) != self._folder(place)
        renaming = _renaming(source, place) if is_other else Renaming()
        return CopyPair(source.region, place.region, renaming, is_copy=False)

    def _header_source(self, own: ClassInfo) -> ClassPlace | None:
        """Return the header of another model that the generator uses for a class of a modular file, if any.

        This is the parent's header. How it treats further bases (``nn.Module`` has no effect) depends on
        the release: they replace those of the parent, or only those with the same suffix. So the generated
        header decides: the parent's was used if it contains a base that only the parent has.
        """
        parents = [base for base in own.bases if isinstance(base, ClassInfo) and base.file is not own.file]
        if len(parents) != 1:
            return None
        parent = parents[0]
        names = (name for name, base in zip(own.base_names, own.bases, strict=True) if base is not parent)
        further = {name for name in names if own.module.resolve(name) != _MODULE}
        if not further:
            return ClassPlace(parent)
        generated = self._module(modeling_path(own.file.path))
        info = None if generated is None else generated.classes.get(own.name)
        taken = set() if info is None else {*info.base_names} & {*parent.base_names} - further
        return ClassPlace(parent) if taken else None

    def _folder(self, place: ClassPlace) -> Path:
        return self._library.project.location(place.file.path.parent)

    def inheriting(self, place: ClassPlace) -> Iterator[ClassPlace]:
        """Yield the places in generated files that are generated from this one."""
        wanted = place.region.spans
        for modular in self._followers(place.file):
            generated = self._module(modeling_path(modular.file.path))
            if generated is None or modular_path(generated.file) is None:
                continue
            for info in generated.classes.values():
                subclass = ClassPlace(info, place.method)
                if place.method is not None and subclass.definition is None:
                    continue
                if not _may_follow(info, modular, place.info):
                    continue
                copy_pair = self.copy_pair(subclass)
                if (
                    copy_pair is not None
                    and copy_pair.source.file is place.file
                    and copy_pair.source.spans == wanted
                ):
                    yield subclass

    def _followers(self, file: SourceFile) -> Iterator[ModuleInfo]:
        """Yield the modular files that import from a file, or the file itself if it is one."""
        if is_modular(file.path):
            yield self._library.module(file)
            return
        name = file.path.stem
        found = self._library.project.asked(FOLLOWERS, name, lambda: self._importing(name))
        yield from filter(None, (self._module(path) for path in self._modulars if path in found))

    def _importing(self, name: str) -> Iterator[Path]:
        """Yield the modular files that import from a modeling file; of the others, hardly any is parsed."""
        return (file.path for file in self._naming.get(name, ()) if name in imported_models(file))

    @cached_property
    def _naming(self) -> Mapping[str, list[SourceFile]]:
        """The modular files by the modeling files whose names are in their texts."""
        found: defaultdict[str, list[SourceFile]] = defaultdict(list)
        for modular in filter(None, map(self._module, self._modulars)):
            for name in set(_MODELING.findall(modular.file.text)):
                found[name].append(modular.file)
        return found

    def _module(self, path: Path) -> ModuleInfo | None:
        try:
            return self._library.module(self._library.project.file(path))
        except (OSError, UnreadableFile):
            return None


@remembered
def imported_models(file: SourceFile) -> frozenset[str]:
    """Return the names of the modeling files that a file imports from."""
    modules = ((each.module or "").rpartition(".")[2] for each in file.outline.imports)
    return frozenset(name for name in modules if name.startswith("modeling_"))


FOLLOWERS = Topic("followers", lambda file, name: is_modular(file.path) and name in imported_models(file))
"""Asks which given modular files import from a modeling file of this name."""


def _may_follow(info: ClassInfo, modular: ModuleInfo, origin: ClassInfo) -> bool:
    """Return whether a generated class may come from ``origin``, by its name."""
    own = modular.classes.get(info.name)
    if own is None:
        return bool(_common_suffix(info.name, origin.name))
    return own is origin or any(name.rpartition(".")[2] == origin.name for name in own.base_names)


def _pulled(place: ClassPlace, modular: ModuleInfo) -> ClassPlace | None:
    """Return what a class comes from that the modular file does not name."""
    for own_prefix, prefix, parent in _families(modular):
        name = place.info.name
        if name.startswith(own_prefix):
            info = parent.classes.get(prefix + name.removeprefix(own_prefix))
            if info is not None and (place.method is None or info.definition.method(place.method)):
                return ClassPlace(info, place.method)
    # A class whose name does not contain that of a model keeps its name.
    for _, _, parent in _families(modular):
        info = parent.classes.get(place.info.name)
        if info is not None:
            return ClassPlace(info, place.method)
    return None


@remembered
def _families(modular: ModuleInfo) -> tuple[tuple[str, str, ModuleInfo], ...]:
    """Return the model's name, the parent's name and module of a modular file, the most frequent first."""
    found: Counter[tuple[str, str, ModuleInfo]] = Counter()
    for own in modular.classes.values():
        for base in own.bases:
            if isinstance(base, ClassInfo) and base.file is not own.file:
                suffix = _common_suffix(own.name, base.name)
                if suffix:
                    found[own.name.removesuffix(suffix), base.name.removesuffix(suffix), base.module] += 1
    return tuple(family for family, _ in found.most_common())


def _common_suffix(one: str, other: str) -> str:
    """Return the words that two names end with."""
    length = 0
    while length < min(len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    suffix = one[len(one) - length :]
    capital = re.search(r"[A-Z]", suffix)
    return suffix[capital.start() :] if capital else ""


def _renaming(source: ClassPlace, derived: ClassPlace) -> Renaming:
    """Return the renaming that the generator applies to code from another model's file."""
    suffix = _common_suffix(derived.info.name, source.info.name)
    old, new = source.info.name.removesuffix(suffix), derived.info.name.removesuffix(suffix)
    old_stem, new_stem = (_STEM.sub("", place.file.path.stem, count=1) for place in (source, derived))
    pairs = [(old, new), (old_stem, new_stem), (old_stem.upper(), new_stem.upper())]
    return Renaming(tuple((old, new) for old, new in pairs if old and new and old != new))
