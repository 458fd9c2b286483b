"""A file is one file however its path is spelled, and is called what it was called first."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gclint.cli.main import main
from gclint.code.paths import shown
from gclint.code.project import Project
from gclint.copies.pairs import Renaming
from gclint.network.evaluation.modules import library_of
from gclint.network.lineage import ClassPlace, Lineage
from gclint.rule import all_rules
from gclint.run.baseline import Selection
from gclint.run.check import LintResult, check
from gclint.run.fix import fix
from gclint.settings import Settings
from gclint.write.transaction import write_all
from tests.toys import WordRule, replacing
from tests.trees import GCL, HEADER, Tree, converted, model

ALPHA, BETA = "alpha/modeling_alpha.py", "beta/modeling_beta.py"
BAD = WordRule("bad", replacing("good"))


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _write(name: str, text: str = "bad\n") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _project(*paths: Path | str) -> Project:
    return Project(Settings(), map(Path, paths))


def _link(name: str, target: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


# One file, one path.


def _spellings(tmp_path: Path) -> list[Path]:
    _write("a/modeling_x.py")
    _link("b", "a")
    _link("c/modeling_y.py", "../a/modeling_x.py")
    relative = ["a/modeling_x.py", "a/../a/modeling_x.py", "b/modeling_x.py", "c/modeling_y.py"]
    return [*map(Path, relative), *(tmp_path / each for each in relative)]


@pytest.mark.parametrize("first", range(8))
def test_a_file_is_called_what_it_was_given_as(tmp_path: Path, first: int) -> None:
    spellings = _spellings(tmp_path)
    given = spellings[first]
    for project in (_project(given), _project(given, *spellings)):
        assert project.paths == (given,)
        assert {project.identify(path) for path in spellings} == {given}
        assert {project.file(path) for path in spellings} == {project.file(given)}
        assert project.file(given).path == given


def test_a_file_that_was_not_given_is_called_what_it_was_asked_for_as_first(tmp_path: Path) -> None:
    spellings = _spellings(tmp_path)
    project = _project()
    assert [project.identify(path) for path in spellings] == spellings
    project.file(spellings[2])
    assert {project.identify(path) for path in spellings} == {spellings[2]}


@pytest.mark.parametrize("first", range(8))
def test_two_spellings_have_one_finding_and_are_written_once(tmp_path: Path, first: int) -> None:
    spellings = _spellings(tmp_path)
    project = _project(spellings[first], *spellings)
    (finding,) = check(project, [BAD]).findings
    assert (finding.path, finding.edits[0].path) == (spellings[first], spellings[first])
    result = fix(project, [BAD], unsafe=False)
    assert result.changed == {spellings[first]: ("bad\n", "good\n")}
    assert len(result.applied) == 1
    assert write_all(project, result.changed) == []
    assert Path("a/modeling_x.py").read_text() == "good\n"
    assert Path("c/modeling_y.py").is_symlink()


def test_what_hangs_on_a_file_hangs_on_all_its_spellings(tmp_path: Path) -> None:
    spellings, user = _spellings(tmp_path), _write("modeling_user.py")
    project = _project(user)
    project.consult(project.file(user), spellings[2])
    for path in spellings:
        assert project.dependents({path}) == {spellings[2], user}


def test_what_has_changed_may_be_known_by_another_path() -> None:
    _write("a/modeling_x.py", "from .modeling_y import Y\n")
    _write("a/modeling_y.py")
    linked = _link("b", "a") / "modeling_x.py"
    project = _project(linked)
    result = check(project, [BAD])
    project.module(project.file(linked), "modeling_y", 1)
    for name, files in (("a/modeling_x.py", 1), ("a/modeling_y.py", 1), ("a/modeling_z.py", 0)):
        changed = Path(os.path.realpath(name))
        assert Selection(project, [linked], {changed}).narrowed(result)[0].files == files


# Where a file is looked for.


def test_neighbours_of_a_link_are_those_beside_it() -> None:
    """A hub's cache holds links to files that are named after their content."""
    _write("blobs/1", HEADER.format("y"))
    _write("blobs/2", model("Y"))
    given = [
        _link("snapshots/main/modeling_y.py", "../../blobs/1"),
        _link("snapshots/main/modular_y.py", "../../blobs/2"),
    ]
    project = _project(*given)
    user = project.file(given[0])
    found = project.module(user, "modular_y", 1)
    assert found is not None
    assert found.path == given[1]
    (finding,) = check(project, all_rules()).findings
    assert finding.path == given[1]


