"""Which files a run looks at."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gclint.code.candidates import looks_like_model
from gclint.code.discovery import discover, survey
from gclint.code.project import Project
from gclint.settings import Settings


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield


def _make(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")


def _files(*paths: str, exclude: tuple[str, ...] = ()) -> list[str]:
    files, problems = discover([Path(path) for path in paths], Settings(exclude=exclude))
    assert problems == []
    return [str(path) for path in files]


def _problems(*paths: str) -> list[tuple[str, str]]:
    _, problems = discover([Path(path) for path in paths], Settings())
    return [(str(problem.path), problem.message) for problem in problems]


def test_folder_gives_its_modeling_and_modular_files_in_order() -> None:
    _make(
        "models/llama/modeling_llama.py",
        "models/bert/modular_bert.py",
        "models/bert/modeling_bert.py",
        "models/bert/modeling_flax_bert.py",
        "models/bert/configuration_bert.py",
        "models/bert/modeling_bert.pyc",
        "models/bert/my_modeling_bert.py",
    )
    assert _files("models") == [
        "models/bert/modeling_bert.py",
        "models/bert/modeling_flax_bert.py",
        "models/bert/modular_bert.py",
        "models/llama/modeling_llama.py",
    ]


def test_current_folder_is_not_part_of_the_names() -> None:
    _make("modeling_a.py")
    assert _files(".") == ["modeling_a.py"]


@pytest.mark.parametrize("folder", [".git", ".cache/x", "__pycache__", "node_modules/x"])
def test_folders_that_hold_no_sources_are_not_entered(folder: str) -> None:
    _make("modeling_a.py", f"{folder}/modeling_b.py")
    assert _files(".") == ["modeling_a.py"]
    assert _files(folder) == [f"{folder}/modeling_b.py"]


def test_virtual_environment_is_not_entered() -> None:
    _make("modeling_a.py", "env/pyvenv.cfg", "env/lib/modeling_b.py")
    assert _files(".") == ["modeling_a.py"]


def test_file_is_taken_once_under_the_name_that_comes_first() -> None:
    _make("a/modeling_x.py")
    Path("link.py").symlink_to("a/modeling_x.py")
    assert _files("link.py", "a/../a/modeling_x.py", "a", "a/modeling_x.py") == ["link.py"]


def test_folder_with_nothing_but_excluded_files_is_no_problem() -> None:
    _make("a/modeling_x.py", "b/c/modeling_x.py")
    assert _files("a", exclude=("modeling_*",)) == []
    assert _files("b", exclude=("c",)) == []


def test_linked_folder_is_followed_if_it_is_given() -> None:
    _make("elsewhere/modeling_x.py", "models/modeling_y.py")
    Path("models/linked").symlink_to("../elsewhere")
    found = survey([Path("models")], Settings())
    assert found.files == [Path("models/modeling_y.py")]
    assert found.outside == [Path("models/linked")]
    both = ["models/linked/modeling_x.py", "models/modeling_y.py"]
    assert _files("models", "elsewhere") == both
    assert _files("models", "elsewhere/modeling_x.py") == ["models/modeling_y.py", "elsewhere/modeling_x.py"]


def test_looping_link_is_told_once_and_the_rest_is_found() -> None:
    _make("models/a/modeling_a.py", "models/z/modeling_z.py")
    Path("models/a/again").symlink_to("..")
    files, problems = discover([Path("models")], Settings())
    assert [str(path) for path in files] == ["models/a/modeling_a.py", "models/z/modeling_z.py"]
    assert [str(problem.path) for problem in problems] == ["models/a/again"]
    assert "leads back to a folder that contains it" in problems[0].message


def test_folders_linked_with_each_other_end() -> None:
    _make("models/a/modeling_a.py", "models/b/modeling_b.py")
    Path("models/a/b").symlink_to("../b")
    Path("models/b/a").symlink_to("../a")
    files, problems = discover([Path("models")], Settings())
    assert sorted(path.name for path in files) == ["modeling_a.py", "modeling_b.py"]
    assert len(problems) == 1


def test_many_links_to_one_folder_do_not_multiply_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    _make("f0/modeling_a.py")
    for level in range(1, 20):
        Path(f"f{level}").mkdir()
        for name in ("one", "two"):
            Path(f"f{level}/{name}").symlink_to(f"../f{level - 1}")
    scanned = []
    scandir = os.scandir

    def counted(path: Path) -> object:
        scanned.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    assert _files("f19", ".") == ["/".join(["f19", *["one"] * 19, "modeling_a.py"])]
    assert len(scanned) == 41


def test_what_cannot_be_found_is_told() -> None:
    Path("modeling_dangling.py").symlink_to("gone.py")
    Path("modeling_self.py").symlink_to("modeling_self.py")
    assert _problems("gone.py", ".") == [
        ("gone.py", "no such file or folder"),
        ("modeling_dangling.py", "this link leads to a file that does not exist"),
        ("modeling_self.py", "this link leads back to itself"),
    ]
    assert _problems("modeling_self.py", "modeling_self.py") == [
        ("modeling_self.py", "this link leads back to itself")
    ]


def test_folder_without_modeling_files_is_told() -> None:
    _make("a/configuration_a.py", "b/modeling_b.py")
    assert _problems("a", "b") == [
        ("a", "there is no file named modeling_*.py or modular_*.py in this folder")
    ]


def test_folder_inside_one_that_was_walked_is_not_empty() -> None:
    _make("a/b/modeling_b.py")
    assert _files("a", "a/b") == ["a/b/modeling_b.py"]


def test_unreadable_folder_is_told_and_the_rest_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _make("a/locked/modeling_x.py", "a/modeling_y.py")
    scandir = os.scandir

    def locked(path: Path) -> object:
        if path.name == "locked":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", locked)
    files, problems = discover([Path("a")], Settings())
    assert [str(path) for path in files] == ["a/modeling_y.py"]
    assert [(str(problem.path), problem.message) for problem in problems] == [
        ("a/locked", "this folder cannot be read: permission denied")
    ]
    assert len(_problems("a/locked")) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipe_is_not_opened() -> None:
    os.mkfifo("modeling_pipe.py")
    message = "this is neither a file nor a folder"
    assert _problems("modeling_pipe.py") == [("modeling_pipe.py", message)]
    assert _problems(".") == [("modeling_pipe.py", message)]


_MODEL = """\
class Net(nn.Module):
    def __init__(self):
        self.layers = nn.ModuleList()

    def forward(self, x):
        return checkpoint(self.layers[0], x)
