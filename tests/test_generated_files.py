"""Findings in generated files are told at their source, and repaired there and in what is generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.copies.pairs import CopyPair, Region, Renaming, definition_region
from gclint.finding import Duty
from gclint.network.evaluation.modules import library_of
from gclint.network.lineage import ClassPlace, place_at
from gclint.report.report import Repairs
from gclint.settings import Settings
from tests.trees import (
    ATTENTION,
    GCL,
    HEADER,
    IMPORTS,
    LAYER,
    MODEL,
    PLAIN_IMPORTS,
    Tree,
    converted,
    kind,
    model,
    said,
    told,
)

ALPHA = "alpha/modeling_alpha.py"
MODULAR = "beta/modular_beta.py"
BETA = "beta/modeling_beta.py"
PARENT = "from ..alpha.modeling_alpha import AlphaAttention, AlphaLayer, AlphaModel\n"
INHERITING = f"""\
{PARENT}

class BetaLayer(AlphaLayer):
    pass


class BetaModel(AlphaModel):
    pass
"""


def generated(name: str, text: str) -> str:
    return HEADER.format(name) + text


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_class_that_a_modular_file_writes_is_reported_there(tree: Tree) -> None:
    written = model("Beta")
    tree.write({MODULAR: written, BETA: generated("beta", written)})
    result = tree.check()
    assert told(result) == ["GC001 modular_beta.py BetaLayer safe"]
    # It is the model's own file: nothing is inherited.
    assert "inherited" not in said(result.findings[0])
    changed, _ = tree.fix()
    assert changed == {MODULAR: converted(written), BETA: generated("beta", converted(written))}


def test_class_that_is_only_inherited_is_reported_at_the_parent(tree: Tree) -> None:
    tree.write({ALPHA: model("Alpha"), MODULAR: INHERITING, BETA: generated("beta", model("Beta"))})
    result = tree.check()
    assert told(result) == ["GC001 modeling_alpha.py AlphaLayer safe"]
    assert "; inherited by beta" in said(result.findings[0])
    assert [(each.path.name, each.symbol) for each in result.findings[0].inherited_by] == [
        ("modeling_beta.py", "BetaLayer")
    ]
    changed, left = tree.fix()
    assert changed == {ALPHA: converted(model("Alpha")), BETA: generated("beta", converted(model("Beta")))}
    assert left.findings == ()


def test_class_that_is_taken_along_is_reported_at_the_parent(tree: Tree) -> None:
    modular = "from ..alpha.modeling_alpha import AlphaModel\n\n\nclass BetaModel(AlphaModel):\n    pass\n"
    tree.write({ALPHA: model("Alpha"), MODULAR: modular, BETA: generated("beta", model("Beta"))})
    assert told(tree.check()) == ["GC001 modeling_alpha.py AlphaLayer safe"]
    changed, _ = tree.fix()
    assert changed == {ALPHA: converted(model("Alpha")), BETA: generated("beta", converted(model("Beta")))}


def test_chain_of_models_ends_at_the_first(tree: Tree) -> None:
    files = {
        ALPHA: model("Alpha"),
        MODULAR: INHERITING,
        BETA: generated("beta", model("Beta")),
        "gamma/modular_gamma.py": INHERITING.replace("Beta", "Gamma")
        .replace("alpha", "beta")
        .replace("Alpha", "Beta"),
        "gamma/modeling_gamma.py": generated("gamma", model("Gamma")),
    }
    tree.write(files)
    result = tree.check()
    assert told(result) == ["GC001 modeling_alpha.py AlphaLayer safe"]
    assert "; inherited by beta, gamma" in said(result.findings[0])
    changed, _ = tree.fix()
    assert changed == {name: converted(text) for name, text in files.items() if "modeling" in name}


def test_defect_of_an_heir_alone_is_repaired_at_its_source(tree: Tree) -> None:
    silent = model("Alpha", supports=False)
    modular = INHERITING.replace(
        "(AlphaModel):\n    pass", "(AlphaModel):\n    supports_gradient_checkpointing = True"
    )
    tree.write({ALPHA: silent, MODULAR: modular, BETA: generated("beta", model("Beta"))})
    assert told(tree.check()) == ["GC001 modeling_alpha.py AlphaLayer safe"]
    changed, _ = tree.fix()
    assert changed == {ALPHA: converted(silent), BETA: generated("beta", converted(model("Beta")))}


def test_further_base_in_the_modular_file_is_the_one_that_counts(tree: Tree) -> None:
    modular = INHERITING.replace("(AlphaLayer)", f"(AlphaLayer, {GCL})")
    own = generated("beta", model("Beta", base=GCL))
    tree.write(
        {ALPHA: model("Alpha"), MODULAR: f"from ...modeling_layers import {GCL}\n{modular}", BETA: own}
    )
    assert "inherited" not in said(tree.check().findings[0])
    assert tree.fix()[0] == {ALPHA: converted(model("Alpha"))}


def test_further_base_that_the_generator_leaves_out_does_not_count(tree: Tree) -> None:
    modular = INHERITING.replace("(AlphaLayer)", f"(AlphaLayer, {GCL})")
    heir = INHERITING.replace("Beta", "Gamma").replace("alpha", "beta").replace("Alpha", "Beta")
    files = {
        ALPHA: model("Alpha"),
        MODULAR: f"from ...modeling_layers import {GCL}\n{modular}",
        BETA: generated("beta", model("Beta")),
        "gamma/modular_gamma.py": heir,
        "gamma/modeling_gamma.py": generated("gamma", model("Gamma")),
    }
    tree.write(files)
    result = tree.check()
    assert told(result) == ["GC001 modeling_alpha.py AlphaLayer safe"]
    assert "; inherited by beta, gamma" in said(result.findings[0])
    assert tree.fix()[0] == {name: converted(text) for name, text in files.items() if "modeling" in name}


def test_header_that_no_rule_explains_is_left_with_its_source(tree: Tree) -> None:
    modular = INHERITING.replace("(AlphaLayer)", "(AlphaLayer, BetaMixin)")
    own = model("Beta").replace("BetaLayer(nn.Module)", "BetaLayer(nn.Module, BetaMixin)")
    tree.write({ALPHA: model("Alpha"), MODULAR: f"from .mixin import BetaMixin\n{modular}", BETA: own})
    tree.write({BETA: generated("beta", f"from .mixin import BetaMixin\n{own}")})
    changed, result = tree.fix(unsafe=True)
    assert changed == {}
    (finding,) = result.findings
    assert "`BetaLayer` in modeling_beta.py shares this code and has to change too" in said(finding)


def test_call_in_an_overridden_method_is_reported_in_the_modular_file(tree: Tree) -> None:
    def called(text: str, arguments: str) -> str:
        return text.replace("layer(hidden_states)", f"layer({arguments})")

    parent, own = model("Alpha", base=GCL), model("Beta", base=GCL)
    method = own[own.rindex("    def forward") :]
    modular = INHERITING.replace(
        "class BetaModel(AlphaModel):\n    pass\n", f"class BetaModel(AlphaModel):\n{method}"
    )
    keyword = "hidden_states=hidden_states"
    tree.write(
        {ALPHA: parent, MODULAR: called(modular, keyword), BETA: generated("beta", called(own, keyword))}
    )
    assert told(tree.check()) == ["GC003 modular_beta.py BetaLayer safe"]
    changed, _ = tree.fix()
    assert changed == {MODULAR: modular, BETA: generated("beta", own)}


def test_inherited_call_is_reported_at_the_parent(tree: Tree) -> None:
    keyword = "layer(hidden_states=hidden_states)"
    parent, own = model("Alpha", base=GCL), model("Beta", base=GCL)
    tree.write(
        {
            ALPHA: parent.replace("layer(hidden_states)", keyword),
            MODULAR: INHERITING,
            BETA: generated("beta", own.replace("layer(hidden_states)", keyword)),
        }
    )
    assert told(tree.check()) == ["GC003 modeling_alpha.py AlphaLayer safe"]
    assert tree.fix()[0] == {ALPHA: parent, BETA: generated("beta", own)}


def test_inherited_call_beside_names_of_its_own_is_repaired_in_both(tree: Tree) -> None:
    def written(name: str, argument: str) -> str:
        checked = f"assert isinstance(layer, {name}Layer)  # alpha ALPHA".replace("alpha", name.lower())
        call = f"{checked.replace('ALPHA', name.upper())}\n            hidden_states = layer({argument})"
        return model(name, base=GCL).replace("hidden_states = layer(hidden_states)", call)

    keyword, repaired = "hidden_states=hidden_states", "hidden_states"
    tree.write({ALPHA: written("Alpha", keyword), MODULAR: INHERITING})
    tree.write({BETA: generated("beta", written("Beta", keyword))})
    assert tree.fix()[0] == {
        ALPHA: written("Alpha", repaired),
        BETA: generated("beta", written("Beta", repaired)),
    }


def test_call_that_is_wrong_only_for_the_last_heir_is_found_at_the_first_parent(tree: Tree) -> None:
    keyword = "hidden_states=hidden_states"

    def written(name: str, base: str = "nn.Module") -> str:
        own = model(name, base=base, supports=False)
        return own.replace("layer(hidden_states)", f"layer({keyword})")

    heir = INHERITING.replace("Beta", "Gamma").replace("alpha", "beta").replace("Alpha", "Beta")
    tree.write(
        {
            # Everything stands elsewhere in it.
            ALPHA: "# Alpha\n" * 20 + written("Alpha"),
            MODULAR: INHERITING,
            BETA: generated("beta", written("Beta")),
            "gamma/modular_gamma.py": f"from ...modeling_layers import {GCL}\n"
            + heir.replace("(BetaLayer)", f"(BetaLayer, {GCL})"),
            "gamma/modeling_gamma.py": generated("gamma", written("Gamma", GCL)),
        }
    )
    (finding,) = tree.check().findings
    assert finding.path == tree.path(ALPHA)
    assert finding.path.read_text()[finding.start : finding.end] == keyword


def test_each_of_two_inherited_calls_is_joined_with_its_own(tree: Tree) -> None:
    def written(name: str) -> str:
        call = "            hidden_states = layer(hidden_states{})\n"
        twice = call.format("=hidden_states") + call.format("=hidden_states * 2")
        return model(name, base=GCL).replace(call.format(""), twice)

    tree.write({ALPHA: written("Alpha"), MODULAR: INHERITING, BETA: generated("beta", written("Beta"))})
    result = tree.check()
    assert told(result) == ["GC003 modeling_alpha.py AlphaLayer safe"] * 2
    for finding in result.findings:
        assert [each.path for each in finding.edits] == [tree.path(ALPHA), tree.path(BETA)]
        lines = {each.path.read_text()[each.start :].splitlines()[0] for each in finding.edits}
        assert len(lines) == 1


def test_place_begins_where_its_definition_does() -> None:
    module = library_of(Project(Settings(), [])).module(
        SourceFile(Path("modeling_x.py"), model("Alpha").encode())
    )
    layer = module.classes["AlphaLayer"]
    forward = layer.definition.method("forward")
    assert forward is not None
    assert place_at(module, forward.start) == ClassPlace(layer, "forward")
    assert place_at(module, forward.start - 1) != ClassPlace(layer, "forward")
    assert place_at(module, layer.definition.start) == ClassPlace(layer)


def test_generated_file_alone_is_not_repaired(tree: Tree) -> None:
    tree.write({ALPHA: model("Alpha"), MODULAR: INHERITING, BETA: generated("beta", model("Beta"))})
    changed, result = tree.fix(BETA, unsafe=True)
    assert changed == {}
    assert told(result) == ["GC001 modeling_beta.py BetaLayer no fix"]
    assert "repair that file, then regenerate this one" in said(result.findings[0])


def test_generated_file_that_is_not_given_is_named(tree: Tree) -> None:
    tree.write({ALPHA: model("Alpha"), MODULAR: model("Beta"), BETA: generated("beta", model("Beta"))})
    (finding,) = tree.check(MODULAR).findings
    assert "; modeling_beta.py has to be regenerated" in said(finding)
    changed, result = tree.fix(MODULAR)
    assert changed == {MODULAR: converted(model("Beta"))}
    duties = Repairs.of(result.applied, result.changed).duties
    assert duties == (Duty(tree.path(BETA), "modeling_beta.py has to be regenerated"),)


def test_generated_file_that_has_been_edited_by_hand_is_left_with_its_source(tree: Tree) -> None:
    own = model("Beta").replace("class BetaLayer(nn.Module):", "class BetaLayer(torch.nn.Module):")
    tree.write({MODULAR: model("Beta"), BETA: generated("beta", own)})
    changed, result = tree.fix(unsafe=True)
    assert changed == {}
    assert [kind(each) for each in result.findings] == ["no fix"]


def test_comment_in_the_source_suppresses_what_is_generated_from_it(tree: Tree) -> None:
    parent = model("Alpha").replace(
        "class AlphaLayer(nn.Module):", "class AlphaLayer(nn.Module):  # gclint: ignore[GC001]"
    )
    tree.write({ALPHA: parent, MODULAR: INHERITING, BETA: generated("beta", model("Beta"))})
    result = tree.check()
    assert result.findings == ()


@pytest.mark.parametrize("knows_parent", [False, True])
@pytest.mark.parametrize("is_copied_along", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        "layer(hidden_states=hidden_states){0}",
        "layer(\n                hidden_states=hidden_states,{0}\n            )",
    ],
)
def test_comment_inside_a_method_suppresses_what_is_generated_from_it(
    tree: Tree, call: str, is_copied_along: bool, knows_parent: bool
) -> None:
    comment = "  # gclint: ignore[GC003]"
    own = model("Beta", base=GCL)
    method = own[own.rindex("    def forward") :]
    modular = INHERITING.replace(
        "class BetaModel(AlphaModel):\n    pass\n", f"class BetaModel(AlphaModel):\n{method}"
    ).replace("layer(hidden_states)", call.format(comment))
    made = own.replace("layer(hidden_states)", call.format(comment if is_copied_along else ""))
    if knows_parent:  # Else only the generated file shows what the call runs.
        tree.write({ALPHA: model("Alpha", base=GCL)})
    tree.write({MODULAR: modular, BETA: generated("beta", made)})
    assert told(tree.check()) == []
    # Where there is nothing to suppress, it is not needed.
    tree.write({MODULAR: modular.replace("hidden_states=hidden_states", "hidden_states")})
    tree.write({BETA: generated("beta", own)})
    assert told(tree.check()) == ["GC000 modular_beta.py gclint: ignore[GC003] safe"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_code_of_several_lines_is_found_where_comments_stand_between(newline: str) -> None:
    def region(text: str) -> Region:
        file = SourceFile(Path("x.py"), text.replace("\n", newline).encode())
        return definition_region(file, file.outline.functions["f"])

    source = region("def f():\n    x = [  # gclint: ignore\n        1,  # gclint: ignore[X]: why\n    ]\n")
    derived = region("# 1\n# 2\ndef f():\n    x = [\n        1,  # gclint: ignore\n    ]\n")
    text = derived.file.text
    pair = CopyPair(source, derived, Renaming(), is_copy=False)
    span = pair.source_span(text.index("x ="), text.index("]") + 1)
    assert span == (source.file.text.index("x ="), source.file.text.rindex("]") + 1)


def test_modular_file_that_is_gone_leaves_a_file_by_itself(tree: Tree) -> None:
    own = generated("beta", model("Beta"))
    tree.write({BETA: own})
    assert tree.fix()[0] == {BETA: converted(own)}


def test_legacy_branch_goes_from_source_and_generated_file(tree: Tree) -> None:
    branch = """\
            if self.gradient_checkpointing and self.training:
                hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states)
            else:
                hidden_states = layer(hidden_states)
"""
    plain = "            hidden_states = layer(hidden_states)\n"
    written = (PLAIN_IMPORTS + ATTENTION + LAYER).replace("{0}", "Beta").replace("{1}", "nn.Module")
    written += MODEL.format("Beta", True).replace(plain, branch)
    tree.write({MODULAR: written, BETA: generated("beta", written)})
    expected = converted(written).replace(branch, plain)
    changed, _ = tree.fix()
    assert changed == {MODULAR: expected, BETA: generated("beta", expected)}
    assert IMPORTS in expected
