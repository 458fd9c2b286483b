"""Names that star imports give, other classes by the name of the base class, and classes of other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import ATTENTION, BODY, IMPORTS, STACK, block, model
from tests.toy_models import applicability

_STAR = "from .functional import *\n"
_SCALED = "return {}(hidden_states + self.attention(hidden_states))"
_COUNT = "N = [0]\n\n\ndef {}(x):\n    N[0] += 1\n    return x * N[0]\n"
_DOUBLE = "def {}(x):\n    return x * 2\n"
_OBJECT = (
    "class {}:\n    n = 0\n\n    @classmethod\n"
    "    def relu(cls, x):\n        cls.n += 1\n        return x * cls.n\n"
)
_PLAIN_OBJECT = "class {}:\n    @classmethod\n    def relu(cls, x):\n        return x * 2\n"
_MODULE = (
    "from torch import nn\n\n\nclass {}(nn.Module):\n    n = 0\n\n    def __init__(self, config):\n"
    "        super().__init__()\n\n"
    "    def forward(self, x):\n        self.n += 1\n        return x * self.n\n"
)
_PLAIN_MODULE = _MODULE.replace("        self.n += 1\n", "")
_SHADOWED = {
    "a function": (
        "from torch.nn.functional import silu\n",
        "silu",
        _COUNT.format("silu"),
        _DOUBLE.format("silu"),
    ),
    "a module": (
        "import torch.nn.functional as F\n",
        "F.relu",
        _OBJECT.format("F"),
        _PLAIN_OBJECT.format("F"),
    ),
    "torch": ("", "torch.relu", _OBJECT.format("torch"), _PLAIN_OBJECT.format("torch")),
    "its own": ("def scale(x):\n    return x\n", "scale", _COUNT.format("scale"), _DOUBLE.format("scale")),
    "a function of nobody": (
        "from torch.nn.functional import silu\n",
        "silu",
        "from unknown_package import silu\n",
        "from torch.nn.functional import silu\n",
    ),
    "what it does not list": (
        "def scale(x):\n    return x\n",
        "scale",
        "__all__ = ['scale']\n" + _COUNT.format("scale"),
        "__all__ = ['other']\n" + _COUNT.format("scale"),
    ),
    "what is private": (
        "def _scale(x):\n    return x\n",
        "_scale",
        "__all__ = ['_scale']\n" + _COUNT.format("_scale"),
        _COUNT.format("_scale"),
    ),
}


def _judge(folder: Path, first: str, **others: str) -> Applicability:
    return applicability(folder, first, {f"{name}.py": text for name, text in others.items()})


def _starred(before: str, function: str, *, below: str = "") -> str:
    return IMPORTS + before + _STAR + below + ATTENTION + block(_SCALED.format(function)) + model()


@pytest.mark.parametrize("what", _SHADOWED)
def test_a_star_import_gives_another_meaning_to_a_name(what: str, tmp_path: Path) -> None:
    before, function, harmful, harmless = _SHADOWED[what]
    text = _starred(before, function)
    assert _judge(tmp_path, text, functional=harmful) is Applicability.UNSAFE
    assert _judge(tmp_path, text, functional=harmless) is Applicability.SAFE


_OPTIONAL = "try:\n    import fast\nexcept ImportError:\n    fast = None\n"
_IN_ANOTHER = {
    "a condition below the star import": (
        _STAR + _OPTIONAL + "if fast is not None:\n\n    def scale(x):\n        return x\n",
        _STAR + _OPTIONAL + "if fast is not None:\n    pass\n\ndef scale(x):\n    return x\n",
        {"functional": _COUNT.format("scale")},
    ),
    "a list of names that is not known": (
        "from .harmful import *\nfrom .functional import *\n",
        "from .functional import *\n",
        {
            "harmful": _COUNT.format("scale"),
            "functional": "__all__ = ['scale']\n" + _DOUBLE.format("scale") + "\n__all__ = [*map(str, ())]\n",
        },
    ),
    "a circle that depends on who comes first": (
        "from .start import *\n",
        "from .second import *\n",
        {
            "start": "from .harmful import *\nfrom .middle import *\n",
            "middle": _DOUBLE.format("scale") + "\nfrom .start import *\n",
            "second": "from .harmless import *\nfrom .other import *\n",
            "other": _DOUBLE.format("scale") + "\nfrom .second import *\n",
            "harmful": _COUNT.format("scale"),
            "harmless": _DOUBLE.format("scale"),
        },
    ),
    "one that is not always done": (
        _DOUBLE.format("scale") + "\n" + _OPTIONAL + "if fast is not None:\n    from .functional import *\n",
        "from .functional import *\n\n\n" + _DOUBLE.format("scale"),
        {"functional": _COUNT.format("scale")},
    ),
    "a package that is not known": (
        _DOUBLE.format("scale") + "\nfrom fast_kernels import *\n",
        "from fast_kernels import *\n" + IMPORTS + _DOUBLE.format("scale"),
        {},
    ),
}


def _scaled(before: str, function: str = "scale") -> str:
    return f"{IMPORTS}{before}\n{ATTENTION}{block(_SCALED.format(function))}{model()}"


@pytest.mark.parametrize("what", _IN_ANOTHER)
def test_what_is_not_certain_to_be_given_by_a_star_import(what: str, tmp_path: Path) -> None:
    harmful, harmless, given = _IN_ANOTHER[what]
    for before, said in ((harmful, Applicability.UNSAFE), (harmless, Applicability.SAFE)):
        assert _judge(tmp_path, _scaled(before), **given) is said


def test_a_star_import_of_another_package_gives_what_is_known_of_it(tmp_path: Path) -> None:
    before = "from torch.nn.functional import *\n"
    assert _judge(tmp_path, _scaled(before, "silu")) is Applicability.SAFE
    assert _judge(tmp_path, _scaled(before, "scale")) is Applicability.UNSAFE


def test_a_star_import_may_give_another_meaning_to_a_builtin(tmp_path: Path) -> None:
    for module, said in (("fast_kernels", Applicability.UNSAFE), ("torch.nn", Applicability.SAFE)):
        assert _judge(tmp_path, f"from {module} import *\n{_scaled('', 'abs')}") is said


def test_a_star_import_passes_on_what_another_one_gives(tmp_path: Path) -> None:
    text = _starred("from torch.nn.functional import silu\n", "silu")
    given = {"functional": "from .further import *\n"}
    assert _judge(tmp_path, text, further=_COUNT.format("silu"), **given) is Applicability.UNSAFE
    assert _judge(tmp_path, text, further=_COUNT.format("other"), **given) is Applicability.SAFE
    given = {"functional": "from .further import *\nfrom .modeling_toy import *\n"}
    assert _judge(tmp_path, text, further="from .functional import *\n", **given) is Applicability.SAFE


def test_what_stands_below_a_star_import_counts(tmp_path: Path) -> None:
    text = _starred("", "silu", below="from torch.nn.functional import silu\n")
    assert _judge(tmp_path, text, functional=_COUNT.format("silu")) is Applicability.SAFE


@pytest.mark.parametrize("is_below", [True, False])
def test_a_star_import_gives_another_class_of_attention(tmp_path: Path, *, is_below: bool) -> None:
    parts = (ATTENTION, _STAR) if is_below else (_STAR, ATTENTION)
    text = IMPORTS + "".join(parts) + block() + model()
    harmful = Applicability.UNSAFE if is_below else Applicability.SAFE
    assert _judge(tmp_path, text, functional=_MODULE.format("ToyAttention")) is harmful
    assert _judge(tmp_path, text, functional=_PLAIN_MODULE.format("ToyAttention")) is Applicability.SAFE


def test_a_star_import_leads_back(tmp_path: Path) -> None:
    text = IMPORTS + ATTENTION + block() + _STAR + model()
    assert _judge(tmp_path, text, functional="from .modeling_toy import ToyLayer\n") is Applicability.SAFE


_NAME = "GradientCheckpointingLayer"
_FROM = f"from transformers.modeling_layers import {_NAME}"
_ELSE = f"class {_NAME}(nn.Module):\n    pass\n"
_PLAIN_IMPORTS = IMPORTS.replace(f"{_FROM}\n", "")


def _remedy(folder: Path, before: str, **others: str) -> str:
    text = _PLAIN_IMPORTS + before + "\n" + ATTENTION + block() + model()
    for name, code in {"modeling_toy": text, **others}.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    rules = [rule for rule in all_rules() if "GC001" in rule.codes]
    (finding,) = check(Project(Settings(), [folder / "modeling_toy.py"], [folder]), rules).findings
    remedy = finding.remedy
    return remedy.applicability.value if isinstance(remedy, Fix) else remedy.reason


def _tried(import_: str, *otherwise: str) -> str:
    return f"try:\n    {import_}\nexcept ImportError:\n" + "".join(f"    {each}\n" for each in otherwise)


_NAMED = {
    "a star import": ("from .compat import *", f"{_NAME} = 3\n", f"{_FROM}\n"),
    "a star import of a class": (
        "from .compat import *",
        f"from torch import nn\n{_ELSE}",
        "from torch import nn\n",
    ),
    "an import": (f"from .compat import {_NAME}", f"from torch import nn\n{_ELSE}", f"{_FROM}\n"),
}
_MEANT = {
    "an import of another package": (f"from flash_toy import {_NAME}", _FROM),
    "another module of the library": (
        f"from transformers.modeling_old import {_NAME}",
        f"from transformers import {_NAME}",
    ),
    "a guarded import of another package": (
        _tried(f"from flash_toy import {_NAME}", "pass"),
        _tried("from flash_toy import attention", "pass"),
    ),
    "another package, or a class": (
        _tried(f"from flash_toy import {_NAME}", f"{_NAME} = nn.Module"),
        _tried(_FROM, f"{_NAME} = nn.Module"),
    ),
    "a fallback that is no module": (
        _tried(_FROM, f"{_NAME} = object"),
        _tried(_FROM, f"{_NAME} = torch.nn.Module"),
    ),
    "a fallback that is none": (
        _tried(_FROM, f"{_NAME} = None"),
        _tried(_FROM, f"class {_NAME}(nn.Module):", "    pass"),
    ),
    "a fallback below": (_tried(_FROM, "pass") + f"{_NAME} = object\n", _tried(_FROM, "pass")),
    "a fallback that raises": (_tried(_FROM, f"{_NAME} = int", "print()"), _tried(_FROM, "raise")),
    "a fallback of another package": (
        _tried(_FROM, f"from flash_toy import {_NAME}"),
        _tried(_FROM, f"from transformers import {_NAME}"),
    ),
    "the rest of a mapping": (
        f"match {{}}:\n    case {{**{_NAME}}}:\n        pass\n",
        "match {}:\n    case {**rest}:\n        pass\n",
    ),
    "the rest of a list": (
        f"match []:\n    case [*{_NAME}]:\n        pass\n",
        "match []:\n    case [*rest]:\n        pass\n",
    ),
    "a pattern": (
        f"match 1:\n    case int() as {_NAME}:\n        pass\n",
        "match 1:\n    case int() as rest:\n        pass\n",
    ),
    "a module": (f"import os.path as {_NAME}", "import os.path as path"),
    "a module of that name": (f"import {_NAME}", "import os"),
    "an error": (
        f"try:\n    pass\nexcept ValueError as {_NAME}:\n    pass\n",
        "try:\n    pass\nexcept ValueError as error:\n    pass\n",
    ),
    "a global name": (
        f"def f():\n    global {_NAME}\n    {_NAME} = 1\n",
        "def f():\n    global x\n    x = 1\n",
    ),
    "a walrus": (f"[({_NAME} := x) for x in ()]", "[(y := x) for x in ()]"),
    "a deletion": (f"{_FROM}\ndel {_NAME}", f"{_FROM}\nx = 1\ndel x"),
}


_MANY = 14


def test_modules_that_all_import_everything_from_each_other(tmp_path: Path) -> None:
    """A walk along each of their paths would take as long as nobody waits."""
    names = [f"part_{number}" for number in range(_MANY)]
    for name in names:
        stars = "".join(f"from .{other} import *\n" for other in names if other != name)
        (tmp_path / f"{name}.py").write_text(f"# {_NAME}\n{stars}", encoding="utf-8")
    before = "".join(f"from .{name} import *\n" for name in names)
    text = IMPORTS + before + ATTENTION + block(_SCALED.format("scale")) + model()
    (tmp_path / "modeling_toy.py").write_text(text, encoding="utf-8")
    rules = [rule for rule in all_rules() if "GC001" in rule.codes]
    result = check(Project(Settings(), [tmp_path / "modeling_toy.py"], [tmp_path]), rules)
    assert result.problems == ()
    (finding,) = result.findings
    assert isinstance(finding.remedy, Fix)
    assert finding.remedy.applicability is Applicability.UNSAFE


@pytest.mark.parametrize("what", _NAMED)
def test_another_file_gives_the_name_of_the_base_class(what: str, tmp_path: Path) -> None:
    before, harmful, harmless = _NAMED[what]
    assert "is something else in this file" in _remedy(tmp_path, before, compat=harmful)
    assert _remedy(tmp_path, before, compat=harmless) == "safe"


@pytest.mark.parametrize("what", _MEANT)
def test_the_name_of_the_base_class_means_something_else(what: str, tmp_path: Path) -> None:
    harmful, harmless = _MEANT[what]
    assert "is something else in this file" in _remedy(tmp_path, harmful)
    assert _remedy(tmp_path, harmless) == "safe"


def test_files_lead_back_to_each_other(tmp_path: Path) -> None:
    given = {"compat": f"from .modeling_toy import *\nfrom .modeling_toy import {_NAME}\n"}
    assert "is something else" in _remedy(tmp_path, f"from .compat import {_NAME}", **given)
    assert _remedy(tmp_path, "from .compat import *", compat="from .modeling_toy import *\n") == "safe"


_COUNTING = (
    "    n = 0\n\n    def forward(self, hidden_states, mask=None):\n        self.n += 1\n"
    "        return super().forward(hidden_states, mask) * self.n\n"
)
_SCALING = _COUNTING.replace("        self.n += 1\n", "").replace("self.n", "2")
_OTHERS = {
    "a class": ("from .modeling_toy import ToyLayer\nclass SubLayer(ToyLayer):\n", _COUNTING, _SCALING),
    "a class of a module": (
        "import modeling_toy as toy\nclass SubLayer(toy.ToyLayer):\n",
        _COUNTING,
        _SCALING,
    ),
    "a class of a star import": (
        "from .modeling_toy import *\nclass SubLayer(ToyLayer):\n",
        _COUNTING,
        _SCALING,
    ),
    "an order of bases": (
        f"{_FROM}\nfrom .modeling_toy import ToyLayer\n",
        f"class Both({_NAME}, ToyLayer):\n    pass\n",
        f"class Both(ToyLayer, {_NAME}):\n    pass\n",
    ),
    "an order of bases by another name": (
        f"{_FROM} as Base\nfrom .modeling_toy import ToyLayer\n",
        "class Both(Base, ToyLayer):\n    pass\n",
        "class Both(ToyLayer, Base):\n    pass\n",
    ),
    "a class that a function makes": (
        "from torch import nn\nfrom .modeling_toy import ToyLayer\n",
        "def make(config):\n    class SubLayer(ToyLayer):\n        pass\n    return SubLayer(config)\n",
        "def make(config):\n    class Other(nn.Module):\n        pass\n    return ToyLayer(config)\n",
    ),
}


@pytest.mark.parametrize("what", _OTHERS)
def test_a_class_of_another_file_inherits_from_the_block(what: str, tmp_path: Path) -> None:
    before, harmful, harmless = _OTHERS[what]
    assert _remedy(tmp_path, "", more=before + harmful) != "safe"
    assert _remedy(tmp_path, "", more=before + harmless) == "safe"


def test_a_class_inherits_by_way_of_another_file(tmp_path: Path) -> None:
    middle = "from .modeling_toy import ToyLayer\nclass Middle(ToyLayer):\n    pass\n"
    given = "from .middle import Middle\nclass SubLayer(Middle):\n"
    assert _remedy(tmp_path, "", middle=middle, more=given + _COUNTING) == "unsafe"
    assert _remedy(tmp_path, "", middle=middle, more=given + _SCALING) == "safe"


def test_a_function_of_the_file_makes_a_class(tmp_path: Path) -> None:
    init = "class SubLayer({}):\n    pass\n" + STACK
    for base, said in {"ToyLayer": "unsafe", "nn.Module": "safe"}.items():
        text = IMPORTS + ATTENTION + block() + model(init=init.format(base))
        assert _judge(tmp_path, text).value == said


_SWITCH = """
class Embedder:
    def __init__(self, model):
        self.model = model

    def enable(self):
        def switch(module):
            {asked}module.gradient_checkpointing = {value}

        switch(self.model)