"""


def _write(text: str, *names: str) -> None:
    _make(*names)
    for name in names:
        Path(name).write_text(text, encoding="utf-8")


def _included(*patterns: str) -> list[str]:
    return [str(path) for path in survey([Path("a")], Settings(include=patterns)).files]


def test_included_files_are_taken_but_no_tests_and_no_builds() -> None:
    _make(
        "a/encoder.py",
        "a/modeling_x.py",
        "a/test_encoder.py",
        "a/encoder_test.py",
        "a/conftest.py",
        "a/tests/helper.py",
        "a/tests/modeling_y.py",
        "a/build/lib/encoder.py",
        "a/dist/encoder.py",
        "a/.eggs/encoder.py",
        "a/x.egg-info/encoder.py",
        "a/notes.txt",
    )
    assert _included("*.py") == ["a/encoder.py", "a/modeling_x.py", "a/tests/modeling_y.py"]
    assert _included("en*.py", "a/*.txt") == [
        "a/encoder.py",
        "a/modeling_x.py",
        "a/notes.txt",
        "a/tests/modeling_y.py",
    ]
    assert _included() == ["a/modeling_x.py", "a/tests/modeling_y.py"]


def test_what_is_excluded_is_not_included() -> None:
    _make("a/encoder.py", "a/old/encoder.py")
    found = survey([Path("a")], Settings(include=("*.py",), exclude=("old",)))
    assert [str(path) for path in found.files] == ["a/encoder.py"]


def test_files_that_look_like_models_are_overlooked_and_no_others() -> None:
    _make("a/modeling_x.py", "a/b/modeling_y.py")
    _write(
        _MODEL,
        "a/vision.py",
        "a/b/net.py",
        "a/test_net.py",
        "a/tests/net.py",
        "a/build/net.py",
        "a/old/net.py",
        "a/configuration_net.py",
        "a/__init__.py",
        "a/convert_net.py",
        "a/feature_extraction_net.py",
        "a/image_processing_net.py",
        "a/processing_net.py",
        "a/setup.py",
        "a/tokenization_net.py",
        "a/video_processing_net.py",
    )
    _write("import torch\n", "a/plain.py")
    Path("a/link.py").symlink_to("vision.py")
    Path("a/dangling.py").symlink_to("nowhere.py")
    os.mkfifo("a/pipe.py")
    found = survey([Path("a"), Path("a/b")], Settings(exclude=("old",)))
    assert {os.path.realpath(path) for path in found.overlooked} == {
        os.path.realpath("a/vision.py"),
        os.path.realpath("a/b/net.py"),
    }
    assert len(found.overlooked) == 2
    given = survey([Path("a"), Path("a/vision.py"), Path("a/b/net.py")], Settings(exclude=("old",)))
    assert given.overlooked == []


def test_a_folder_whose_models_have_other_names_says_how_to_check_them() -> None:
    _write(_MODEL, "a/deep/vision.py")
    found = survey([Path("a")], Settings())
    assert [problem.message for problem in found.empty] == [
        "there is no file named modeling_*.py or modular_*.py in this folder, but 1 other file looks like a "
        "model (deep/vision.py); check it with --include '*.py'"
    ]


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        (_MODEL, True),
        ("self.blocks = nn.Sequential(*blocks)\nsupports_gradient_checkpointing = True\n", True),
        ("nn.ModuleList([Layer(GradientCheckpointingLayer)])\n", True),
        ("self.layers = ModuleList()\nx = self._gradient_checkpointing_func(f, x)\n", True),
        ("self.layers = ModuleList()\nload_checkpoint(path)\n", False),
        ("self.layers = ModuleList()\ndef checkpoint(path): ...\n", False),
        ("x = checkpoint(f, x)\n", False),
        ("self.blocks = nn.Sequential(a, b)\nx = checkpoint(f, x)\n", False),
    ],
)
def test_what_looks_like_a_model(tmp_path: Path, text: str, alike: bool) -> None:
    path = tmp_path / "net.py"
    path.write_text(text, encoding="utf-8")
    assert looks_like_model(path) is alike


def test_folders_may_lie_deeper_than_calls_may(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(150):
        folder = folder / "d"
        folder.mkdir()
        (folder / "__init__.py").touch()
    (folder / "modeling_x.py").write_text("from . import y\n", encoding="utf-8")
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(len(inspect.stack()) + 100)
        files, problems = discover([tmp_path], Settings())
        project = Project(Settings(), files, within=[tmp_path])
        file = project.file(files[0])
        assert project.module(file, "gone", 0) is None
        assert project.library(file) is None or project.home(file) is None
    finally:
        sys.setrecursionlimit(limit)
    assert (files, problems) == ([folder / "modeling_x.py"], [])
    assert project.model(files[0]) == "d"


def test_only_what_lies_in_the_given_paths_may_be_changed(tmp_path: Path) -> None:
    names = (
        "a/b/modeling_x.py",
        "a/bc/modeling_x.py",
        "c/modeling_x.py",
        "c/modeling_y.py",
        "d/modeling_x.py",
    )
    _make(*names)
    paths = [Path(name) for name in names]
    given = [tmp_path / "a/b", Path("c/modeling_y.py"), Path("gone")]
    try:
        (tmp_path / "link").symlink_to("d", target_is_directory=True)
    except OSError:
        given.append(Path("d"))  # Windows lets not everybody make links.
    else:
        given.append(Path("link"))
    fixable = Project(Settings(), paths, within=given).fixable
    assert {path.as_posix() for path in fixable} == {
        "a/b/modeling_x.py",
        "c/modeling_y.py",
        "d/modeling_x.py",
    }
    assert Project(Settings(), paths, within=[Path()]).fixable == set(paths)
    assert Project(Settings(), paths, within=[]).fixable == set()
