"""The contract of safe fixes on kinds of constructs, against the list of what is known to fail."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.kinds import KINDS, judging, known
from tests.contract.kinds.judging import KEPT, NEEDLESS, RELEASE, WRONG, Verdict, judge
from tests.contract.kinds.models import Model, drawn
from tests.contract.releases import python_of_release
from tests.contract.repair import Repaired
from tests.environment import EnvironmentUnavailable

_SAMPLE = 25
_LEAST = 100
_OF_TWIST = 24
"""More lines than these in which a model and its twin differ are more than a twist."""

_of_each_kind = pytest.mark.parametrize("kind", KINDS)


def _models(kind: str) -> list[Model]:
    return [model for pair in KINDS[kind]() for model in pair.models(kind)]


def _text(model: Model) -> str:
    return "\n".join(f"# {name}\n{text}" for name, text in model.files().items())


# -- models


@_of_each_kind
def test_every_model_is_python_before_and_after(kind: str) -> None:
    for model in _models(kind):
        for is_repaired in (False, True):
            for name, text in model.files(is_repaired=is_repaired).items():
                compile(text, f"{model.key}: {name}", "exec", dont_inherit=True)


@_of_each_kind
def test_there_are_many_different_models_and_twins(kind: str) -> None:
    models = _models(kind)
    assert len({model.key for model in models}) == len(models)
    for is_twin in (False, True):
        texts = [_text(model) for model in models if model.is_twin is is_twin]
        assert len(set(texts)) == len(texts) >= _LEAST


@_of_each_kind
def test_there_is_something_to_repair(kind: str) -> None:
    for model in _models(kind):
        assert model.files() != model.files(is_repaired=True), model.key


@_of_each_kind
def test_a_name_is_always_the_same_model(kind: str) -> None:
    assert _models(kind) == _models(kind)
    assert all("\n" not in model.key and model.key == model.key.strip() for model in _models(kind))


@_of_each_kind
def test_a_twin_differs_in_its_twist_only(kind: str) -> None:
    for pair in KINDS[kind]():
        model, twin = pair.models(kind)
        assert (model.frame, model.ways) == (twin.frame, twin.ways)
        lines = list(difflib.ndiff(_text(model).splitlines(), _text(twin).splitlines()))
        different = [line for line in lines if line.startswith(("+", "-"))]
        assert 0 < len(different) <= _OF_TWIST, model.key


@_of_each_kind
def test_a_smaller_sample_is_part_of_a_larger_one(kind: str) -> None:
    larger = [pair.name for pair in drawn(KINDS[kind](), 20, 3)]
    assert [pair.name for pair in drawn(KINDS[kind](), 5, 3)] == larger[:5]
    assert [pair.name for pair in drawn(KINDS[kind](), 20, 4)] != larger


# -- the list


def test_the_list_names_models_of_today() -> None:
    models = {model.key: model for kind in KINDS for model in _models(kind)}
    for key, outcome in known.read().items():
        assert outcome == WRONG or (outcome == NEEDLESS and models[key].is_twin), key
        assert key in models, key


def test_the_list_is_as_the_command_writes_it(tmp_path: Path) -> None:
    known.write(known.read(), tmp_path / "known.txt")
    assert (tmp_path / "known.txt").read_text(encoding="utf-8") == known.PATH.read_text(encoding="utf-8")


def _verdict(name: str, outcome: str) -> Verdict:
    return Verdict(Model("state", name, "plain block", {}), outcome, "")


def test_the_list_only_becomes_shorter() -> None:
    listed = {"state: a": WRONG, "state: b": WRONG, "state: c": NEEDLESS, "words: d": WRONG}
    verdicts = [
        _verdict("a", WRONG),
        _verdict("b", KEPT),
        _verdict("c", WRONG),
        _verdict("e", WRONG),
        _verdict("f", KEPT),
    ]
    new, mended = known.unlisted(verdicts, listed), known.mended(verdicts, listed)
    assert [each.model.name for each in new] == ["c", "e"]
    assert mended == ["state: b", "state: c"]
    assert known.gone(["state: a", "state: b"], listed) == ["state: c"]
    kept = {"state: a": WRONG, "words: d": WRONG}
    assert known.updated(listed, new, mended, is_admitted=False) == kept
    admitted = {**kept, "state: c": WRONG, "state: e": WRONG}
    assert known.updated(listed, new, mended, is_admitted=True) == admitted


# -- judging


@pytest.fixture
def release() -> str:
    try:
        python_of_release(RELEASE)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    return RELEASE


@pytest.mark.releases
@pytest.mark.torch
@pytest.mark.usefixtures("release")
def test_the_measure_sees_harm_and_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, twin = next(iter(KINDS["inplace"]())).models("inplace")

    def repairing(findings: tuple[str, ...], *, is_bold: bool) -> None:
        def repair(files: Mapping[str, str], _folder: Path, _release: str) -> Repaired:
            bold = twin if files == twin.files() else model
            return Repaired(bold.files(is_repaired=is_bold), findings)

        monkeypatch.setattr(judging, "repair", repair)

    repairing(("GC001 safe fix",), is_bold=True)
    assert [judge(each).outcome for each in (model, twin)] == [WRONG, KEPT]
    repairing(("GC001 unsafe fix: it may do harm",), is_bold=False)
    assert [judge(each).outcome for each in (model, twin)] == [KEPT, NEEDLESS]
    repairing((), is_bold=False)
    assert [judge(each).outcome for each in (model, twin)] == [KEPT, NEEDLESS]


@pytest.mark.releases
@pytest.mark.torch
@pytest.mark.usefixtures("release")
def test_a_model_is_what_training_shows() -> None:
    model, twin = next(iter(KINDS["inplace"]())).models("inplace")
    assert [judge(each).invalid for each in (model, twin)] == [None, None]
    assert "is not harmless" in str(judge(replace(model, is_twin=True)).invalid)
    assert judge(replace(twin, is_twin=False)).invalid == "the model is harmless"
    broken = replace(model, slots={**model.slots, "model_start": "raise ValueError"})
    assert "ValueError" in str(judge(broken).invalid)


@pytest.mark.releases
@pytest.mark.torch
@pytest.mark.usefixtures("release")
@_of_each_kind
def test_nothing_else_fails_than_is_listed(kind: str) -> None:
    listed = known.read()
    verdicts = [judge(each) for pair in drawn(KINDS[kind](), _SAMPLE, 0) for each in pair.models(kind)]
    assert [f"{each.model.key}: {each.invalid}" for each in verdicts if each.invalid] == []
    new = known.unlisted(verdicts, listed)
    assert [f"{each.outcome}: {each.model.key}: {each.how}" for each in new] == []
    assert known.mended(verdicts, listed) == [], "take these out: python3 -m tests.contract.kinds --write"
