"""Code that says it is a copy is repaired together with its origin, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.copies.marked import copy_comments, pair_of, parse_renaming
from gclint.report.report import Repairs
from gclint.run.fix import fix
from gclint.settings import Settings
from tests.toys import WordRule, replacing
from tests.trees import GCL, Tree, converted, copied, kind, model, said, told

ALPHA = "alpha/modeling_alpha.py"
BETA = "beta/modeling_beta.py"
GAMMA = "gamma/modeling_gamma.py"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_origin_and_copy_are_repaired_together(tree: Tree) -> None:
    files = {ALPHA: model("Alpha"), BETA: model("Beta", layer=copied("Alpha", "Alpha->Beta"))}
    tree.write(files)
    changed, result = tree.fix()
    assert changed == {name: converted(text) for name, text in files.items()}
    assert result.findings == ()


def test_copy_that_nobody_reports_changes_along(tree: Tree) -> None:
    silent = model("Beta", layer=copied("Alpha", "Alpha->Beta"), supports=False)
    tree.write({ALPHA: model("Alpha"), BETA: silent})
    assert tree.fix()[0] == {}
    (finding,) = tree.check().findings
    assert kind(finding) == "unsafe"
    assert "the fix also changes `BetaLayer` in modeling_beta.py, a copy of this code" in said(finding)
    changed, _ = tree.fix(unsafe=True)
    assert changed == {ALPHA: converted(model("Alpha")), BETA: converted(silent)}


def test_origin_that_nobody_reports_changes_along(tree: Tree) -> None:
    copy = model("Beta", layer=copied("Alpha", "Alpha->Beta"))
    origin = model("Alpha", supports=False)
    tree.write({ALPHA: origin, BETA: copy})
    assert tree.fix(unsafe=True)[0] == {ALPHA: converted(origin), BETA: converted(copy)}


def test_what_is_unsafe_for_one_is_unsafe_for_all(tree: Tree) -> None:
    # The attention is no copy: the copy's own one keeps running statistics.
    norm = "self.norm = nn.BatchNorm1d(4)\n        self.query ="
    copy = model("Beta", layer=copied("Alpha", "Alpha->Beta")).replace("self.query =", norm)
    tree.write({ALPHA: model("Alpha"), BETA: copy})
    result = tree.check()
    assert told(result) == [
        "GC001 modeling_alpha.py AlphaLayer unsafe",
        "GC001 modeling_beta.py BetaLayer unsafe",
    ]
    assert "`BetaLayer` in modeling_beta.py changes in the same way" in said(result.findings[0])
    assert tree.fix()[0] == {}
    assert tree.fix(unsafe=True)[0] == {ALPHA: converted(model("Alpha")), BETA: converted(copy)}


def test_copy_that_a_comment_keeps_stops_its_origin(tree: Tree) -> None:
    above = "\n# gclint: ignore[GC001]\nclass BetaLayer"
    copy = model("Beta", layer=copied("Alpha", "Alpha->Beta")).replace("\nclass BetaLayer", above)
    tree.write({ALPHA: model("Alpha"), BETA: copy})
    changed, result = tree.fix(unsafe=True)
    assert changed == {}
    (finding,) = result.findings
    shared = "`BetaLayer` in modeling_beta.py shares this code and has to change too"
    assert f"{shared}, but an ignore comment keeps it as it is" in said(finding)


def test_copies_outside_of_the_given_paths_are_named(tree: Tree) -> None:
    layer = copied("Alpha", "Alpha->Beta")
    gamma = model("Gamma", layer=copied("Alpha", "Alpha->Gamma"))
    tree.write({ALPHA: model("Alpha"), BETA: model("Beta", layer=layer), GAMMA: gamma})
    (origin,) = tree.check(ALPHA).findings
    assert (
        "modeling_beta.py has the same code, which has to change too; modeling_gamma.py has the same code"
        in said(origin)
    )
    (copy,) = tree.check(BETA).findings
    assert "modeling_alpha.py has the same code, which has to change too;" in said(copy)
    changed, result = tree.fix(ALPHA, GAMMA)
    assert changed == {ALPHA: converted(model("Alpha")), GAMMA: converted(gamma)}
    duties = Repairs.of(result.applied, result.changed).duties
    assert [(each.path, each.text) for each in duties] == [
        (tree.path(BETA), "modeling_beta.py has the same code, which has to change too")
    ]
    assert not any("same code" in said(each) for each in tree.check().findings)


def test_calls_are_rewritten_alike_where_the_parameters_are_the_same(tree: Tree) -> None:
    header = "    def forward(self, hidden_states):\n        for"
    path = "transformers.models.alpha.modeling_alpha.AlphaModel.forward"
    origin = model("Alpha", base=GCL).replace("layer(hidden_states)", "layer(hidden_states=hidden_states)")
    silent = model("Beta", supports=False).replace(
        "layer(hidden_states)", "layer(hidden_states=hidden_states)"
    )
    silent = silent.replace(header, f"    # Copied from {path} with Alpha->Beta\n{header}")
    tree.write({ALPHA: origin, BETA: silent})
    assert tree.fix(unsafe=True)[0] == {
        ALPHA: model("Alpha", base=GCL),
        BETA: silent.replace("layer(hidden_states=hidden_states)", "layer(hidden_states)"),
    }
    tree.write({BETA: silent.replace("hidden_states, layer_past=None", "layer_past, hidden_states")})
    changed, result = tree.fix(unsafe=True)
    assert changed == {}
    assert "`BetaLayer.forward` does not have the parameters of `AlphaLayer.forward`" in said(
        result.findings[0]
    )


@pytest.mark.parametrize(
    ("text", "replacements"),
    [
        ("", ()),
        (" with Bert->X", (("Bert", "X"),)),
        (" Bert->X", (("Bert", "X"),)),
        (" with Bert->X, BERT->XX", (("Bert", "X"), ("BERT", "XX"))),
        (" with Bert->My all-casing", (("Bert", "My"), ("bert", "my"), ("BERT", "MY"))),
        (" with A->B, with self.bert->self.x", (("A", "B"), ("self.bert", "self.x"))),
        (" with Bert -> X", ()),
    ],
)
def test_replacements_are_read(text: str, replacements: tuple[tuple[str, str], ...]) -> None:
    assert parse_renaming(text).replacements == replacements


def test_renaming_is_undone_only_where_that_is_certain() -> None:
    renaming = parse_renaming("with Alpha->Beta")
    assert renaming.undo("BetaLayer(x)") == "AlphaLayer(x)"
    # It may have been there before the renaming.
    assert parse_renaming("with Alpha->Beta,alpha->beta").undo("AlphaLayer") is None


@pytest.mark.parametrize(
    ("comment", "count"),
    [
        ("# Copied from transformers.models.alpha.modeling_alpha.AlphaLayer with Alpha->Beta", 1),
        ("# copied from transformers.models.alpha.modeling_alpha.AlphaLayer with Alpha->Beta", 1),
        ("# TODO: use modular - Copied from transformers.models.alpha.modeling_alpha.AlphaLayer", 1),
        ("# NO LONGER EXIST Copied from transformers.models.alpha.modeling_alpha.AlphaLayer", 0),
        ('s = "# Copied from transformers.models.alpha.modeling_alpha.AlphaLayer"', 0),
        ("# Copied from https://github.com/x/y.py", 0),
    ],
)
def test_comments_are_found(comment: str, count: int) -> None:
    file = SourceFile(Path("modeling_beta.py"), f"{comment}\nclass BetaLayer:\n    pass\n".encode())
    assert [each.definition.name for each in copy_comments(file)] == ["BetaLayer"] * count


@pytest.mark.parametrize(
    ("origin", "copy", "same"),
    [
        ("def run(self, x):\n    return Alpha(x)\n", "def go(self, x):\n    return Beta(x)\n", True),
        ("def run(self, x):\n    return Alpha(x)\n", "def go(self, x):\n    return Gamma(x)\n", False),
        # A formatter breaks a line that has become too long, and adds a comma.
        (
            "def run(self, x):\n    return Alpha(x)\n",
            "def go(\n    self,\n    x,\n):\n    return Beta(x)\n",
            True,
        ),
        ("def run(self, x):\n    return Alpha(x)\n", "def go(self, x):\n    return Beta(x)  # new\n", False),
        # What stands below belongs to the next definition.
        ("def run(self, x):\n    return Alpha(x)\n# end\n", "def go(self, x):\n    return Beta(x)\n", True),
    ],
)
def test_copies_are_compared_but_for_names_and_layout(tree: Tree, origin: str, copy: str, same: bool) -> None:
    comment = "# Copied from transformers.models.alpha.modeling_alpha.run with Alpha->Beta\n"
    tree.write({ALPHA: origin, BETA: comment + copy})
    assert _is_in_force(tree) is same


def _is_in_force(tree: Tree) -> bool:
    project = Project(Settings(), [])
    file = project.file(tree.path(BETA))
    (comment,) = copy_comments(file)
    pair = pair_of(project, file, comment)
    assert pair is not None
    return pair.in_force


def test_legacy_branch_goes_where_the_block_is_a_checkpointing_layer_already(tree: Tree) -> None:
    plain = "            hidden_states = layer(hidden_states)\n"
    branch = """\
            if self.gradient_checkpointing and self.training:
                hidden_states = self._gradient_checkpointing_func(partial(layer.__call__), hidden_states)
            else:
                hidden_states = layer(hidden_states)
