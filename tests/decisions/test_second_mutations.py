"""Decisions that a second round of changes by hand got wrong without any other test noticing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.edit.edits import edited
from gclint.edit.removal import remove_functions
from gclint.finding import Applicability, Evidence, Finding, Refusal
from gclint.observations import Observations, Observed
from gclint.proof.evidence import weigh
from gclint.proof.provable import Reached
from gclint.rule import all_rules
from gclint.run.baseline import Baseline, Selection
from gclint.run.check import LintResult, check
from gclint.run.edited_files import Live
from gclint.run.fix import FixResult
from gclint.server.messages import hover
from gclint.settings import Settings
from gclint.verify.worker.protocol import ClassResult, ObservedSite, SourcePlace
from tests.decisions import proofs, reports
from tests.decisions.outside import (
    BRANCHES,
    CACHE,
    INPLACE,
    LAYER,
    NAME,
    NESTED,
    Pair,
    decided,
    found,
    silent,
)
from tests.decisions.test_server_answers import Editor
from tests.decisions.toy import FLAG, PROTECTED, STACK, block, model, toy
from tests.test_releases_of_projects import library, write
from tests.verify.planted import imported

_EXPORTS = '__version__ = "5.3.0"\nfrom .modeling_utils import PreTrainedModel\n'
_WITHIN = """
with torch.no_grad():
    with torch.autocast("cpu"):
        x = self.embed_tokens(hidden_states)
        x += 1
for layer in self.layers:
    x = layer(x)
"""
_WHOLE = "for layer in self.layers:\n    hidden_states = layer(hidden_states)"
_SPARED = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states)
    else:
        if mask is not None:
            hidden_states = layer(hidden_states, past_key_value=past_key_value)
"""
_PAST = "hidden_states, past_key_value=None, mask=None"
_CACHED = "hidden_states, past_key_values=None"
_LEFT_OUT = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states)
    else:
        hidden_states = layer(hidden_states, scale=1)
