"""What the rules about blocks that are not checkpointing layers have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from gclint.edit.protect import conditions, remedies
from gclint.edit.today import Today, today
from gclint.finding import Applicability, Evidence, Finding
from gclint.level import Level
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.network.story import call_step, class_step, stack_steps
from gclint.rule import Rule, Text
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ObservedSite, SourcePlace


class BlockRule(Rule):
    """A rule about blocks that are not checkpointing layers: about which, depends on what recomputes them."""

    fixes = (Applicability.SAFE, Applicability.PROVABLE, Applicability.UNSAFE)
    causes = frozenset((Cause.NOT_A_LAYER, Cause.NOTHING_TO_SWITCH))
    is_about_calls = True

    @abstractmethod
    def obstacle(self, network: Network, known: Today) -> str | None:
        """Return why nothing is reported about a block, as a clause; None if it is."""

    @abstractmethod
    def message(self, network: Network, block: ClassInfo, known: Today) -> str:
        """Return the message about a block."""

    @classmethod
    def documentation(cls) -> str:
        """Return the documentation, with what makes a fix unsafe as the code has it."""
        return super().documentation().replace("{conditions}\n", conditions())

    def check(self, network: Network) -> Iterable[Finding]:
        """Yield a finding for each block that the file defines, or runs if no other file reports it."""
        for block in network.unprotected_blocks:
            known = today(network)[block.info]
            if self.obstacle(network, known) is not None:
                continue
            name, site = block.info.definition.heading, known.site
            elsewhere = block.info.file is not network.file
            # Nothing can be repaired where no release has the base class.
            level = self.level if network.releases.have_base_class else Level.NOTE
            yield self.finding(
                self.message(network, block.info, known),
                network.file.path,
                block.sites[0].span(block.sites[0].call) if elsewhere else name,
                block.info.name,
                remedies(network)[block.info],
                class_elsewhere=(block.info.file.path, *name) if elsewhere else None,
                level=level,
                evidence=Evidence.CONFIRMED if block.is_seen else None,
                story=(
                    *stack_steps(site, block.info),
                    call_step(site, block.info),
                    class_step(block.info),
                ),
            )

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield why the classes at a place need not become layers, or are another rule's."""
        for info in explained.classes:
            known = today(network).get(info)
            if known is None:
                yield from network.reasons(info, explained.sites)
            else:
                obstacle = self.obstacle(network, known)
                yield from () if obstacle is None else (obstacle.replace("{block}", info.name),)

    def places(self, finding: Finding, site: ObservedSite) -> tuple[SourcePlace, ...]:
        """Return the call, and the class if it is the one that the finding names."""
        return (site.place, site.definition) if finding.symbol == site.block else (site.place,)

    def evidence(self, sites: Sequence[ObservedSite], text: Text) -> Evidence | None:
        """Confirm a finding by a call site that is not recomputed."""
        if any(site.recomputed is False for site in sites):
            return Evidence.CONFIRMED
        if any(site.recomputed is None for site in sites):
            return None
        by_branch = any("checkpoint" in text(site.place) for site in sites)
        # If a legacy branch recomputes the block, the finding says so: nothing is lost yet.
        return Evidence.UNSEEN if by_branch else Evidence.CONTRADICTED

    def flags(self, site: ObservedSite) -> bool | None:
        """Return whether the block is still not a layer, or not recomputed; None if it was not trained."""
        if not site.is_layer:
            return True
        return None if site.recomputed is None else not site.recomputed

    def shows(self, site: ObservedSite) -> bool:
        """Return whether the block was trained, and the base class did not recompute it."""
        return site.recomputed is False or (site.recomputed is not None and not site.is_layer)
