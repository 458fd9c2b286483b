"""Finds the modules whose output ``enable_input_require_grads`` makes require grad: the input embeddings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.values import Instance
from gclint.network.support import is_like_a_model, models_running
from gclint.releases import FIRST_FINDING_EMBEDDINGS, Releases
from gclint.source.naming import MODEL_BASE
from gclint.source.walk import dotted_name, text_of, walk_scope

GETTER = "get_input_embeddings"
USUAL = "embed_tokens"
NAMED_BY = "_input_embed_layer"
_HOLDERS = ("embeddings", "model")
"""The attributes of a model below which the library looks as well."""
_OF_LIBRARY = frozenset((MODEL_BASE, "EmbeddingAccessMixin"))
_MAX_DEPTH = 4


class Hooked:
    """The input embeddings of the models that hold a class, or are it, as far as the code shows them."""

    def __init__(self, owner: ClassInfo, releases: Releases) -> None:
        """Prepare for a class.

        Args:
            owner: a class whose methods call modules.
            releases: those of transformers that it may run with.
        """
        self._owner = owner
        self._releases = releases
        self._names: dict[ClassInfo, frozenset[str]] = {}

    def holds(self, path: Sequence[str]) -> bool:
        """Return whether ``self.a.b`` is the input embedding of a model, with ``a`` and ``b`` in ``path``."""
        if len(path) > 1 and any(tuple(path) == each for each in _returned(self._owner)):
            return True
        holders = _instances((self._owner,), path[:-1])
        return any(path[-1] in self._own(info) for info in holders)

    def _own(self, owner: ClassInfo) -> frozenset[str]:
        """Return the attributes of a class itself that are input embeddings."""
        if owner not in self._names:
            self._names[owner] = frozenset(
                name
                for model in dict.fromkeys((owner, *models_running(owner)))
                for info, name in self._embeddings(model, _MAX_DEPTH)
                if (model is not owner if info is None else info in owner.mro or owner in info.mro)
            )
        return self._names[owner]

    def _embeddings(self, model: ClassInfo, depth: int) -> Iterator[tuple[ClassInfo | None, str]]:
        """Yield the class that holds a model's input embeddings, None where it is not known, and the name."""
        if depth == 0 or not is_like_a_model(model):
            return
        getter = model.find_method(GETTER)
        if getter is None or getter[0].name in _OF_LIBRARY:
            if not self._releases.end_before(FIRST_FINDING_EMBEDDINGS):
                name = _default(model)
                for holder in (
                    model,
                    *_instances((model,), _HOLDERS[:1]),
                    *_instances((model,), _HOLDERS[1:]),
                ):
                    yield holder, name
            return
        for path in _returned(model):
            holders = _instances((model,), path[:-1])
            if path[-1] == GETTER:
                for holder in holders:
                    yield from self._embeddings(holder, depth - 1)
            elif holders:
                yield from ((holder, path[-1]) for holder in holders)
            else:
                yield None, path[-1]


def _default(model: ClassInfo) -> str:
    """Return the name under which the library looks for the input embeddings of a model."""
    for info in model.mro:
        if info.assigns(NAMED_BY):
            for name in map(text_of, info.literals(NAMED_BY)):
                if name is not None:
                    return name
    return USUAL


def _returned(model: ClassInfo) -> Iterator[tuple[str, ...]]:
    """Yield what a model's getter returns, as the names behind ``self``."""
    getter = model.find_method(GETTER)
    if getter is None:
        return
    _, method = getter
    for node in walk_scope(method.function):
        if isinstance(node, ast.Return) and node.value is not None:
            is_call = isinstance(node.value, ast.Call)
            value = node.value.func if isinstance(node.value, ast.Call) else node.value
            own, *path = (dotted_name(value) or "").split(".")
            if path and own == method.first_parameter and is_call == (path[-1] == GETTER):
                yield tuple(path)


def _instances(infos: Iterable[ClassInfo], path: Sequence[str]) -> frozenset[ClassInfo]:
    """Return the classes of the modules that ``path`` leads to from objects of some classes."""
    found = frozenset(infos)
    for name in path:
        values = (value for info in found for value in info.attribute(name))
        found = frozenset(value.info for value in values if isinstance(value, Instance))
    return found