"""


test_code = decided(
    Pair(
        "a name that is not disabled, in a test where the model does not checkpoint",
        toy(block(base=PROTECTED, takes=_PAST), model(_SPARED, init=f"{STACK}\n{FLAG}", takes=_PAST)),
        ("if self.gradient_checkpointing and self.training:", "if self.scales:"),
        [],
        [found(NAME, "safe")],
        releases=">=5.17",
    ),
    Pair(
        "the default of a parameter behind a bare star",
        toy(block(takes="hidden_states, *, scale=1"), model(_LEFT_OUT, init=f"{STACK}\n{FLAG}")),
        ("*, scale=1", "*, scale=2"),
        [found(LAYER, "safe")],
        [found(LAYER, "unsafe", "call changes"), found(BRANCHES, "none", "author")],
    ),
    Pair(
        "`forward` is replaced in a base of the layer",
        toy(
            block(name="ToyBase", base=PROTECTED, takes=_CACHED, init="self.backward = print"),
            "class ToyLayer(ToyBase):\n    pass\n",
            model(
                "for layer in self.layers:\n    hidden_states = layer(hidden_states, past_key_values)",
                takes=_CACHED,
            ),
        ),
        ("self.backward = print", "self.forward = print"),
        [found(CACHE, "safe")],
        [found(CACHE, "unsafe", "replaced", "unknown")],
    ),
    Pair(
        "what stops gradients stops them in a `with` inside it as well",
        toy(block(base=PROTECTED), model(_WITHIN, init=f"{STACK}\nself.embed_tokens = nn.Embedding(4, 4)")),
        ("torch.no_grad()", "torch.profiler.profile()"),
        [silent(INPLACE, "not changed")],
        [found(INPLACE, "when proven", "needs a run", of="ToyModel")],
    ),
    Pair(
        "a tensor that is indexed with another is no tuple",
        toy(
            block("return self.attention(hidden_states[0]), hidden_states", base=PROTECTED),
            model(_WHOLE),
        ),
        ("hidden_states[0]", "hidden_states[mask]"),
        [found(NESTED, "none", "one by one")],
        [],
    ),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "modeling_otter.py"
    path.write_text(reports.CACHE)
    return path


@pytest.mark.parametrize(
    ("code", "is_lazy"), [("__all__ = []\n", False), ("def __getattr__(name): ...\n", True)]
)
def test_a_module_that_makes_its_names_when_asked_may_have_any(
    tmp_path: Path, code: str, is_lazy: bool
) -> None:
    site, own = tmp_path / "env/lib/python3.11/site-packages", tmp_path / "mine/modeling_otter.py"
    base = "transformers.modeling_layers import GradientCheckpointingLayer"
    write(own.parent, {own.name: reports.SAFE.replace(base, "transformers.cache_utils import Cache")})
    layers = "from torch import nn\nclass GradientCheckpointingLayer(nn.Module): ...\n"
    more = {"__init__.py": _EXPORTS, "modeling_layers.py": layers, "cache_utils.py": code}
    write(site, library("5.3.0", "transformers"))
    write(site / "transformers", more)
    project = Project(replace(Settings(), environments=(tmp_path / "env",)), [own])
    (finding,) = check(project, all_rules()).findings
    assert finding.code == "GC001"
    assert finding.fix is not None
    assert (finding.fix.reason is None) is is_lazy


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        # What is taken out right behind the class does not belong to its body.
        ("", "class A:\n    pass\n\n\nx = 1\n"),
        ("    y = 2\n\n", "class A:\n    y = 2\n\n\nx = 1\n"),
    ],
)
def test_a_class_keeps_a_body_if_a_function_behind_it_goes_as_well(path: Path, kept: str, left: str) -> None:
    text = f"class A:\n{kept}    def gone(x):\n        return x\n\n\ndef gone(x):\n    return x\n\n\nx = 1\n"
    file = SourceFile(path, text.encode())
    functions = [each for each in file.outline.definitions if each.name == "gone"]
    assert len(functions) == 2
    assert edited(file.text, remove_functions(file, functions)) == left


@pytest.mark.parametrize(
    ("moved", "is_provable"),
    [
        # Another call of the block has shown what is wrong with both.
        (1, True),
        # This call was run, and showed nothing.
        (0, False),
    ],
)
def test_what_another_call_has_shown_counts_where_a_call_was_not_run(
    path: Path, moved: int, is_provable: bool
) -> None:
    project = Project(Settings(), [path])
    (finding,) = check(project, all_rules()).findings
    row = project.file(path).position(finding.start).row
    seen = Observed(finding.path, row + moved, row + moved, finding.symbol, finding.path)
    shown = replace(seen, first=1, last=1, shown=frozenset((finding.code,)))
    project.observations = Observations([seen, shown])
    (left,) = Reached(project, all_rules()).judged(FixResult((finding,), (), 1, (), {}, groups=())).findings
    assert (left.fix is not None) is is_provable


@pytest.mark.parametrize(
    ("code", "evidence"),
    [
        ("GC103", Evidence.CONTRADICTED),
        # Whether a cache comes depends on the configuration.
        ("GC002", None),
    ],
)
def test_a_run_without_containers_contradicts_that_one_is_passed(
    path: Path, code: str, evidence: Evidence | None
) -> None:
    start = reports.CACHE.index("layer(")
    finding = Finding(code, "a-rule", "goes wrong", path, start, start + 5, "OtterLayer", Refusal("no"))
    row = reports.CACHE[:start].count("\n") + 1
    site = ObservedSite(
        SourcePlace(str(path), row, row),
        "OtterLayer",
        SourcePlace(str(path), 6, 9),
        True,
        True,
        calls=1,
        recomputed=True,
    )
    run = ClassResult(str(path), "OtterModel", "failed", sites=(site,))
    project = Project(Settings(), [path])
    (weighed,) = weigh(project, LintResult((finding,), (), 1, groups=()), [run], all_rules()).findings
    assert weighed.evidence is evidence


_COMMENT = "# Copied from transformers.models.otter.modeling_otter.OtterLayer with Otter->Seal\n"
_OTHER_COMMENT = _COMMENT.replace("Copied", "Taken")


@pytest.mark.parametrize(
    ("comment", "is_copy"), [(_COMMENT, True), (_OTHER_COMMENT.replace("Taken", "Made"), False)]
)
def test_a_new_comment_about_a_copy_matters_where_it_is_copied_from(
    tmp_path: Path, comment: str, is_copy: bool
) -> None:
    # It supports no checkpointing, so that nothing is to be done about it itself.
    copy = reports.SAFE.replace("Otter", "Seal").replace("checkpointing = True", "checkpointing = False")
    files = {"otter/modeling_otter.py": reports.SAFE, "seal/modeling_seal.py": copy}
    write(tmp_path / "transformers/models", files)
    otter, seal = (tmp_path / "transformers/models" / each for each in files)
    live = Live(Project(Settings(root=tmp_path), [otter, seal], within=[tmp_path]), all_rules())
    for each in (_OTHER_COMMENT, comment):
        live.put(seal, copy.replace("class SealLayer", f"{each}class SealLayer"))
        while live.waiting:
            live.judge_next()
        (own,) = live.result.findings
    assert own.path == otter
    assert own.fix is not None
    assert own.fix.applicability is (Applicability.UNSAFE if is_copy else Applicability.SAFE)


@pytest.mark.parametrize(("changed", "known"), [(None, 2), ({"otter", "seal"}, 2), ({"seal"}, 1), (set(), 0)])
def test_only_what_would_be_reported_counts_as_known(
    tmp_path: Path, changed: set[str] | None, known: int
) -> None:
    texts = {"otter": reports.SAFE, "seal": reports.CACHE.replace("Otter", "Seal")}
    write(tmp_path, {f"modeling_{name}.py": text for name, text in texts.items()})
    paths = {name: tmp_path / f"modeling_{name}.py" for name in texts}
    project = Project(Settings(root=tmp_path), [*paths.values()])
    result = check(project, all_rules())
    baseline = Baseline.of(tmp_path / "baseline.json", project, result.findings)
    scope = None if changed is None else {paths[name].resolve() for name in changed}
    left, recognised = Selection(project, [tmp_path], scope, baseline).narrowed(result)
    assert (left.findings, recognised.known) == ((), known)


@pytest.mark.parametrize(("pattern", "is_included"), [("deep/*.py", True), ("deep", False), ("d*", False)])
def test_a_pattern_of_a_folder_includes_no_file_in_it(
    tmp_path: Path, pattern: str, is_included: bool
) -> None:
    settings = Settings(root=tmp_path, include=(pattern,))
    assert settings.includes(tmp_path / "deep/encoder.py") is is_included
    # To skip a folder is to skip what is in it.
    assert Settings(root=tmp_path, exclude=(pattern,)).excludes(tmp_path / "deep/encoder.py")


@pytest.mark.parametrize(("behind", "words"), [(0, "GC001"), (1, "# gclint: ignore[GC001]")])
def test_the_end_of_a_word_in_a_comment_is_still_on_the_word(tmp_path: Path, behind: int, words: str) -> None:
    editor = Editor(tmp_path)
    text = reports.SAFE.replace("OtterLayer(nn.Module):", "OtterLayer(nn.Module):  # gclint: ignore[GC001]")
    editor.open(text)
    document = editor.session.documents.get(editor.uri())
    assert document is not None
    area = editor.session.home(document.path)
    assert area is not None
    lines = document.lines
    shown = hover(document, area, lines.position(text.index("GC001") + len("GC001") + behind))
    assert shown is not None
    assert shown.range is not None
    assert text[lines.offset(shown.range.start) : lines.offset(shown.range.end)] == words


@pytest.mark.torch
@pytest.mark.parametrize(
    ("found", "is_close"),
    [
        ([3.0, 4.0, 0.0], True),
        ([3.0, 4.000001, 0.0], True),
        # As large as the others, in another order or with another sign.
        ([4.0, 3.0, 0.0], False),
        ([0.0, 3.0, 4.0], False),
        ([3.0, -4.0, 0.0], False),
        # Another size.
        ([6.0, 8.0, 0.0], False),
    ],
)
def test_values_in_another_order_are_not_close(found: list[float], is_close: bool) -> None:
    from gclint.verify.worker.examination.inspection.parts import digest

    known, other = (digest(proofs.tensor(each)) for each in ([3.0, 4.0, 0.0], found))
    assert known.is_close(other) is is_close
    assert other.is_close(known) is is_close


def _inputs_of_images() -> dict[str, Any]:
    import torch

    return {"pixel_values": torch.ones(2, 6, 12)}


@pytest.mark.torch
@pytest.mark.parametrize("name", ["", "vision."])
def test_the_innermost_model_around_a_block_is_to_return_what_feeds_it(name: str) -> None:
    from torch import nn

    from gclint.verify.worker.examination.embeddings import embeddings
    from gclint.verify.worker.examination.model_under_test import ModelUnderTest
    from gclint.verify.worker.tiny_model import TinyModel

    with imported("frozen_images") as planted:

        class Outer(planted.ToyPreTrainedModel):  # type: ignore[name-defined, misc]
            def __init__(self, config: Any) -> None:
                super().__init__(config)
                self.vision = planted.ToyModel(config)

            def get_input_embeddings(self) -> nn.Module | None:
                return None

            def forward(self, pixel_values: Any) -> Any:
                return self.vision(pixel_values)

        kind = Outer if name else planted.ToyModel
        made = TinyModel("default", None, lambda: kind(planted.ToyConfig()), _inputs_of_images)
        (found,) = embeddings(ModelUnderTest(made, "cpu"), [f"{name}layers.0", f"{name}layers.1"])
    assert (found.model, found.module) == ("ToyModel", "patches")


class _Recording:
    """A runner that runs nothing."""

    def run(self, conditions: Any, _scales: Any) -> Any:
        return proofs.run("plain", [{}] * conditions.scenario.steps)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["default", "cache", "cache object", "frozen statistics"])
def test_as_many_steps_are_compared_as_a_scenario_has(name: str) -> None:
    from gclint.verify.worker.examination.scenario_runs import ScenarioRuns
    from gclint.verify.worker.scenarios import scenario_named

    scenarios = ScenarioRuns.__new__(ScenarioRuns)
    vars(scenarios).update(_plain_runs={}, _scales={}, _runner=_Recording())
    scenario = scenario_named(name)
    assert len(scenarios._reference(scenario).steps) == scenario.steps
