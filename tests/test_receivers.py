"""A call is only rewritten safely if it is known who receives its arguments, and its text stays right."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Finding, Fix, Refusal
from gclint.releases import releases
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import NUMBERED, PROTECTED, STACK, block, model, toy

_CACHED = """
if past_key_values is not None:
    past_key_values.update(hidden_states, hidden_states, self.layer_idx)
return hidden_states + self.attention(hidden_states)
"""
_NUMBER = "self.layer_idx = index"


def _loop(call: str) -> str:
    return f"\nfor layer in self.layers:\n    hidden_states = {call}\n"


def _finding(folder: Path, text: str, code: str = "GC003", settings: Settings | None = None) -> Finding:
    path = folder / "modeling_toy.py"
    path.write_text(text, encoding="utf-8")
    project = Project(settings or Settings(), [path], [folder])
    result = check(project, [each for each in all_rules() if code in each.codes])
    assert result.problems == ()
    return result.findings[0]


def _repaired(folder: Path, text: str, code: str = "GC003") -> str:
    """Return the text of a file with the fix of its finding."""
    remedy = _finding(folder, text, code).remedy
    assert isinstance(remedy, Fix)
    assert remedy.applicability is Applicability.SAFE, remedy.duties
    for each in sorted(remedy.edits, key=lambda edit: edit.start, reverse=True):
        text = text[: each.start] + each.content + text[each.end :]
    compile(text, "modeling_toy.py", "exec", dont_inherit=True)
    return text


def test_a_default_of_two_lines_is_written_out(tmp_path: Path) -> None:
    layer = block(base=PROTECTED, takes="mode=('a'\n        'b'), hidden_states=None")
    text = toy(layer, model(_loop("layer(hidden_states=hidden_states)")))
    assert "'b',\n" in _repaired(tmp_path, text)


@pytest.mark.parametrize("given", ["mask := more", "(mask := more)"])
def test_an_assignment_gets_brackets_with_a_keyword(given: str, tmp_path: Path) -> None:
    layer = block(
        _CACHED, base=PROTECTED, takes="hidden_states, past_key_values=None, mask=None", init=_NUMBER
    )
    loop = _loop(f"layer(hidden_states, past_key_values, {given})")
    takes = "hidden_states, past_key_values=None, more=None"
    text = toy(layer, model(loop, init=NUMBERED, takes=takes))
    assert "past_key_values=past_key_values, mask=(mask := more))" in _repaired(tmp_path, text, "GC002")


@pytest.mark.parametrize(("name", "is_repaired"), [("mask", True), ("__mask", False), ("__mask__", True)])
def test_no_keyword_has_a_private_name(name: str, is_repaired: bool, tmp_path: Path) -> None:
    layer = block(
        _CACHED, base=PROTECTED, takes=f"hidden_states, past_key_values=None, {name}=None", init=_NUMBER
    )
    takes = "hidden_states, past_key_values=None, more=None"
    loop = _loop("layer(hidden_states, past_key_values, more)")
    text = toy(layer, model(loop, init=NUMBERED, takes=takes))
    assert isinstance(_finding(tmp_path, text, "GC002").remedy, Fix) is is_repaired


@pytest.mark.parametrize(
    ("call", "is_repaired"),
    [
        ("print(f'{layer(hidden_states=hidden_states)}')", False),
        ("print(f'{layer(hidden_states=hidden_states)=}')", False),
        ("print(f'{mask}', layer(hidden_states=hidden_states))", True),
    ],
)
def test_no_call_in_an_f_string_is_rewritten(call: str, is_repaired: bool, tmp_path: Path) -> None:
    text = toy(block(base=PROTECTED), model(_loop(call)))
    remedy = _finding(tmp_path, text).remedy
    assert isinstance(remedy, Fix if is_repaired else Refusal)


_OTHER = """
class ToyOther(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, mask=None, hidden_states=None):
        return self.layer(hidden_states, mask)


