"""The option ``--upstream``: its pages, and where they are written; the worker is a stand-in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gclint.cli import upstream
from gclint.code.project import Project
from gclint.finding import Finding, InheritedDefect, Problem
from gclint.proof.evidence import Hint, Weighed
from gclint.report.report import Report
from gclint.report.upstream import RELEASES, defects, index, release_line
from gclint.settings import Settings
from gclint.verify.results import Results
from gclint.verify.settings import RunSettings
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, Demonstration, Failure, SourcePlace
from tests.toys import NO_FIX
from tests.verify.command_line import Gclint, failing, kept_results, passing, write

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

_SHOWN = Demonstration(1, "3 of 4 parameters get no gradient\n")
_NOT_SHOWN = Demonstration(0, "the failure does not show\n")


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Demonstration]:
    """What comes of the scripts, the last one again and again; none of them is run."""
    results = [_SHOWN]

    def demonstrate(script: str, settings: RunSettings, texts: object = None) -> Demonstration:
        compile(script, "script.py", "exec")
        return results.pop(0) if len(results) > 1 else results[0]

    monkeypatch.setattr(upstream, "demonstrate", demonstrate)
    return results


def _pages(folder: str = "up") -> dict[str, str]:
    root = Path(folder)
    files = (each for each in root.rglob("*") if each.is_file())
    return {each.relative_to(root).as_posix(): each.read_text() for each in files}


def test_there_is_a_page_for_each_defect_and_not_for_each_class(
    gclint: Gclint, tried: list[Demonstration]
) -> None:
    write("toy", passing("Right") + failing("A") + failing("B", lost=3) + failing("C", line=9))
    outcome = gclint("--upstream", "up")
    assert outcome.status == 1
    assert outcome.err == "up has 2 defects; scripts show 2 of them.\n"
    pages = _pages()
    assert set(pages) == {"README.md", "activations-by-keyword/toy-A.md", "activations-by-keyword/toy-C.md"}
    assert "Classes of `modeling_toy.py`: `A`, `B`\n" in pages["activations-by-keyword/toy-A.md"]
    assert "`Right`" not in "".join(pages.values())


def test_a_page_has_what_a_maintainer_needs_in_this_order(gclint: Gclint, tried: list[Demonstration]) -> None:
    write("toy", failing("A") + failing("B", lost=3))
    gclint("--upstream", "up")
    page = _pages()["activations-by-keyword/toy-A.md"]
    title, *rest = page.split("\n## ")
    assert title.startswith(
        "# `A` and 1 more class: the gradients of 8 parameters are lost with `use_reentrant=True`\n"
    )
    assert [each.partition("\n")[0] for each in rest] == [
        "What happens", "Cause", "Script", "Repair", "Releases",
    ]  # fmt: skip
    happens, cause, script, repair, releases = rest
    assert "- `B` with `use_reentrant=True`: the gradients of 3 parameters are lost.\n" in happens
    assert "The call passes `x` by keyword." in cause
    assert "`modeling_toy.py`, line 7 to 8:\n\n```python\n" in cause
    assert "train(use_reentrant=True)" in script
    assert "it exits with 1:\n\n```text\n3 of 4 parameters get no gradient\n```" in script
    assert "There is no automatic repair." in repair
    assert releases == (
        "Releases\n\n- transformers 5.23.0: the script shows it: 3 of 4 parameters get no gradient\n"
    )


def test_other_classes_are_tried_until_a_script_shows_the_defect(
    gclint: Gclint, tried: list[Demonstration]
) -> None:
    write("toy", failing("A") + failing("B"))
    tried[:] = [_NOT_SHOWN, _SHOWN]
    assert gclint("--upstream", "up").err == "up has 1 defect; scripts show 1 of them.\n"
    (page,) = (text for name, text in _pages().items() if name != "README.md")
    assert "import B\n" in page


def test_a_defect_that_no_script_shows_is_not_claimed(gclint: Gclint, tried: list[Demonstration]) -> None:
    write("toy", failing("A"))
    tried[:] = [_NOT_SHOWN]
    assert gclint("--upstream", "up").err == "up has 1 defect; scripts show 0 of them.\n"
    pages = _pages()
    assert "it exits with 0, so it does not show the defect:" in pages["activations-by-keyword/toy-A.md"]
    assert "- transformers 5.23.0: the script does not show it\n" in pages["activations-by-keyword/toy-A.md"]
    assert pages["README.md"].endswith("(activations-by-keyword/toy-A.md) | not shown |\n")


def test_output_cannot_end_its_block(gclint: Gclint, tried: list[Demonstration]) -> None:
    write("toy", failing("A"))
    tried[:] = [Demonstration(1, "```\n# Not a heading\n")]
    gclint("--upstream", "up")
    assert "\n````text\n```\n# Not a heading\n````\n" in _pages()["activations-by-keyword/toy-A.md"]


def test_a_folder_with_something_in_it_is_refused_before_anything_is_run(
    gclint: Gclint, tried: list[Demonstration]
) -> None:
    write("toy", failing("A"))
    Path("up").mkdir()
    Path("up", "mine.txt").write_text("mine")
    outcome = gclint("--upstream", "up")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "Error: --upstream: up is not empty; name a new folder, or empty this one\n"
    assert _pages() == {"mine.txt": "mine"}
    assert not kept_results().exists()


def test_an_empty_folder_is_filled(gclint: Gclint, tried: list[Demonstration]) -> None:
    write("toy", failing("A"))
    Path("up").mkdir()
    assert gclint("--upstream", "up").status == 1
    assert len(_pages()) == 2


def test_all_pages_are_written_or_none(
    gclint: Gclint, tried: list[Demonstration], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("toy", failing("A") + failing("C", line=9))
    monkeypatch.setattr(
        upstream,
        "write_text",
        lambda path, text: [Problem(path, "no space")] if "C" in path.name else [],
    )
    before = sorted(Path().iterdir())
    outcome = gclint("--upstream", "up")
    assert outcome.status == 2
    assert outcome.err.endswith("toy-C.md: no space\n")
    assert sorted(Path().iterdir()) == before


def test_a_folder_behind_a_link_that_leads_out_is_refused(
    gclint: Gclint, tried: list[Demonstration], tmp_path_factory: pytest.TempPathFactory
) -> None:
    write("toy", failing("A"))
    Path("up").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    outcome = gclint("--upstream", "up/pages")
    assert outcome.status == 2
    assert "leads out of" in outcome.err


def test_what_is_generated_from_one_file_has_the_same_defects(tmp_path: Path) -> None:
    call = "hidden_states = layer(hidden_states, x=x)\n"
    paths = [tmp_path / f"modeling_{name}.py" for name in "abc"]
    for path in paths:
        path.write_text(call if path != paths[2] else f"{call}{call}")
    heirs = (InheritedDefect(paths[1], "Layer", defines=True),)
    shared = Finding("GC003", "name", "", paths[0], 0, 1, "Layer", NO_FIX, inherited_by=heirs)
    own = Finding("GC003", "name", "", paths[2], 0, 1, "Layer", NO_FIX)
    found = (
        (paths[0], 1, shared),
        (paths[1], 1, shared),
        (paths[2], 1, own),
        (paths[2], 2, own),
    )
    results, weighed = Results(), Weighed(hints={})
    for number, (path, line, finding) in enumerate(found):
        place = SourcePlace(str(path), line, line)
        failure = Failure(
            "error",
            "reentrant",
            "default",
            "it raises",
            (),
            (place,),
            Cause.KEYWORD_ACTIVATION,
            "By keyword.",
        )
        result = ClassResult(str(path), f"Model{number}", "failed", failures=(failure,))
        results.add(result, tree=None)
        hint = Hint("GC003", (path,), is_unsafe=False, is_whole=True, findings=(finding,))
        weighed.hints[result.source, result.name, failure] = (hint,)  # type: ignore[index]
    project = Project(Settings(), paths)
    grouped = defects(Report(project, runs=results, weighed=weighed))
    names = [[result.name for result, _ in each.failures] for each in grouped]
    assert names == [["Model0", "Model1"], ["Model2"], ["Model3"]]


def test_the_index_has_all_releases_that_show_a_defect() -> None:
    page = f"# A | title\n\n{RELEASES}\n" + "".join(
        release_line(version, result)
        for version, result in (
            ("5.23.0", _SHOWN),
            ("5.0.0", _NOT_SHOWN),
            ("4.57.6", _SHOWN),
            ("4.45.2", None),
        )
    )
    row = index({"some-kind/a-B.md": page}).splitlines()[-1]
    assert row == "| some kind | [A \\| title](some-kind/a-B.md) | 5.23.0 and 4.57.6 |"
