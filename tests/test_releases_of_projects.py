"""Which releases a file may run with: what the user says, the tree, the metadata, what is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.releases import NEWEST_KNOWN, releases
from gclint.settings import Settings

UTILS = "import torch\n\n\nclass PreTrainedModel(torch.nn.Module): ...\n"


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def library(version: str, where: str) -> dict[str, str]:
    """Return the files of transformers in a folder, as far as they say what it is."""
    return {f"{where}/__init__.py": f'__version__ = "{version}"\n', f"{where}/modeling_utils.py": UTILS}


def found(
    folder: Path,
    settings: Settings | None = None,
    name: str = "pkg/modeling_x.py",
    text: str = "x = 1\n",
) -> str:
    write(folder, {name: text, ".git": ""})
    project = Project(settings or Settings(), [folder / name])
    return str(project.releases(project.file(folder / name)))


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": '[project]\ndependencies = ["torch", "transformers[x] >=4.53,<5; os_name"]'},
        {"pyproject.toml": '[tool.poetry.dependencies]\ntransformers = ">=4.53,<5"'},
        {"pyproject.toml": '[tool.poetry.dependencies]\ntransformers = {version = ">=4.53,<5"}'},
        {"pyproject.toml": '[tool.poetry.group.dev.dependencies]\ntransformers = ">=4.53,<5"'},
        {"pyproject.toml": '[project.optional-dependencies]\nhf = ["transformers>=4.53,<5"]'},
        {"pyproject.toml": '[dependency-groups]\nhf = ["transformers>=4.53,<5", {include-group = "x"}]'},
        {"setup.cfg": "[options]\ninstall_requires =\n    torch\n    transformers>=4.53,<5\n"},
        {"setup.cfg": "[options.extras_require]\nhf =\n    transformers>=4.53,<5\n"},
        {"setup.py": 'raise SystemExit\nsetup(install_requires=["torch", "transformers>=4.53,<5"])\n'},
        {"setup.py": "# 'transformers==4.1'\nx = 'transformers[torch] (>=4.53, <5)'\n"},
        {"requirements.txt": "torch\ntransformers>=4.53,<5  # the first that has it\n"},
        {"requirements-dev.txt": "transformers >=4.53, <5 ; python_version > '3' \\\n --hash=sha256:0\n"},
        {"requirements/base.txt": "transformers>=4.53,<5\n"},
        {"PKG-INFO": "Requires-Dist: transformers<5,>=4.53\nRequires-Dist: transformers; extra == 'a'\n"},
        {
            "x-1.dist-info/METADATA": "Requires-Dist: transformers[torch]<5,>=4.53\n",
            "x-1.dist-info/RECORD": "pkg/modeling_x.py,,\n",
            "a-1.dist-info/METADATA": "Requires-Dist: transformers==4.1\n",
            "a-1.dist-info/RECORD": "a/modeling_x.py,,\n",
        },
        # What is nearer, or weightier, counts.
        {
            "pkg/requirements.txt": "transformers>=4.53,<5",
            "pyproject.toml": "[project]\ndependencies=['transformers<4']",
        },
        {"requirements.txt": "transformers==4.1", "setup.py": "x = 'transformers>=4.53,<5'"},
        # What has no bound, or is not the library, says nothing.
        {"pkg/requirements.txt": "transformers\n", "setup.py": "x = 'transformers>=4.53,<5'"},
        {"requirements.txt": "transformers-a==0.4\nsentence-transformers>=2\ntransformers>=4.53,<5\n"},
        {"requirements.txt": "transformers @ git+https://x/transformers@v4.1\ntransformers>=4.53,<5\n"},
        # What cannot be read is for others to report.
        {"setup.cfg": "transformers", "requirements.txt": "transformers>=4.53,<5\n"},
        # Several groups together.
        {"pyproject.toml": '[dependency-groups]\na = ["transformers==4.53"]\nb = ["transformers~=4.57"]'},
    ],
    ids=lambda files: " ".join(files),
)
def test_metadata_has_bounds(tmp_path: Path, files: Mapping[str, str]) -> None:
    write(tmp_path, files)
    assert found(tmp_path) == "transformers >=4.53,<5.0"


@pytest.mark.parametrize(
    "files",
    [
        {"uv.lock": '[[package]]\nname = "a"\n[[package]]\nname = "transformers"\nversion = "4.57.6"\n'},
        {"poetry.lock": '[[package]]\nname = "transformers"\nversion = "4.57.6"\n'},
        {"Pipfile.lock": '{"default": {"transformers": {"version": "==4.57.6"}}}'},
        {"Pipfile.lock": "{}", "poetry.lock": '[[package]]\nname = "transformers"\nversion = "4.57.6"\n'},
    ],
    ids=lambda files: " ".join(files),
)
def test_lock_files_have_one_release(tmp_path: Path, files: Mapping[str, str]) -> None:
    write(tmp_path, files)
    assert found(tmp_path) == "transformers 4.57.6"


def test_setup_is_not_executed(tmp_path: Path) -> None:
    write(tmp_path, {"setup.py": f"open({str(tmp_path / 'ran')!r}, 'w')\nx = ['transformers>=5']\n"})
    assert found(tmp_path) == "transformers 5.0 and later"
    assert not (tmp_path / "ran").exists()


def test_what_is_said_is_asked_for_in_order(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    write(environment, library("4.55.1", "lib/python3.11/site-packages/transformers"))
    installed = replace(Settings(), environments=(environment,))
    repository = tmp_path / "repository"
    assert found(repository) == str(NEWEST_KNOWN)
    assert found(repository, installed) == "transformers 4.55.1"
    write(repository, {"pkg/config.json": '{"transformers_version": "4.54.0.dev0"}'})
    assert found(repository, installed) == "transformers 4.54 and later"
    write(repository, {"requirements.txt": "transformers<5"})
    assert found(repository, installed) == "transformers before 5.0"
    write(repository, library("5.3.0.dev0", "src/transformers"))
    assert found(repository, installed) == "transformers 5.3"
    said = replace(installed, target_version=releases(">=4.56"))
    assert found(repository, said) == "transformers 4.56 and later"


_OLD = "from transformers.cache_utils import HybridCache\n"
_NEW = "import torch\nfrom transformers.masking_utils import (\n    create_causal_mask as make,\n)\n"
_ONLY_NEW = "transformers 4.53 and later"
_NEWEST, _SAVED = str(NEWEST_KNOWN), "transformers 4.50 and later"


@pytest.mark.parametrize(
    ("text", "alone", "beside"),
    [
        (_OLD, "transformers before 5.0", "transformers >=4.50,<5.0"),
        (_NEW, _NEWEST, _ONLY_NEW),
        ("import transformers.masking_utils\n", _NEWEST, _ONLY_NEW),
        ("import transformers.masking_utils as m\n", _NEWEST, _ONLY_NEW),
        ("from transformers.masking_utils import *\n", _NEWEST, _ONLY_NEW),
        (_OLD + _NEW, "transformers >=4.53,<5.0", "transformers >=4.53,<5.0"),
        # What contradicts itself does not run, so it says nothing.
        (
            _OLD + "import transformers.backbone_utils\n",
            "transformers before 5.0",
            "transformers >=4.50,<5.0",
        ),
        # These may do without it.
        (
            f"try:\n    {_OLD}except ImportError:\n    pass\n",
            str(NEWEST_KNOWN),
            "transformers 4.50 and later",
        ),
        (f"def f():\n    {_OLD}", _NEWEST, _SAVED),
        (f"try: {_OLD}except ImportError: pass\n", _NEWEST, _SAVED),
        (f"if old(): {_OLD}", _NEWEST, _SAVED),
        (f"def f(): {_OLD}", _NEWEST, _SAVED),
        # Another package of such a name, and one of its own.
        ("from .cache_utils import HybridCache\n", _NEWEST, _SAVED),
        (
            "from my.transformers.cache_utils import HybridCache\n",
            str(NEWEST_KNOWN),
            "transformers 4.50 and later",
        ),
    ],
)
def test_what_a_file_imports_bounds_a_guess(tmp_path: Path, text: str, alone: str, beside: str) -> None:
    assert found(tmp_path, text=text) == alone
    write(tmp_path, {"pkg/config.json": '{"transformers_version": "4.50.0"}'})
    assert found(tmp_path, text=text) == beside
    # What is said is no guess.
    write(tmp_path, {"requirements.txt": "transformers>=5.2\n"})
    assert found(tmp_path, text=text) == "transformers 5.2 and later"


_NOTHING_SAID = ("{", "[]", "null", "{}", "[" * 9999)
_SAVED_WITH_NOTHING = ('{"transformers_version": null}', '{"transformers_version": "unknown"}')


@pytest.mark.parametrize("text", [*_NOTHING_SAID, *_SAVED_WITH_NOTHING], ids=lambda text: text[:30])
def test_a_configuration_may_say_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"pkg/config.json": text})
    assert found(tmp_path) == str(NEWEST_KNOWN)


@pytest.mark.parametrize("text", ["4.58", "4.60.1", "==4.99.*", ">=4.58,<5", "3.6", "2.12.0"])
def test_releases_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="was never released"):
        releases(text)


@pytest.mark.parametrize("text", ["4.57.9", ">=4.58", "<4.99", ">=4.50,<4.99", "5.99", "6.0", ">=4.58,<5.1"])
def test_releases_that_may_exist_are_taken(text: str) -> None:
    assert releases(text).says_something


def test_the_tree_is_the_library_by_what_it_holds(tmp_path: Path) -> None:
    own = {"__version__": '__version__ = "0.3"\n', "utils": "class MyPreTrainedModel: ...\n"}
    write(
        tmp_path,
        {"transformers/__init__.py": own["__version__"], "transformers/modeling_utils.py": own["utils"]},
    )
    assert found(tmp_path, name="transformers/modeling_x.py") == str(NEWEST_KNOWN)
    write(tmp_path, library("4.49.0", "vendored/hf"))
    assert found(tmp_path, name="vendored/hf/models/x/modeling_x.py") == "transformers 4.49"
