"""Removes layers, but keeps two of each kind, and what counts them: stages, and layers that others read."""

from __future__ import annotations

import re
from typing import Any

from gclint.verify.worker.synthesis.configurations.fields import Unit, kind_of
from gclint.verify.worker.synthesis.configurations.tree import (
    children,
    descendants,
    fields_of,
    is_whole,
    own_fields,
)

_MOST = 10
_INDICES = re.compile(r".*(layers|layer|indexes|indices|idx|idxs|_ids|layer_list|_index)")
_READ_LAYERS = re.compile(r".*out_indices|.*(feature|deepstack|select|hook|output|visual|proj|extract).*")
"""Fields with the indices of layers whose output is read, all of which must be kept."""
_SHARED = re.compile(r".*num_kv_shared_layers")
_ADDED = re.compile(r"deepstack_\w*(indexes|indices)")


def name_layers(part: Any, least: int) -> None:
    """List the kinds of feed-forward layers in a configuration in which that list is None."""
    fields = fields_of(part)
    if fields.get("mlp_layer_types", 0) is None and "num_hidden_layers" in fields:
        fields["mlp_layer_types"] = ["dense"] * least + ["sparse"] * least
        fields["num_hidden_layers"] = 2 * least


def compress_layers(part: Any, least: int) -> None:
    """Remove layers from the stacks of ``part``, so that ``least`` of each kind are left.

    Lists with an entry per layer lose the same entries, and lists of layer indices are renumbered.
    """
    stages = {len(value) for name, value in own_fields(part) if is_stages(name, value)}
    counts = {
        value
        for name, value in own_fields(part)
        if kind_of(name) is Unit.LAYERS and is_whole(value) and value > least
    } - stages
    for count in counts:
        kept = _select(part, count, least)
        if kept is not None:
            _apply(part, count, kept)


def clamp_layer_numbers(part: Any, least: int) -> None:
    """Bring layer indices into range if the stack belongs to another part of the configuration."""
    counts = [v for n, v in own_fields(part) if kind_of(n) is Unit.LAYERS and isinstance(v, int)]
    for name, value in own_fields(part):
        if (
            _is_indices(name, value, 1000)
            and _READ_LAYERS.fullmatch(name)
            and max(value) >= max(counts, default=0)
        ):
            fields_of(part)[name] = type(value)(min(max(index, -least), least - 1) for index in value)


def _select(part: Any, count: int, least: int) -> list[int] | None:
    """Return the indices of the layers to keep, or None if nothing distinguishes the layers."""
    fields = own_fields(part)
    lists = {name: value for name, value in fields if _is_per_layer(name, value, count)}
    kinds = [values for values in lists.values() if len({repr(each) for each in values}) <= 4]
    indices = {
        name: {index % count for index in value} for name, value in fields if _is_indices(name, value, count)
    }
    starts = [at for name, value in fields for at in _first_of_others(name, value, count)]
    overrides = _overrides(part)
    if not (kinds or indices or starts or overrides):
        return None
    keys = [
        (
            tuple(repr(values[layer]) for values in kinds),
            tuple(layer in value for name, value in indices.items() if not _READ_LAYERS.fullmatch(name)),
            tuple(layer >= start for start in starts),
            repr(sorted(overrides.get(layer, {}).items())),
        )
        for layer in range(count)
    ]
    wanted = {layer for name, value in indices.items() if _READ_LAYERS.fullmatch(name) for layer in value}
    kept: list[int] = []
    for layer, key in enumerate(keys):
        if layer in wanted or (keys[:layer].count(key) < least and len(kept) < _MOST):
            # A kind that occurs once gets two layers, since defects of shared state need at least two.
            kept += [each for each in _sources(lists, layer) if each not in kept]
            kept += [layer] * (1 if indices or overrides or keys.count(key) >= least else least)
    return sorted(kept)


def _sources(per_layer: dict[str, Any], layer: int) -> list[int]:
    """Return the indices of the layers that ``layer`` takes something from."""
    named = (values[layer] for name, values in per_layer.items() if "source" in name)
    return [each for each in named if isinstance(each, int) and each < layer]