"""
    imported = "from functools import partial\n"
    header = "    def forward(self, hidden_states):\n        for"
    path = "transformers.models.alpha.modeling_alpha.AlphaModel.forward"
    comment = f"    # Copied from {path} with Alpha->Beta\n{header}"
    alpha = imported + model("Alpha").replace(plain, branch)
    beta = model("Beta", base=GCL).replace(header, comment)
    tree.write({ALPHA: alpha, BETA: imported + beta.replace(plain, branch)})
    assert tree.fix(unsafe=True)[0] == {ALPHA: converted(model("Alpha")), BETA: beta}
    # A branch is all the checkpointing that a layer of another kind has.
    other = imported + model("Beta", supports=False).replace(header, comment).replace(plain, branch)
    tree.write({BETA: f"# gclint: ignore-file[GC001]\n{other}"})
    changed, result = tree.fix(unsafe=True)
    assert changed == {}
    assert "`BetaLayer` is not a checkpointing layer" in said(result.findings[0])


def test_fix_that_breaks_a_copy_is_not_made_to_its_origin(tree: Tree) -> None:
    comment = "# Copied from transformers.models.alpha.modeling_alpha.run\n"
    code = 'def run():\n    return "bad"\n'
    tree.write({ALPHA: code, BETA: f"# coding: ascii\n{comment}{code}"})
    rule = WordRule("bad", replacing("é"))
    result = fix(Project(Settings(), [tree.path(ALPHA), tree.path(BETA)]), [rule], unsafe=False)
    assert result.changed == {}
    assert len(result.problems) == 2


@pytest.mark.parametrize(
    ("replacements", "before", "after"),
    [
        ("with A->B", "A.A", "B.B"),
        ("with (A+)+$->B", "AAAA", "AAAA"),
        ("with .*->B", "some text", "some text"),
        ("with self.bert->self.x", "self.bert selfxbert", "self.x selfxbert"),
        ("with " + ",".join(["A->AA"] * 60), "A", "A"),
        ("with " + ",".join(f"A{n}->A{n + 1}" for n in range(300)), "A0", "A100"),
    ],
)
def test_what_a_copy_replaces_is_text_and_has_bounds(replacements: str, before: str, after: str) -> None:
    assert parse_renaming(replacements).apply(before) == after
