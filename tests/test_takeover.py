"""What models do once an override of the library's switch is gone: what it hid, and where no flag is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import ATTENTION, FLAG, IMPORTS, PROTECTED, STACK, block, model

_METHOD = """\
def _set_gradient_checkpointing(self, module, value=False):
    if isinstance(module, {}):
        module.gradient_checkpointing = value
"""
_NEW = "def _set_gradient_checkpointing(self, enable=True, gradient_checkpointing_func=None):\n    pass\n"
_ENCODER = f"""
class ToyEncoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        {STACK}
        {FLAG}

    def forward(self, hidden_states):
        return hidden_states


"""


def _toy(
    *,
    method: str = _METHOD.format("ToyEncoder"),
    base: str = "PreTrainedModel",
    init: str = "self.encoder = ToyEncoder(config)",
    before: str = "",
    after: str = "",
    layer: str = PROTECTED,
) -> str:
    owner = model("hidden_states = self.encoder(hidden_states)", init=init, more=method, base=base)
    return f"{IMPORTS}{ATTENTION}{block(base=layer)}{_ENCODER}{before}{owner}{after}"


def _fix(folder: Path, text: str, others: dict[str, str] | None = None) -> Fix:
    """Return the fix for the override of ``ToyModel``."""
    for name, each in {"modeling_toy.py": text, **(others or {})}.items():
        compile(each, name, "exec", dont_inherit=True)
        (folder / name).write_text(each, encoding="utf-8")
    rules = [rule for rule in all_rules() if "GC301" in rule.codes]
    result = check(Project(Settings(), [folder / "modeling_toy.py"]), rules)
    assert result.problems == ()
    (fix,) = (each.fix for each in result.findings if each.symbol == "ToyModel")
    assert fix is not None
    return fix


def _named(base: str, method: str, name: str = "ToyBase") -> str:
    lines = "".join(f"    {line}\n" for line in method.splitlines())
    return f"\nclass {name}({base}):\n    other = 1\n\n{lines}\n\n"


_READING = """
class ToyTower(nn.Module):
    def __init__(self, config):
        super().__init__()
        {}

    def forward(self, hidden_states):
        return {}


"""
_TOWER = _READING.format(FLAG, "hidden_states")
_PLAIN = _READING.format("self.norm = nn.Identity()", "hidden_states")
_ASKING = _READING.format("self.norm = nn.Identity()", "getattr(self, 'gradient_checkpointing', False)")


def _with_tower(init: str, tower: str = _TOWER, more: str = "", after: str = "", takes: str = "") -> str:
    """Write a model with an encoder that its override names, and another part."""
    text = _toy(init=f"self.encoder = ToyEncoder(config)\n{init}", before=tower + more, after=after)
    start, takes = "def __init__(self, config):\n        super().__init__(config)", takes and f", {takes}"
    assert text.count(start) == 1
    return text.replace(start, start.replace("config):", f"config{takes}):")).replace(
        "self.encoder(hidden_states)", "self.encoder(self.tower(hidden_states))"
    )


_PART = """
class ToyPart(PreTrainedModel):
    def __init__(self, config, norm=None):
        self.norm = norm
        self.encoder = ToyEncoder(config)

    def forward(self, hidden_states):
        return self.norm(hidden_states)


"""
_MAKER = "def build(config):\n    return {}\n\n\n"
_MISSING, _HUB = _METHOD.format("(ToyEncoder, ToyMissing)"), "from hub import ToyMissing, ToyPresent\n"
_WITHOUT = """
class ToyOther({}):
    def __init__(self, config):
        self.norm = nn.Identity()

    def forward(self, hidden_states):
        return hidden_states
