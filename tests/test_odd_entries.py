"""What lies on a disk beside the files, and what is not text in them: told, and the rest is checked."""

from __future__ import annotations

import codecs
import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.paths import printable, shown
from gclint.code.project import Project
from gclint.facts import read_bytes
from gclint.finding import Position
from gclint.report.diff import unified_diff
from gclint.report.formats import FORMATS
from gclint.settings import Settings
from gclint.verify.sources import digest, targets_of
from gclint.verify.worker.protocol import Source
from tests.sample import BROKEN
from tests.terminal import Outcome, runner

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs what POSIX has")

_ODD = "modeling_x.py"
Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def gclint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run gclint in this process."""
    return runner(monkeypatch, capsys)


def _shell(command: str) -> tuple[int, str, str]:
    gclint = f"'{sys.executable}' -m gclint"
    done = subprocess.run(
        ["sh", "-c", command.replace("gclint", gclint)], capture_output=True, encoding="utf-8", timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def _socket(name: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)


_ENTRIES: dict[str, tuple[Callable[[str], object], str]] = {
    "folder": (os.mkdir, "is a folder"),
    "dangling link": (lambda name: Path(name).symlink_to("gone.py"), "a file that does not exist"),
    "looping link": (lambda name: Path(name).symlink_to(name), "leads back to itself"),
    "pipe": (os.mkfifo, "neither a file nor a folder"),
    "socket": (_socket, "neither a file nor a folder"),
    "binary": (lambda name: Path(name).write_bytes(b"\x7fELF\0\xff\xfe"), "encoding declaration"),
    "NUL": (lambda name: Path(name).write_bytes(b"x = 1\0\n"), "NUL character"),
    "nested": (lambda name: Path(name).write_text(f"x = {'(' * 5000}{')' * 5000}\n"), "nested too deeply"),
    "unary": (lambda name: Path(name).write_text(f"x = {'-' * 50000}1\n"), "nested too deeply"),
    "surrogate": (lambda name: Path(name).write_bytes(b"x = '\xed\xa0\x80'\n"), "encoding"),
}


@pytest.mark.parametrize("entry", _ENTRIES)
def test_an_odd_entry_is_one_line_and_the_others_are_checked(gclint: Run, entry: str) -> None:
    make, why = _ENTRIES[entry]
    make(_ODD)
    Path("modeling_y.py").write_text(BROKEN)
    status, out, err = gclint(".", "--output-format", "json")
    assert status == 2
    (line,) = err.splitlines()
    assert line.startswith(f"{_ODD}:")
    assert why in line
    assert {each["filename"] for each in json.loads(out)} == {_ODD, "modeling_y.py"}
    # Beside a given file it is nobody's business; the file is checked.
    status, _, err = gclint("modeling_y.py")
    assert (status, err) == (1, "")


@pytest.mark.parametrize("entry", ["folder", "dangling link", "looping link", "pipe"])
def test_models_beside_an_odd_entry_are_run(entry: str) -> None:
    _ENTRIES[entry][0](_ODD)
    _ENTRIES[entry][0]("configuration_y.py")
    Path("modeling_y.py").write_text(BROKEN)
    targets, found = targets_of([Path()], Settings())
    assert [target.path.name for target in targets] == ["modeling_y.py"]
    assert [str(problem.path) for problem in found.problems] == [_ODD]
    assert digest(targets[0].source, {})


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (_ODD, "modeling_y.py"):
        Path(name).write_text(BROKEN)
    opened = os.open

    def refuse(path: Path, flags: int) -> int:
        if path.name == _ODD:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, flags)

    monkeypatch.setattr(os, "open", refuse)
    targets, found = targets_of([Path()], Settings())
    assert [target.path.name for target in targets] == ["modeling_y.py"]
    assert [problem.message for problem in found.problems] == ["this file cannot be read: Permission denied"]


def test_what_was_a_file_a_moment_ago_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(_ODD)
    path.write_text("x = 1\n")
    opened = os.open

    def swapped(path: Path, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return opened(path, flags)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(OSError, match="not a regular file"):
        read_bytes(path)


@pytest.mark.parametrize(
    "codec",
    [
        "rot13",
        "hex",
        "zlib",
        "bz2",
        "base64",
        "quopri",
        "uu",
        "punycode",
        "idna",
        "undefined",
        "unicode_escape",
        "utf-7",
        "utf-16",
        "utf-32",
        "hz",
        "cp037",
        "nonsense",
    ],
)
def test_an_encoding_that_is_not_for_code_is_told(codec: str) -> None:
    with pytest.raises(UnreadableFile, match="save the file as UTF-8") as raised:
        SourceFile(Path(_ODD), f"# coding: {codec}\nx = 1\n".encode())
    assert raised.value.position == Position(1, 1)


def test_an_encoding_of_somebodys_own_that_fails_is_told() -> None:
    def fail(*_arguments: object) -> tuple[str, int]:
        raise RuntimeError("not today")

    def search(name: str) -> codecs.CodecInfo | None:
        return codecs.CodecInfo(fail, fail, name=name) if name == "gclint_test" else None  # type: ignore[arg-type]

    codecs.register(search)
    try:
        with pytest.raises(UnreadableFile, match="'gclint-test' cannot be used for Python code"):
            SourceFile(Path(_ODD), b"# coding: gclint-test\n")
    finally:
        codecs.unregister(search)


@pytest.mark.parametrize("codec", ["latin-1", "cp1252", "shift_jis", "euc_jp", "gbk", "big5", "koi8-r"])
def test_encodings_for_code_are_read_and_written_as_they_were(codec: str) -> None:
    data = f"# coding: {codec}\nx = 'a~\\\\b'\n".encode("ascii")
    file = SourceFile(Path(_ODD), data)
    assert file.encode(file.text) == data


def test_bytes_that_a_codec_does_not_give_back_are_told() -> None:
    # A shift that changes nothing.
    with pytest.raises(UnreadableFile, match="cannot be used for Python code"):
        SourceFile(Path(_ODD), b"# coding: iso2022_jp\nx = '\x1b(B'\n")


# Names and texts that move a cursor.


def test_what_moves_a_cursor_is_shown_escaped() -> None:
    assert printable("a\x1b[31m\nb\u202e\udcff\t") == r"a\x1b[31m\nb\u202e\udcff\t"
    assert printable("caf\u00e9 \u4f60") == "caf\u00e9 \u4f60"
    assert shown("x\n.py") == r"x\n.py"


_NAME = 'modeling_\x1b[31m\n"\udcff.py'


def test_names_are_escaped_in_every_format(gclint: Run) -> None:
    Path(_NAME).write_text(BROKEN)
    Path("modeling_bad\x07.py").write_text("x = (\n")
    for arguments in ([], ["--statistics"], ["--diff", "--unsafe-fixes", "--summary", "summary.md"]):
        status, out, err = gclint(*arguments)
        assert status == 2
        for text in (out, err):
            assert all(each.isprintable() for each in text.replace("\n", ""))
        assert r"modeling_bad\x07.py" in err
    assert "\x1b" not in Path("summary.md").read_text()
    assert r"modeling_bad\x07.py" in Path("summary.md").read_text()
    (finding, _) = json.loads(gclint("--output-format", "json")[1])
    assert finding["filename"] == _NAME


def test_git_takes_a_diff_of_a_file_with_such_a_name() -> None:
    path = Path(_NAME)
    path.write_text("x = 1\n")
    diff = "".join(unified_diff({path: ("x = 1\n", "x = 2\n")}))
    assert diff.splitlines()[0] == r'--- "modeling_\033[31m\012\"\377.py"'
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-p0"], input=diff.encode(), check=True)
    assert path.read_text() == "x = 2\n"


# Streams and folders that are not there.


@pytest.mark.drawn(first=1)
@pytest.mark.parametrize("arguments", ["", "--output-format json", "--diff", "--statistics"])
def test_output_that_cannot_be_written_is_told(arguments: str) -> None:
    Path(_ODD).write_text(BROKEN)
    for redirection in (">&-", ">/dev/full"):
        status, _, err = _shell(f"gclint {arguments} . {redirection}")
        assert status == 2
        assert "Error: the output cannot be written: " in err
        assert "Traceback" not in err


def test_closed_streams_end_nothing() -> None:
    Path(_ODD).write_text(BROKEN)
    assert _shell("gclint . 2>&-")[0] == 1
    assert _shell("gclint . <&-")[0] == 1
    assert _shell("gclint rules >&-")[0] == 2
    assert _shell("gclint --fix --unsafe-fixes . <&- >&- 2>&-")[0] == 2
    assert Path(_ODD).read_text() != BROKEN
    assert _shell("gclint .")[0] == 0


def test_a_working_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    Path(_ODD).write_text(BROKEN)
    leave = "mkdir gone && cd gone && rmdir ../gone && gclint"
    for arguments in ("", "modeling_x.py", "verify"):
        status, out, err = _shell(f"{leave} {arguments}")
        assert (status, out) == (2, "")
        assert err == "Error: the working directory has been deleted; change to one that exists\n"
    status, out, _ = _shell(f"{leave} {tmp_path}")
    assert status == 1
    assert f"{tmp_path / _ODD}:" in out
    for name in FORMATS:
        status, out, err = _shell(f"{leave} {tmp_path} --output-format {name}")
        assert (status, err) == (1, "")
        assert str(tmp_path / _ODD) in out


# Links.


def _outside() -> Path:
    """Return a file outside of the folder ``inside``, in which links lead to it and to a folder beside it."""
    for folder in ("inside", "outside/more"):
        Path(folder).mkdir(parents=True)
    Path("outside/modeling_y.py").write_text(BROKEN)
    Path("outside/more/modeling_z.py").write_text(BROKEN)
    Path("inside/modeling_x.py").symlink_to("../outside/modeling_y.py")
    Path("inside/more").symlink_to("../outside/more")
    return Path("outside/modeling_y.py")


@pytest.mark.parametrize("given", ["inside/modeling_x.py", "inside outside", "link"])
def test_a_link_that_was_given_or_stays_inside_is_written_through(gclint: Run, given: str) -> None:
    target = _outside()
    Path("link").symlink_to("outside")
    assert gclint("--fix", "--unsafe-fixes", *given.split())[0] == 0
    assert target.read_text() != BROKEN
    assert Path("inside/modeling_x.py").is_symlink()


def test_which_files_may_be_changed() -> None:
    _outside()
    paths = [Path("inside/modeling_x.py"), Path("inside/more/modeling_z.py")]
    assert Project(Settings(), paths).fixable == frozenset(paths)
    assert Project(Settings(), paths, [Path("inside")]).fixable == frozenset()
    assert Project(Settings(), paths, [Path("outside/more"), Path("inside")]).fixable == {paths[1]}


def test_digests_know_nothing_of_what_is_not_a_file() -> None:
    Path(_ODD).write_text("x = 1\n")
    source = Source(str(Path.cwd() / _ODD), "x")
    before = digest(source, {})
    os.mkfifo("configuration_x.py")
    assert digest(source, {}) == before
