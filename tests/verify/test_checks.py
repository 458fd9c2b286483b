"""What the examination says besides its failures: places, costs, fingerprints, and why it cannot judge."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.verify.worker.protocol import ClassResult, ObservedSite, decode, encode
from tests.verify.planted import FOLDER, Planted, examine_planted, imported, load_planted

pytestmark = pytest.mark.torch


def _sites(name: str) -> dict[str, ObservedSite]:
    return {site.block: site for site in examine_planted(name).sites}


def _line(name: str, text: str) -> int:
    lines = (FOLDER / name / "modeling_toy.py").read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, start=1) if text in line]
    return number


def test_call_is_found_where_it_is_written() -> None:
    site = _sites("healthy")["ToyLayer"]
    line = _line("healthy", "= layer(hidden_states)")
    assert (site.place.line, site.place.end_line) == (line, line)
    assert site.definition.line == _line("healthy", "class ToyLayer(")
    assert site.definition.end_line == _line("healthy", "self.dropout(self.dense(")
    assert site.is_layer
    assert site.is_trunk
    assert site.recomputed
    assert (site.keyword_activations, site.contained_activations) == ((), ())


def test_legacy_calls_are_found_where_the_function_is_handed_over() -> None:
    lines = {site.place.line for site in examine_planted("legacy_branches").sites}
    for text in ("a.__call__", "c.__call__", "checkpoint(d", "create_custom_forward(e)"):
        assert _line("legacy_branches", text) in lines, text
    assert _line("legacy_branches", "return module(*inputs)") not in lines


def test_block_that_is_not_recomputed_is_told_apart() -> None:
    sites = _sites("stack_left_out")
    assert sites["ToyLayer"].recomputed
    assert not sites["ToyPlainLayer"].recomputed
    assert sites["ToyPlainLayer"].is_trunk
    assert not sites["ToyPlainLayer"].is_layer


def test_convolutions_are_no_trunk() -> None:
    sites = _sites("convolutions_beside")
    assert not sites["ToyStage"].is_trunk
    assert not sites["ToyAttention"].is_trunk


def _notes(name: str) -> str:
    result = examine_planted(name)
    assert result.outcome == "passed"
    return "\n".join(result.notes)


def test_a_stack_that_is_not_counted_is_named() -> None:
    assert "not counted, since they save" in _notes("little_stack")
    assert "others.0, others.1, others.2 (ToyMlp)" in _notes("little_stack")
    assert "not counted" not in _notes("healthy")


def test_what_is_wrong_only_while_a_model_is_watched_is_noted() -> None:
    assert "only while gclint watches the model: gradients, outputs (reentrant)" in _notes(
        "measures_its_stack"
    )


@pytest.mark.parametrize("name", ["saved_tensors_without_hooks", "layers_in_threads"])
def test_where_saved_bytes_cannot_be_measured_none_are_claimed(name: str) -> None:
    result = examine_planted(name)
    assert any("what autograd saves was not measured" in each for each in result.notes)
    assert result.costs == ()
    assert all(each.saved_bytes is None for each in result.verdicts)


def test_what_stands_alone_is_known_and_not_judged() -> None:
    result = examine_planted("lone_block")
    adapter = {site.block: site for site in result.sites}["ToyAdapter"]
    assert (adapter.is_trunk, adapter.recomputed) == (False, False)
    assert (result.outcome, result.blocks, result.recomputed) == ("passed", 3, 3)


def test_tensors_of_one_graph_are_told_from_those_of_several() -> None:
    assert _sites("keyword_shared")["ToyLayer"].shared_activations == ("context",)
    assert _sites("keyword_own")["ToyLayer"].shared_activations == ()


@pytest.mark.parametrize(("name", "holds_more"), [("keyword_stream", True), ("healthy", False)])
def test_a_checkpoint_keeps_what_it_is_passed_by_keyword(name: str, holds_more: bool) -> None:
    result = examine_planted(name)
    (cost,) = (each.saved_bytes for each in result.costs if each.mode == "non-reentrant")
    kept = next(each.saved_bytes for each in result.verdicts if each.mode == "non-reentrant")
    assert kept is not None
    assert (kept > cost) is holds_more


def test_calls_are_known_where_nothing_can_be_switched_on() -> None:
    result = examine_planted("nothing_to_switch")
    (site,) = result.sites
    assert (site.is_trunk, site.recomputed) == (True, False)
    assert all(site.place in failure.places for failure in result.failures)


@pytest.mark.parametrize(
    ("name", "attribute", "expected"),
    [
        ("keyword_stream", "keyword_activations", ("hidden_states",)),
        ("keyword_shared", "keyword_activations", ("context",)),
        ("keyword_own", "keyword_activations", ("context",)),
        ("tuple_shared", "contained_activations", ("contexts",)),
        ("positional_shared", "keyword_activations", ()),
        ("cache_by_position", "positional_caches", ("past_key_values",)),
        ("cache_by_position", "rewritten_caches", ("ToyCache",)),
        ("cache_by_keyword", "positional_caches", ()),
        ("cache_by_keyword", "rewritten_caches", ()),
    ],
)
def test_what_a_call_passes_is_known(name: str, attribute: str, expected: tuple[str, ...]) -> None:
    assert getattr(_sites(name)["ToyLayer"], attribute) == expected


def test_costs_are_those_of_each_mode() -> None:
    costs = {cost.mode: cost for cost in examine_planted("healthy").costs}
    assert set(costs) == {"plain", "non-reentrant", "reentrant"}
    assert costs["reentrant"].saved_bytes < costs["plain"].saved_bytes / 2
    assert all(cost.seconds > 0 and cost.peak_bytes is None for cost in costs.values())


def test_fingerprints_are_the_same_each_time_and_differ_between_models() -> None:
    first, again = (examine_planted("healthy").fingerprints for _ in range(2))
    assert first == again
    assert [each.scenario for each in first] == ["default", "two forwards", "dropout", "frozen base"]
    assert len({each.digest for each in first}) == 4
    other = examine_planted("random_of_torch").fingerprints
    assert {each.digest for each in first}.isdisjoint(each.digest for each in other)


def test_failure_has_a_recipe_with_which_it_comes_back() -> None:
    import torch

    (recipe,) = examine_planted("keyword_stream").recipes
    assert recipe.config_class == "keyword_stream.configuration_toy.ToyConfig"
    with imported("keyword_stream") as module:
        config = module.ToyConfig(**recipe.config)
        inputs = {name: eval(text, {"torch": torch}) for name, text in recipe.inputs.items()}
        assert module.ToyModel(config)(**inputs).last_hidden_state.shape == (2, 6, config.hidden_size)


def test_model_that_passes_has_no_recipe() -> None:
    result = examine_planted("healthy")
    assert (result.recipes, result.blocks, result.recomputed) == ((), 3, 3)
    assert result.scenarios == ("default", "two forwards", "dropout", "frozen base")


@pytest.mark.parametrize(
    "planted", [each for each in load_planted() if not each.needs_limits][:5], ids=lambda each: each.name
)
def test_result_can_be_sent(planted: Planted) -> None:
    result = examine_planted(planted.name)
    assert decode(encode(result)) == result


def _examine(model_class: Any, tiny_models: list[Any]) -> ClassResult:
    from gclint.verify.worker.examination.examine import examine
    from gclint.verify.worker.protocol import Source
    from gclint.verify.worker.watch import Watch

    return examine(Source("toy.py", "toy"), model_class, tiny_models, "cpu", watch=Watch())


def test_model_that_fails_without_checkpointing_is_not_judged() -> None:
    from gclint.verify.worker.tiny_model import TinyModel

    with imported("healthy") as module:
        config = module.ToyConfig()
        tiny_model = TinyModel(
            "default", config, lambda: module.ToyModel(config), lambda: {"input_ids": None}
        )
        result = _examine(module.ToyModel, [tiny_model])
    assert (result.outcome, result.category, result.failures) == ("not run", "reference", ())
    assert result.reason is not None
    assert "the forward pass raises TypeError" in result.reason


def test_class_without_tiny_models_is_not_synthesisable() -> None:
    from gclint.verify.worker.tiny_model import NotSynthesisable

    with imported("healthy") as module, pytest.raises(NotSynthesisable):
        _examine(module.ToyModel, [])


def test_examination_tells_what_begins_and_what_is_known() -> None:
    from gclint.verify.worker.examination.examine import examine
    from gclint.verify.worker.protocol import Source
    from gclint.verify.worker.watch import Watch
    from tests.verify.planted import tiny_model

    known: list[ClassResult] = []
    begun: list[tuple[str, str, str]] = []

    watch = Watch(lambda *step: begun.append(step), known.append)
    with imported("returned_again") as module:
        source = Source(module.__file__, module.__name__)
        examine(source, module.ToyModel, [tiny_model(module)], "cpu", watch=watch)
    assert [len(result.failures) for result in known[:2]] == [0, 1]
    assert known[1].sites[0].keyword_activations == ("first",)
    assert begun[0] == ("default", "plain", "the construction")
    assert ("default", "reentrant", "the backward pass") in begun


def test_where_two_plain_runs_differ_first_is_said() -> None:
    result = examine_planted("irreproducible")
    assert "the first difference is" in (result.reason or "")
    assert "modeling_toy.py:" in (result.reason or "")


def test_an_option_that_cannot_be_judged_is_told() -> None:
    result = examine_planted("option_irreproducible")
    assert result.scenarios[0] == "default"
    (note,) = result.notes
    assert note.startswith("option jitter=True: two plain runs from the same state differ in")


def test_what_runs_with_options_saw_is_a_part_of_the_result() -> None:
    from gclint.verify.worker.examination.result_builder import ClassResultBuilder, Inconclusive
    from gclint.verify.worker.protocol import InputEmbedding, Source, SourcePlace, Stability

    builder = ClassResultBuilder(Source("modeling_toy.py", "toy", complete=True), type("ToyModel", (), {}))
    builder.scenarios.append("default")
    builder.stability.append(Stability("eager", "amplifies", 0.5))
    found = builder.separate()
    found.inconclusive = Inconclusive("not compared", "only 1 of 9")
    found.add_classes([Planted])
    found.add_embeddings([InputEmbedding(SourcePlace("modeling_toy.py", 1, 1), "ToyModel", "embed")])
    found.add_not_covered(["tower"])
    builder.take(found)
    result = builder.result()
    assert (result.outcome, result.reason) == ("not run", "only 1 of 9")
    assert [each.module for each in result.embeddings] == ["embed"]
    assert result.not_covered == ("tower",)
    assert [each.grade for each in result.stability] == ["amplifies"]


def test_what_options_show_is_told_with_all_that_is_known() -> None:
    from gclint.verify.worker.examination.examine import examine
    from gclint.verify.worker.protocol import Source
    from gclint.verify.worker.watch import Watch
    from tests.verify.planted import tiny_model

    known: list[ClassResult] = []

    watch = Watch(known=known.append)
    with imported("relative_attention") as module:
        options = {"relative_attention": True, "norm_rel_ebd": "layer_norm"}
        further = tiny_model(module, "option relative_attention=True, norm_rel_ebd='layer_norm'", **options)
        source = Source(module.__file__, module.__name__)
        examine(source, module.ToyModel, [tiny_model(module), further], "cpu", watch=watch)
    assert all(result.scenarios[0] == "default" for result in known)
    assert any(each.scenario.startswith("option") for each in known[-1].failures)
    assert any(each.startswith("option") for each in known[-1].scenarios)


def test_attributes_that_are_set_or_changed_are_told() -> None:
    from torch import nn

    from gclint.verify.worker.examination.state import ModuleAttributes

    model = nn.Sequential(nn.Linear(2, 2))
    model.kept, model.things = 1, [1]
    before = ModuleAttributes(model)
    model.kept, model.new = 2, 3
    model.things.append(2)
    model[0].register_forward_hook(lambda *_: None)
    assert before.changes() == {"kept": 2, "new": 3, "things": [1, 2]}


@pytest.mark.parametrize("attribute", ["caches", "dictionaries"])
def test_what_takes_the_place_of_something_is_new_even_in_its_memory(attribute: str) -> None:
    import torch

    from gclint.verify.worker.examination.state import Snapshot

    class ToyCache(list[Any]):
        def update(self) -> None: ...

    for _ in range(100):
        cache, dictionary = ToyCache([torch.ones(2)]), {"key": torch.ones(2)}
        model = torch.nn.Module()
        held = ({id(cache): cache}, {id(dictionary): dictionary})
        snapshot = Snapshot(model, *held)
        cache.clear()
        cache.append(torch.ones(2))
        dictionary.clear()
        dictionary["key"] = torch.ones(2)
        assert len(getattr(snapshot.side_effects(), attribute)) == 1


def test_expressions_make_the_same_small_tensors() -> None:
    import torch

    from gclint.verify.worker.examination.reporting import expression

    for value in (
        torch.tensor([[1, 5], [7, 2]]),
        torch.full((2, 3), 0.5),
        torch.tensor([True, False]),
        torch.zeros(2, 0),
    ):
        made = eval(expression(value), {"torch": torch})
        assert made.dtype == value.dtype
        assert torch.equal(made, value)
    assert expression([(torch.tensor(1),), {"a": None}]) == "[(torch.full((), 1),), {'a': None}]"


@pytest.mark.parametrize(
    "name", ["every_other_by_index", "every_other_switched_on", "last_left_out", "some_switched_off"]
)
def test_what_is_left_out_on_purpose_is_a_note(name: str) -> None:
    result = examine_planted(name)
    assert result.outcome == "passed"
    assert any("deliberately left out of checkpointing" in note for note in result.notes)


def test_first_operation_that_differs_has_its_lines_in_both_passes() -> None:
    (failure, *_) = examine_planted("values_only").failures
    assert failure.difference is not None
    assert failure.difference.operation == "`tensor`"
    line = _line("values_only", "nothing =")
    assert failure.difference.first[0].line == failure.difference.second[0].line == line