"""


@pytest.mark.parametrize(
    ("asked", "value", "said"),
    [
        ("if hasattr(module, 'gradient_checkpointing'):\n                ", "True", "unsafe"),
        ("if hasattr(module, 'gradient_checkpointing'):\n                ", "False", "safe"),
        ("", "False", "safe"),
    ],
)
def test_code_sets_the_flag_of_what_has_one(asked: str, value: str, said: str, tmp_path: Path) -> None:
    assert _remedy(tmp_path, "", embedder=_SWITCH.format(asked=asked, value=value)) == said


def test_code_sets_the_flag_of_anything(tmp_path: Path) -> None:
    assert ", enables it, but" in _remedy(tmp_path, "", embedder=_SWITCH.format(asked="", value="True"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("layer(mask=mask, hidden_states=layer(hidden_states=hidden_states, mask=mask))", "unsafe"),
        ("layer(mask=mask, hidden_states=layer(hidden_states, mask))", "safe"),
        ("layer(layer(hidden_states=hidden_states, mask=mask), mask)", "safe"),
    ],
)
def test_a_call_stands_in_the_arguments_of_another_one(call: str, said: str, tmp_path: Path) -> None:
    loop = f"for layer in self.layers:\n    hidden_states = {call}\n"
    path = tmp_path / "modeling_toy.py"
    path.write_text(IMPORTS + ATTENTION + block() + model(loop), encoding="utf-8")
    rules = [rule for rule in all_rules() if "GC001" in rule.codes]
    (finding,) = check(Project(Settings(), [path], [tmp_path]), rules).findings
    assert isinstance(finding.remedy, Fix)
    assert finding.remedy.applicability.value == said
    edits = [edit for edit in finding.remedy.edits if edit.end > edit.start]
    assert all(
        one.end <= other.start or other.end <= one.start or one is other for one in edits for other in edits
    )


_REPEATED = {
    "statistics of instances": (
        "F.instance_norm(hidden_states, self.mean, self.deviation, use_input_stats=True)",
        "F.instance_norm(hidden_states, weight=self.attention.query.weight)",
    ),
    "statistics that are given": (
        "F.instance_norm(hidden_states, running_mean=mask, running_var=mask)",
        "F.instance_norm(mask + hidden_states, bias=mask)",
    ),
    "a switch of gradients": (
        "torch.set_grad_enabled(False)\nhidden_states + 1",
        "hidden_states\nwith torch.set_grad_enabled(False):\n    mask.sum()",
    ),
    "a computed switch of gradients": (
        "hidden_states\nwith torch.set_grad_enabled(self.training):\n    mask.sum()",
        "hidden_states\nwith torch.set_grad_enabled(mode=False):\n    mask.sum()",
    ),
}


@pytest.mark.parametrize("what", _REPEATED)
def test_what_is_done_once_more(what: str, tmp_path: Path) -> None:
    init = "self.mean = torch.zeros(4)\nself.deviation = torch.ones(4)"
    for code, said in zip(_REPEATED[what], (Applicability.UNSAFE, Applicability.SAFE), strict=True):
        body = f"hidden_states = {code}\n{BODY}"
        text = IMPORTS + "import torch.nn.functional as F\n" + ATTENTION + block(body, init=init) + model()
        assert _judge(tmp_path, text) is said
