"""Finds settings with which a class that failed passes every scenario that was run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.modes import CHECKPOINTED
from gclint.verify.worker.protocol import ClassResult, Mode, Observation, Verdict
from gclint.verify.worker.scenarios import Scenario, scenario_named

_MODES: tuple[tuple[tuple[Mode, ...], str], ...] = (
    (CHECKPOINTED, ""),
    (("non-reentrant",), "use_reentrant=False"),
    (("reentrant",), "use_reentrant=True"),
)


@dataclass(frozen=True)
class _Setting:
    modes: tuple[Mode, ...]
    words: tuple[str, ...]
    without_cache: bool
    is_frozen: bool
    """Whether running statistics are frozen."""
    trains_all: bool
    """Whether nothing else is frozen."""

    def has(self, scenario: Scenario) -> bool:
        """Return whether the setting allows such steps."""
        if scenario.frozen_statistics and not self.is_frozen:
            return False
        return not (scenario.use_cache and self.without_cache) and not (
            scenario.frozen_base and self.trains_all
        )


def proven_setting(result: ClassResult) -> str | None:
    """Return the shortest setting with which a class that failed passes; None if there is none.

    Every scenario that was run and that the setting allows must have been run in each of its modes without
    a failure. A second write to a cache that the scenario does not use is no failure here. If the process of
    the class ended early, there is no such setting, since it is unknown what else would have failed.
    """
    if result.outcome != "failed" or result.is_cut_short:
        return None
    runs = {(each.scenario, each.mode): each for each in result.verdicts}
    for setting in _settings():
        scenarios = [each for each in map(scenario_named, result.scenarios) if setting.has(each)]
        # A hook that fails without checkpointing was left out of the other runs.
        is_hooked = not any(each.mode == "plain" for each in result.failures)
        if _is_right(setting, scenarios, runs):
            trains = setting.trains_all or is_hooked
            hook = () if trains else ("without `enable_input_require_grads()`",)
            return ", ".join((*setting.words, *hook)) or None
    return None


def _settings() -> Iterator[_Setting]:
    """Yield all settings, those that change less first."""
    found = []
    no_yes = (False, True)
    for (modes, mode), cache, statistics, everything in product(_MODES, no_yes, no_yes, no_yes):
        words = (
            *((mode,) if mode else ()),
            *(("use_cache=False",) if cache else ()),
            *(("layers with running statistics in `eval()`",) if statistics else ()),
            *(("nothing frozen",) if everything else ()),
        )
        found.append((len(words) + everything, _Setting(modes, words, cache, statistics, everything)))
    yield from (setting for _, setting in sorted(found, key=lambda each: each[0]))


def _is_right(
    setting: _Setting, scenarios: Sequence[Scenario], runs: dict[tuple[str, Mode], Verdict]
) -> bool:
    if not any(each.name == "default" for each in scenarios):
        return False
    if setting.is_frozen and not any(each.frozen_statistics for each in scenarios):
        return False
    for scenario, mode in product(scenarios, setting.modes):
        verdict = runs.get((scenario.name, mode))
        if verdict is None:
            return False
        if any(not _is_harmless(each, scenario, setting) for each in verdict.observations):
            return False
    return True


def _is_harmless(observation: Observation, scenario: Scenario, setting: _Setting) -> bool:
    if observation.cause is Cause.STATISTICS and not scenario.frozen_statistics:
        return setting.is_frozen
    return observation.check == "cache" and not scenario.use_cache
