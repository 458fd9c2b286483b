"""The library as context, and packages as Python finds them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gclint.code.packages import package_folders
from gclint.code.project import Project
from gclint.network.model import Network
from gclint.network.unknown import unknown_bases
from gclint.releases import releases
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.run.fix import fix
from gclint.settings import Settings
from tests.test_releases_of_projects import UTILS, library, write
from tests.trees import kind, told

_OTTER = """\
from torch import nn

from ...modeling_layers import GradientCheckpointingLayer
from ...modeling_utils import PreTrainedModel


class OtterAttention(nn.MultiheadAttention): ...


class OtterDecoderLayer(GradientCheckpointingLayer):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, hidden_states, past_key_values=None, states=None):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]


class OtterPlainLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, hidden_states, past_key_values=None):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]


class OtterPreTrainedModel(PreTrainedModel):
    supports_gradient_checkpointing = True


class OtterModel(OtterPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([OtterDecoderLayer(config) for _ in range(2)])
"""
_GCL = "from torch import nn\n\n\nclass GradientCheckpointingLayer(nn.Module): ...\n"
_LAZY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .modeling_otter import *\n"
_ODD = "from torch import nn\nclass OddName(nn.Module): ...\n"
LIBRARY = {
    **library("5.3.0", "transformers"),
    "transformers/modeling_layers.py": _GCL,
    "transformers/models/__init__.py": "from .otter import *\n",
    "transformers/models/otter/__init__.py": _LAZY,
    "transformers/models/otter/modeling_otter.py": _OTTER,
    "transformers/models/sea_lion/modeling_sea_lion.py": _ODD,
}

USER = """\
from torch import nn
{imports}


class MyModel({model}):
    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([{layer}(config) for _ in range(2)])

    def forward(self, hidden_states, past_key_values=None):
        for layer in self.layers:
            hidden_states = layer(hidden_states, past_key_values)
        return hidden_states
"""


def _environment(folder: Path) -> Path:
    write(folder / "lib/python3.11/site-packages", LIBRARY)
    return folder


def _settings(environment: Path) -> Settings:
    return replace(Settings(), environments=(environment,))


@pytest.mark.parametrize(
    ("imports", "model", "layer"),
    [
        (
            "from transformers import OtterDecoderLayer, OtterPreTrainedModel",
            "OtterPreTrainedModel",
            "OtterDecoderLayer",
        ),
        (
            "from transformers import OtterPreTrainedModel as Base\n"
            "from transformers.models.otter.modeling_otter import OtterDecoderLayer as Layer",
            "Base",
            "Layer",
        ),
        (
            "from transformers.models.otter import OtterDecoderLayer, OtterPreTrainedModel",
            "OtterPreTrainedModel",
            "OtterDecoderLayer",
        ),
        ("import transformers", "transformers.OtterPreTrainedModel", "transformers.OtterDecoderLayer"),
        (
            "import transformers\nimport transformers.models.otter.modeling_otter as otter",
            "otter.OtterPreTrainedModel",
            "transformers.models.otter.modeling_otter.OtterDecoderLayer",
        ),
        (
            "from transformers.models.otter import modeling_otter\nfrom transformers.models import otter",
            "otter.OtterPreTrainedModel",
            "modeling_otter.OtterDecoderLayer",
        ),
    ],
)
def test_a_class_of_the_installed_library_is_understood(
    tmp_path: Path, imports: str, model: str, layer: str
) -> None:
    environment = _environment(tmp_path / "environment")
    mine = tmp_path / "mine" / "modeling_mine.py"
    write(mine.parent, {mine.name: USER.format(imports=imports, model=model, layer=layer)})
    result = check(Project(_settings(environment), [mine]), all_rules())
    assert told(result) == ["GC002 modeling_mine.py OtterDecoderLayer safe"]
    assert check(Project(Settings(), [mine]), all_rules()).findings == ()


def test_the_stack_of_a_library_model_is_known_to_its_subclass(tmp_path: Path) -> None:
    environment = _environment(tmp_path / "environment")
    text = USER.format(imports="from transformers import OtterModel", model="OtterModel", layer="Unused")
    text = "".join(line for line in text.splitlines(True) if "Unused" not in line)
    write(tmp_path / "mine", {"modeling_mine.py": text})
    project = Project(_settings(environment), [tmp_path / "mine" / "modeling_mine.py"])
    assert told(check(project, all_rules())) == ["GC002 modeling_mine.py OtterDecoderLayer safe"]


def test_the_library_is_neither_changed_nor_reported(tmp_path: Path) -> None:
    environment = _environment(tmp_path / "environment")
    layers = "class MyLayer(OtterPlainLayer): ...\n\n\nclass MyModel"
    text = USER.format(
        imports="from transformers import OtterPlainLayer, OtterPreTrainedModel",
        model="OtterPreTrainedModel",
        layer="MyLayer",
    ).replace("class MyModel", layers)
    mine = tmp_path / "mine" / "modeling_mine.py"
    write(mine.parent, {mine.name: text})
    project = Project(_settings(environment), [mine])
    result = fix(project, all_rules(), unsafe=True)
    assert set(result.changed) <= {mine}
    (finding,) = (each for each in result.findings if each.code == "GC001")
    assert finding.path == mine
    assert "belongs to the installed transformers" in str(finding.remedy)
    assert (
        environment / "lib/python3.11/site-packages/transformers/models/otter/modeling_otter.py"
    ).read_text() == _OTTER


def test_a_repair_that_would_reach_into_the_library_is_refused(tmp_path: Path) -> None:
    environment = _environment(tmp_path / "environment")
    text = USER.format(
        imports="from transformers import OtterDecoderLayer, OtterPreTrainedModel",
        model="OtterPreTrainedModel",
        layer="OtterDecoderLayer",
    ).replace("layer(hidden_states, past_key_values)", "layer(hidden_states, past_key_values, hidden_states)")
    mine = tmp_path / "mine" / "modeling_mine.py"
    write(mine.parent, {mine.name: text})
    (finding,) = check(Project(_settings(environment), [mine]), all_rules()).findings
    assert finding.code == "GC002"
    assert "would also have to change the installed transformers" in str(finding.remedy)


@pytest.mark.parametrize("part", ["", "transformers"])
def test_a_library_can_be_named(tmp_path: Path, part: str) -> None:
    write(tmp_path / "elsewhere", LIBRARY)
    text = USER.format(
        imports="from transformers import OtterDecoderLayer, OtterPreTrainedModel",
        model="OtterPreTrainedModel",
        layer="OtterDecoderLayer",
    )
    write(tmp_path / "mine", {"modeling_mine.py": text})
    settings = replace(Settings(), library=tmp_path / "elsewhere" / part)
    project = Project(settings, [tmp_path / "mine" / "modeling_mine.py"])
    assert told(check(project, all_rules())) == ["GC002 modeling_mine.py OtterDecoderLayer safe"]
    assert str(project.releases(project.file(tmp_path / "mine" / "modeling_mine.py"))) == "transformers 5.3"


def test_a_name_that_no_folder_begins_is_searched_for(tmp_path: Path) -> None:
    environment = _environment(tmp_path / "environment")
    path = tmp_path / "modeling_mine.py"
    write(
        tmp_path,
        {path.name: "from transformers import OddName, Not\nclass A(OddName): ...\nclass B(Not): ...\n"},
    )
    project = Project(_settings(environment), [path])
    classes = Network(project, project.file(path)).module.classes
    assert [info.is_module for info in classes.values()] == [True, False]


def test_a_base_that_nobody_knows_is_named(tmp_path: Path) -> None:
    text = (
        "import transformers\n"
        "from transformers import OtterConfig, OtterDecoderLayer, PreTrainedModel, Trainer\n"
        "class MyConfig(OtterConfig): ...\n"
        "class MyTrainer(Trainer):\n    def __init__(self): ...\n"
        "class MyLayer(OtterDecoderLayer):\n    def forward(self, x): ...\n"
        "class MyModel(transformers.OtterModel):\n"
        "    def __init__(self, config):\n        super().__init__(config)\n"
        "class Known(PreTrainedModel):\n    def forward(self, x): ...\n"
    )
    path = tmp_path / "modeling_mine.py"
    write(tmp_path, {path.name: text})
    assert unknown_bases(Project(Settings(), [path])) == ("OtterDecoderLayer", "OtterModel")
    assert unknown_bases(Project(_settings(_environment(tmp_path / "environment")), [path])) == ()


def test_the_interpreter_finds_what_it_would_import_and_imports_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"broken/__init__.py": "raise SystemExit"})
    code = (
        "import sys; from pathlib import Path; from gclint.code.packages import package_folders\n"
        "print(*package_folders(Path(sys.executable), 'broken'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(tmp_path / "broken") in run.stdout


def test_an_environment_is_searched_by_its_layout(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "env/bin/python": "",
            "env/pyvenv.cfg": "home = /nowhere\n",
            "env/lib/python3.11/site-packages/__editable__.x.pth": "/src/x\nimport nothing\n",
        },
    )
    packages = tmp_path / "env/lib/python3.11/site-packages"
    expected = [packages / "transformers", Path("/src/x/transformers")]
    assert list(package_folders(tmp_path / "env", "transformers")) == expected
    assert list(package_folders(tmp_path / "env/bin/python", "transformers")) == expected


# -- packages

_BLOCK = """\
from torch import nn
{imports}


class MyLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, hidden_states):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]


class MyModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([MyLayer(config) for _ in range(2)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
_ABSOLUTE = _BLOCK.format(imports="from transformers.modeling_utils import PreTrainedModel")
_OLD = library("4.40.0", "src/transformers")


def _fixed(folder: Path, files: Mapping[str, str], name: str) -> str | None:
    """Return the import that a fix adds; None where it changes nothing."""
    write(folder, {**files, ".git": ""})
    paths = sorted(folder.rglob("modeling_*.py"))
    project = Project(replace(Settings(), target_version=releases(">=4.53,<5.17")), paths)
    changed = fix(project, all_rules(), unsafe=False).changed.get(folder / name)
    if changed is None:
        return None
    (line,) = (line for line in changed[1].splitlines() if "import GradientCheckpointingLayer" in line)
    return line


_FROM_LIBRARY = "from transformers.modeling_layers import GradientCheckpointingLayer"


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (  # A folder of that name inside of a package.
            {
                "pkg/__init__.py": "",
                "pkg/transformers/__init__.py": "",
                "pkg/transformers/modeling_utils.py": "x = 1\n",
            },
            "pkg/transformers/modeling_x.py",
        ),
        (
            {"ns/transformers/__init__.py": "", "ns/transformers/modeling_utils.py": ""},
            "ns/transformers/modeling_x.py",
        ),
        (
            {"third_party/" + name: text for name, text in _OLD.items()},
            "pkg/modeling_x.py",
        ),  # vendored elsewhere
        ({"pkg/modeling_utils.py": "from transformers import PreTrainedModel\n"}, "pkg/modeling_x.py"),
    ],
)
def test_a_package_that_is_not_the_library_silences_nothing(
    tmp_path: Path, files: Mapping[str, str], name: str
) -> None:
    assert _fixed(tmp_path, {**files, name: _ABSOLUTE}, name) == _FROM_LIBRARY


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"modeling_outputs.py": "class MyOutput: ...\n"}, _FROM_LIBRARY),
        ({"modeling_outputs.py": "", "modeling_layers.py": "class MyLayers: ...\n"}, _FROM_LIBRARY),
        (
            {"modeling_outputs.py": "", "modeling_layers.py": _GCL},
            "from .modeling_layers import GradientCheckpointingLayer",
        ),
        (
            {"modeling_outputs.py": "", "modeling_layers.py": f"{_FROM_LIBRARY}\n"},
            "from .modeling_layers import GradientCheckpointingLayer",
        ),
    ],
)
def test_own_modules_with_names_of_the_library_count_for_what_they_define(
    tmp_path: Path, files: Mapping[str, str], expected: str
) -> None:
    imports = "from transformers import PreTrainedModel\n\nfrom .modeling_outputs import MyOutput"
    own = {f"pkg/{name}": text for name, text in {"__init__.py": "", **files}.items()}
    assert (
        _fixed(tmp_path, {**own, "pkg/modeling_x.py": _BLOCK.format(imports=imports)}, "pkg/modeling_x.py")
        == expected
    )