"""
_NOTHING = _METHOD.splitlines()[0] + "\n    'Nothing is switched on.'\n"
_OWN = "_gradient_checkpointing_func"
_GIVING = _METHOD.format("ToyEncoder") + f"def start(self):\n    self.{_OWN} = {{}}\n"


def _encoder(code: str, after: str = "") -> str:
    """Write a model whose encoder has more in its class."""
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    marker = "    def forward(self, hidden_states):\n        return hidden_states\n"
    text = _toy(after=after)
    assert marker in text
    return text.replace(marker, f"{lines}\n{marker}", 1)


_OTHER = _NEW.replace("gradient_checkpointing(", "gradient_clipping(")
_PAIRS: dict[str, tuple[str | dict[str, str], str | dict[str, str], str]] = {
    # -- what it hides
    "one of a base with the same signature": (
        _toy(base="ToyBase", before=_named("PreTrainedModel", _METHOD.format("ToyLayer"))),
        _toy(base="ToyBase", before=_named("PreTrainedModel", _OTHER)),
        "takes its place",
    ),
    "one of a base with the new signature": (
        _toy(base="ToyBase", before=_named("PreTrainedModel", _NEW)),
        _toy(base="ToyBase", before=_named("PreTrainedModel", _OTHER)),
        "takes its place",
    ),
    "one of a mixin": (
        _toy(base="ToyBase, PreTrainedModel", before=_named("object", _NEW)),
        _toy(base="PreTrainedModel, ToyBase", before=_named("object", _NEW)),
        "takes its place",
    ),
    "one of a mixin that is assigned": (
        _toy(
            base="ToyBase, PreTrainedModel",
            before=_named("object", "_set_gradient_checkpointing = print"),
        ),
        _toy(base="ToyBase, PreTrainedModel", before=_named("object", "_set_gradient_clipping = print")),
        "takes its place",
    ),
    "one of a mixin of an heir": (
        _toy(after=_named("object", _NEW) + "class ToyHeir(ToyModel, ToyBase):\n    pass\n"),
        _toy(after=_named("object", _NEW) + "class ToyHeir(ToyBase, ToyModel):\n    pass\n"),
        "takes its place in `ToyHeir`",
    ),
    "one above it in the same class": (
        _toy(method=_NEW + _METHOD.format("ToyEncoder")),
        _toy(method=_OTHER + _METHOD.format("ToyEncoder")),
        "takes its place",
    ),
    "a mixin that is not found": (
        _toy(base="ToyBase, PreTrainedModel", before="from hub import ToyBase\n"),
        _toy(base="ToyBase, PreTrainedModel", before="from abc import ABC as ToyBase\n"),
        "could not be found",
    ),
    # -- where no flag is left
    "an heir without any flag": (
        _toy(after="class ToyHeir(ToyModel):\n    def __init__(self, config):\n        pass\n"),
        _toy(after="class ToyHeir(ToyModel):\n    def start(self, config):\n        pass\n"),
        "`ToyHeir` is not known to always have",
    ),
    "another model without any flag": (
        _toy(after=_WITHOUT.format("ToyModel")),
        _toy(after=_WITHOUT.format("PreTrainedModel")),
        "`ToyOther` is not known to always have",
    ),
    "a part with a flag, or another one": (
        _toy(init="self.encoder = ToyEncoder(config) if config.deep else nn.Identity()"),
        _toy(init="self.encoder = ToyEncoder(config) if config.deep else ToyEncoder(config.text)"),
        "is not known to always have",
    ),
    "a part with a flag under a condition": (
        _toy(init="if config.deep:\n    self.encoder = ToyEncoder(config)"),
        _toy(init="self.depth = config.depth\nself.encoder = ToyEncoder(config)"),
        "is not known to always have",
    ),
    "a part that is replaced": (
        _toy(init="self.encoder = ToyEncoder(config)\nif config.flat:\n    self.encoder = nn.Identity()"),
        _toy(init="self.encoder = ToyEncoder(config)\nif config.flat:\n    self.other = nn.Identity()"),
        "is not known to always have",
    ),
    "a part that another method replaces": (
        _toy(init="self.encoder = ToyEncoder(config)\nself.encoder = nn.Identity()"),
        _toy(method=_METHOD.format("ToyEncoder") + "def start(self, other):\n    self.encoder = other\n"),
        "is not known to always have",
    ),
    "a part that a table gives": (
        _toy(init="self.encoder = {'a': ToyEncoder, 'b': nn.Identity}[config.kind](config)"),
        _toy(init=f"self.encoder = nn.Identity()\n{STACK}"),
        "is not known to always have",
    ),
    "a class of torch": (
        _toy(method=_METHOD.format("(ToyEncoder, nn.ModuleList)")),
        _toy(method=_METHOD.format("(ToyEncoder, ToyEncoder)")),
        "only this override sets",
    ),
    "a class that is not found": (
        _toy(method=_MISSING, before=_HUB, init="self.encoder = ToyEncoder(config)\nself.o = ToyMissing()"),
        _toy(method=_MISSING, before=_HUB, init="self.encoder = ToyEncoder(config)\nself.o = ToyPresent()"),
        "only this override sets",
    ),
    "one that does nothing": (
        _toy(method=_NOTHING, init="self.encoder = nn.Identity()"),
        _toy(method=_NOTHING, init=f"self.encoder = nn.Identity()\n{STACK}"),
        "is not known to always have",
    ),
    # -- a checkpoint function of its own
    "a method": (
        _encoder(f"def {_OWN}(self, run, *args):\n    return run(*args)"),
        _encoder("def _checkpointing_func(self, run, *args):\n    return run(*args)"),
        "may be the model's own",
    ),
    "an attribute of the class": (_encoder(f"{_OWN} = print"), _encoder(f"{_OWN} = None"), "the model's own"),
    "an attribute": (
        _encoder(f"def start(self, run):\n    self.{_OWN} = run"),
        _encoder(f"def start(self, run):\n    self.{_OWN} = None\n    self.other = run"),
        "the model's own",
    ),
    "an attribute by its name": (
        _encoder(f"def start(self, run):\n    setattr(self, {_OWN!r}, run)"),
        _encoder(f"def start(self, run):\n    {_OWN!r}\n    setattr(self, 'other', run)"),
        "the model's own",
    ),
    "an attribute that is given by its name": (
        _encoder(f"def start(self, run):\n    self.__dict__.update({_OWN}=run)"),
        _encoder("def start(self, run):\n    self.__dict__.update(other=run)"),
        "the model's own",
    ),
    "another function if there is none": (
        _encoder(f"def start(self, run):\n    getattr(self, {_OWN!r}, run)(self)"),
        _encoder("def start(self, run):\n    getattr(self, 'other', run)(self)"),
        "the model's own",
    ),
    "one from outside": (
        _toy(after=f"def start(model, run):\n    model.encoder.{_OWN} = run\n"),
        _toy(after=f"def start(model, run):\n    model.encoder.{_OWN}(run)\n"),
        "the model's own",
    ),
    "one of a part, or of another class": (
        _encoder("pass").replace(
            "        self.attention =", f"        self.{_OWN} = print\n        self.attention ="
        ),
        _toy(after=f"class ToyOther:\n    def __init__(self):\n        self.{_OWN} = print\n"),
        "the model's own",
    ),
    "one that a script gives": (
        {"modeling_toy.py": _toy(), "train.py": f"def start(model, run):\n    model.{_OWN} = run\n"},
        {"modeling_toy.py": _toy(), "train.py": f"def start(model, run):\n    model.{_OWN}(run)\n"},
        "train.py may be the model's own",
    ),
    # -- what is no part by its own code, or has a flag of others
    "a part that a function makes": (
        _with_tower("self.tower = build(config)", more=_MAKER.format("ToyTower(config)")),
        _with_tower("self.tower = build(config)", _PLAIN, _MAKER.format("ToyTower(config)")),
        "switched on in `ToyTower`",
    ),
    "a part that a function of a function makes": (
        _with_tower(
            "self.tower = make(config)",
            more=f"{_MAKER.format('ToyTower(config)')}def make(config):\n    return build(config)\n\n\n",
        ),
        _with_tower(
            "self.tower = make(config)",
            more=f"{_MAKER.format('ToyTower(config)')}def make(config):\n    return nn.Identity()\n\n\n",
        ),
        "switched on in `ToyTower`",
    ),
    "a part that a factory makes": (
        _with_tower(
            "self.tower = Factory().build(config)",
            more="class Factory:\n    def build(self, config):\n        return ToyTower(config)\n\n\n",
        ),
        _with_tower(
            "self.tower = Factory().build(config)",
            more="class Factory:\n    def build(self, config):\n        return ToyEncoder(config)\n\n\n",
        ),
        "switched on in `ToyTower`",
    ),
    "a model that a function loads": (
        _with_tower("self.tower = build(config)", more=_MAKER.format("AutoModel.from_config(config)")),
        _with_tower("self.tower = build(config)", more=_MAKER.format("nn.Identity(config)")),
        "the models that `build` loads",
    ),
    "a part that the model is given": (
        _with_tower("self.tower = tower", takes="tower=None"),
        _with_tower("self.tower = nn.Identity()\nself.depth = depth", takes="depth=None"),
        "what `ToyModel` is given as `tower`",
    ),
    "a part that the model is given, or makes": (
        _with_tower("self.tower = tower or nn.Identity()", takes="tower=None"),
        _with_tower("self.tower = nn.Identity(tower)", takes="tower=None"),
        "what `ToyModel` is given as `tower`",
    ),
    "a model that is given, or one that another one makes with what it has": (
        _with_tower("self.tower = tower", takes="tower=None"),
        _with_tower("self.tower = ToyPart(config, nn.Identity())", more=_PART),
        "what `ToyModel` is given as `tower`",
    ),
    "a flag of a loop": (
        _with_tower(
            "self.tower = ToyTower(config)",
            _READING.format(
                "for name in ('gradient_checkpointing', 'x'):\n            setattr(self, name, False)", 1
            ),
        ),
        _with_tower(
            "self.tower = ToyTower(config)",
            _READING.format("for name in ('checkpointing', 'x'):\n            setattr(self, name, False)", 1),
        ),
        "switched on in `ToyTower`",
    ),
    "a flag among the variables": (
        _with_tower(
            "self.tower = ToyTower(config)",
            _READING.format("self.__dict__.update(gradient_checkpointing=False)", 1),
        ),
        _with_tower(
            "self.tower = ToyTower(config)", _READING.format("self.__dict__.update(checkpointing=False)", 1)
        ),
        "switched on in `ToyTower`",
    ),
    "a flag that the model sets": (
        _with_tower("self.tower = ToyTower(config)\nself.tower.gradient_checkpointing = False", _PLAIN),
        _with_tower("self.tower = ToyTower(config)\nself.encoder.gradient_checkpointing = False", _PLAIN),
        "gives a flag",
    ),
    "a flag that the class is given": (
        _with_tower("self.tower = ToyTower(config)", _PLAIN, "ToyTower.gradient_checkpointing = False\n\n\n"),
        _with_tower(
            "self.tower = ToyTower(config)", _PLAIN, "ToyEncoder.gradient_checkpointing = False\n\n\n"
        ),
        "gives a flag",
    ),
    "a flag of a part that is not known": (
        _with_tower("self.tower = make(config)\nself.tower.gradient_checkpointing = False"),
        _with_tower("self.tower = make(config)\nself.tower.checkpointing = False"),
        "gives a flag",
    ),
    "a flag of a variable": (
        _with_tower("tower = self.tower = make(config)\ntower.gradient_checkpointing = False"),
        _with_tower("tower = self.tower = make(config)\ntower.checkpointing = False"),
        "gives a flag",
    ),
    "a part that asks for its flag": (
        _with_tower("self.tower = ToyTower(config)", _ASKING),
        _with_tower("self.tower = ToyTower(config)", _ASKING.replace("getattr(self,", "getattr(config,")),
        "switched on in `ToyTower`",
    ),
}


@pytest.mark.parametrize("name", _PAIRS)
def test_an_override_goes_only_if_nothing_else_comes_to_light(name: str, tmp_path: Path) -> None:
    harmful, harmless, why = _PAIRS[name]
    fix = _fix(tmp_path, *_files(harmful))
    assert (fix.applicability, why in (fix.reason or "")) == (Applicability.UNSAFE, True), fix.reason
    assert _fix(tmp_path, *_files(harmless)).reason is None


def _files(text: str | dict[str, str]) -> tuple[str, dict[str, str]]:
    files = {"modeling_toy.py": text} if isinstance(text, str) else text
    return files["modeling_toy.py"], files


def test_an_heir_in_a_file_that_is_not_given_counts(tmp_path: Path) -> None:
    heir = "from modeling_toy import ToyModel\n\n\nclass ToyHeir(ToyModel):\n    def {}(self, config): ...\n"
    fix = _fix(tmp_path, _toy(), {"other.py": heir.format("__init__")})
    assert "`ToyHeir` is not known" in (fix.reason or "")
    assert _fix(tmp_path, _toy(), {"other.py": heir.format("start")}).reason is None


def test_the_function_of_torch_is_no_other_one(tmp_path: Path) -> None:
    """It has no options, so it is reentrant, as the library's is if one asks for that."""
    torchs = _fix(tmp_path, _toy(method=_GIVING.format("torch.utils.checkpoint.checkpoint")))
    assert "the model's own" not in (torchs.reason or "")
    with_options = _GIVING.format("partial(torch.utils.checkpoint.checkpoint, context_fn=print)")
    assert "the model's own" in (_fix(tmp_path, _toy(method=with_options)).reason or "")
    other = _GIVING.format("torch.utils.checkpoint.checkpoint_sequential")
    assert "the model's own" in (_fix(tmp_path, _toy(method=other)).reason or "")
