"""Files of any size: git packs gigabytes of zeros into a few bytes, and a checkout unpacks them."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gclint.code.file import SourceFile, UnreadableFile
from tests.cache.shell import OWN

_GIGABYTE = 1 << 30


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_GIGABYTE // 2, _GIGABYTE // 2))


def test_code_is_only_understood_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "modeling_long.py"
    path.write_text(OWN + "a\n" * 2_000_000, encoding="utf-8")
    with pytest.raises(UnreadableFile, match="more than 4 MB"):
        SourceFile(path, path.read_bytes())


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (("modeling_huge.py",), 2),  # Given: the user has to know that it was not checked.
        (("pyproject.toml",), 2),
        (("helper.py", "__init__.py", "setup.cfg", "requirements.txt", "unrelated.py"), 1),
    ],
    ids=["given", "settings", "consulted"],
)
def test_a_huge_file_is_not_read(tmp_path: Path, names: tuple[str, ...], status: int) -> None:
    (tmp_path / "modeling_own.py").write_text("from .helper import x\n" + OWN, encoding="utf-8")
    for name in names:
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(_GIGABYTE)
    done = subprocess.run(
        [sys.executable, "-m", "gclint", "--no-cache", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_limit,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert ("10 MB" in done.stderr) == (status == 2)