@pytest.mark.parametrize("has_it", [True, False])
def test_a_release_is_known_to_lack_the_base_class(tmp_path: Path, has_it: bool) -> None:
    name = "src/transformers/models/x/modeling_x.py"
    relative = _BLOCK.format(imports="from ...modeling_utils import PreTrainedModel")
    files = {**_OLD, name: relative, **({"src/transformers/modeling_layers.py": _GCL} if has_it else {})}
    expected = "from ...modeling_layers import GradientCheckpointingLayer" if has_it else None
    assert _fixed(tmp_path, files, name) == expected


@pytest.mark.parametrize(
    ("user", "block", "imports"),
    [
        ("pkg/models/modeling_x.py", "pkg/layers/blocks.py", "from ..layers.blocks import Block"),
        ("pkg/models/modeling_x.py", "pkg/layers/blocks.py", "from pkg.layers.blocks import Block"),
        (
            "pkg/models/modeling_x.py",
            "pkg/layers/__init__.py",
            "from pkg import layers\nBlock = layers.Block",
        ),
        ("src/pkg/modeling_x.py", "src/other/blocks.py", "from other.blocks import Block"),
        ("examples/modeling_x.py", "src/pkg/blocks.py", "from pkg.blocks import Block"),
        ("modeling_x.py", "blocks.py", "from blocks import Block"),
        ("ns/pkg/modeling_x.py", "ns/other/blocks.py", "from ns.other.blocks import Block"),
        ("pkg/modeling_x.py", "pkg/blocks.py", "from .blocks import *"),
        ("pkg/modeling_x.py", "pkg/blocks.py", "from . import blocks as own\nBlock = own.Block"),
        ("alone/modeling_x.py", "alone/blocks.py", "from . import blocks\nBlock = blocks.Block"),
    ],
)
def test_a_name_is_looked_up_as_python_does(tmp_path: Path, user: str, block: str, imports: str) -> None:
    packages = {
        folder
        for path in (user, block)
        for folder in Path(path).parents
        if folder.name in ("pkg", "models", "layers", "other")
    }
    text = f"{_FROM_LIBRARY}\n\n\nclass Block(GradientCheckpointingLayer): ...\n"
    inits = {f"{folder}/__init__.py": "" for folder in packages}
    write(tmp_path, {**inits, block: text, user: f"{imports}\n\n\nclass Mine(Block): ...\n", ".git": ""})
    project = Project(Settings(), [tmp_path / user])
    assert Network(project, project.file(tmp_path / user)).module.classes["Mine"].is_checkpointing


