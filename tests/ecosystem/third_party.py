"""What gclint says about other people's packages, with what a reader of their code says of each finding."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.ecosystem.reported import Reported, run_gclint
from tests.ecosystem.wheels import wheel_tree
from tests.environment import CACHE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SNAPSHOT = Path(__file__).parent / "snapshots" / "third-party.toml"
PACKAGES = (
    "adapters==1.3.0",
    "diffusers==0.42.1",
    "espnet==202511",
    "evalscope==1.14.1",
    "f5-tts==1.1.22",
    "FlagEmbedding==1.4.2",
    "flash-linear-attention==0.6.0",
    "granite-tsfm==0.3.11",
    "mergoo==0.0.10",
    "mmpretrain==1.2.0",
    "modelscope==1.40.2",
    "ms-swift==4.6.0",
    "nemo-toolkit==3.0.0",
    "open-clip-torch==3.3.0",
    "open-flamingo==2.0.1",
    "optimum-habana==1.21.2",
    "optimum-intel==2.2.0",
    "optimum-neuron==0.4.5",
    "peft==0.21.2",
    "salesforce-lavis==1.0.2",
    "sentence-transformers==6.2.0",
    "surya-ocr==0.22.1",
    "timm==1.0.31",
    "unsloth==2026.10.9",
    "unsloth-zoo==2026.10.9",
    "xtuner==0.2.0",
)
"""Wheels that hold models of their own, or code that runs and patches those of transformers."""
FITTING = ">=4.53"
"""Most of them allow releases without the base class, where no fix can be safe."""
UNREVIEWED = "UNREVIEWED"
_COMMENT = """\
# What is reported on third-party packages, each finding with what reading the code says of it:
# "right: ..." or "wrong: ...". Written by python3 -m tests.ecosystem.regenerate, which keeps what is
# known and asks for the rest with UNREVIEWED."""


@dataclass(frozen=True)
class Opinion:
    """A finding on a package, and what its reviewer says."""

    package: str
    finding: str
    text: str

    @property
    def code(self) -> str:
        """The finding's rule."""
        return self.finding.partition(" ")[0]

    @property
    def is_right(self) -> bool:
        """Whether the finding is no false alarm."""
        return self.text.startswith("right: ")

    @property
    def is_reviewed(self) -> bool:
        """Whether somebody has looked."""
        return self.text.startswith(("right: ", "wrong: "))


def found_in(requirement: str) -> tuple[Reported, ...]:
    """Return what is reported on a package, under a range of releases that its fixes can be safe under.

    Raises:
        WheelUnavailable: it cannot be fetched.
    """
    tree = wheel_tree(requirement, CACHE / "third-party" / requirement.replace("==", "-"))
    return run_gclint(tree, "--include", "*.py", "--target-version", FITTING, folder=".")


def opinions() -> tuple[Opinion, ...]:
    """Return the reviewed snapshot."""
    tables: dict[str, dict[str, str]] = {}
    if SNAPSHOT.exists():
        tables = tomllib.loads(SNAPSHOT.read_text(encoding="utf-8"))
    return tuple(
        Opinion(package, finding, text)
        for package, table in tables.items()
        for finding, text in table.items()
    )


def snapshot_text(found: Mapping[str, Iterable[Reported]], known: Iterable[Opinion]) -> str:
    """Return the snapshot of what is found, with the opinions that are known."""
    texts = {(each.package, each.finding): each.text for each in known}
    blocks = [_COMMENT]
    for package, findings in found.items():
        lines = sorted({each.line for each in findings})
        # A JSON string is a TOML string too.
        entries = [f"{_quoted(line)} = {_quoted(texts.get((package, line), UNREVIEWED))}" for line in lines]
        blocks.append("\n".join([f"[{_quoted(package)}]", *entries]))
    return "\n\n".join(blocks) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
