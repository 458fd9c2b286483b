"""Safe fixes that were right once, and why some are no longer made.

``python3 -m tests.ecosystem.safe_fixes`` lists what is lost and has no reason yet, with what gclint says
about it now. A rule that becomes more careful refuses more. What it refuses rightly stands in
``safe-fixes-lost.toml``, each with the promise of the contract that the fix broke; what it refuses
wrongly is to be repaired.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from tests.ecosystem.regenerate import SNAPSHOTS
from tests.ecosystem.releases import release_tree
from tests.ecosystem.reported import Reported, reported
from tests.ecosystem.wheels import WheelUnavailable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RELEASES = ("4.52.4", "4.57.6")
LOST = SNAPSHOTS / "safe-fixes-lost.toml"
_SAFE = "safe fix"
_BLOCK = "GC001"


def main() -> int:
    """Print the fixes that are lost without a reason; return 0 if there are none."""
    count = 0
    try:
        for version in RELEASES:
            found = reported(release_tree(version))
            outcomes = {key(each): each.outcome for each in found}
            for entry in unexplained(version, found):
                count += 1
                print(f"{version}: {entry}: {outcomes.get(entry, 'not reported')}")
    except WheelUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    return int(count > 0)


def recorded(version: str) -> Counter[str]:
    """Return the safe fixes that were made on a release, as often as each was."""
    path = SNAPSHOTS / f"safe-fixes-{version}.txt"
    return Counter(path.read_text(encoding="utf-8").splitlines())


def reasons(version: str) -> dict[str, str]:
    """Return why fixes are no longer made on a release, or no longer all of the same name."""
    tables: dict[str, dict[str, str]] = tomllib.loads(LOST.read_text(encoding="utf-8"))
    return tables.get(version, {})


def lost(version: str, found: Sequence[Reported]) -> Counter[str]:
    """Return the recorded fixes that are no longer made.

    Calls of a block that is no layer yet are a part of its fix, which was recorded beside them.
    """
    gone = recorded(version) - Counter(key(each) for each in found if each.outcome == _SAFE)
    blocks = {name.split("::")[-1] for each in found if _kind(each) == _BLOCK for name in each.keys}
    parts = [entry for entry in gone if not entry.startswith(_BLOCK) and entry.split()[-1] in blocks]
    return Counter({entry: number for entry, number in gone.items() if entry not in parts})


def unexplained(version: str, found: Sequence[Reported]) -> list[str]:
    """Return the fixes that are lost, and have no reason."""
    known = reasons(version)
    return sorted(entry for entry in lost(version, found) if entry not in known)


def key(finding: Reported) -> str:
    """Return the rule, the file and the class of a finding."""
    return f"{_kind(finding)} {finding.file} {finding.symbol}"


def _kind(finding: Reported) -> str:
    """Return the rule that a finding was of when the fixes were recorded."""
    return _BLOCK if finding.code == "GC302" else finding.code


if __name__ == "__main__":
    raise SystemExit(main())
