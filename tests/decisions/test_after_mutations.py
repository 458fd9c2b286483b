"""Decisions that no other test here noticed when code was changed by hand to get them wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from lsprotocol import types

from gclint.code.project import Project
from gclint.finding import Evidence, Finding, InheritedDefect, Refusal
from gclint.proof.evidence import weigh
from gclint.proof.proving import prove
from gclint.rule import all_rules
from gclint.run.check import LintResult
from gclint.run.fix import fix
from gclint.settings import Settings
from gclint.verify.files import FileRun
from gclint.verify.worker.protocol import ClassResult, ObservedSite, SourcePlace
from tests.decisions import proofs, reports
from tests.decisions.outside import (
    BRANCHES,
    CACHE,
    FILE,
    INPLACE,
    KEYWORD,
    LAYER,
    NAME,
    OVERRIDE,
    Pair,
    decided,
    found,
    passed,
    silent,
)
from tests.decisions.test_server_answers import Editor
from tests.decisions.toy import BRANCH, FLAG, PROTECTED, STACK, block, call, model, toy
from tests.toys import WordRule, replacing

_HEIR = """\
from modeling_toy import ToyModel


class OtherModel(ToyModel):
    def forward(self, hidden_states, past_key_values=None):
        return super().forward(hidden_states, past_key_values)
"""
_PASSING = "for layer in self.layers:\n    hidden_states = layer(hidden_states, past_key_values)\n"
_PAST = "hidden_states, past_key_values=None"


test_caches_from_other_files = decided(
    Pair(
        "what an heir in another file hands to its base",
        {
            FILE: toy(block(base=PROTECTED, takes=_PAST), model(_PASSING, takes=_PAST)),
            "modeling_other.py": _HEIR,
        },
        ("super().forward(hidden_states, past_key_values)", "super().forward(hidden_states, self.prompt)"),
        [found(CACHE, "safe")],
        [found(CACHE, "none", "no cache")],
    ),
)


_EMBEDDED = """
x = self.embed_tokens(hidden_states)
if x.requires_grad:
    x = x * 1
elif mask is not None:
    x += 1
for layer in self.layers:
    x = layer(x)
"""


test_embeddings = decided(
    Pair(
        "an `elif` knows what the test before it was",
        toy(
            block(base=PROTECTED),
            model(_EMBEDDED, init=f"{STACK}\nself.embed_tokens = nn.Embedding(4, 4)"),
        ),
        ("if x.requires_grad:", "if self.scales:"),
        [silent(INPLACE, "not changed")],
        [found(INPLACE, "when proven", "needs a run", of="ToyModel")],
    ),
)


_TWICE = toy(
    block(base=PROTECTED, takes="hidden_states, encoder_hidden_states=None, bias=None"),
    model(
        "for layer in self.layers:\n"
        "    hidden_states = layer(hidden_states, encoder_hidden_states=y, bias=y)",
        takes="hidden_states, y=None",
    ),
    model(
        "hidden_states = self.inner(hidden_states, self.up(hidden_states))",
        name="ToyOther",
        init="self.inner = ToyModel(config)\nself.up = nn.Linear(4, 4)",
    ),
)


test_arguments = decided(
    Pair(
        "a value that is passed twice, first under a name that says enough",
        _TWICE,
        ("self.up(hidden_states))", "None)"),
        [found(KEYWORD, "safe"), passed("bias", "activation", "computed")],
        [found(KEYWORD, "safe"), passed("bias", "perhaps an activation", "unknown origin")],
    ),
    Pair(
        "what a call may change must not be evaluated behind it",
        call(
            "hidden_states, scale=self.scale, encoder_hidden_states=self.next(hidden_states)",
            takes="hidden_states, encoder_hidden_states=None, scale=None",
        ),
        ("scale=self.scale", "scale=mask"),
        [found(KEYWORD, "none", "order of calls")],
        [found(KEYWORD, "safe")],
    ),
)


_GUARDED = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(
            layer.__call__, hidden_states, mask[0] if mask is not None else None
        )
    else:
        hidden_states = layer(hidden_states, mask[0])
"""


