"""What a repository supplies is matched, split and parsed in linear time, whatever it is."""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import cache
from pathlib import Path

import pytest

from gclint.copies.marked import parse_renaming
from gclint.settings import SettingsError, Vocabulary, load_settings
from gclint.settings.patterns import is_absolute, matches, normalised
from tests.patterns import LENGTH
from tests.sample import BROKEN

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the limit on CPU time is one of POSIX")

_SECONDS = 4
"""Of CPU time; what is linear needs some tenths."""


def _status_of(work: Callable[[], object], seconds: int = _SECONDS) -> int:
    """Return the status of a fork that does something within a limit on its CPU time."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            used = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime)
            resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


# -- patterns in settings

_PIECES = (
    "**/",
    "*",
    "a*",
    "*a",
    "?*",
    "[ab]*",
    "**/a/",
    "**/*a",
    "**/?",
    "[!b]",
    "a/**/",
    "*a/**/",
    "[a]",
    "[",
)
_ENDS = ("", "b", "/b", "[b]")


def _patterns(length: int) -> Iterator[str]:
    for piece in _PIECES:
        for end in _ENDS:
            whole = f"/{piece * (length // len(piece))}".rstrip("/") + end
            yield from (whole, whole[1:])


@pytest.mark.parametrize("folders", [True, False])
def test_no_pattern_takes_long_for_any_path(folders: bool) -> None:
    def match_all() -> None:
        for text in ("a", "a/", "ab/", "aaaa/"):
            path = (text * 2000)[:2000].rstrip("/")
            for pattern in _patterns(300):
                matches(pattern, Path("/", path), tuple(path.split("/")), folders=folders)

    assert _status_of(match_all, 15) == 0


def test_folders_repeated_25_times_end(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.gclint]\nexclude = ["{"**/" * 25}x", "{"*a" * 200}"]\n')
    deep = tmp_path.joinpath(*("a" * 30), "modeling_a.py")
    deep.parent.mkdir(parents=True)
    deep.write_text(BROKEN)
    done = _gclint(tmp_path)
    assert done.returncode == 1, done.stderr


@cache
def _slow(pattern: str) -> re.Pattern[str]:
    """Return what a pattern means, as a regular expression that may take for ever."""
    pieces = [translate(piece)[4:-3] for piece in re.split(r"(?<![^/])\*\*/", pattern)]
    return re.compile(f"(?s:{'(?:.*/)?'.join(pieces)})\\Z")


def _means(pattern: str, path: Path, inside: tuple[str, ...], *, folders: bool) -> bool:
    if is_absolute(pattern):
        texts = [each.as_posix() for each in ([path, *path.parents] if folders else [path])]
    elif "/" in pattern:
        depths = range(1, len(inside) + 1) if folders else [len(inside)]
        texts = ["/".join(inside[:depth]) for depth in depths]
    else:
        texts = [*(inside if folders else inside[-1:])]
    return any(_slow(pattern).match(text) for text in texts)


def test_patterns_mean_what_they_always_meant() -> None:
    chance = random.Random(22)
    tokens = (
        "a",
        "b",
        "/",
        "*",
        "**/",
        "?",
        "[ab]",
        "[!a]",
        "[",
        "]",
        "!",
        "***/",
        "[/]",
        "[]a]",
        "\n",
        "a/",
    )
    matched = 0
    for _ in range(3000):
        try:
            pattern = normalised("".join(chance.choices(tokens, k=chance.randint(1, 7))))
        except ValueError:
            continue
        parts = tuple(
            "".join(chance.choices("ab[!]\n", k=chance.randint(1, 3))) for _ in range(chance.randint(1, 4))
        )
        for folders in (True, False):
            expected = _means(pattern, Path("/", *parts), parts, folders=folders)
            assert matches(pattern, Path("/", *parts), parts, folders=folders) == expected, (pattern, parts)
            matched += expected
    assert matched > 300


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            f'exclude = ["{"a" * 1001}"]',
            "is too long: it has 1,001 characters, and at most 1,000 are allowed",
        ),
        (f"include = {['a'] * 1001}", "it has 1,001 patterns, and at most 1,000 are allowed"),
        (
            "per-file-ignores = {" + ", ".join(f'"{n}" = ["GC001"]' for n in range(1001)) + "}",
            "it has 1,001 patterns",
        ),
    ],
)
def test_too_much_of_patterns_is_an_error(setting: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.gclint]\n{setting}\n")
    with pytest.raises(SettingsError, match=re.escape(words)):
        load_settings(tmp_path, Vocabulary())


# -- other files


def _gclint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Check a folder, within a limit on CPU time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS * 4, _SECONDS * 4))

    return subprocess.run(
        [sys.executable, "-m", "gclint", "check", "--no-cache", *arguments, "."],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        preexec_fn=limit,
        check=False,
    )


_DEEP = "[" * 100_000
_DOTS = "a." * 50_000 + "a"
_TOML = {
    "a key with dots": f"{_DOTS} = 1\n",
    "a header with dots": f"[{_DOTS}]\n",
    "a key with dots in a table": f"x = {{{_DOTS} = 1}}\n",
    "quoted keys": '"a".' * 25_000 + "a = 1\n",
    "keys with dots and blanks": "a . " * 25_000 + "a = 1\n",
    "nested": f"x = {_DEEP}\n",
    "digits": f"x = {'1' * LENGTH}\n",
    "decimals": f"x = 1.{'1' * LENGTH}\n",
    "tables": "[[a]]\n" * 20_000,
    "quotes": 'x = """' + '"" ' * 30_000 + "\n",
    "comments": "# transformers\n" * 10_000,
}
_METADATA = {
    "pyproject.toml": [
        '[project]\ndependencies = ["' + "transformers[" * 10_000 + '"]\n',
        '[project]\ndependencies = ["transformers' + ">=4," * 30_000 + '"]\n',
        '[tool.poetry.dependencies]\ntransformers = "' + "4||" * 30_000 + '5"\n',
    ],
    "setup.cfg": [
        "[options]\ntransformers" + " " * LENGTH + "x\n",
        "[options]\ntransformers" + "\t\f" * (LENGTH // 2) + "x\n",
        "[options]\ninstall_requires =\n" + "    transformers\n" * 10_000,
        "[" * LENGTH + "transformers",
    ],
    "setup.py": [
        "'transformers" * 20_000,
        "'transformers \"transformers" * 10_000,
        'x = "transformers' + " " * LENGTH + '"\n',
    ],
    "requirements.txt": ["transformers" + "[a" * 30_000 + "\n", "transformers" + " (" * 30_000 + "\n"],
    "uv.lock": [f"transformers = {_DEEP}", f"{_DOTS}.transformers = 1\n", f"transformers = {'1' * LENGTH}\n"],
    "Pipfile.lock": [
        '"transformers"' + _DEEP,
        f'{{"transformers": {"1" * LENGTH}}}',
        '"transformers"' * 9000,
    ],
}


@pytest.mark.parametrize("text", _TOML.values(), ids=_TOML)
def test_toml_is_read_in_time(text: str, tmp_path: Path) -> None:
    from gclint.toml import loads

    def read() -> None:
        for each in (text, f"[tool.gclint]\n{text}"):
            with contextlib.suppress(ValueError):
                loads(each)

    assert _status_of(read) == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [(name, text) for name, texts in _METADATA.items() for text in texts],
    ids=[f"{name} {number}" for name, texts in _METADATA.items() for number, _ in enumerate(texts)],
)
def test_requirements_are_read_in_time(name: str, text: str, tmp_path: Path) -> None:
    from gclint.code.requirements import required_releases

    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    assert _status_of(lambda: required_releases(tmp_path)) == 0


