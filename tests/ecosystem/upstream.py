"""Writes ``docs/upstream`` anew: ``python3 -m tests.ecosystem.upstream``.

Runs the models of twenty defects in transformers 5.23.0, for an hour or so, and their scripts in an earlier
release as well. With ``--folder FOLDER``, environment and results stay there, and the next call goes on
with them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

from gclint.report.upstream import INDEX, index, release_line
from gclint.verify.repro import demonstrate
from gclint.verify.settings import RunSettings
from tests.ecosystem.environments import release_environment
from tests.environment import PROJECT, announce, python_of

FOLDER = PROJECT / "docs" / "upstream"
RELEASE, EARLIER = "5.23.0", ("4.57.6",)
PAGES = (
    "activations-by-keyword/autoformer-AutoformerDecoder.md",
    "activations-by-keyword/big_bird-BigBirdModel.md",
    "activations-by-keyword/esm-EsmModel.md",
    "activations-by-keyword/llama4-Llama4VisionModel.md",
    "activations-by-keyword/sew_d-SEWDModel.md",
    "activations-in-containers/mlcd-MLCDVisionModel.md",
    "blocks-that-are-not-checkpointing-layers/clvp-ClvpDecoder.md",
    "blocks-that-are-not-checkpointing-layers/clvp-ClvpEncoder.md",
    "blocks-that-are-not-checkpointing-layers/phi4_multimodal-Phi4MultimodalAudioModel.md",
    "blocks-that-are-not-checkpointing-layers/x_clip-XCLIPModel.md",
    "caches-by-position/git-GitModel.md",
    "caches-by-position/roformer-RoFormerModel.md",
    "embeddings-changed-in-place/git-GitModel.md",
    "input-embeddings-that-are-not-a-tensor/swin-SwinBackbone.md",
    "no-gradient-at-the-first-block/clvp-ClvpModelForConditionalGeneration.md",
    "no-gradient-at-the-first-block/pop2piano-Pop2PianoForConditionalGeneration.md",
    "no-gradient-at-the-first-block/pvt_v2-PvtV2Backbone.md",
    "no-gradient-at-the-first-block/swin-SwinBackbone.md",
    "running-statistics-updated-twice/mobilevitv2-MobileViTV2Model.md",
    "support-without-anything-to-checkpoint/pp_lcnet_v4-PPLCNetV4Backbone.md",
)
"""The pages that are kept, each named like the model and the class of its script."""
_SCRIPT = re.compile(r'^```python\n(""".*?)^```$', re.MULTILINE | re.DOTALL)


def script_of(page: str) -> str:
    """Return the script of a page."""
    found = _SCRIPT.search(page)
    assert found is not None, "this page has no script"
    return found[1]


def model_of(name: str) -> str:
    """Return the model that a page is about."""
    return Path(name).name.partition("-")[0]


def pages() -> Iterator[tuple[str, str]]:
    """Yield the pages that are there, by name."""
    for path in sorted(FOLDER.glob("*/*.md")):
        yield path.relative_to(FOLDER).as_posix(), path.read_text(encoding="utf-8")


def _outside(version: str, folder: Path) -> Path:
    """Return the Python of an environment with a release that lies in no repository, as those of users do."""
    installed = release_environment(version)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([installed, "-c", ask], check=True, capture_output=True, encoding="utf-8")
    site = Path(own.stdout.strip())
    venv.create(folder)
    made = folder / site.relative_to(installed.parent.parent)
    for path in site.glob("transformers*"):
        shutil.copytree(path, made / path.name)
    (made / "further.pth").write_text(f"{site}\n", encoding="utf-8")
    return python_of(folder)


def _write(found: Path) -> None:
    """Write the pages that are kept, with the earlier releases, and the table of them."""
    kept = {}
    for name in PAGES:
        text = (found / name).read_text(encoding="utf-8")
        for version in EARLIER:
            announce(f"{name} in {version}")
            result = demonstrate(script_of(text), RunSettings(release_environment(version)))
            text += release_line(version, result)
        kept[name] = text
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, text in {**kept, INDEX: index(kept)}.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Run the models, and write the pages; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the environment and the results are kept")
    with tempfile.TemporaryDirectory() as temporary:
        folder = parser.parse_args().folder or Path(temporary)
        environment = folder.absolute() / "environment"
        python = python_of(environment) if environment.exists() else _outside(RELEASE, environment)
        models = [part for name in sorted(set(map(model_of, PAGES))) for part in ("--model", name)]
        command = [sys.executable, "-m", "gclint", "verify", *models, "--python", str(python), "--resume"]
        found = Path(temporary, "upstream")
        places = ["--results", str(folder.absolute() / "results.jsonl"), "--upstream", str(found)]
        announce(f"running {len(models) // 2} models of {RELEASE}")
        done = subprocess.run([*command, *places], cwd=PROJECT, stdout=subprocess.DEVNULL)
        if done.returncode != 1:
            return done.returncode or 1
        _write(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
