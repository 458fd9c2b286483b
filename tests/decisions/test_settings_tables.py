"""Which settings file wins, what an option does to it, and which values are refused."""

from __future__ import annotations

import pytest

from tests.decisions import reports
from tests.decisions.reports import Folder

_BOTH = reports.two(reports.SAFE, reports.CACHE)
_OWN = "[tool.gclint]\n"


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        ({}, ["GC001", "GC002"]),
        ({"pyproject.toml": f'{_OWN}ignore = ["GC001"]\n'}, ["GC002"]),
        ({"src/pyproject.toml": f'{_OWN}ignore = ["GC002"]\n'}, ["GC001"]),
        # The nearest one that has the table wins, and nothing of the others is taken over.
        (
            {
                "pyproject.toml": f'{_OWN}ignore = ["GC001"]\n',
                "src/pyproject.toml": f'{_OWN}ignore = ["GC002"]\n',
            },
            ["GC001"],
        ),
        (
            {"pyproject.toml": f'{_OWN}ignore = ["GC001"]\n', "src/pyproject.toml": "[tool.other]\n"},
            ["GC002"],
        ),
        (
            {"pyproject.toml": f'{_OWN}ignore = ["GC001"]\n', "src/pyproject.toml": _OWN},
            ["GC001", "GC002"],
        ),
        ({"src/deeper/pyproject.toml": f'{_OWN}ignore = ["GC001"]\n'}, ["GC001", "GC002"]),
        ({"gclint.toml": 'ignore = ["GC001"]\n'}, ["GC002"]),
        # In one folder, the file of its own does.
        (
            {"gclint.toml": 'ignore = ["GC001"]\n', "pyproject.toml": f'{_OWN}ignore = ["GC002"]\n'},
            ["GC002"],
        ),
        ({"gclint.toml": 'ignore = ["GC001"]\n', "src/pyproject.toml": _OWN}, ["GC001", "GC002"]),
        ({"pyproject.toml": '[gclint]\nignore = ["GC001"]\n'}, ["GC001", "GC002"]),
        ({"pyproject.toml": '[tool.gclint-more]\nignore = ["GC001"]\n'}, ["GC001", "GC002"]),
    ],
)
def test_the_nearest_file_with_the_table_wins(
    folder: Folder, files: dict[str, str], codes: list[str]
) -> None:
    folder.write({"src/modeling_otter.py": _BOTH, **files})
    assert folder.found("src") == codes


@pytest.mark.parametrize("name", ["a", "a/b/c"])
def test_a_file_counts_however_far_above_it_is(folder: Folder, name: str) -> None:
    folder.write({f"{name}/modeling_otter.py": _BOTH, "pyproject.toml": f'{_OWN}ignore = ["GC001"]\n'})
    assert folder.found(name) == ["GC002"]


@pytest.mark.parametrize(
    ("table", "options", "codes"),
    [
        ('select = ["GC001"]', (), ["GC001"]),
        ('select = ["GC001"]', ("--select", "GC002"), ["GC002"]),
        ('select = ["GC001"]', ("--extend-select", "GC002"), ["GC001", "GC002"]),
        ('select = ["GC003"]\nextend-select = ["GC001"]', ("--extend-select", "GC002"), ["GC001", "GC002"]),
        ('ignore = ["GC001"]', ("--ignore", "GC002"), ["GC001"]),
        ('ignore = ["GC001"]', ("--extend-select", "GC001"), ["GC002"]),
        ('select = ["GC00"]', (), ["GC001", "GC002"]),
        ('select = ["GC0"]\nignore = ["GC00"]', (), []),
        ('select = ["gc001"]', (), ["GC001"]),
        ('select = ["positional-cache"]', (), ["GC002"]),
        ('select = ["ALL"]', (), ["GC001", "GC002"]),
        ("select = []", (), []),
        ('output-format = "concise"', (), ["GC001", "GC002"]),
    ],
)
def test_an_option_replaces_or_extends_a_setting(
    folder: Folder, table: str, options: tuple[str, ...], codes: list[str]
) -> None:
    folder.write({"modeling_otter.py": _BOTH, "modeling_good.py": reports.GOOD})
    folder.write({"pyproject.toml": f"{_OWN}{table}\n"})
    assert folder.found(*options) == codes


@pytest.mark.parametrize(
    ("patterns", "codes"),
    [
        ('{ "modeling_otter.py" = ["GC001"] }', ["GC002"]),
        ('{ "modeling_*.py" = ["GC001"] }', ["GC002"]),
        ('{ "src/*" = ["GC001"] }', ["GC002"]),
        ('{ "src" = ["GC001"] }', ["GC002"]),
        ('{ "src/**/modeling_otter.py" = ["GC001"] }', ["GC002"]),
        ('{ "**/modeling_otter.py" = ["GC001"] }', ["GC002"]),
        ('{ "!other/*" = ["GC001"] }', ["GC002"]),
        ('{ "src/*" = ["GC001"], "*.py" = ["GC002"] }', []),
        ('{ "*" = ["ALL"] }', []),
        ('{ "src/?odeling_otter.py" = ["missing-checkpointing-layer"] }', ["GC002"]),
        ('{ "otter.py" = ["GC001"] }', ["GC001", "GC002"]),
        ('{ "rc/*" = ["GC001"] }', ["GC001", "GC002"]),
        ('{ "!src/*" = ["GC001"] }', ["GC001", "GC002"]),
        ('{ "other/modeling_otter.py" = ["GC001"] }', ["GC001", "GC002"]),
        ('{ "src/*" = [] }', ["GC001", "GC002"]),
    ],
)
def test_rules_are_ignored_in_the_files_that_a_pattern_matches(
    folder: Folder, patterns: str, codes: list[str]
) -> None:
    folder.write({"src/modeling_otter.py": _BOTH})
    folder.write({"pyproject.toml": f"{_OWN}per-file-ignores = {patterns}\n"})
    assert folder.found() == codes
    assert folder.found("src/modeling_otter.py") == codes


@pytest.mark.parametrize(("where", "is_excluded"), [("pyproject.toml", True), ("src/pyproject.toml", False)])
def test_patterns_are_relative_to_their_file(folder: Folder, where: str, is_excluded: bool) -> None:
    folder.write({"src/modeling_otter.py": reports.SAFE, "src/modeling_good.py": reports.GOOD})
    folder.write({where: f'{_OWN}exclude = ["src/modeling_otter.py"]\n'})
    assert (folder.found("src") == []) is is_excluded


@pytest.mark.parametrize(
    ("table", "options", "is_made"),
    [
        ("unsafe-fixes = true", (), True),
        ("unsafe-fixes = false", (), False),
        ("unsafe-fixes = true", ("--no-unsafe-fixes",), False),
        ("unsafe-fixes = false", ("--unsafe-fixes",), True),
    ],
)
def test_unsafe_fixes_are_made_as_set_and_the_option_wins(
    folder: Folder, table: str, options: tuple[str, ...], is_made: bool
) -> None:
    folder.write({"modeling_otter.py": reports.UNSAFE, "pyproject.toml": f"{_OWN}{table}\n"})
    folder.run("--fix", *options)
    assert (folder.read() != reports.UNSAFE) is is_made