"""
_PUT = {
    "parts of a model": (
        "for part in self.children():\n    for i, layer in enumerate(part):\n        part[i] = {}",
        "",
    ),
    "a function for all parts": (
        "self.apply(self.wrap)",
        "def wrap(self, layer):\n    layer[0] = {}",
    ),
    "what a module keeps": (
        "for name, layer in self.named_children():\n    self._modules[name] = {}",
        "",
    ),
    "a part by a name": (
        "for name, layer in self.named_modules():\n    self.add_module(name, {})",
        "",
    ),
    "an attribute by a name": (
        "for name, layer in self.named_children():\n    setattr(self, name, {})",
        "",
    ),
    "an attribute by a name of two halves": (
        "layer = self.layers[0]\ngetattr(self, 'lay' + 'ers')[0] = {}",
        "",
    ),
    "an operator": (
        "import operator\nlayer = self.layers[0]\noperator.setitem(self.layers, 0, {})",
        "",
    ),
}


def _put_in(
    folder: Path, name: str, value: str, *, order: str = "mask=None, hidden_states=None"
) -> Applicability:
    init, more = (each.format(value) for each in _PUT[name])
    loop = _loop("layer(hidden_states=hidden_states, mask=mask)")
    other = _OTHER.replace("mask=None, hidden_states=None", order)
    remedy = _finding(
        folder, toy(other, block(base=PROTECTED), model(loop, init=f"{STACK}\n{init}", more=more))
    ).remedy
    assert isinstance(remedy, Fix), remedy
    return remedy.applicability


@pytest.mark.parametrize("name", _PUT)
def test_what_is_put_into_a_stack_without_its_name(name: str, tmp_path: Path) -> None:
    found = [
        _put_in(tmp_path, name, "ToyOther(layer)"),
        _put_in(tmp_path, name, "ToyOther(layer)", order="hidden_states=None, mask=None"),
    ]
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


_RUN = "layer(hidden_states=hidden_states, mask=mask)"
_STACKS = {
    "a list that puts something around what it gets": (
        "class Stack(nn.ModuleList):\n    def append(self, module):\n        return super().append({})\n\n\n",
        "self.layers = Stack()\nfor i in range(config.depth):\n    self.layers.append(ToyLayer(config))",
        f"\nfor layer in self.layers:\n    hidden_states = {_RUN}\n",
        "module",
    ),
    "one of many attributes": (
        "",
        "for i in range(config.depth):\n    setattr(self, f'block{{i}}', ToyLayer(config))\n"
        "self.block1 = {}\nself.head = ToyOther(nn.Identity())",
        f"\nfor i in range(2):\n    layer = getattr(self, f'block{{i}}')\n    hidden_states = {_RUN}\n",
        "ToyLayer(config)",
    ),
}


@pytest.mark.parametrize("name", _STACKS)
def test_what_becomes_of_what_is_put_into_a_stack(name: str, tmp_path: Path) -> None:
    found = []
    before, init, loop, kept = _STACKS[name]
    for value in ("ToyOther(nn.Identity())", kept):
        layers = before.format(value) + _OTHER + block(base=PROTECTED)
        text = toy(layers, model(loop, init=init.format(value)))
        remedy = _finding(tmp_path, text).remedy
        assert isinstance(remedy, Fix)
        found.append(remedy.applicability)
    assert found == [Applicability.UNSAFE, Applicability.SAFE]


@pytest.mark.parametrize(
    ("helper", "expected"),
    [
        ("    model.layers[0] = Other()", Applicability.UNSAFE),
        ("    for part in model.children():\n        part[0] = Other()", Applicability.UNSAFE),
        ("    model.others[0] = Other()", Applicability.SAFE),
        ("    parts = {}\n    parts[0] = Other()", Applicability.SAFE),
    ],
)
def test_what_an_imported_function_puts_into_a_stack(
    helper: str, expected: Applicability, tmp_path: Path
) -> None:
    other = _OTHER.replace("ToyOther", "Other").replace(", layer):", "):").replace("layer\n", "None\n")
    (tmp_path / "helpers.py").write_text(f"from torch import nn\n{other}def adapt(model):\n{helper}\n")
    init = f"{STACK}\nadapt(self)"
    text = toy(block(base=PROTECTED), model(_loop(_RUN), init=init), imports="from helpers import adapt\n")
    remedy = _finding(tmp_path, text).remedy
    assert isinstance(remedy, Fix)
    assert remedy.applicability is expected


_HEIRS = {
    "a method that makes layers": (
        "self.layers = nn.ModuleList([self.make_layer(config) for _ in range(config.depth)])",
        "def make_layer(self, config):\n    return ToyLayer(config)",
        "",
        "    def make_layer(self, config):\n        return ToyOther(None)\n",
    ),
    "the class of layers": (
        "self.layers = nn.ModuleList([self.kind(config) for _ in range(config.depth)])",
        "kind = ToyLayer",
        "",
        "    kind = ToyOther\n",
    ),
    "a method that chooses a layer": (
        STACK,
        "def pick(self, layer):\n    return layer",
        "    layer = self.pick(layer)\n",
        "    def pick(self, layer):\n        return ToyOther(layer)\n",
    ),
    "a property that is the stack": (
        STACK,
        "",
        "",
        "    @property\n    def layers(self):\n        return [ToyOther(None)]\n",
    ),
    "a method for all attributes": (
        STACK,
        "",
        "",
        "    def __getattr__(self, name):\n        return [ToyOther(None)]\n",
    ),
}
_HARMLESS = {
    "a property that is the stack": ("layers", "other_layers"),
    "a method for all attributes": ("__getattr__", "get"),
}
"""What of an heir has to be called otherwise to be none of the stack's; otherwise, its layers are alike."""


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("name", _HEIRS)
def test_what_an_heir_puts_into_a_stack(name: str, is_elsewhere: bool, tmp_path: Path) -> None:
    init, more, before, heir = _HEIRS[name]
    loop = f"\nfor layer in self.layers:\n{before}    hidden_states = {_RUN}\n"
    text = toy(block(base=PROTECTED), model(loop, init=init, more=more))
    alike = _OTHER.replace("mask=None, hidden_states=None", "hidden_states=None, mask=None")
    found = []
    for other, own in ((_OTHER, heir), (alike, heir.replace(*_HARMLESS.get(name, ("", ""))))):
        base = "ToyModel as Base" if is_elsewhere else "ToyModel"
        added = f"{other}class Heir({base.rpartition(' ')[2]}):\n{own}"
        (tmp_path / "heir.py").write_text(
            f"from torch import nn\nfrom modeling_toy import {base}\n{added}" if is_elsewhere else ""
        )
        remedy = _finding(tmp_path, text if is_elsewhere else f"{text}\n\n{added}").remedy
        found.append(isinstance(remedy, Fix) and remedy.applicability is Applicability.SAFE)
    assert found == [False, True]


