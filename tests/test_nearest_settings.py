"""The settings of each file: those of the nearest settings file, from wherever a run starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gclint.cli.about import _load
from gclint.server.session import Session
from tests.decisions import reports
from tests.decisions.reports import Folder

_TWO = reports.two(reports.SAFE, reports.CACHE)
"""GC001 and GC002."""


def _found(folder: Folder, *arguments: str) -> list[str]:
    done = folder.run("--output-format", "json", "--exit-zero", *arguments)
    assert done.status == 0, done.err
    return [
        f"{Path(each['filename']).absolute().parent.name} {each['code']} {each['level']}"
        for each in done.data
    ]


@pytest.fixture
def projects(folder: Folder) -> Folder:
    """A repository with a project that has a table, one with a file of ours, and one without either."""
    folder.write(
        {
            "pyproject.toml": '[tool.gclint.levels]\nGC002 = "warning"\n',
            "a/pyproject.toml": '[tool.gclint]\nselect = ["GC001"]\n[tool.gclint.levels]\nALL = "note"\n',
            "a/src/modeling_a.py": _TWO,
            "b/gclint.toml": 'ignore = ["GC001"]\n',
            "b/pyproject.toml": '[tool.gclint]\nignore = ["GC002"]\n',
            "b/modeling_b.py": _TWO,
            "c/pyproject.toml": "[project]\nname = 'c'\n",
            "c/modeling_c.py": _TWO,
        }
    )
    return folder


_EXPECTED = ["src GC001 note", "b GC002 error", "c GC001 warning", "c GC002 warning"]


@pytest.mark.parametrize(
    ("start", "paths", "kept"),
    [
        (".", (), slice(None)),
        (".", ("a", "b", "c"), slice(None)),
        (".", ("a/src/modeling_a.py", "b/modeling_b.py", "c"), slice(None)),
        (".", ("a/src",), slice(1)),
        ("a/src", (), slice(1)),
        ("a/src", ("../../b/modeling_b.py",), slice(1, 2)),
        ("a", ("..",), slice(None)),
        ("c", (".", "../b"), slice(1, None)),
        ("c", ("modeling_c.py",), slice(2, None)),
        ("/", ("<root>",), slice(None)),
    ],
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_file_has_the_same_settings_from_wherever_the_run_starts(
    projects: Folder,
    start: str,
    paths: tuple[str, ...],
    kept: slice,
    jobs: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(projects.path / start)
    given = (each.replace("<root>", str(projects.path)) for each in paths)
    assert sorted(_found(projects, *given, "--jobs", jobs)) == sorted(_EXPECTED[kept])


def test_the_command_line_and_another_file_hold_for_all(projects: Folder) -> None:
    found = _found(projects, "--levels", "ALL:error", "--select", "GC002")
    assert sorted(found) == ["b GC002 error", "c GC002 error", "src GC002 error"]
    projects.write({"all.toml": 'select = ["GC001"]\n'})
    assert {each.split()[1] for each in _found(projects, "--config", "all.toml")} == {"GC001"}


def test_standard_input_has_the_settings_of_the_file_that_it_stands_for(projects: Folder) -> None:
    for name, codes in (
        ("a/new.py", ["GC001"]),
        ("b/deep/new.py", ["GC002"]),
        ("c/n.py", ["GC001", "GC002"]),
    ):
        done = projects.run("-", "--stdin-filename", name, "--output-format", "json", given=_TWO)
        assert done.codes == codes


def test_an_editor_sees_the_same(projects: Folder) -> None:
    session = Session(_load, "utf-16", [projects.path])
    while session.is_busy:
        session.work()
    found = {
        (Path(news.uri).parent.name, str(each.code)) for news in session.news() for each in news.diagnostics
    }
    assert found == {(each.split()[0], each.split()[1]) for each in _EXPECTED}
    session.open((projects.path / "b" / "modeling_new.py").as_uri(), "python", 1, _TWO)
    projects.write({"b/gclint.toml": "slect = []\n"})
    session.watched([(projects.path / "b" / "gclint.toml", False)])
    while session.is_busy:
        session.work()
    assert any("gclint.toml:1:1: this file has no setting 'slect'" in each for each in session.notices)


def test_files_are_included_and_excluded_by_their_own_settings(folder: Folder) -> None:
    folder.write(
        {
            "a/gclint.toml": 'include = ["*.py"]\nexclude = ["old"]\n',
            "a/net.py": _TWO,
            "a/old/modeling_x.py": _TWO,
            "b/net.py": _TWO,
            "b/old/modeling_x.py": _TWO,
            "gclint.toml": 'exclude = ["c"]\n',
            "c/gclint.toml": "exclude = []\n",
            "c/modeling_c.py": _TWO,
        }
    )
    assert {each.split()[0] for each in _found(folder)} == {"a", "old"}
    assert len(_found(folder)) == 4


def test_what_concerns_a_whole_run_is_named_and_not_read(folder: Folder) -> None:
    folder.write(
        {
            "a/gclint.toml": 'fail-level = "error"\nunsafe-fixes = true\nlibrary = "/nowhere"\n'
            '[verify.models.Toy]\ninputs = "toy:inputs"\n',
            "a/modeling_a.py": reports.UNSAFE,
            "modeling_b.py": reports.GOOD,
        }
    )
    done = folder.run("--fix")
    assert done.status == 1
    assert folder.read("a/modeling_a.py") == reports.UNSAFE
    for row, name in enumerate(("fail-level", "unsafe-fixes", "library", "verify"), start=1):
        assert f"gclint.toml:{row}:1: note: {name} concerns a whole run" in done.err
    assert "note" not in folder.run("--quiet").err
    assert folder.run("a").status == 2  # There, the library is looked for.


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("gclint.toml", "slect = []\n", "gclint.toml:1:1: this file has no setting 'slect'"),
        ("gclint.toml", 'ignore = ["GC999"]\n', "gclint.toml:1:1: ignore: there is no rule 'GC999'"),
        ("pyproject.toml", "[tool.gclint]\nslect = []\n", "pyproject.toml:2:1: [tool.gclint] has no"),
        ("pyproject.toml", "[tool.gclint\n", "cannot be read as TOML"),
        ("pyproject.toml", "[tool.other\n", None),
        ("pyproject.toml", "[tool]\nother = 'gclint'\n", None),
    ],
)
def test_a_mistake_in_settings_for_some_files_is_named(
    folder: Folder, name: str, text: str, complaint: str | None
) -> None:
    folder.write({f"a/{name}": text, "a/modeling_a.py": _TWO, "modeling_b.py": _TWO})
    done = folder.run()
    assert done.status == (1 if complaint is None else 2)
    assert complaint is None or complaint in " ".join(done.err.split())


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_is_judged_where_it_is_seen(projects: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    (projects.path / "c" / "linked").symlink_to("../b")
    # The folder is walked once, where it comes first.
    assert sorted(_found(projects)) == sorted(_EXPECTED)
    monkeypatch.chdir(projects.path / "c")
    assert sorted(_found(projects, "linked", "../b")) == ["linked GC002 error"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_to_settings_outside_is_refused(
    folder: Folder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.toml"
    outside.write_text('password = "x"\n')
    folder.write({"a/modeling_a.py": _TWO, "modeling_b.py": _TWO, "shared.toml": 'select = ["GC002"]\n'})
    link = folder.path / "a" / "gclint.toml"
    link.symlink_to("../shared.toml")
    assert folder.run().status == 2
    (folder.path / ".git").mkdir()
    assert "a GC002 error" in _found(folder)
    assert "a GC001 warning" not in _found(folder)
    link.unlink()
    link.symlink_to(outside)
    for paths in ((), ("a",)):
        done = folder.run(*paths)
        assert done.status == 2
        assert "this link leads out of" in done.err
        assert "password" not in done.err