def test_what_a_package_calls_the_library_does_not_reach_beyond_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/modeling_utils.py": UTILS.replace("torch.nn.Module", "hf.PreTrainedModel"),
        },
    )
    write(tmp_path, {"pkg/modeling_x.py": "x = 1\n"})
    project = Project(Settings(), [tmp_path / "pkg/modeling_x.py"])
    assert project.home(project.file(tmp_path / "pkg/modeling_x.py")) is None


_NEW_LAYER = """

class MyLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, hidden_states, past_key_values=None):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]
"""
_BASE = "from transformers.modeling_utils import PreTrainedModel\n"


def _kind_of_fix(
    tmp_path: Path,
    imports: str,
    settings: Settings | None = None,
    files: Mapping[str, str] | None = None,
    init: str = "",
) -> str:
    environment = _environment(tmp_path / "environment")
    for home in environment.rglob("transformers/__init__.py") if init else ():
        home.write_text(f"{home.read_text(encoding='utf-8')}\n{init}", encoding="utf-8")
    text = USER.format(imports=_BASE + imports + _NEW_LAYER, model="PreTrainedModel", layer="MyLayer")
    text = text.replace("layer(hidden_states, past_key_values)", "layer(hidden_states)")
    text = text.replace(
        "(PreTrainedModel):", "(PreTrainedModel):\n    supports_gradient_checkpointing = True\n"
    )
    write(tmp_path / "mine", {"modeling_mine.py": text, **(files or {})})
    given = [tmp_path / "mine" / "modeling_mine.py"]
    project = Project(settings or _settings(environment), given)
    (finding,) = check(project, all_rules()).findings
    assert finding.code == "GC001"
    return f"{kind(finding)}: {getattr(finding.remedy, 'reason', None)}"