_LOOPS = {
    "a function around some layers": (
        "    if self.wraps:\n        layer = (lambda mask=None, hidden_states=None: hidden_states)",
        "    if self.wraps:\n        layer = (lambda hidden_states=None, mask=None: hidden_states)",
    ),
    "what an unknown function makes of a layer": (
        "    if self.wraps:\n        layer = wrapped(layer)",
        "    if self.wraps:\n        print(layer)",
    ),
    "something else first": ("    layer = self.runner or layer", "    layer = layer or self.layers[0]"),
    "something unknown instead": (
        "    layer = self.config.runner if self.wraps else layer",
        "    layer = self.layers[0] if self.wraps else layer",
    ),
    "a part of its arguments": (
        "    from functools import partial\n    layer = partial(layer, mask)",
        "    from functools import partial\n    layer = partial(layer, mask=mask)",
    ),
}


@pytest.mark.parametrize("name", _LOOPS)
def test_what_a_call_runs_beside_layers(name: str, tmp_path: Path) -> None:
    found = []
    for statement in _LOOPS[name]:
        given = "" if "partial" in statement else ", mask=mask"
        loop = (
            f"\nfor layer in self.layers:\n{statement}\n"
            f"    hidden_states = layer(hidden_states=hidden_states{given})\n"
        )
        init = f"{STACK}\nself.runner = lambda mask=None, hidden_states=None: mask"
        text = toy(block(base=PROTECTED), model(loop, init=init))
        remedy = _finding(tmp_path, text).remedy
        found.append(isinstance(remedy, Fix) and remedy.applicability is Applicability.SAFE)
    assert found == [False, True]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("getattr(config, 'kind', None) or ToyLayer", False),
        ("ToyLayer if config.depth else config.kind", False),
        ("{}.get(config.kind) or ToyLayer", False),
        ("ToyLayer if config.depth else ToyAlike", True),
        ("partial(ToyLayer, config)", True),
        ("ToyLayer", True),
    ],
)
@pytest.mark.parametrize("made", ["[kind(config)]", "[kind(config) for _ in range(config.depth)]"])
def test_layers_of_a_class_that_is_not_known(kind: str, expected: bool, made: str, tmp_path: Path) -> None:
    alike = "class ToyAlike(ToyLayer):\n    pass\n\n\n"
    init = f"from functools import partial\nkind = {kind}\nself.layers = nn.ModuleList({made})"
    remedy = _finding(tmp_path, toy(block(base=PROTECTED), alike, model(_loop(_RUN), init=init))).remedy
    assert isinstance(remedy, Fix)
    assert (remedy.applicability is Applicability.SAFE) is expected


_REPLACING = {
    "the names of the module": ("globals().update(ToyLayer=Other)", "globals().get('ToyLayer')"),
    "one name of the module": ("globals()['ToyLayer'] = Other", "Other = globals()['ToyLayer']"),
    "a kept namespace": ("names = globals()\nnames['ToyLayer'] = Other", "names = set(globals())"),
    "a text": ("exec('ToyLayer = Other')", "eval('ToyLayer')"),
    "the module by its name": (
        "import sys\nsetattr(sys.modules[__name__], 'ToyLayer', Other)",
        "import sys\ngetattr(sys.modules[__name__], 'ToyLayer')",
    ),
    "a full name": (
        "from unittest import mock\nmock.patch('modeling_toy.ToyLayer.forward', swapped).start()",
        "from unittest import mock\nmock.patch('modeling_other.OtherLayer.forward', swapped).start()",
    ),
    "the names of a class": (
        "class Further(ToyLayer):\n    locals()['forward'] = swapped",
        "class Further(ToyLayer):\n    named = locals()['__module__']",
    ),
}