@pytest.mark.parametrize("name", ["modeling_loop", "modeling_gone"])
def test_import_of_a_link_that_leads_nowhere_is_none(name: str) -> None:
    given = _write("modeling_x.py", f"from .{name} import X\nclass Y(X): bad\n")
    _link("modeling_loop.py", "modeling_loop.py")
    _link("modeling_gone.py", "gone.py")
    project = _project(given)
    assert project.module(project.file(given), name, 1) is None
    assert check(project, all_rules()).problems == ()
    # When it comes to be there, what hangs on it is judged anew.
    assert given in project.dependents({Path(f"{name}.py")})


@pytest.mark.parametrize("beside", ["link", "folder"])
def test_what_cannot_be_read_beside_a_file_is_passed_over(tmp_path: Path, beside: str) -> None:
    tree = Tree(tmp_path)
    tree.write({ALPHA: model("Alpha")})
    path = tree.path("beta/modeling_beta.py")
    path.parent.mkdir()
    if beside == "link":
        path.symlink_to("gone.py")
    else:
        path.mkdir()
    assert tree.fix(ALPHA)[0] == {ALPHA: converted(model("Alpha"))}


# A tree is the same tree, however its files are given.


_CHILD = "from ..alpha.modeling_alpha import AlphaLayer\n" + model("Beta").replace(
    "class BetaLayer(nn.Module):", "class BetaLayer(AlphaLayer):"
)


def _models(tmp_path: Path) -> Tree:
    """A model, one whose layer is a copy, one that inherits from it, and one that is generated from it."""
    tree = Tree(tmp_path)
    copy = "# Copied from transformers.models.alpha.modeling_alpha.AlphaLayer with Alpha->Gamma\n"
    modular = "from ..alpha.modeling_alpha import AlphaLayer\n\n\nclass DeltaLayer(AlphaLayer):\n    pass\n"
    tree.write(
        {
            ALPHA: model("Alpha"),
            BETA: _CHILD,
            "gamma/modeling_gamma.py": model("Gamma").replace("class GammaLayer", f"{copy}class GammaLayer"),
            "delta/modular_delta.py": modular,
            "delta/modeling_delta.py": HEADER.format("delta") + model("Delta"),
        }
    )
    return tree


def _absolute(path: Path) -> Path:
    return path.absolute()


