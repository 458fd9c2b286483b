"""Generated models, repaired and run: every parameter receives what it received before."""

from __future__ import annotations

import io
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gclint.code.project import Project
from gclint.finding import Applicability, Finding
from gclint.releases import releases
from gclint.report.findings import is_fixable
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.run.fix import FixResult, fix
from gclint.settings import Settings
from gclint.testing.rules import USUAL_RELEASES
from tests.generated import ACTIVATIONS, CACHES, Models, converted_models, legacy_models
from tests.stand_ins import Trace, run_models

_Texts = Mapping[str, str]

_generated = settings(
    deadline=None, derandomize=True, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)

_newlines = st.sampled_from(("\n", "\r\n"))


@contextmanager
def _written(texts: _Texts) -> Iterator[tuple[Project, list[Path]]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_bytes(text.encode())
        yield Project(Settings(target_version=releases(USUAL_RELEASES)), paths), paths


def _repair(texts: _Texts, *, unsafe: bool) -> tuple[dict[str, str], FixResult]:
    """Repair files in memory; return their texts, and what the run says."""
    with _written(texts) as (project, paths):
        result = fix(project, all_rules(), unsafe=unsafe)
        assert result.problems == ()
        return {path.name: project.file(path).text for path in paths}, result


def _findings(texts: _Texts) -> tuple[Finding, ...]:
    with _written(texts) as (project, _):
        result = check(project, all_rules())
        assert result.problems == ()
        return result.findings


def _verify_repair(models: Models, newline: str, *, unsafe: bool) -> tuple[dict[str, str], FixResult]:
    """Repair files, and assert what holds for every repair; return what :func:`_repair` does."""
    texts = {name: text.replace("\n", newline) for name, text in models.texts.items()}
    after, result = _repair(texts, unsafe=unsafe)
    assert {name: text.replace("\n", newline) for name, text in _normal(after).items()} == after
    assert run_models(after) == run_models(texts)
    assert not [each for each in result.findings if is_fixable(each, unsafe=unsafe)]
    again, second = _repair(after, unsafe=unsafe)
    assert again == after
    assert second.applied == ()
    return after, result


def _normal(texts: _Texts) -> _Texts:
    return {name: text.replace("\r\n", "\n") for name, text in texts.items()}


def _comments(texts: _Texts) -> Counter[str]:
    return Counter(
        token.string
        for text in texts.values()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    )


@pytest.mark.slow
@given(converted_models(), st.booleans(), _newlines)
@_generated
def test_repaired_calls_give_every_parameter_the_same(models: Models, unsafe: bool, newline: str) -> None:
    after, result = _verify_repair(models, newline, unsafe=unsafe)
    assert _comments(after) == _comments(models.texts)
    if not result.findings:
        trace = run_models(after)
        assert trace.hidden.isdisjoint(CACHES)
        assert trace.named.isdisjoint(ACTIVATIONS)


@given(converted_models())
@_generated
def test_calls_are_reported_for_what_is_wrong_with_them(models: Models) -> None:
    codes = Counter(finding.code for finding in _findings(models.texts))
    assert codes["GC002"] == sum(any(each.hides_a_cache for each in call) for call in models.calls)
    assert codes["GC003"] == sum(any(each.names_an_activation for each in call) for call in models.calls)
    assert codes.keys() <= {"GC002", "GC003"}


@pytest.mark.slow
@given(legacy_models(), st.booleans(), _newlines)
@_generated
def test_replaced_branches_give_every_parameter_the_same(models: Models, unsafe: bool, newline: str) -> None:
    after, result = _verify_repair(models, newline, unsafe=unsafe)
    assert _kept(_comments(after)) == _kept(_comments(models.texts))
    replaced = [each.fix for each in result.applied if each.code == "GC302" and each.fix is not None]
    assert [text.count("self._gradient_checkpointing_func(") for text in after.values()] == [
        1 - len(replaced)
    ]
    if replaced and replaced[0].applicability is Applicability.SAFE:
        # The base class switches caches off; nothing else may change for a model that checkpoints.
        before, now = (run_models(texts, checkpointing=True) for texts in (models.texts, after))
        assert _without_caches(now) == _without_caches(before)


def _kept(comments: Iterable[str]) -> set[str]:
    """Leave out the comments that only the checkpointed side has: they go with it."""
    return {text for text in comments if not text.startswith("# legacy")}


def _without_caches(trace: Trace) -> list[dict[str, object]]:
    return [
        {name: value for name, value in values.items() if name not in CACHES} for _, values in trace.received
    ]