@pytest.mark.parametrize("name", _REPLACING)
def test_names_that_get_another_meaning_by_their_text(name: str, tmp_path: Path) -> None:
    before = (
        "class Other:\n    pass\n\n\ndef swapped(self, mask=None, hidden_states=None):\n    return mask\n"
    )
    found = []
    for each in _REPLACING[name]:
        text = toy(before, block(base=PROTECTED), model(_loop(_RUN)), f"\n\n{each}\n")
        remedy = _finding(tmp_path, text).remedy
        found.append(isinstance(remedy, Fix) and remedy.applicability is Applicability.SAFE)
    assert found == [False, True]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("forward", False), ("_compiled_call_impl", False), ("further", True)],
)
def test_what_an_imported_function_sets_on_a_layer(name: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(f"def fuse(module):\n    module.{name} = print\n")
    init = f"{STACK}\nfor layer in self.layers:\n    fuse(layer)"
    text = toy(block(base=PROTECTED), model(_loop(_RUN), init=init), imports="from helpers import fuse\n")
    remedy = _finding(tmp_path, text).remedy
    assert (isinstance(remedy, Fix) and remedy.applicability is Applicability.SAFE) is expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("own", False),
        ("lambda function, *args: own(function.func, *args)", False),
        ("checkpoint", True),
        ("functools.partial(checkpoint, use_reentrant=False)", True),
        ("None", True),
    ],
)
@pytest.mark.parametrize(
    "given", ["layer._gradient_checkpointing_func = {}", "hand_on(gradient_checkpointing_func={})"]
)
def test_checkpoint_functions_of_a_project(function: str, expected: bool, given: str, tmp_path: Path) -> None:
    imports = "import functools\nfrom torch.utils.checkpoint import checkpoint\n"
    before = "def own(function, mask, *more):\n    return checkpoint(function, mask)\n\n\n"
    loop = f"    for layer in self.layers:\n        {given.format(function)}"
    enable = f"def gradient_checkpointing_enable(self):\n{loop}"
    text = toy(before, block(base=PROTECTED), model(_loop(_RUN), more=enable), imports=imports)
    remedy = _finding(tmp_path, text).remedy
    assert (isinstance(remedy, Fix) and remedy.applicability is Applicability.SAFE) is expected


@pytest.mark.parametrize(
    ("target", "expected"), [("==5.23.0", True), (">=5.20,<6", False), (">=5.23", False), ("==5.22", False)]
)
def test_layers_of_the_library_may_be_others_in_other_releases(
    target: str, expected: bool, tmp_path: Path
) -> None:
    library = tmp_path / "site/transformers"
    layers = "from torch import nn\nclass GradientCheckpointingLayer(nn.Module): ...\n"
    for name, text in {
        "__init__.py": "__version__ = '5.23.0'\nfrom .modeling_utils import PreTrainedModel\n",
        "modeling_utils.py": "from torch import nn\nclass PreTrainedModel(nn.Module): ...\n",
        "modeling_layers.py": layers,
        "models/__init__.py": "",
        "models/own/__init__.py": "",
        "models/own/modeling_own.py": toy(block(base=PROTECTED)),
    }.items():
        path = library / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    text = (
        "from torch import nn\nfrom transformers import PreTrainedModel\n"
        f"from transformers.models.own.modeling_own import ToyLayer\n{model(_loop(_RUN))}"
    )
    settings = Settings(library=library, target_version=releases(target))
    remedy = _finding(tmp_path, text, settings=settings).remedy
    assert (isinstance(remedy, Fix) and remedy.applicability is Applicability.SAFE) is expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("for self.layers[0] in [ToyOther(nn.Identity())]:\n    pass", False),
        ("for other in [ToyOther(nn.Identity())]:\n    self.layers[0]", True),
        ("with torch.device('cpu') as self.layers[0]:\n    pass", False),
        ("with torch.device('cpu') as device:\n    self.layers[0]", True),
    ],
)
def test_what_else_than_an_assignment_sets_an_item(statement: str, expected: bool, tmp_path: Path) -> None:
    init = f"{STACK}\n{statement}"
    text = toy(_OTHER, block(base=PROTECTED), model(_loop(_RUN), init=init))
    remedy = _finding(tmp_path, text).remedy
    assert (isinstance(remedy, Fix) and remedy.applicability is Applicability.SAFE) is expected
