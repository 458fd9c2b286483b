"""GC301: a model that overrides the library's method for setting flags, with its old signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gclint.code.lines import mentions
from gclint.edit.imports import drop_unused_imports
from gclint.edit.protect import recomputed_doubts, remedies, repeated_doubts
from gclint.edit.removal import dotted_names
from gclint.edit.sites import defective_sites
from gclint.edit.switching import computed_doubts, override_doubts, remove_override
from gclint.finding import Applicability, Finding, Fix, Refusal, StoryStep
from gclint.level import Level
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo, words_of
from gclint.network.exclusion import Exclusion
from gclint.network.explaining.places import CodeToExplain
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.outside import CHECKPOINT_FUNCTION, LIBRARY_SWITCH
from gclint.network.override import OldOverride, own_overrides
from gclint.network.story import definition_step, header_steps
from gclint.network.support import flag, is_like_a_model
from gclint.releases import FIRST_WITH_SWITCH
from gclint.rule import Rule
from gclint.wording import listed_code

_MOST_STEPS = 3
"""How many classes of each kind the story of a finding shows."""


class LegacySetGradientCheckpointing(Rule):
    """A model overrides `_set_gradient_checkpointing` with its old signature.

    ## What it does

    Finds models that define `_set_gradient_checkpointing(self, module, value=False)`, the interface
    of transformers before 4.35. The library recognizes it by the parameter `value`. Code that only
    runs with such releases, or is part of one, is left alone.

    ## Why is this bad?

    The library then calls the override for every module and does not set the flags itself. It passes on
    neither the checkpoint function nor `gradient_checkpointing_kwargs`, so `use_reentrant` is ignored
    and the flag of every `GradientCheckpointingLayer` stays False. On transformers 5,
    `is_gradient_checkpointing` is True nevertheless. As long as the model contains no such layer, what the
    override names is still switched on, and the finding is a note.

    ## Example

    ```python
    class MyModel(PreTrainedModel):
        supports_gradient_checkpointing = True

        def _set_gradient_checkpointing(self, module, value=False):
            if isinstance(module, MyEncoder):
                module.gradient_checkpointing = value
    ```

    Use instead:

    ```python
    class MyModel(PreTrainedModel):
        supports_gradient_checkpointing = True
    ```

    ## Fix safety

    The fix removes the method; the library sets the flag of every module that has one. Where a block
    of the model has to become a checkpointing layer (GC001 or GC302), both are done at once.

    It is unsafe if the model contains a class with a flag of its own, or loads a model, that the override
    does not name: these would be enabled as well. The same holds for what a function makes or loads for
    it, what its constructor is given, and what other code gives a flag. It is also unsafe if a named
    class does not initialize the flag to False, if a model that has the override is not known to have a
    flag anywhere, for which the library raises, if the override hides another one, if the model has a
    checkpoint function of its own, which the library would replace, if the file may run with transformers
    before 4.35, if something about a layer of the model or about its calls makes it unsafe to recompute
    it, as under GC001, or if code in the files of the run, or around them, refers to the method. There is
    no fix for a method that does more than set flags.
    """

    code = "GC301"
    name = "legacy-set-gradient-checkpointing"
    level = Level.WARNING
    fixes = (Applicability.SAFE, Applicability.PROVABLE, Applicability.UNSAFE)

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each override that the file defines."""
        if network.checkpointing_module is None or network.releases.end_before(FIRST_WITH_SWITCH):
            return
        for override in own_overrides(network.module):
            if self._is_used(network, override):
                name = network.file.text.index(LIBRARY_SWITCH, override.method.header)
                layers = _layers_left(network, override)
                yield self.finding(
                    self._message(override, layers),
                    network.file.path,
                    (override.method.header, name + len(LIBRARY_SWITCH)),
                    override.model.name,
                    _without_override(network, override),
                    level=self.level if layers else Level.NOTE,
                    story=tuple(_story(override, layers)),
                )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield for each model why it has no override with the old signature."""
        for info in (*explained.classes, *(() if explained.owner is None else (explained.owner,))):
            if not is_like_a_model(info):
                continue
            method = info.definition.method(LIBRARY_SWITCH)
            if method is None:
                yield f"`{info.name}` does not define `{LIBRARY_SWITCH}` itself"
            elif network.checkpointing_module is None:
                yield Exclusion.NO_BASE_CLASS.of(info, None)
            elif network.releases.end_before(FIRST_WITH_SWITCH):
                yield f"this code targets {network.releases}, which has no other interface"
            elif any(each.method is method for each in own_overrides(network.module)):
                yield (
                    f"`{info.name}` sets `supports_gradient_checkpointing = False`: the library raises "
                    "before it calls the override"
                )
            else:
                yield f"`{LIBRARY_SWITCH}` of `{info.name}` does not have the old parameter `value`"

    @staticmethod
    def _is_used(network: Network, override: OldOverride) -> bool:
        """Return whether the library can call the override without raising before."""
        models = (override.model, *subclasses(network.project, override.model))
        return any(flag(model) is not False for model in models)

    @staticmethod
    def _message(override: OldOverride, layers: Sequence[ClassInfo]) -> str:
        old = f"`{override.model.name}` overrides `{LIBRARY_SWITCH}(module, value)`, the old interface"
        if not layers:
            return f"{old}; it works, but a block that derives from `{CHECKPOINTING_BASE}` would stay off"
        names = listed_code(dict.fromkeys(info.name for info in layers))
        return f"{old}: `gradient_checkpointing_enable()` leaves {names} switched off"


def _layers_left(network: Network, override: OldOverride) -> list[ClassInfo]:
    """Return the checkpointing layers of models with an override, whose flags it leaves alone."""
    models = (override.model, *subclasses(network.project, override.model))
    layers = {part for each in models for part in each.all_parts if part.is_checkpointing}
    known = (each for each in layers if not network.is_of_other_release(each))
    return sorted(known, key=lambda each: (str(each.file.path), each.definition.start))


def _story(override: OldOverride, layers: Sequence[ClassInfo]) -> Iterator[StoryStep]:
    """Yield how the library recognizes the override, whose flags it sets, and whose flags stay False."""
    model, file = override.model, override.model.file
    yield definition_step(file, model.definition, f"`{model.name}` overrides `{LIBRARY_SWITCH}`")
    known = "because of `value`, the library calls this for each module, and sets no flags itself"
    yield from header_steps(file, override.method, "value", known)
    for info in (override.named or ())[:_MOST_STEPS]:
        sets = f"the override sets the flag of `{info.name}`, but not its checkpoint function"
        yield definition_step(info.file, info.definition, sets)
    for info in layers[:_MOST_STEPS]:
        left = f"`{info.name}` is a `{CHECKPOINTING_BASE}`, whose flag stays False"
        yield definition_step(info.file, info.definition, left)


def _without_override(network: Network, override: OldOverride) -> Fix | Refusal:
    """Return the fix that removes an override: that of a block of the model, or one of its own."""
    if override.named is None:
        return Refusal("the override does more than set the flag of some classes")
    removal = remove_override(override)
    together = [
        each for each in remedies(network).values() if isinstance(each, Fix) and removal in each.edits
    ]
    if together:
        return min(together, key=lambda fix: fix.applicability is Applicability.UNSAFE)
    names = dotted_names((override.method,))
    imports = drop_unused_imports(network.project, override.model.file, names, (removal,))
    # Each takes more work than what is before it.
    doubts = (
        [*override_doubts(override), *_doubts(network, override)]
        or repeated_doubts(network, _recomputed_by_hand(network, override))
        or [*computed_doubts(override)]
    )
    return Fix(
        f"Remove `{override.model.name}.{LIBRARY_SWITCH}`",
        (removal, *imports),
        Applicability.UNSAFE if doubts else Applicability.SAFE,
        "; ".join(doubts) or None,
    )


def _doubts(network: Network, override: OldOverride) -> Iterator[str]:
    if not _is_new(network) and network.releases.come_before(FIRST_WITH_SWITCH):
        yield (
            f"before transformers {FIRST_WITH_SWITCH}, only this method sets `gradient_checkpointing`; first "
            "require that release"
        )
    for each, layers in _layers(network, override):
        yield from recomputed_doubts(each, layers)
        for site in defective_sites(each):
            if not set(layers).isdisjoint(site.site.blocks):
                row, _ = site.site.rows
                yield f"the call on line {row} passes arguments that checkpointing does not suit"


def _recomputed_by_hand(network: Network, override: OldOverride) -> list[ClassInfo]:
    """Return the blocks that models with the override pass to the checkpoint function themselves."""
    models = [override.model, *subclasses(network.project, override.model)]
    owners = {part for model in models for part in (model, *model.all_parts)}
    sites = (site for site in network.run_sites if site.checkpointed and site.owner in owners)
    return [*dict.fromkeys(info for site in sites for info in site.blocks if not info.is_checkpointing)]


def _is_new(network: Network) -> bool:
    """Return whether a file names what the library has got only together with its own switch, or later."""
    outline = network.file.outline
    names = (CHECKPOINTING_BASE, CHECKPOINT_FUNCTION)
    return outline.imported(CHECKPOINTING_BASE) is not None or any(
        mentions(each.text, name) and name in words_of(each)
        for each in outline.definitions
        if each.parent is None
        for name in names
    )


def _layers(network: Network, override: OldOverride) -> Iterator[tuple[Network, list[ClassInfo]]]:
    """Yield files with the checkpointing layers of models with the override that they define or run."""
    project = network.project
    models = [override.model, *subclasses(project, override.model)]
    parts = {part for model in models for part in model.all_parts if part.is_checkpointing}
    layers = sorted(parts, key=lambda part: (part.name, str(part.file.path)))
    files = (info.file for layer in layers for info in (*models, layer, *_holding(models, layer)))
    for file in dict.fromkeys((network.file, *files)):
        each = network if file is network.file else Network(project, file)
        run = {info for site in each.run_sites for info in site.blocks}
        own = [layer for layer in layers if layer.file is file or layer in run]
        if own and not project.is_context(file.path):
            yield each, own


def _holding(models: Iterable[ClassInfo], layer: ClassInfo) -> Iterator[ClassInfo]:
    """Yield the parts of models that have a layer among their own."""
    yield from (part for model in models for part in model.all_parts if layer in part.parts)