def _apply(part: Any, count: int, kept: list[int]) -> None:
    fields = fields_of(part)
    new_index = {layer: new for new, layer in enumerate(kept)}
    for name, value in own_fields(part):
        if _is_per_layer(name, value, count):
            entries = [value[layer] for layer in kept]
            if re.search("source|shared", name) and all(isinstance(each, int) for each in entries):
                entries = [
                    new if each == kept[new] else new_index.get(each, new) for new, each in enumerate(entries)
                ]
            fields[name] = type(value)(entries)
        elif _is_indices(name, value, count):
            left = (new_index.get(layer, layer if layer < 0 else None) for layer in value)
            fields[name] = type(value)(layer for layer in left if layer is not None)
        elif starts := _first_of_others(name, value, count):
            beyond = sum(layer >= starts[0] for layer in kept)
            fields[name] = beyond if _SHARED.fullmatch(name) else len(kept) - beyond
        elif kind_of(name) is Unit.LAYERS and value == count:
            fields[name] = len(kept)
    overrides = _overrides(part)
    moved = {new_index[layer]: value for layer, value in overrides.items() if layer in new_index}
    overrides.clear()
    overrides.update(moved)


def _overrides(part: Any) -> dict[int, dict[str, Any]]:
    """Return the fields that single layers override, by the index of the layer."""
    spec = fields_of(part).get("_heterogeneity_spec")
    found: dict[int, dict[str, Any]] = spec.per_layer_overrides if spec is not None else {}
    return found


def _first_of_others(name: str, value: Any, count: int) -> list[int]:
    """Return the index of the first layer of another kind, in a list that is empty if ``name`` sets none."""
    if not is_whole(value) or not 0 < value <= count:
        return []
    if _SHARED.fullmatch(name):
        return [count - value]
    return [value] if kind_of(name) is Unit.DENSE else []


def is_stages(name: str, value: Any) -> bool:
    """Return whether ``value`` lists how many layers each stage has."""
    if kind_of(name) is not Unit.LAYERS or not isinstance(value, list | tuple):
        return False
    return len(value) <= _MOST and all(isinstance(each, int) and each > 0 for each in value)


def _is_per_layer(name: str, value: Any, count: int) -> bool:
    return isinstance(value, list | tuple) and len(value) == count and name != "stage_names"


def _is_indices(name: str, value: Any, count: int) -> bool:
    return (
        isinstance(value, list | tuple)
        and 0 < len(value) < count
        and all(is_whole(each) and -count <= each < count for each in value)
        and _INDICES.fullmatch(name) is not None
        and max(value) >= 2
    )


def fit_stages(part: Any, original: dict[str, Any]) -> None:
    """Name as many stages of the backbone ``part`` as it has layers now.

    It returns as many stages as before: the last ones.
    """
    fields = fields_of(part)
    names = fields.get("stage_names")
    if not isinstance(names, list) or not names:
        return
    before = len(names) - 1
    counts = [
        n for n, v in original.items() if kind_of(n) is Unit.LAYERS and v == before and isinstance(v, int)
    ]
    if not counts:
        return
    chosen = list(fields.get("_out_indices") or [before])
    after = max(fields[counts[0]], len(chosen))
    for name in counts:
        fields[name] = after
    fields["stage_names"] = [names[0], *(f"stage{number + 1}" for number in range(after))]
    fields["_out_indices"] = list(range(after + 1))[-len(chosen) :]
    fields["_out_features"] = [fields["stage_names"][number] for number in fields["_out_indices"]]


def deepen_towers(config: Any, layers: int) -> None:
    """Add layers to vision towers that are read before their end, so that ``layers`` run before that."""
    for part in list(descendants(config)):
        read = fields_of(part).get("vision_feature_layer")
        if not isinstance(read, int) or read >= -1:
            continue
        for name, tower in children(part):
            count = fields_of(tower).get("num_hidden_layers")
            if "vision" in name and isinstance(count, int):
                fields_of(tower)["num_hidden_layers"] = max(count, layers - read - 1)


def drop_unread_layers(config: Any) -> None:
    """Let a tower return at most as many layers as the text model has, since each is added to one of them."""
    for part in list(descendants(config)):
        below = dict(children(part))
        counts = [
            fields_of(child).get("num_hidden_layers") for name, child in below.items() if "text" in name
        ]
        for tower in below.values():
            for name, value in list(fields_of(tower).items()):
                if _ADDED.fullmatch(str(name)) and counts and isinstance(counts[0], int):
                    fields_of(tower)[name] = value[: counts[0]]
