"""What a copy is, and what changes with it: marked code, generated code, heirs and users in other files."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Edit, Refusal
from gclint.run.fix import fix
from gclint.settings import Settings
from tests.decisions.outside import (
    KEYWORD,
    LAYER,
    Files,
    Outside,
    Pair,
    decided,
    found,
)
from tests.decisions.toy import (
    ABSOLUTE,
    BRANCH,
    FLAG,
    LIBRARY,
    MODELS,
    PROTECTED,
    RELATIVE,
    STACK,
    block,
    model,
    toy,
)
from tests.toys import WordRule, replacing, without_fix

_COPIED = "# Copied from transformers.models.alpha.modeling_alpha.AlphaLayer with Alpha->Beta\n"


def _named(text: str, name: str) -> str:
    return text.replace(ABSOLUTE, RELATIVE).replace("Toy", name)


def _tree(beta: str, alpha: str = "", more: Files | None = None) -> Files:
    """Write the files of two models into a package, the second of which may copy from the first."""
    return {
        **LIBRARY,
        f"{MODELS}/alpha/modeling_alpha.py": _named(alpha or toy(), "Alpha"),
        f"{MODELS}/beta/modeling_beta.py": _named(beta, "Beta"),
        **(more or {}),
    }


def _copy(layer: str = "", comment: str = _COPIED, supports: str = "False") -> str:
    return toy(comment + (layer or block()), model(supports=supports))


_ALPHA = [found(LAYER, "safe", of="AlphaLayer")]
_WITH = [found(LAYER, "unsafe", "copy changes", of="AlphaLayer")]


test_marked_copies = decided(
    Pair("a copy", _tree(_copy()), ("# Copied from", "# Taken from"), _WITH, _ALPHA),
    Pair("no copy any longer", _tree(_copy()), ("# Copied from", "# NO LONGER Copied from"), _WITH, _ALPHA),
    Pair("a copy under other names", _tree(_copy()), ("Alpha->Beta", "Alpha->Gamma"), _WITH, _ALPHA),
    Pair(
        "a copy of a class that is not there",
        _tree(_copy()),
        (".AlphaLayer with", ".AlphaPlayer with"),
        _WITH,
        _ALPHA,
    ),
    Pair(
        "a copy that differs",
        _tree(_copy()),
        (
            "with Alpha->Beta\nclass BetaLayer(nn.Module):\n",
            "with Alpha->Beta\nclass BetaLayer(nn.Module):\n    x = 1\n",
        ),
        _WITH,
        _ALPHA,
    ),
    Pair(
        "a comment that is not above",
        _tree(_copy()),
        ("Alpha->Beta\n", "Alpha->Beta\n\nX = 1\n\n"),
        _WITH,
        _ALPHA,
    ),
    Pair(
        "a copy that is reported itself",
        _tree(_copy()),
        (
            "class BetaModel(PreTrainedModel):\n    supports_gradient_checkpointing = False",
            "class BetaModel(PreTrainedModel):\n    supports_gradient_checkpointing = True",
        ),
        _WITH,
        [*_ALPHA, found(LAYER, "safe", of="BetaLayer")],
    ),
    Pair(
        "a copy that is unsafe",
        _tree(_copy(supports="True")),
        (
            "class BetaAttention(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n",
            "class BetaAttention(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
            "        self.norm = nn.BatchNorm1d(4)\n",
        ),
        [*_ALPHA, found(LAYER, "safe", of="BetaLayer")],
        [
            found(LAYER, "unsafe", "copy is unsafe", of="AlphaLayer"),
            found(LAYER, "unsafe", "statistics", of="BetaLayer"),
        ],
    ),
    Pair(
        "a copy that an ignore comment keeps",
        _tree(_copy(supports="True")),
        (
            "class BetaLayer(nn.Module):\n",
            "class BetaLayer(nn.Module):  # gclint: ignore[missing-checkpointing-layer]\n",
        ),
        [*_ALPHA, found(LAYER, "safe", of="BetaLayer")],
        _ALPHA,
    ),
    Pair(
        "a method that is exempt",
        _tree(_copy(block("return hidden_states"), supports="False")),
        (
            "    def forward(self, hidden_states, mask=None):\n        return hidden_states\n",
            "    # Ignore copy\n    def forward(self, hidden_states, mask=None):\n"
            "        return hidden_states\n",
        ),
        _ALPHA,
        _WITH,
    ),
    Pair(
        "a copy that has no fix",
        _tree(_copy(supports="True")),
        (
            "class BetaModel(PreTrainedModel):\n    supports_gradient_checkpointing = True\n",
            "GradientCheckpointingLayer = 1\nclass BetaModel(PreTrainedModel):\n"
            "    supports_gradient_checkpointing = True\n",
        ),
        [*_ALPHA, found(LAYER, "safe", of="BetaLayer")],
        [
            found(LAYER, "none", "copy cannot change", of="AlphaLayer"),
            found(LAYER, "none", "name taken", of="BetaLayer"),
        ],
    ),
)


_WITHIN = _COPIED.replace("Alpha->Beta", "AlphaLayer->AlphaBlock").replace("Copied", "Taken")
_BLOCKS = block(name="ToyBlock"), model(name="ToyOther", init=STACK.replace("Layer", "Block"))


test_copies_in_one_file = decided(
    Pair(
        "a copy in the file of its origin",
        {
            **LIBRARY,
            f"{MODELS}/alpha/modeling_alpha.py": _named(
                toy(block(), _WITHIN + _BLOCKS[0], model(), _BLOCKS[1]), "Alpha"
            ),
        },
        ("# Taken from", "# Copied from"),
        [*_ALPHA, found(LAYER, "safe", of="AlphaBlock")],
        [*_ALPHA, found(LAYER, "safe", of="AlphaBlock")],
        wrong="the fix of a copy in the same file is taken for one of the origin, from which it differs",
    ),
)


_CHAIN = ("", "Alpha", "Beta", "Gamma", "Delta")
_FURTHER = "# Copied from transformers.models.{0}.modeling_{0}.{1}Layer with {1}->{2}\n"


def _chain() -> Files:
    """Write four models, each of whose layers is a copy of the one before; the last one cannot change."""
    files = dict(LIBRARY)
    for origin, name in pairwise(_CHAIN):
        comment = _FURTHER.format(origin.lower(), origin, name) if origin else ""
        taken = "GradientCheckpointingLayer = 1\n" if name == _CHAIN[-1] else ""
        code = _named(toy(comment + block(), taken + model()), name)
        files[f"{MODELS}/{name.lower()}/modeling_{name.lower()}.py"] = code
    return files


def _changing(kind: str, *reasons: str) -> list[str]:
    return [found(LAYER, kind, *reasons, of=f"{name}Layer") for name in _CHAIN[1:-1]]


_UNCHANGED = found(LAYER, "none", "name taken", of="DeltaLayer")


test_chains = decided(
    Pair(
        "a chain of copies of which the last cannot change",
        _chain(),
        ("# Copied from transformers.models.gamma", "# Taken from transformers.models.gamma"),
        [*_changing("none", "copy cannot change"), _UNCHANGED],
        [*_changing("safe"), _UNCHANGED],
    ),
)


_KEYWORD = "for layer in self.layers:\n    hidden_states = layer(hidden_states=hidden_states)"
_METHOD = "# Copied from transformers.models.alpha.modeling_alpha.AlphaModel.forward with Alpha->Beta\n    "


def _calls(beta: str = PROTECTED, takes: str = "hidden_states, mask=None") -> Files:
    alpha = toy(block(base=PROTECTED), model(_KEYWORD))
    copy = toy(block(base=beta, takes=takes), model(_KEYWORD, supports="False"))
    head, _, tail = copy.rpartition("    def forward")
    return _tree(f"{head}    {_METHOD}def forward{tail}", alpha)


_ALPHA_TAKES = "self.attention = AlphaAttention(config)\n\n\n    def forward(self, hidden_states"


def _called_in_copy() -> Files:
    """Write two models of which only the second, whose loop is a copy, is reported."""
    copy = toy(block(base=PROTECTED), model(_KEYWORD))
    head, _, tail = copy.rpartition("    def forward")
    return _tree(f"{head}    {_METHOD}def forward{tail}", toy(block(), model(_KEYWORD, supports="False")))


test_copied_calls = decided(
    Pair(
        "a call in a copy that runs no layer",
        _calls("nn.Module"),
        ("class BetaLayer(nn.Module)", "class BetaLayer(GradientCheckpointingLayer)"),
        [found(KEYWORD, "unsafe", "copy changes", of="AlphaLayer")],
        [found(KEYWORD, "safe", of="AlphaLayer"), found(KEYWORD, "safe", of="BetaLayer")],
    ),
    Pair(
        "a call in a copy that runs other parameters",
        _calls("nn.Module"),
        (
            "class BetaLayer(nn.Module):\n    def __init__(self, config, index=0):\n"
            "        super().__init__()\n        self.attention = BetaAttention(config)\n    \n    \n"
            "    def forward(self, hidden_states, mask=None)".replace("    \n    \n", "\n\n"),
            "class BetaLayer(nn.Module):\n    def __init__(self, config, index=0):\n"
            "        super().__init__()\n        self.attention = BetaAttention(config)\n\n\n"
            "    def forward(self, hidden_states, task=None)",
        ),
        [found(KEYWORD, "unsafe", "copy changes", of="AlphaLayer")],
        [found(KEYWORD, "none", "copy cannot change", of="AlphaLayer")],
    ),
    Pair(
        "a call in a copy that runs another class",
        _calls("nn.Module"),
        ("[BetaLayer(config)", "[BetaAttention(config)"),
        [found(KEYWORD, "unsafe", "copy changes", of="AlphaLayer")],
        [found(KEYWORD, "none", "copy cannot change", of="AlphaLayer")],
    ),
    Pair(
        "a call in a copy of one that runs other parameters",
        _called_in_copy(),
        (f"{_ALPHA_TAKES}, mask=None", f"{_ALPHA_TAKES}, task=None"),
        [found(KEYWORD, "unsafe", "copy changes", of="BetaLayer")],
        [found(KEYWORD, "none", "copy cannot change", of="BetaLayer")],
    ),
)


_IN_FORWARD = "    def forward(self, hidden_states, mask=None):\n        for"


def _branches() -> Files:
    """Write two models with a legacy branch, the second of which copies all, its layer twice and last."""
    whole = model(BRANCH, init=f"{STACK}\n{FLAG}")
    copied = whole.replace(_IN_FORWARD, f"    {_METHOD}{_IN_FORWARD.lstrip()}")
    copied = copied.replace("PreTrainedModel", "nn.Module")
    other = _COPIED.replace("Alpha->Beta", "AlphaLayer->BetaOther,Alpha->Beta") + block(name="ToyOther")
    return _tree(toy(copied, f"\n\n{other}", _COPIED + block()), toy(block(), whole))


test_copied_branches = decided(
    Pair(
        "a branch in a copy, above the copy of its layer",
        _branches(),
        (_COPIED, _COPIED.replace("Copied from", "Taken from")),
        [found(LAYER, "unsafe", *["copy changes"] * 3, of="AlphaLayer")],
        [found(LAYER, "none", "copy cannot change", of="AlphaLayer")],
    ),
)


_FAMILY = """\
class ToyFamily(PreTrainedModel):
    supports_gradient_checkpointing = {supports}