@pytest.mark.parametrize("key", ["a key with dots", "nested", "digits"])
def test_settings_that_are_made_to_take_long_are_an_error(key: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.gclint]\n{_TOML[key]}")
    done = _gclint(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "pyproject.toml: cannot be read as TOML: " in done.stderr
    assert len(done.stderr) < 1000


@pytest.mark.parametrize("old", ["AA->A", "A->AA", "A->" + "A" * 90, "A" * 90 + "->A"])
def test_a_renaming_never_explodes(old: str) -> None:
    renaming = parse_renaming("with " + ",".join([old] * 100))

    def rename() -> None:
        for text in ("A" * 1000, "class A:\n" * 1000):
            renaming.apply(text)
            renaming.undo(text)

    assert _status_of(rename) == 0


_IGNORE = "# gclint: ignore[GC001]\n"


@pytest.mark.parametrize(
    "text",
    [_IGNORE * 40_000, f"@decorator  {_IGNORE}" * 20_000, "# gclint: ignore[" + "GC001, " * 20_000 + "]\n"],
    ids=["in a row", "decorators", "words"],
)
def test_ignore_comments_are_read_in_time(text: str, tmp_path: Path) -> None:
    from gclint.code.file import SourceFile
    from gclint.code.suppressions import Suppressions

    file = SourceFile(Path("modeling_a.py"), f"{text}class A:\n    pass\n".encode())
    assert _status_of(lambda: Suppressions(file, {"gc001": "GC001"})) == 0


def test_copies_with_many_equal_lines_are_compared_in_time() -> None:
    from gclint.code.file import SourceFile
    from gclint.copies.pairs import CopyPair, Region, Renaming, definition_region

    def region(name: str) -> Region:
        lines = "".join(f"    x = 1\n    {name}{number} = 2\n" for number in range(3000))
        file = SourceFile(Path(f"modeling_{name}.py"), f"class A:\n{lines}".encode())
        return definition_region(file, file.outline.definitions[0])

    pair = CopyPair(region("a"), region("b"), Renaming(), is_copy=True)
    assert _status_of(lambda: pair.source_span(40, 45)) == 0


@pytest.mark.parametrize(
    ("setting", "kind"), [("baseline", "pipe"), ("config", "device"), ("config", "link")]
)
def test_a_setting_that_names_an_endless_file_is_an_error(setting: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "endless"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    named = "/dev/zero" if kind == "device" else "endless"
    (tmp_path / "modeling_a.py").write_text(BROKEN)
    table = "[tool.gclint]" if setting == "baseline" else "[tool.gclint.verify.configurations.A]"
    (tmp_path / "pyproject.toml").write_text(f'{table}\n{setting} = "{named}"\n')
    done = _gclint(tmp_path)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("setting", "text"), [("baseline", f'{{"version": {"1" * LENGTH}}}'), ("config", _DEEP)]
)
def test_json_that_python_gives_up_on_is_an_error(setting: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    table = "[tool.gclint]" if setting == "baseline" else "[tool.gclint.verify.configurations.A]"
    (tmp_path / "pyproject.toml").write_text(f'{table}\n{setting} = "a.json"\n')
    (tmp_path / "modeling_a.py").write_text(BROKEN)
    done = _gclint(tmp_path)
    assert done.returncode == 2
    assert "is not JSON" in done.stderr
    assert "Traceback" not in done.stderr