def _doubled(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


def _through_a_folder(path: Path) -> Path:
    if not Path("linked").exists():
        Path("linked").symlink_to("transformers/models")
    return Path("linked", path.parent.name, path.name)


def _from_beside(path: Path) -> Path:
    return Path(os.path.relpath(path.absolute()))


_WAYS = (_absolute, _doubled, _through_a_folder, _from_beside)


def _told(result: LintResult) -> list[tuple[object, ...]]:
    """Return what is said of findings apart from how their paths are spelled."""
    return sorted(
        (
            each.path.name,
            each.code,
            each.start,
            each.symbol,
            each.message,
            each.remedy.reason or "",
            sorted((edit.path.name, edit.start, edit.content) for edit in each.edits),
            sorted((heir.path.name, heir.symbol) for heir in each.inherited_by),
        )
        for each in result.findings
    )


def _texts(project: Project) -> dict[str, str]:
    return {path.name: after for path, (_, after) in fix(project, all_rules(), unsafe=True).changed.items()}


@pytest.mark.drawn(first=6)
@pytest.mark.parametrize("others", _WAYS)
@pytest.mark.parametrize("number", range(5))
def test_findings_and_fixes_do_not_hang_on_how_files_are_given(
    tmp_path: Path, number: int, others: Callable[[Path], Path]
) -> None:
    _models(tmp_path)
    plain = sorted(Path("transformers/models").glob("*/mod*.py"))
    mixed = [path if index == number else others(path) for index, path in enumerate(plain)]
    expected, found = check(_project(*plain), all_rules()), check(_project(*mixed), all_rules())
    assert _told(expected)
    assert _told(found) == _told(expected)
    paths = {each.path for each in found.findings}
    paths |= {edit.path for each in found.findings for edit in each.edits}
    paths |= {heir.path for each in found.findings for heir in each.inherited_by}
    assert paths <= set(mixed)
    assert _texts(_project(*mixed)) == _texts(_project(*plain))


def test_a_finding_about_another_file_appears_as_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _models(tmp_path)
    alpha, beta = (Path("transformers/models") / name for name in (ALPHA, BETA))
    # The file that imports is looked at first, and knows the other one by an absolute path.
    monkeypatch.setattr(sys, "argv", ["gclint", "--output-format", "json", str(beta), str(alpha)])
    with pytest.raises(SystemExit):
        main()
    findings = json.loads(capsys.readouterr().out)
    assert {each["filename"] for each in findings} <= {str(alpha), str(beta)}
    edits = [edit for each in findings if each["fix"] for edit in each["fix"]["edits"]]
    assert {edit["filename"] for edit in edits} == {str(alpha)}


def test_a_message_names_a_file_as_the_user_would(tmp_path: Path) -> None:
    _models(tmp_path)
    beta = (Path("transformers/models") / BETA).absolute()
    reasons = {each.remedy.reason for each in check(_project(beta), all_rules()).findings}
    assert f"the fix also changes transformers/models/{ALPHA}; pass it to gclint as well" in reasons


def test_a_path_is_shown_from_the_working_directory_where_that_is_shorter(tmp_path: Path) -> None:
    assert shown(tmp_path / "a" / "b.py") == "a/b.py"
    assert shown(tmp_path.parent / "b.py") == "../b.py"
    assert shown(str(Path("/b.py"))) == "/b.py"
    assert shown(Path("a/b.py")) == "a/b.py"
    # Behind a link, `..` leads elsewhere.
    assert shown(tmp_path / "a" / ".." / "b.py") == str(tmp_path / "a" / ".." / "b.py")


def test_a_copy_that_is_given_through_a_link_elsewhere_changes_with_its_origin(tmp_path: Path) -> None:
    tree = _models(tmp_path)
    alpha, gamma = tree.path(ALPHA), _link("link.py", str(tree.path("gamma/modeling_gamma.py")))
    project = _project(alpha, gamma)
    assert list(fix(project, all_rules(), unsafe=True).changed) == [alpha, gamma]
    assert f"class GammaLayer({GCL})" in project.file(gamma).text


def test_a_model_is_named_after_its_folder_from_within_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _models(tmp_path)
    monkeypatch.chdir("transformers/models/delta")
    project = _project("modeling_delta.py", "modular_delta.py", "../alpha/modeling_alpha.py")
    messages = [each.message for each in check(project, all_rules()).findings]
    assert any("; inherited by delta" in each for each in messages)


def test_neighbours_are_neighbours_however_they_are_given(tmp_path: Path) -> None:
    method = "    def forward(self, x):\n        return x\n"
    written = f"class XLayer(nn.Module):\n{method}\n\nclass XDecoder(XLayer):\n    pass\n"
    _write("x/modular_x.py", f"from torch import nn\n\n\n{written}")
    modeling = _write("x/modeling_x.py", f"{HEADER.format('x')}class XDecoder:\n{method}")
    project = _project(modeling, tmp_path / "x" / "modular_x.py")
    library = library_of(project)
    twin = Lineage(library, project.paths).copy_pair(
        ClassPlace(library.module(project.file(modeling)).classes["XDecoder"], "forward")
    )
    assert twin is not None
    # Nothing is renamed between a file and what is generated from it.
    assert twin.renaming == Renaming()