"""
_CLASS = _COPIED.replace("AlphaLayer", "AlphaModel")
_BETA = "self.beta = 1\n\n    def forward(self, hidden_states, "


def _classes(more: str = "") -> Files:
    """Write two models, the second of which is a copy, but has no layer and supports nothing."""
    body = model(_KEYWORD, base="ToyFamily", more=more).replace(
        "    supports_gradient_checkpointing = True\n", ""
    )
    alpha = toy(block(base=PROTECTED), _FAMILY.format(supports=True), body)
    return _tree(toy(block(init="self.beta = 1"), _FAMILY.format(supports=False), _CLASS + body), alpha)


_BACK = """\
# Copied from transformers.models.beta.modeling_beta.BetaModel.forward with Beta->Toy,layers->heads
def encode(self, hidden_states, mask=None):
    for layer in self.heads:
        hidden_states = layer(hidden_states=hidden_states)
    return hidden_states
"""


test_calls_in_copied_classes = decided(
    Pair(
        "a call in a copied class",
        _classes(),
        (f"{_BETA}mask=None", f"{_BETA}task=None"),
        [found(KEYWORD, "unsafe", "copy changes", of="AlphaLayer")],
        [found(KEYWORD, "none", "copy cannot change", of="AlphaLayer")],
    ),
    Pair(
        "a copy of which the first is a copy again",
        _classes(_BACK),
        ("# Copied from transformers.models.alpha", "# Taken from transformers.models.alpha"),
        [found(KEYWORD, "none", "copies differ", of="AlphaLayer")],
        [found(KEYWORD, "safe", of="AlphaLayer")],
    ),
)


def _words(text: str) -> tuple[Files, list[Path]]:
    """Write a class and its copy, and return the files and those to check."""
    files = _tree(f"# the copy\n\n{_COPIED}class BetaLayer{text}", f"class AlphaLayer{text}")
    return files, [Path(name) for name in files if "/modeling_" in name and MODELS in name]


@pytest.mark.parametrize("is_broken", [False, True])
def test_of_code_and_its_copy_both_are_repaired_or_neither(is_broken: bool, outside: Outside) -> None:
    def repaired(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        at_top = (Edit(path, 0, 2, "#"), Edit(path, 1, 3, "#")) if is_broken and "beta" in path.name else ()
        return (Edit(path, *match.span(), "good"), *at_top)

    files, given = _words(":\n    x = bad\n")
    outside.write(files)
    result = fix(Project(Settings(), given), [WordRule("bad", repaired)], unsafe=True)
    assert sorted(result.changed) == ([] if is_broken else sorted(given))
    assert len(result.problems) == int(is_broken)


@pytest.mark.parametrize(("code", "is_made"), [("TOY1", False), ("TOY2", True)])
def test_what_the_same_rule_cannot_repair_in_a_copy_stays(code: str, is_made: bool, outside: Outside) -> None:
    files, given = _words("(bad):\n    y = worse\n")
    outside.write(files)
    rules = [
        WordRule(r"(?<=AlphaLayer\()bad", replacing("good")),
        WordRule("worse", without_fix, code=code),
    ]
    result = fix(Project(Settings(), given), rules, unsafe=True)
    assert sorted(result.changed) == (sorted(given) if is_made else [])


@pytest.mark.parametrize(("there", "is_made"), [("good", True), ("better", False)])
def test_two_findings_of_copies_go_together_if_they_change_alike(
    there: str, is_made: bool, outside: Outside
) -> None:
    def repaired(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(), there if "beta" in path.name else "good"),)

    files, given = _words("(bad):\n    pass\n")
    outside.write(files)
    result = fix(Project(Settings(), given), [WordRule("bad", repaired)], unsafe=False)
    assert sorted(result.changed) == (sorted(given) if is_made else [])


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_linked_is_repaired_if_only_one_of_it_is_wanted(place: int, outside: Outside) -> None:
    files, given = _words("(bad):\n    pass\n")
    outside.write(files)
    project = Project(Settings(), given)
    rules = [WordRule("bad", replacing("good"))]
    result = fix(project, rules, unsafe=False, wanted=lambda found: found[place : place + 1])
    assert sorted(result.changed) == sorted(given)
    assert len(result.applied) == 2


def test_linked_findings_in_the_way_of_each_other_are_repaired_one_after_the_other(outside: Outside) -> None:
    # Two copies in one file, whose repairs rely on the same line.
    def relying(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(), "good"), Edit(path, 0, 5, match.string[:5]))

    other = _COPIED.replace("Beta", "Gamma") + "class GammaLayer(bad):\n    pass\n"
    files, given = _words("(bad):\n    pass\n")
    beta = next(name for name in files if "beta" in name)
    outside.write({**files, beta: f"{files[beta]}\n\n{other}"})
    result = fix(Project(Settings(), given), [WordRule("bad", relying)], unsafe=True)
    assert "bad" not in "".join(after for _, after in result.changed.values())
    assert len(result.applied) == 3


@pytest.mark.parametrize(
    ("body", "is_made"),
    [
        ("def work(self):\n        pass\n\n    y = worse\n", False),
        ("def work(self):\n        worse\n\n    y = 1\n", True),
    ],
)
def test_what_stands_behind_a_method_that_is_exempt_still_stays(
    body: str, is_made: bool, outside: Outside
) -> None:
    files, given = _words(f"(bad):\n    # Ignore copy\n    {body}")
    outside.write(files)
    rules = [WordRule(r"(?<=AlphaLayer\()bad", replacing("good")), WordRule("worse", without_fix)]
    result = fix(Project(Settings(), given), rules, unsafe=True)
    assert sorted(result.changed) == (sorted(given) if is_made else [])


@pytest.mark.parametrize(
    ("pattern", "end", "is_made"),
    [
        # The other fix, which is not made, is in the other file, or in this one.
        (r"(?<=Beta = )worse", 5, False),
        (r"(?<=Beta = )worse", 0, True),
        (r"(?<=bad, )worse", 5, True),
    ],
)
def test_findings_of_two_files_that_replace_the_same_code_go_together(
    pattern: str, end: int, is_made: bool, outside: Outside
) -> None:
    alpha, beta = Path("modeling_alpha.py"), Path("modeling_beta.py")

    def with_shared(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return (Edit(path, *match.span(), "good"), Edit(alpha, 0, end, "Other"))

    outside.write({str(alpha): "other = 1\nAlpha = bad, worse\n", str(beta): "Beta = worse\n"})
    rules = [WordRule("bad", with_shared), WordRule(pattern, with_shared, unsafe=True)]
    result = fix(Project(Settings(), [alpha, beta]), rules, unsafe=False)
    assert [*result.changed] == ([alpha] if is_made else [])


def test_of_what_is_linked_each_names_what_keeps_the_other_one(outside: Outside) -> None:
    copied = _COPIED.replace("Beta", "Gamma")
    kept = f"{copied}# gclint: ignore[TOY1]\nclass GammaLayer(bad):\n    pass\n"
    files, given = _words("(bad):\n    pass\n")
    beta = next(name for name in files if "beta" in name)
    outside.write({**files, beta: f"{files[beta]}\n\n{kept}"})
    result = fix(Project(Settings(), given), [WordRule("bad", replacing("good"))], unsafe=True)
    reasons = [each.remedy.reason for each in result.findings if isinstance(each.remedy, Refusal)]
    linked = "`bad` in modeling_alpha.py has to change in the same way"
    assert [linked in reason for reason in reasons] == [False, True]
    assert all("an ignore comment keeps it" in reason for reason in reasons)


@pytest.mark.parametrize(("end", "is_made"), [(0, True), (3, False)])
def test_fix_that_goes_beyond_a_copy_is_not_made(end: int, is_made: bool, outside: Outside) -> None:
    def repaired(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        behind = match.string.index("worse") + len("worse")
        return (Edit(path, *match.span(), "good"), Edit(path, behind - 5, behind + end, "y"))

    files, given = _words("(bad):\n    y = worse\n\nx = 1\n")
    outside.write(files)
    result = fix(Project(Settings(), given), [WordRule("bad", repaired)], unsafe=True)
    assert sorted(result.changed) == (sorted(given) if is_made else [])


@pytest.mark.parametrize(("changed", "is_made"), [("", True), ("worse", False)])
def test_of_code_that_runs_no_block_only_headers_are_changed_in_a_copy(
    changed: str, is_made: bool, outside: Outside
) -> None:
    def repaired(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        start = match.string.index("worse")
        body = (Edit(path, start, start + len(changed), "better"),) if changed else ()
        return (Edit(path, *match.span(), "good"), *body)

    files, given = _words("(bad):\n    y = worse\n")
    outside.write(files)
    result = fix(Project(Settings(), given), [WordRule(r"(?<=AlphaLayer\()bad", repaired)], unsafe=True)
    assert sorted(result.changed) == (sorted(given) if is_made else [])


@pytest.mark.parametrize(("end", "is_made"), [(0, True), (1, False)])
def test_what_two_files_insert_into_a_third_does_not_link_them(
    end: int, is_made: bool, outside: Outside
) -> None:
    first, second, third = paths = [Path(f"modeling_{name}.py") for name in ("a", "b", "c")]

    def repaired(match: re.Match[str], path: Path) -> tuple[Edit, ...]:
        return Edit(path, *match.span(), "good"), Edit(third, 0, end, "z = 1\n")

    outside.write({str(first): "x = bad\n", str(second): "x = ugly\n", str(third): "\n"})
    rules = [WordRule("bad", repaired), WordRule("ugly", repaired, code="TOY2", unsafe=True)]
    result = fix(Project(Settings(), paths), rules, unsafe=False)
    assert sorted(result.changed) == ([first, third] if is_made else [])
