"""What is found, and what becomes of it, does not hang on how Python code is written."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sysconfig
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from gclint.rule import all_rules
from gclint.run.check import check
from gclint.run.fix import fix
from gclint.testing.fixtures import Fixture, Texts
from gclint.testing.rules import Workplace
from tests.dresses import DRESSES
from tests.harness import load_fixtures

# Those of GC000 are about where comments stand.
_FIXTURES = [fixture for fixture in load_fixtures() if not fixture.name.startswith("GC000")]


def _each(texts: Texts, dress: Callable[[str], str]) -> dict[str, str]:
    return {name: dress(text) if name.endswith(".py") else text for name, text in texts.items()}


_MEANING_MORE = {
    # Whatever decorates a class may make it, so that it is not known any more who does.
    ("GC001/run_by_another", "decorated classes"),
    ("GC001/model_that_does_not_hold_it", "decorated classes"),
    # What a branch defines may be defined otherwise in another one: nothing is safe then that hangs on it.
    ("GC001/statistics_by_another_way", "classes in branches"),
    ("GC001/changes_an_item_of_the_settings", "classes in branches"),
    # Nobody writes brackets around a base with parameters; nothing is said of it then.
    ("GC001/generic_base", "bracketed bases"),
    # The property that is read by another name keeps its own.
    ("GC002/stacks_by_other_ways", "attribute by another name"),
    # What a release has is known by its own text, which is not written so.
    ("GC301/in_an_old_release", "form feeds"),
    ("GC301/in_an_old_release", "joined headers"),
    ("GC301/in_an_old_release", "classes in branches"),
    # With one variable for all stacks of a model, what cannot be followed of one is doubted of all.
    ("GC003/receives_otherwise", "stack by walrus"),
    # What has another name may be filled by it, which is not followed.
    *(
        (f"GC002/{fixture}", f"{name} by walrus")
        for fixture in ("keeps_its_cache", "positional_cache")
        for name in ("loops", "stack")
    ),
    # Scripts beside the models are searched for words as they are usually written.
    ("GC302/forward_replaced_in_a_script", "spaced attributes"),
    ("GC302/forward_collected_in_a_class", "spaced attributes"),
    # So are calls of embeddings; what is written otherwise is found by runs only.
    ("GC108/in_place", "spaced attributes"),
    ("GC108/in_place", "attributes over lines"),
    ("GC108/in_place", "joined headers"),
    ("GC108/views_and_clones", "spaced attributes"),
    ("GC108/views_and_clones", "attributes over lines"),
    ("GC108/views_and_clones", "joined headers"),
}


def _dressed_fixtures() -> Iterator[object]:
    """Yield all pairs; in the quick part each fixture is in a dress, and each dress on three fixtures."""
    pairs = [
        (fixture, name)
        for fixture in _FIXTURES
        for name, dress in DRESSES.items()
        if _each(fixture.before, dress) != fixture.before and (fixture.name, name) not in _MEANING_MORE
    ]
    quick: Counter[str] = Counter()
    # In an order that is not that of the names, and is the same in each run.
    for fixture, name in sorted(pairs, key=lambda pair: zlib.crc32(f"{pair[0].name}-{pair[1]}".encode())):
        is_quick = quick[fixture.name] < 1 or quick[name] < 3
        if is_quick:
            quick.update((fixture.name, name))
        marks = () if is_quick else pytest.mark.slow
        yield pytest.param(fixture, DRESSES[name], id=f"{fixture.name}-{name}", marks=marks)


@pytest.mark.drawn(full=500)
@pytest.mark.parametrize(("fixture", "dress"), list(_dressed_fixtures()))
def test_dress_changes_nothing(fixture: Fixture, dress: Callable[[str], str], tmp_path: Path) -> None:
    verify(fixture, _each(fixture.before, dress), _each(fixture.unsafe, dress), tmp_path)


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", [60, 160])
def test_line_length_changes_nothing(width: int, every: int, tmp_path: Path) -> None:
    ruff = shutil.which("ruff", path=sysconfig.get_path("scripts")) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    folder = tmp_path / "formatted"
    # A formatter joins two strings in one of its two calls, which are then not the same code.
    fixtures = [fixture for fixture in _FIXTURES if fixture.name != "GC302/other_layout"][::every]
    for number, fixture in enumerate(fixtures):
        for version, texts in ("before", fixture.before), ("after", fixture.unsafe):
            for name, text in texts.items():
                path = folder / str(number) / version / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    command: list[str | Path] = [ruff, "format", "--isolated", f"--line-length={width}", "--no-cache", folder]
    subprocess.run(command, check=True, capture_output=True)
    for number, fixture in enumerate(fixtures):
        before, after = (
            {name: (folder / str(number) / version / name).read_text("utf-8") for name in fixture.before}
            for version in ("before", "after")
        )
        verify(fixture, before, after, tmp_path / str(number))


def verify(fixture: Fixture, before: Mapping[str, str], after: Texts, folder: Path) -> None:
    """Assert that the same is found as in the fixture, and that the repair gives what ``after`` says."""
    place = Workplace.of({name: text.encode() for name, text in before.items()}, folder)
    result = check(place.project, all_rules())
    assert result.problems == ()
    found = sorted(
        (place.name(each.path), each.code, each.fix.applicability.value if each.fix else "no fix")
        for each in result.findings
    )
    assert found == sorted((each.path, each.code, each.kind) for each in fixture.expectations)
    assert fix(place.project, all_rules(), unsafe=True, proves=True).problems == ()
    for path in place.paths:
        made = place.project.file(path).text
        assert _said(path, made) == _said(path, after[place.name(path)]), made


def _said(path: Path, text: str) -> str:
    """Return what a text says; settings are not dressed, so it is each letter of them."""
    if path.suffix != ".py":
        return text
    return ast.dump(ast.parse(text.replace("\r", "\n")), indent=1)