@pytest.mark.parametrize(
    ("imports", "missing"),
    [
        ("from transformers import top_k_top_p_filtering", "top_k_top_p_filtering"),
        ("from transformers.models.otter.modeling_otter import OtterOldLayer as Layer", "OtterOldLayer"),
        ("import transformers.otter_utils", "transformers.otter_utils"),
        ("from transformers.otter_utils import is_there", "is_there"),
    ],
)
def test_an_import_that_the_installed_release_lacks_makes_another_import_unsafe(
    tmp_path: Path, imports: str, missing: str
) -> None:
    """It may be that only releases without the base class have what the file imports."""
    found = _kind_of_fix(tmp_path, imports)
    assert found.startswith(f"unsafe: `{missing}`, which is imported on line 3, is not in the installed")


@pytest.mark.parametrize(
    "imports",
    [
        "from transformers import OtterModel, models",
        "import transformers.models.otter.modeling_otter",
        "from transformers.models.otter import *",
        "try:\n    from transformers import top_k_top_p_filtering\nexcept ImportError:\n    pass",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from transformers import top_k_top_p",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING: from transformers import top_k_top_p",
        "def later():\n    from transformers import top_k_top_p_filtering",
    ],
)
def test_what_is_there_or_is_not_needed_says_nothing_about_the_release(tmp_path: Path, imports: str) -> None:
    assert _kind_of_fix(tmp_path, imports) == "safe: None"


@pytest.mark.parametrize("name", ["otter_utils", "other_utils"])
def test_modules_that_the_library_knows_by_another_name(tmp_path: Path, name: str) -> None:
    """As the first release that did so has it: an alias is put into the table of modules by a loop."""
    aliases = (
        "import sys\n_ALIASES = {'otter_utils': 'utils'}\nfor old, new in _ALIASES.items():\n"
        "    sys.modules[f'{__name__}.{old}'] = new\n"
    )
    found = _kind_of_fix(tmp_path, f"from transformers.{name} import is_there", init=aliases)
    assert found.startswith("safe" if name == "otter_utils" else "unsafe: `is_there`, which is imported on")


def test_what_a_file_imports_from_another_counts_as_well(tmp_path: Path) -> None:
    files = {"helpers.py": "from transformers import top_k_top_p_filtering\n", "__init__.py": ""}
    found = _kind_of_fix(tmp_path, "from .helpers import top_k_top_p_filtering", files=files)
    assert "imported on line 1 of helpers.py, is not in the installed transformers" in found


def test_releases_that_are_stated_need_no_installed_one(tmp_path: Path) -> None:
    """What is removed in the installed release may be there in an older one that has the base class."""
    settings = replace(_settings(tmp_path / "environment"), target_version=releases(">=4.53"))
    assert _kind_of_fix(tmp_path, "from transformers import gone", settings) == "safe: None"


def test_what_is_installed_beside_a_given_package_is_no_code_of_it(tmp_path: Path) -> None:
    packages = tmp_path / "repository" / ".venv" / "lib" / "python3.11" / "site-packages"
    write(packages, library("5.3.0", "transformers"))
    write(
        packages, {"torch/__init__.py": "", "torch/nn.py": "x = 1\n", "mine/__init__.py": "", "mine/b.py": ""}
    )
    write(packages, {"mine/modeling_a.py": "import torch.nn\n"})
    write(tmp_path / "repository", {".git": "", "tools/__init__.py": "", "torch/__init__.py": ""})
    project = Project(Settings(), [packages / "mine" / "modeling_a.py"])
    file = project.file(packages / "mine" / "modeling_a.py")
    assert project.module(file, "torch.nn", 0) is None
    assert project.module(file, "tools", 0) is None
    assert project.module(file, "mine.b", 0) is not None
    assert project.module(file, "transformers.modeling_utils", 0) is not None