test_branches = decided(
    Pair(
        "a guard of what an item is taken from",
        toy(block(), model(_GUARDED, init=f"{STACK}\n{FLAG}", takes="hidden_states, mask=None, bias=None")),
        ("if mask is not None", "if bias is not None"),
        [found(LAYER, "safe")],
        [found(LAYER, "none", "branches differ"), found(BRANCHES, "none", "author")],
    ),
    Pair(
        "the mode that a model puts what runs the layers into",
        toy(
            block(),
            model(BRANCH, name="ToyEncoder", base="nn.Module", init=f"{STACK}\n{FLAG}"),
            model(
                "hidden_states = self.encoder(hidden_states, mask)",
                init="self.encoder = ToyEncoder(config)\nself.encoder.train()",
            ),
        ),
        ("self.encoder.train()", "self.encoder.eval()"),
        [found(LAYER, "safe")],
        [found(LAYER, "unsafe", "evaluates")],
    ),
)


_SPARED = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states)
    else:
        hidden_states = layer(hidden_states, past_key_value=past_key_value)
"""


test_names_of_caches = decided(
    Pair(
        "a name that is not disabled, where the model does not checkpoint",
        toy(
            block(base=PROTECTED, takes="hidden_states, past_key_value=None"),
            model(_SPARED, init=f"{STACK}\n{FLAG}", takes="hidden_states, past_key_value=None"),
        ),
        ("if self.gradient_checkpointing and self.training:", "if self.scales:"),
        [],
        [found(NAME, "safe")],
        releases=">=5.17",
    ),
)


_SWITCH = """\
def _set_gradient_checkpointing(self, module, value=False):
    if isinstance(module, ToyModel):
        module.gradient_checkpointing = value
"""
_INHERITING = """
class OtherModel(ToyModel):
    supports_gradient_checkpointing = True
