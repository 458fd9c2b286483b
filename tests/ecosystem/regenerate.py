"""The reviewed snapshots, written anew: ``python3 -m tests.ecosystem.regenerate``.

Read the difference before you commit it. What GC001 reports beyond the classes that transformers'
maintainers converted by hand stands there with a reason; a new class gets ``UNREVIEWED`` for one,
which no test accepts. Read the class, and write what it is and why it should be recomputed; or
repair the rule.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.ecosystem import third_party
from tests.ecosystem.releases import release_tree
from tests.ecosystem.reported import Reported, reported
from tests.ecosystem.third_party import UNREVIEWED
from tests.ecosystem.wheels import WheelUnavailable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SNAPSHOTS = Path(__file__).parent / "snapshots"
CONVERTED_RELEASE = "4.52.4"
"""The last release before transformers' maintainers converted their blocks by hand."""
CONVERTED_BY_HAND = SNAPSHOTS / f"converted-by-hand-{CONVERTED_RELEASE}.json"
BEYOND = SNAPSHOTS / f"gc001-{CONVERTED_RELEASE}-beyond.toml"
FINDINGS_RELEASES = ("4.57.6", "5.23.0")

_TABLES = {
    "modeling": "# Reported in modeling files, and not converted by hand at that time.",
    "modular": "# Reported in modular files, of which the list of what was converted by hand has none.",
    "not-reported": "# Converted by hand, and not reported.",
}


def main() -> int:
    """Write all snapshots; return 0 if nothing in them waits for a review."""
    try:
        for version in FINDINGS_RELEASES:
            _write(findings_snapshot(version), findings_text(reported(release_tree(version))))
        text = beyond_text(reported(release_tree(CONVERTED_RELEASE)), converted_by_hand(), reviewed())
        _write(BEYOND, text)
        third = third_party.snapshot_text(
            {each: third_party.found_in(each) for each in third_party.PACKAGES}, third_party.opinions()
        )
        _write(third_party.SNAPSHOT, third)
    except WheelUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    return max(_ask(path) for path in (BEYOND, third_party.SNAPSHOT))


def converted_by_hand() -> frozenset[str]:
    """Return the blocks that transformers' maintainers converted after that release."""
    return frozenset(json.loads(CONVERTED_BY_HAND.read_text(encoding="utf-8")))


def reviewed() -> dict[str, dict[str, str]]:
    """Return the reasons that are written down, by table and class."""
    tables: dict[str, dict[str, str]] = {}
    if BEYOND.exists():
        tables = tomllib.loads(BEYOND.read_text(encoding="utf-8"))
    return tables


def findings_snapshot(version: str) -> Path:
    """Return where everything that is reported on a release is written down."""
    return SNAPSHOTS / f"findings-{version}.txt"


def findings_text(found: Iterable[Reported]) -> str:
    """Return all findings, one a line."""
    return "".join(f"{each.line}\n" for each in found)


def beyond_text(
    found: Iterable[Reported], expected: Iterable[str], reasons: Mapping[str, Mapping[str, str]]
) -> str:
    """Return what GC001 reports otherwise than expected, with the reasons that are known.

    Args:
        found: what is reported.
        expected: the classes in modeling files that should be.
        reasons: by table and class.
    """
    keys = {key for each in found if each.code in ("GC001", "GC302") for key in each.keys}
    modular = {key for key in keys if key.startswith("modular_")}
    tables = {
        "modeling": keys - modular - set(expected),
        "modular": modular,
        "not-reported": set(expected) - keys,
    }
    blocks = []
    for name, comment in _TABLES.items():
        known = reasons.get(name, {})
        # A JSON string is a TOML string too.
        entries = [
            f"{json.dumps(key)} = {json.dumps(known.get(key) or UNREVIEWED, ensure_ascii=False)}"
            for key in sorted(tables[name])
        ]
        blocks.append("\n".join([comment, f"[{name}]", *entries]))
    return "\n\n".join(blocks) + "\n"


def _ask(path: Path) -> int:
    waiting = path.read_text(encoding="utf-8").count(f'"{UNREVIEWED}"')
    if waiting:
        print(f"{path.name}: {waiting} entries wait for a reason in place of {UNREVIEWED}")
    return int(waiting > 0)


def _write(path: Path, text: str) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.write_text(text, encoding="utf-8", newline="\n")
    print(f"{path.name}: {'as before' if text == before else 'written'}")


if __name__ == "__main__":
    raise SystemExit(main())
