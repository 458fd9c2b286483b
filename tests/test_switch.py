"""Who enables checkpointing: what a script, another file or another class does to the flag of a stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.finding import Applicability, Finding, Fix, Refusal
from gclint.network import outside
from gclint.network.outside import outside_switches, sets_only_own_flags, switches_in
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.toy_models import IMPORTS
from tests.toy_models import LAYERS as ALL_LAYERS

LAYERS = ALL_LAYERS.partition("class ToyOtherLayer")[0]

_LEGACY = """
class ToyEncoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([ToyLayer(config) for _ in range(config.depth)])
        self.gradient_checkpointing = False

    def forward(self, hidden_states):
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                hidden_states = torch.utils.checkpoint.checkpoint(layer, hidden_states)
            else:
                hidden_states = layer(hidden_states)
        return hidden_states
"""
_PLAIN = """
class ToyEncoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([ToyLayer(config) for _ in range(config.depth)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
_MODEL = """
class ToyModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.encoder = ToyEncoder(config)
        self.head = nn.Linear(config.size, config.size)

    def forward(self, hidden_states):
        return self.head(self.encoder(hidden_states))
"""


def _toy(stack: str = _LEGACY, model: str = _MODEL) -> str:
    return f"{IMPORTS}import torch.utils.checkpoint\n{LAYERS}\n{stack}\n{model}"


def _project(folder: Path, files: Mapping[str, str], given: tuple[str, ...] = ()) -> Project:
    """Write files, and give those that are named, or the folder with its modeling files."""
    for name, text in files.items():
        compile(text, name, "exec", dont_inherit=True)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if given:
        return Project(Settings(), [folder / name for name in given])
    return Project(Settings(), sorted(folder.rglob("modeling_*.py")), [folder])


def _missing_layer(project: Project) -> Finding:
    result = check(project, [rule for rule in all_rules() if "GC001" in rule.codes])
    assert result.problems == ()
    (finding,) = result.findings
    return finding


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.SAFE


_ENABLING = {
    "one module": "model.encoder.gradient_checkpointing = True",
    "annotated": "model.encoder.gradient_checkpointing: bool = True",
    "over two lines": "model.encoder.gradient_checkpointing = \\\n    True",
    "by its name, over lines": "setattr(\n    model.encoder,\n    'gradient_checkpointing',\n    True,\n)",
    "by the attributes' own setter": 'object.__setattr__(model.encoder, "gradient_checkpointing", True)',
    "an item of its variables": 'vars(model.encoder)["gradient_checkpointing"] = True',
    "an item of a variable's variables": (
        'encoder = model.encoder\nvars(encoder)["gradient_checkpointing"] = True'
    ),
    "an item of its dict": "model.encoder.__dict__['gradient_checkpointing'] = True",
    "a variable": "encoder = model.encoder\nencoder.gradient_checkpointing = True",
    "an item": 'model.parts["encoder"].gradient_checkpointing = True',
    "what a call gives": "get_encoder(model).gradient_checkpointing = True",
    "its class": "ToyEncoder.gradient_checkpointing = True",
    "all modules": (
        "for module in model.modules():\n"
        '    if hasattr(module, "gradient_checkpointing"):\n'
        "        module.gradient_checkpointing = True"
    ),
}


@pytest.mark.parametrize("code", _ENABLING.values(), ids=list(_ENABLING))
def test_script_that_sets_the_flag_keeps_the_branch(code: str, tmp_path: Path) -> None:
    finding = _missing_layer(_project(tmp_path, {"toy/modeling_toy.py": _toy(), "scripts/train.py": code}))
    assert isinstance(finding.remedy, Refusal)
    assert "train.py on line" in finding.remedy.reason


_HARMLESS = {
    "arguments'": "training_args.gradient_checkpointing = True",
    "a question": "assert model.encoder.gradient_checkpointing == True",
    "a comment": "# model.encoder.gradient_checkpointing = True",
    "a string": 'print("set model.encoder.gradient_checkpointing = True")',
    "a docstring": '"""Use\n\nmodel.encoder.gradient_checkpointing = True\n"""',
    "another module's": "model.head.gradient_checkpointing = True",
    "the library's way": "model.gradient_checkpointing_enable()",
    "as the library does": (
        "def enable(model, function):\n"
        "    for module in model.modules():\n"
        '        if hasattr(module, "gradient_checkpointing"):\n'
        "            module._gradient_checkpointing_func = function\n"
        "            module.gradient_checkpointing = True"
    ),
    "off as a whole": (
        "def disable(model):\n"
        "    for module in model.modules():\n"
        '        if hasattr(module, "gradient_checkpointing"):\n'
        "            module.gradient_checkpointing = False"
    ),
    "of its own": ("class Trainer:\n    def __init__(self):\n        self.gradient_checkpointing = True"),
}


@pytest.mark.parametrize("code", _HARMLESS.values(), ids=list(_HARMLESS))
def test_script_that_leaves_the_flag_alone_changes_nothing(code: str, tmp_path: Path) -> None:
    files = {"toy/modeling_toy.py": _toy(), "scripts/train.py": code}
    assert _is_safe(_missing_layer(_project(tmp_path, files)))


@pytest.mark.parametrize(
    ("code", "safe"), [(_ENABLING["one module"], True), (_ENABLING["all modules"], False)]
)
def test_plain_stack_cares_about_flags_of_layers_alone(code: str, safe: bool, tmp_path: Path) -> None:
    # Its layers get a flag, and would raise without the function that the library hands on.
    files = {"toy/modeling_toy.py": _toy(_PLAIN), "scripts/train.py": code}
    assert _is_safe(_missing_layer(_project(tmp_path, files))) == safe


@pytest.mark.parametrize("folder", [".venv", "venv", "node_modules", "build"])
def test_files_of_others_are_not_looked_at(folder: str, tmp_path: Path) -> None:
    files = {"toy/modeling_toy.py": _toy(), f"{folder}/train.py": _ENABLING["one module"]}
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "pyvenv.cfg").touch()
    assert _is_safe(_missing_layer(_project(tmp_path, files)))


@pytest.mark.parametrize("marker", ["pyproject.toml", "setup.py"])
def test_project_of_a_single_file_is_looked_at(marker: str, tmp_path: Path) -> None:
    files = {"toy/__init__.py": "", "toy/modeling_toy.py": _toy(), "train.py": _ENABLING["one module"]}
    assert _is_safe(_missing_layer(_project(tmp_path, files, ("toy/modeling_toy.py",))))
    (tmp_path / marker).touch()
    assert not _is_safe(_missing_layer(_project(tmp_path, files, ("toy/modeling_toy.py",))))


def test_folder_of_a_single_file_without_a_package_is_all_that_is_looked_at(tmp_path: Path) -> None:
    files = {"modeling_toy.py": _toy(), "deeper/train.py": _ENABLING["one module"]}
    assert _is_safe(_missing_layer(_project(tmp_path, files, ("modeling_toy.py",))))
    (tmp_path / "train.py").write_text(_ENABLING["one module"], encoding="utf-8")
    assert not _is_safe(_missing_layer(_project(tmp_path, files, ("modeling_toy.py",))))


def test_unreadable_neighbour_ends_nothing(tmp_path: Path) -> None:
    project = _project(tmp_path, {"modeling_toy.py": _toy()})
    (tmp_path / "train.py").write_bytes(b"# coding: utf-8\nx.gradient_checkpointing = '\xff'\n")
    assert _is_safe(_missing_layer(project))
    assert outside_switches(project, project.file(project.paths[0])) == ()


_OWN = """
class Own:
    def set(self):
        self.gradient_checkpointing = True
"""
_NOT_ONLY_OWN = {
    "a function": "def on(model):\n    model.gradient_checkpointing = True\n",
    "a function with self": "def on(self):\n    self.gradient_checkpointing = True\n",
    "another object": _OWN + "        self.model.gradient_checkpointing = True\n",
    "by name": _OWN + "        setattr(self.model, 'gradient_checkpointing', True)\n",
    "as a variable": _OWN + "        vars(self.model)['gradient_checkpointing'] = True\n",
    "a static method": _OWN + "    @staticmethod\n    def on(m):\n        def f(self):\n"
    "            self.gradient_checkpointing = True\n",
    "a nested class": _OWN + "    class Deep:\n        def f(_):\n            def on(self):\n"
    "                self.gradient_checkpointing = True\n",
    "after the class": _OWN + "x.gradient_checkpointing = True\n",
    "a string that begins like a class": 'T = """\nclass A:\n    def f(self):\n        """\n'
    "def on(model):\n    model.gradient_checkpointing = True\n",
    "strings the other way round": 'T = """\nclass A:\n    def f(self):\n        """\nif x:\n'
    '    def on(self):\n        self.gradient_checkpointing = True\n    T = """\n"""\n',
    "a class in a string around code": 'T = """\nclass A:\n    def f(self):\n        self.a = """, on(\n'
    "   x), setattr(x, 'gradient_checkpointing', 1)\n",
    "a condition": "if x:\n    def on(self):\n        self.gradient_checkpointing = True\n",
    "a line that ends otherwise": "class A: pass\rx.gradient_checkpointing = True\r",
}


@pytest.mark.parametrize("text", _NOT_ONLY_OWN.values(), ids=_NOT_ONLY_OWN)
def test_no_switch_is_overlooked_because_only_some_classes_are_parsed(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[tuple[int, str]]:
        file = SourceFile(Path("train.py"), f"import torch\n{text}".encode())
        return [(each.offset, each.receiver) for each in switches_in(file)]

    quickly = found()
    monkeypatch.setattr(outside, "sets_only_own_flags", lambda _file: False)
    assert quickly == found() != []


def test_a_file_whose_classes_set_their_own_flags_is_not_parsed_as_a_whole() -> None:
    text = f"import torch\n{_OWN}\n\nsupports_gradient_checkpointing = True\n"
    assert sets_only_own_flags(SourceFile(Path("modeling_toy.py"), text.encode()))


# -- whose model


def _models() -> Iterator[tuple[str, dict[str, str], bool]]:
    stack = _toy(model="")
    model = f"{IMPORTS}from .modeling_stack import ToyEncoder\n{_MODEL}"
    yield "no model", {"modeling_stack.py": stack}, False
    yield "a module", {"modeling_stack.py": _toy(model=_MODEL.replace("PreTrainedModel", "nn.Module"))}, False
    yield "a file beside it", {"modeling_stack.py": stack, "modeling_toy.py": model}, True
    elsewhere = model.replace(".modeling_stack", "..stacks.modeling_stack")
    files = {"a/__init__.py": "", "a/stacks/modeling_stack.py": stack, "a/toy/modeling_toy.py": elsewhere}
    yield "a file elsewhere", files, True
    unknown = f"from elsewhere import OtherPreTrainedModel\n{_MODEL}".replace(
        "(PreTrainedModel", "(OtherPreTrainedModel"
    )
    yield "a base that is not at hand", {"modeling_stack.py": _toy(model=unknown)}, True


@pytest.mark.parametrize(("files", "reported"), [pytest.param(*case, id=name) for name, *case in _models()])
def test_block_is_one_that_a_model_runs(files: dict[str, str], reported: bool, tmp_path: Path) -> None:
    project = _project(tmp_path, files)
    result = check(project, [rule for rule in all_rules() if "GC001" in rule.codes])
    assert [finding.symbol for finding in result.findings] == (["ToyLayer"] if reported else [])


# -- one fix for all files


_LAYER_FILE = f"{IMPORTS}{LAYERS}"
_RUNNER = f"{IMPORTS}import torch.utils.checkpoint\nfrom .modeling_layer import ToyLayer\n{_LEGACY}{_MODEL}"
_OTHER_RUNNER = _RUNNER.replace("ToyEncoder", "OtherEncoder").replace("ToyModel", "OtherModel")


def test_block_is_repaired_together_with_all_that_run_it(tmp_path: Path) -> None:
    files = {
        "modeling_layer.py": _LAYER_FILE,
        "modeling_toy.py": _RUNNER,
        "modeling_other.py": _OTHER_RUNNER,
    }
    finding = _missing_layer(_project(tmp_path, files))
    assert _is_safe(finding)
    assert finding.path.name == "modeling_layer.py"
    assert {edit.path.name for edit in finding.edits} == set(files)
    assert not any(inherited.defines for inherited in finding.inherited_by)


@pytest.mark.parametrize("missing", ["modeling_layer.py", "modeling_other.py"])
def test_file_that_the_fix_needs_is_named(missing: str, tmp_path: Path) -> None:
    files = {
        "modeling_layer.py": _LAYER_FILE,
        "modeling_toy.py": _RUNNER,
        "modeling_other.py": _OTHER_RUNNER,
    }
    given = tuple(name for name in files if name != missing)
    project = _project(tmp_path, files, given)
    result = check(project, [rule for rule in all_rules() if "GC001" in rule.codes])
    assert result.findings
    for finding in result.findings:
        assert isinstance(finding.remedy, Refusal)
        assert missing in finding.remedy.reason


def test_call_elsewhere_that_cannot_be_repaired_keeps_the_block(tmp_path: Path) -> None:
    other = _OTHER_RUNNER.replace("gradient_checkpointing = False", "gradient_checkpointing = True")
    files = {"modeling_layer.py": _LAYER_FILE, "modeling_toy.py": _RUNNER, "modeling_other.py": other}
    finding = _missing_layer(_project(tmp_path, files))
    assert isinstance(finding.remedy, Refusal)
    assert "is set to `True`" in finding.remedy.reason


def test_branch_around_a_subclass_elsewhere_goes_too(tmp_path: Path) -> None:
    subclass = (
        f"{IMPORTS}import torch.utils.checkpoint\nfrom .modeling_toy import ToyLayer\n"
        "class OtherLayer(ToyLayer):\n    pass\n"
        + _LEGACY.replace("ToyEncoder", "OtherEncoder").replace("ToyLayer", "OtherLayer")
        + _MODEL.replace("ToyEncoder", "OtherEncoder").replace("ToyModel", "OtherModel")
    )
    project = _project(tmp_path, {"modeling_toy.py": _toy(), "modeling_other.py": subclass})
    result = check(project, [rule for rule in all_rules() if "GC001" in rule.codes])
    (base,) = (each for each in result.findings if each.path.name == "modeling_toy.py")
    assert {edit.path.name for edit in base.edits} == {"modeling_toy.py", "modeling_other.py"}


# -- overrides of the old interface


_OVERRIDE = """
    def _set_gradient_checkpointing(self, module, value=False):
        if isinstance(module, ToyEncoder):
            module.gradient_checkpointing = value
"""


def test_override_of_a_model_elsewhere_goes_with_the_branch(tmp_path: Path) -> None:
    larger = (
        f"{IMPORTS}from .modeling_toy import ToyEncoder\n"
        + _MODEL.replace("ToyModel", "LargerModel")
        + _OVERRIDE
    )
    finding = _missing_layer(_project(tmp_path, {"modeling_toy.py": _toy(), "modeling_larger.py": larger}))
    assert {edit.path.name for edit in finding.edits} == {"modeling_toy.py", "modeling_larger.py"}
    assert _is_safe(finding)


def test_override_of_what_loads_models_needs_a_look(tmp_path: Path) -> None:
    loading = (
        _MODEL.replace("nn.Linear(config.size, config.size)", "AutoModel.from_config(config)") + _OVERRIDE
    )
    finding = _missing_layer(_project(tmp_path, {"modeling_toy.py": _toy(model=loading)}))
    assert isinstance(finding.remedy, Fix)
    assert finding.remedy.reason is not None
    assert "checkpointing is also switched on in the models that `ToyModel` loads" in finding.remedy.reason
