"""What git says has changed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gclint.code.changes import ChangesUnknown, changed_files, staged_files
from tests.repository import Repository

_BASE = "origin/main"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repository")


def _changed(repository: Repository, base: str = _BASE) -> set[str]:
    """Return the names of what has changed, asked for with all files that are there."""
    files = [path for path in repository.folder.rglob("*.py") if ".git" not in path.parts]
    found = changed_files(files, base)
    return {path.relative_to(repository.folder.resolve()).as_posix() for path in found}


def test_every_kind_of_change_counts(repository: Repository) -> None:
    kinds = ("committed", "staged", "unstaged", "renamed", "deleted", "same")
    repository.write(*(f"{kind}.py" for kind in kinds))
    repository.write(".gitignore", text="ignored.py\n")
    repository.branch()
    repository.write("committed.py", text="y = 1\n")
    repository.commit()
    repository.git("mv", "renamed.py", "new_name.py")
    repository.git("rm", "-q", "deleted.py")
    repository.write("staged.py", text="y = 1\n")
    repository.git("add", "staged.py")
    repository.write("unstaged.py", "ignored.py", "folder/untracked.py", text="y = 1\n")
    assert _changed(repository) == {
        "committed.py",
        "staged.py",
        "unstaged.py",
        "renamed.py",
        "new_name.py",
        "deleted.py",
        "folder/untracked.py",
    }


def test_what_others_changed_since_is_no_change(repository: Repository) -> None:
    repository.write("mine.py", "theirs.py")
    repository.branch()
    repository.write("mine.py", text="y = 1\n")
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write("theirs.py", text="y = 1\n")
    repository.commit()
    repository.git("checkout", "-q", "work")
    assert _changed(repository, "main") == {"mine.py"}


@pytest.mark.parametrize("base", ["HEAD", "HEAD~1", "work~2", "a-tag"])
def test_a_base_is_whatever_git_takes_for_a_commit(repository: Repository, base: str) -> None:
    for number in range(3):
        repository.write(f"{number}.py")
        repository.branch() if number == 0 else repository.commit()
    repository.git("tag", "-a", "-m", "", "a-tag", "HEAD~1")
    since = {"HEAD": 3, "HEAD~1": 2, "work~2": 1, "a-tag": 2}[base]
    assert _changed(repository, base) == {f"{number}.py" for number in range(since, 3)}


def test_a_change_that_was_taken_back_is_none(repository: Repository) -> None:
    repository.write("a.py")
    repository.branch()
    repository.write("a.py", text="y = 1\n")
    repository.commit()
    repository.write("a.py")
    assert _changed(repository) == set()


@pytest.mark.skipif(sys.platform == "win32", reason="such names are forbidden there")
def test_names_are_taken_as_they_are(repository: Repository) -> None:
    names = {"with space.py", "caf\u00e9.py", 'quo"te.py', "new\nline.py", "-q.py"}
    repository.branch()
    repository.write(*names)
    repository.git("add", "-A")
    repository.write("un tracked\u00e9.py")
    assert _changed(repository) == names | {"un tracked\u00e9.py"}


def test_paths_may_be_relative_to_any_folder(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.branch()
    repository.write("deep/down/a.py", "b.py")
    expected = {(repository.folder / name).resolve() for name in ("deep/down/a.py", "b.py")}
    monkeypatch.chdir(repository.folder / "deep")
    assert changed_files([Path("down/a.py")], _BASE) == expected
    monkeypatch.chdir(repository.folder.parent)
    assert changed_files([Path("repository/deep/down/a.py")], _BASE) == expected


def test_a_user_s_settings_make_no_difference(repository: Repository) -> None:
    repository.write("a.py", "sub/b.py")
    repository.branch()
    for setting in (
        "diff.relative=true",
        "diff.noprefix=true",
        "status.showUntrackedFiles=no",
        "diff.renames=copies",
    ):
        repository.git("config", *setting.split("="))
    repository.git("mv", "a.py", "sub/c.py")
    repository.write("d.py")
    assert _changed(repository) == {"a.py", "sub/c.py", "d.py"}


def test_a_linked_working_tree_has_its_own_changes(repository: Repository, tmp_path: Path) -> None:
    repository.write("a.py", "b.py")
    repository.branch()
    repository.git("worktree", "add", "-q", "-b", "other", tmp_path / "linked")
    linked = Repository(tmp_path / "linked")
    linked.write("b.py", text="y = 1\n")
    repository.write("a.py", text="y = 1\n")
    assert _changed(linked) == {"b.py"}
    assert _changed(repository) == {"a.py"}


def test_files_of_two_repositories(repository: Repository, tmp_path: Path) -> None:
    other = Repository.at(tmp_path / "other")
    for each in (repository, other):
        each.write("a.py", "b.py")
        each.branch()
        each.write("b.py", text="y = 1\n")
    files = [each.folder / name for each in (repository, other) for name in ("a.py", "b.py")]
    assert changed_files(files, _BASE) == {(each.folder / "b.py").resolve() for each in (repository, other)}


def test_a_repository_in_another_one_is_a_change_as_a_whole(repository: Repository) -> None:
    inner = Repository.at(repository.folder / "inner")
    inner.write("a.py")
    inner.branch()
    repository.write("b.py")
    repository.git("add", "b.py")
    repository.git("commit", "-q", "-m", "without the inner one")
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert _changed(inner) == set()
    assert _changed(repository) == {"inner", "inner/a.py"}


def test_a_hook_of_another_repository_does_not_mislead(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository.at(tmp_path / "other")
    other.branch()
    repository.write("a.py")
    repository.branch()
    repository.write("a.py", text="y = 1\n")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    assert changed_files([repository.folder / "a.py"], _BASE) == {(repository.folder / "a.py").resolve()}


def test_a_file_that_was_only_touched_has_not_changed(repository: Repository) -> None:
    repository.write("a.py")
    repository.branch()
    os.utime(repository.folder / "a.py", (1, 1))
    (repository.folder / ".git" / "index.lock").touch()
    assert _changed(repository) == set()


def _complaint(folder: Path, base: str = _BASE) -> str:
    with pytest.raises(ChangesUnknown) as raised:
        changed_files([folder / "a.py"], base)
    return str(raised.value)


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    complaint = _complaint(tmp_path)
    assert str(tmp_path.resolve()) in complaint
    assert "not in the working tree of a git repository" in complaint
    assert "without --changed-only" in complaint


def test_no_commit(repository: Repository) -> None:
    assert "no commits yet" in _complaint(repository.folder)


@pytest.mark.parametrize("base", [_BASE, "typo", "--help", "--since=2000-01-01", "HEAD~7", "HEAD^{tree}"])
def test_no_such_base(repository: Repository, base: str) -> None:
    repository.commit()
    complaint = _complaint(repository.folder, base)
    assert f"no commit or branch {base!r}" in complaint
    assert "--base-ref" in complaint


def test_nothing_in_common(repository: Repository) -> None:
    repository.branch()
    repository.git("checkout", "-q", "--orphan", "alone")
    repository.commit()
    assert f"HEAD and {_BASE!r} have no commit in common; choose another one with --base-ref" in _complaint(
        repository.folder
    )


def test_a_shallow_clone(repository: Repository, tmp_path: Path) -> None:
    repository.write("a.py")
    repository.branch()
    repository.commit()
    clone = Repository(tmp_path / "clone")
    source = repository.folder.as_uri()
    repository.git("clone", "-q", "--depth", "1", "--branch", "work", source, clone.folder)
    repository.git("checkout", "-q", "main")
    repository.commit()
    clone.git("fetch", "-q", "--depth", "1", "origin", "main:refs/remotes/origin/main")
    complaint = _complaint(clone.folder)
    assert "shallow clone" in complaint
    assert "git fetch --unshallow" in complaint
    clone.git("fetch", "-q", "--unshallow", "origin")
    assert _changed(clone) == set()


def test_no_git(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    complaint = _complaint(repository.folder)
    assert "git cannot be run" in complaint
    assert "install git" in complaint


def _staged(repository: Repository) -> set[str]:
    files = [path for path in repository.folder.rglob("*.py") if ".git" not in path.parts]
    folder = repository.folder.resolve()
    return {path.relative_to(folder).as_posix() for path in staged_files(files)}


def test_only_what_is_staged_is_part_of_the_next_commit(repository: Repository) -> None:
    repository.write("staged.py", "unstaged.py", "renamed.py", "deleted.py", "committed.py", "same.py")
    repository.branch()
    repository.write("committed.py", text="y = 1\n")
    repository.commit()
    assert _staged(repository) == set()
    repository.git("mv", "renamed.py", "new_name.py")
    repository.git("rm", "-q", "deleted.py")
    repository.write("staged.py", text="y = 1\n")
    repository.git("add", "staged.py")
    repository.write("unstaged.py", "untracked.py", text="y = 1\n")
    assert _staged(repository) == {"staged.py", "renamed.py", "new_name.py", "deleted.py"}


def test_before_the_first_commit_all_that_is_staged_counts(repository: Repository) -> None:
    repository.write("staged.py", "untracked.py")
    repository.git("add", "staged.py")
    assert _staged(repository) == {"staged.py"}


def test_in_a_fresh_clone_without_a_branch_of_its_own(repository: Repository, tmp_path: Path) -> None:
    repository.write("one.py", "other.py")
    repository.commit()
    repository.git("clone", "-q", "--depth=1", f"file://{repository.folder}", tmp_path / "clone")
    clone = Repository(tmp_path / "clone")
    assert _staged(clone) == set()
    clone.write("one.py", text="y = 1\n")
    clone.git("add", "one.py")
    assert _staged(clone) == {"one.py"}


def test_of_a_merge_what_neither_side_has_counts(repository: Repository) -> None:
    repository.write("mine.py", "theirs.py", "both.py")
    repository.branch()
    repository.write("mine.py", text="y = 1\n")
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write("theirs.py", text="y = 1\n")
    repository.commit()
    repository.git("merge", "-q", "--no-commit", "--no-ff", "work")
    assert _staged(repository) == set()
    repository.write("both.py", text="z = 1\n")
    repository.git("add", "both.py")
    assert _staged(repository) == {"both.py"}


def test_the_index_of_a_commit_of_some_files_counts(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("one.py", "other.py")
    repository.commit()
    # As git does for "git commit one.py", which leaves out what else is staged.
    index = repository.folder / ".git" / "next-index-1.lock"
    index.write_bytes((repository.folder / ".git" / "index").read_bytes())
    repository.write("one.py", "other.py", text="y = 1\n")
    repository.git("add", "other.py")
    monkeypatch.setenv("GIT_INDEX_FILE", str(index))
    repository.git("add", "one.py")
    assert _staged(repository) == {"one.py"}
    elsewhere = Repository.at(tmp_path / "elsewhere")
    assert _staged(elsewhere) == set()
    elsewhere.write("third.py")
    assert _staged(elsewhere) == set()


def test_outside_of_a_repository_nothing_is_known_to_be_staged(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("x = 1\n")
    with pytest.raises(ChangesUnknown, match="not in the working tree of a git repository"):
        staged_files([path])