"""


test_overrides = decided(
    Pair(
        "an override that only an heir can use",
        toy(
            block(base=PROTECTED),
            model(init=f"{STACK}\n{FLAG}", more=_SWITCH, supports="False"),
            _INHERITING,
        ),
        ("class OtherModel(ToyModel)", "class OtherModel(PreTrainedModel)"),
        [found(OVERRIDE, "safe", of="ToyModel")],
        [],
    ),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _site(called: Path, defined: Path, *, recomputed: bool = True) -> ObservedSite:
    """Return a call of a block, in one file, whose class is in another."""
    places = (SourcePlace(str(each), 1, 1) for each in (called, defined))
    called_at, defined_at = places
    return ObservedSite(called_at, "Block", defined_at, True, True, calls=1, recomputed=recomputed)


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_file_that_was_seen_to_run_a_changed_block_is_run(folder: Path, is_changed: bool) -> None:
    changed, user = Path("modeling_x.py"), Path("modeling_y.py")
    changed.write_text("class Block:\n    bad = 1\n")
    user.write_text("model = AutoModel\n")
    project = Project(Settings(), [changed, user])
    repaired = fix(project, [WordRule("bad", replacing("good"), code="GC001")], unsafe=False)
    asked: list[set[Path]] = []

    def run(paths: Sequence[Path], texts: Mapping[Path, str]) -> Mapping[Path, FileRun]:
        asked.append(set(paths))
        return dict.fromkeys(paths, FileRun())

    # The call is in the user's own file, which imports nothing from the other.
    site = _site(user, changed if is_changed else user)
    seen = {user: FileRun((ClassResult(str(user), "Model", "passed", sites=(site,)),))}
    prove(project, repaired, all_rules(), run, seen)
    assert asked[0] == ({changed, user} if is_changed else {changed})


@pytest.mark.parametrize(("name", "evidence"), [("generated", Evidence.CONFIRMED), ("other", None)])
def test_only_the_heir_in_its_own_file_speaks_for_a_finding(
    folder: Path, name: str, evidence: Evidence | None
) -> None:
    source, generated, ran = (folder / f"modeling_{each}.py" for each in ("source", "generated", name))
    for each in (source, generated, ran):
        each.write_text("class Block: ...\n")
    inherited_by = (InheritedDefect(generated, "Block"),)
    finding = Finding(
        "GC001", "a-rule", "goes wrong", source, 0, 11, "Block", Refusal("no"), inherited_by=inherited_by
    )
    run = ClassResult(str(ran), "Model", "failed", sites=(_site(ran, ran, recomputed=False),))
    project = Project(Settings(), [source, generated])
    (weighed,) = weigh(project, LintResult((finding,), (), 1, groups=()), [run], all_rules()).findings
    assert weighed.evidence is evidence


@pytest.mark.torch
@pytest.mark.parametrize(
    ("values", "dtype", "is_same"),
    [
        ([[0.0, 1.0], [2.0, 3.0]], "float32", True),
        # The same bytes as something else.
        ([0.0, 1.0, 2.0, 3.0], "float32", False),
        ([[[0.0, 1.0], [2.0, 3.0]]], "float32", False),
        ([[0, 1065353216], [1073741824, 1077936128]], "int32", False),
    ],
)
def test_the_shape_and_type_of_what_was_computed_count(values: object, dtype: str, is_same: bool) -> None:
    from gclint.verify.worker.examination.reporting import fingerprint

    known, found = (
        fingerprint(proofs.run("plain", [{"outputs": {"states": each}}]))
        for each in (proofs.tensor([[0.0, 1.0], [2.0, 3.0]]), proofs.tensor(values, dtype))
    )
    assert (known.digest == found.digest) is is_same
    assert (known.parts == found.parts) is is_same


@pytest.mark.torch
@pytest.mark.parametrize(
    ("still_off", "set_to_off", "left_out"),
    [
        (["layers.1"], {"layers.1"}, {"layers.1"}),
        # It was merely not enabled.
        (["layers.1"], set(), set()),
        # It was enabled in the end, and something else keeps it from being recomputed.
        ([], {"layers.1"}, set()),
        # All were disabled first, and this one was forgotten when the others were enabled.
        (["layers.1"], {"layers.0", "layers.1"}, set()),
    ],
)
def test_a_flag_of_its_own_leaves_a_block_out(
    still_off: list[str], set_to_off: set[str], left_out: set[str]
) -> None:
    from gclint.verify.worker.examination import deliberate

    kinds = dict.fromkeys(proofs.LAYERS, dict)
    found = deliberate.left_out(kinds, frozenset({"layers.0"}), ["layers.1"], [], still_off, set_to_off)
    assert found.keys() == left_out


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(("before", "is_offered"), [(0, True), (1, False)])
def test_a_byte_order_mark_moves_no_end_of_a_range(
    folder: Path, mark: str, before: int, is_offered: bool
) -> None:
    editor = Editor(folder)
    editor.open(mark + reports.SAFE)
    row = reports.SAFE[: reports.SAFE.index("class OtterLayer")].count("\n") - before
    at = types.Range(types.Position(0, 0), types.Position(row, 0))
    assert bool(editor.actions("quickfix", at=at)) is is_offered


def test_all_safe_fixes_are_those_of_the_present_text(folder: Path) -> None:
    editor, fresh = Editor(folder), Editor(folder)
    later = f"# A line more.\n{reports.SAFE}"
    editor.open(reports.SAFE)
    (before,) = editor.actions("source")
    editor.type(later, 2)
    editor.settle()
    fresh.open(later, version=2)
    (after,), (expected,) = (each.actions("source") for each in (editor, fresh))
    assert after.edit == expected.edit
    assert after.edit != before.edit
