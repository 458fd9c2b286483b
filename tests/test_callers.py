"""A signature that changes its order, or a class that changes its base, is followed into other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.trees import GCL, Tree, model, said

ALPHA = "alpha/modeling_alpha.py"
THIRD = "../../third/modeling_third.py"
IMPORT = "from torch import nn\nfrom transformers.models.alpha.modeling_alpha import AlphaLayer\n"
RUNS = "layer(hidden_states, past_key_values, encoder_hidden_states)"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for package in ("transformers", "transformers/models", "transformers/models/alpha"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    return Tree(tmp_path)


def _alpha(call: str = RUNS, base: str = GCL) -> str:
    text = model("Alpha", base=base).replace("layer_past=None", "past_key_values=None")
    text = text.replace("layer(hidden_states)", call)
    return text.replace(
        "    def forward(self, hidden_states):\n        for",
        "    def forward(self, hidden_states, past_key_values=None, encoder_hidden_states=None):"
        "\n        for",
    )


REORDERED = _alpha("layer(hidden_states, encoder_hidden_states, past_key_values=past_key_values)").replace(
    "past_key_values=None, encoder_hidden_states=None):\n        return",
    "encoder_hidden_states=None, past_key_values=None):\n        return",
)
SUBCLASS = """

class ThirdLayer(AlphaLayer):
    def forward(self, hidden_states, past_key_values=None, encoder_hidden_states=None):
        return super().forward(hidden_states, past_key_values, encoder_hidden_states)
"""
ONE = """

class ThirdModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.extra = {0}(config)

    def forward(self, hidden_states, past_key_values, encoder_hidden_states):
        return self.extra(hidden_states, past_key_values, encoder_hidden_states)
"""


def _given(tree: Tree, third: str) -> tuple[dict[str, str], str]:
    tree.write({ALPHA: _alpha(), THIRD: third})
    given = [tree.path(ALPHA), tree.path(THIRD).resolve()]
    changed, result = tree.fix_paths(given, unsafe=True)
    return {path.name: text for path, text in changed.items()}, " ".join(map(said, result.findings))


def test_signature_is_put_in_order_in_its_file(tree: Tree) -> None:
    tree.write({ALPHA: _alpha()})
    assert tree.fix(unsafe=True)[0] == {ALPHA: REORDERED}


def test_override_and_super_call_in_another_tree_follow(tree: Tree) -> None:
    changed, left = _given(tree, IMPORT + SUBCLASS)
    assert left == ""
    assert changed["modeling_alpha.py"] == REORDERED
    assert changed["modeling_third.py"] == IMPORT + SUBCLASS.replace(
        "past_key_values=None, encoder_hidden_states=None", "encoder_hidden_states=None, past_key_values=None"
    ).replace(
        "(hidden_states, past_key_values, encoder_hidden_states)",
        "(hidden_states, encoder_hidden_states, past_key_values=past_key_values)",
    )


@pytest.mark.parametrize("name", ["AlphaLayer", "ThirdLayer"])
def test_single_object_in_another_tree_is_run_in_the_new_order(tree: Tree, name: str) -> None:
    subclass = SUBCLASS[: SUBCLASS.index("    def")] + "    pass\n" if name == "ThirdLayer" else ""
    changed, left = _given(tree, IMPORT + subclass + ONE.format(name))
    assert left == ""
    assert (
        "self.extra(hidden_states, encoder_hidden_states, past_key_values=past_key_values)"
        in changed["modeling_third.py"]
    )


@pytest.mark.parametrize(
    ("third", "words"),
    [
        (
            SUBCLASS.replace("past_key_values=None, ", ""),
            "`ThirdLayer.forward` in modeling_third.py has different parameters",
        ),
        ("\n\nforward = AlphaLayer.forward\n", "modeling_third.py:5 accesses `forward` on the class"),
    ],
)
def test_file_that_stands_in_the_way_is_named(tree: Tree, third: str, words: str) -> None:
    changed, left = _given(tree, IMPORT + third)
    assert changed == {}
    assert words in left


def test_subclass_of_a_subclass_in_a_third_file_follows(tree: Tree) -> None:
    fourth = "from .modeling_third import ThirdLayer\n" + SUBCLASS.replace(
        "ThirdLayer(Alpha", "FourthLayer(Third"
    )
    third = IMPORT + SUBCLASS[: SUBCLASS.index("    def")] + "    pass\n"
    tree.write({ALPHA: _alpha(), THIRD: third, "../../third/modeling_fourth.py": fourth})
    paths = [tree.path(ALPHA), *sorted((tree.folder / "third").iterdir())]
    changed, _ = tree.fix_paths(paths, unsafe=True)
    (text,) = (text for path, text in changed.items() if path.name == "modeling_fourth.py")
    assert "encoder_hidden_states=None, past_key_values=None" in text


BRANCH = """

class ThirdLayer(AlphaLayer):
    pass


class ThirdModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([ThirdLayer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden_states, scale=None):
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                hidden_states = self._gradient_checkpointing_func(layer.__call__, {0})
            else:
                hidden_states = layer(hidden_states)
        return hidden_states
"""
MODELS_IMPORT = IMPORT + "from transformers.modeling_utils import PreTrainedModel\n"


def test_base_and_the_branch_of_a_subclass_in_another_tree_change_together(tree: Tree) -> None:
    tree.write({ALPHA: model("Alpha"), THIRD: MODELS_IMPORT + BRANCH.format("hidden_states")})
    given = [tree.path(ALPHA), tree.path(THIRD).resolve()]
    changed, result = tree.fix_paths(given, unsafe=True)
    assert result.findings == ()
    assert f"class AlphaLayer({GCL})" in changed[given[0]]
    assert "_gradient_checkpointing_func" not in changed[given[1]]


def test_branch_that_cannot_go_keeps_the_base(tree: Tree) -> None:
    tree.write({ALPHA: model("Alpha"), THIRD: MODELS_IMPORT + BRANCH.format("hidden_states * scale")})
    given = [tree.path(ALPHA), tree.path(THIRD).resolve()]
    changed, result = tree.fix_paths(given, unsafe=True)
    assert changed == {}
    assert any(
        "`ThirdLayer` in modeling_third.py inherits from `AlphaLayer`" in said(each)
        for each in result.findings
    )


def test_base_waits_where_the_branch_of_a_subclass_needs_a_look(tree: Tree) -> None:
    # The plain call passes less than the checkpointed one: someone must look.
    tree.write({ALPHA: model("Alpha"), THIRD: MODELS_IMPORT + BRANCH.format("hidden_states, None, scale")})
    given = [tree.path(ALPHA), tree.path(THIRD).resolve()]
    assert tree.fix_paths(given, unsafe=False)[0] == {}
    assert set(tree.fix_paths(given, unsafe=True)[0]) == set(given)


def test_class_that_another_tree_runs_is_reported_where_it_is_written(tree: Tree) -> None:
    third = MODELS_IMPORT + BRANCH[BRANCH.index("\n\nclass ThirdModel") :].replace("ThirdLayer", "AlphaLayer")
    tree.write({ALPHA: model("Alpha"), THIRD: third.format("hidden_states")})
    given = [tree.path(ALPHA), tree.path(THIRD).resolve()]
    (finding,) = check(Project(Settings(), given), all_rules()).findings
    assert (finding.path.name, finding.symbol) == ("modeling_alpha.py", "AlphaLayer")
    assert "; run by third" in finding.message
    changed, result = tree.fix_paths(given, unsafe=True)
    assert result.findings == ()
    assert "_gradient_checkpointing_func" not in changed[given[1]]
