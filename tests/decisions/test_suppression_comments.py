"""Which findings an ignore comment suppresses, by its place and its words, and which comments are unused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.decisions import reports
from tests.decisions.reports import Folder

_CLASS = "class OtterLayer(nn.Module):"
_CALL = "            hidden_states = layer(hidden_states, past_key_values)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def _found(folder: Folder, text: str, *options: str) -> list[str]:
    folder.write({"modeling_otter.py": text})
    return folder.found(*options)


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("", ["GC001"]),
        ("# gclint: ignore", []),
        ("# gclint: ignore[GC001]", []),
        ("# gclint: ignore[gc001]", []),
        ("#gclint:ignore[ GC001 ]", []),
        ("# gclint: ignore [GC001]", []),
        ("# gclint: ignore[missing-checkpointing-layer]", []),
        ("# gclint: ignore[GC001]: it keeps statistics", []),
        ("# why # gclint: ignore[GC001]", []),
        ("# gclint: ignore[GC001, GC000, GC002]", []),
        # What names another rule, or none, suppresses nothing, and is reported itself.
        ("# gclint: ignore[GC002]", ["GC001", "GC000"]),
        ("# gclint: ignore[GC00]", ["GC001", "GC000"]),
        ("# gclint: ignore[]", ["GC001", "GC000"]),
        ("# gclint: ignore[GC001", ["GC001", "GC000"]),
        ("# gclint: ignored", ["GC001", "GC000"]),
        ("# gclint: ignore-line[GC001]", ["GC001", "GC000"]),
        ("# gclint: skip", ["GC001", "GC000"]),
        ("# gclint: ignore-file[GC001]", ["GC001", "GC000"]),
        # It is about something else.
        ("# noqa: GC001", []),
        ("# noqa: E501", ["GC001"]),
        ("# mentions gclint in passing", ["GC001"]),
    ],
)
def test_a_comment_suppresses_the_rules_that_it_names(folder: Folder, comment: str, codes: list[str]) -> None:
    assert _found(folder, reports.SAFE.replace(_CLASS, f"{_CLASS}  {comment}".rstrip())) == codes


@pytest.mark.parametrize(
    ("before", "after", "is_suppressed"),
    [
        (_CLASS, f"# gclint: ignore[GC001]\n{_CLASS}", True),
        (_CLASS, f"# gclint: ignore[GC001]\n# Something else.\n{_CLASS}", True),
        (_CLASS, f"# gclint: ignore[GC001]\n@final\n{_CLASS}", True),
        (_CLASS, f"@final  # gclint: ignore[GC001]\n{_CLASS}", True),
        (_CLASS, f"@final\n@other\n# gclint: ignore[GC001]\n{_CLASS}", True),
        (_CLASS, "class OtterLayer(  # gclint: ignore[GC001]\n    nn.Module\n):", True),
        (_CLASS, "class OtterLayer(\n    nn.Module\n):  # gclint: ignore[GC001]", True),
        # An empty row in between, the statement above, and the body of the class are other places.
        (_CLASS, f"# gclint: ignore[GC001]\n\n{_CLASS}", False),
        (_CLASS, f"x = 1  # gclint: ignore[GC001]\n{_CLASS}", False),
        (_CLASS, f"{_CLASS}\n    # gclint: ignore[GC001]", False),
        (_CLASS, f"{_CLASS}\n    x = 1  # gclint: ignore[GC001]", False),
        (_CLASS, f'x = "# gclint: ignore[GC001]"\n{_CLASS}', False),
    ],
)
def test_a_comment_is_about_its_statement_or_the_next_one(
    folder: Folder, before: str, after: str, is_suppressed: bool
) -> None:
    found = _found(folder, reports.SAFE.replace(before, after))
    assert ("GC001" not in found) is is_suppressed
    # A comment in a string is none; any other that suppresses nothing is reported.
    assert ("GC000" in found) is (not is_suppressed and 'x = "' not in after)


@pytest.mark.parametrize(
    ("call", "is_suppressed"),
    [
        (f"{_CALL}  # gclint: ignore[GC002]", True),
        ("            hidden_states = layer(  # gclint: ignore[GC002]\n"
         "                hidden_states,\n                past_key_values,\n            )", True),
        ("            hidden_states = layer(\n                hidden_states,\n"
         "                past_key_values,  # gclint: ignore[GC002]\n            )", True),
        ("            hidden_states = layer(\n                hidden_states,\n"
         "                past_key_values,\n            )  # gclint: ignore[GC002]", True),
        ("            hidden_states = layer(\n                hidden_states,  # gclint: ignore[GC002]\n"
         "                past_key_values,\n            )", False),
        ("            # gclint: ignore[GC002]\n" + _CALL, True),
        ("            # gclint: ignore[GC002]\n            hidden_states = hidden_states\n" + _CALL, False),
        (_CALL + "\n            # gclint: ignore[GC002]", False),
    ],
)  # fmt: skip
def test_a_finding_in_a_statement_of_several_rows_is_suppressed_on_its_row_and_at_both_ends(
    folder: Folder, call: str, is_suppressed: bool
) -> None:
    assert ("GC002" in _found(folder, reports.CACHE.replace(_CALL, call))) is not is_suppressed


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("# gclint: ignore-file[GC001]", ["GC002"]),
        ("# gclint: ignore-file[GC002]", ["GC001"]),
        ("# gclint: ignore-file", []),
        ("# gclint: ignore-file[GC001, GC002]: generated elsewhere", []),
        ("x = 1  # gclint: ignore-file[GC001]", ["GC000", "GC001", "GC002"]),
    ],
)
@pytest.mark.parametrize("where", ["first", "last"])
def test_a_comment_about_the_file_is_about_all_of_it(
    folder: Folder, line: str, codes: list[str], where: str
) -> None:
    text = reports.two(reports.SAFE, reports.CACHE)
    assert sorted(_found(folder, f"{line}\n{text}" if where == "first" else f"{text}{line}\n")) == codes


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ((), ["GC000"]),
        # The rule that it names did not run, so nobody knows whether it is needed.
        (("--ignore", "GC002"), []),
        (("--per-file-ignores", "modeling_otter.py:GC000"), []),
        (("--per-file-ignores", "modeling_seal.py:GC000"), ["GC000"]),
    ],
)
def test_an_unused_comment_is_reported_if_its_rule_ran(
    folder: Folder, options: tuple[str, ...], codes: list[str]
) -> None:
    text = reports.GOOD.replace("class OtterModel", "# gclint: ignore[GC002]\nclass OtterModel")
    assert _found(folder, text, *options) == codes


@pytest.mark.parametrize(("options", "codes"), [((), ["GC000"]), (("--select", "GC001"), [])])
def test_a_comment_for_all_rules_is_unused_only_if_all_ran(
    folder: Folder, options: tuple[str, ...], codes: list[str]
) -> None:
    text = reports.GOOD.replace("class OtterModel", "# gclint: ignore\nclass OtterModel")
    assert _found(folder, text, *options) == codes


@pytest.mark.parametrize(
    ("comment", "after"),
    [
        ("# gclint: ignore[GC002]", ""),
        ("# gclint: ignore[GC001, GC002]", "  # gclint: ignore[GC001]"),
        ("# gclint: ignore[GC002, GC001]: why", "  # gclint: ignore[GC001]: why"),
        ("# kept # gclint: ignore[GC002]", "  # kept"),
        ("# gclint: ignore[GC002] # kept", "  # kept"),
        # What may be meant is for the author to say.
        ("# gclint: ignore[GC001, mising-checkpointing-layer]", None),
        ("# gclint: ignore-line[GC001]", None),
    ],
)
def test_only_what_is_unused_of_a_comment_is_removed(folder: Folder, comment: str, after: str | None) -> None:
    before = reports.SAFE.replace(_CLASS, f"{_CLASS}  {comment}")
    folder.write({"modeling_otter.py": before})
    folder.run("--fix", "--select", "GC000,GC002,GC003", "--extend-select", "GC001", "--ignore", "GC003")
    text = folder.read()
    if after is None:
        assert comment in text
    elif "GC001" in after:
        assert text == reports.SAFE.replace(_CLASS, _CLASS + after)
    else:
        assert text == reports.REPAIRED.replace(
            "class OtterLayer(GradientCheckpointingLayer):",
            f"class OtterLayer(GradientCheckpointingLayer):{after}",
        )


def test_a_comment_alone_on_its_line_is_removed_with_the_line(folder: Folder) -> None:
    folder.write({"modeling_otter.py": reports.GOOD.replace("class Otter", "# gclint: ignore\nclass Otter")})
    assert folder.run("--fix").status == 0
    assert folder.read() == reports.GOOD


def test_one_unused_of_several_comments_is_reported_where_it_is(folder: Folder) -> None:
    text = reports.SAFE.replace(_CLASS, f"{_CLASS}  # gclint: ignore[GC001] # gclint: ignore[GC002]")
    folder.write({"modeling_otter.py": text})
    (finding,) = folder.run("--output-format", "json").data
    row = text[: text.index(_CLASS)].count("\n") + 1
    assert (finding["code"], finding["location"]["row"]) == ("GC000", row)
    assert finding["symbol"] == "gclint: ignore[GC002]"


def test_a_suppressed_finding_is_not_counted(folder: Folder) -> None:
    text = reports.SAFE.replace(_CLASS, f"{_CLASS}  # gclint: ignore[GC001]")
    folder.write({"modeling_otter.py": text})
    assert folder.run("--statistics").out == "No findings in 1 file.\n"


@pytest.mark.parametrize(
    ("text", "status"), [(reports.SAFE, 0), (reports.UNSAFE, 0), (reports.BROKEN, 2), (reports.GOOD, 0)]
)
def test_with_added_comments_nothing_is_left(folder: Folder, text: str, status: int) -> None:
    folder.write({"modeling_otter.py": text})
    assert folder.run("--add-ignores").status == status
    after = folder.read()
    assert (after == text) is (text in (reports.GOOD, reports.BROKEN))
    assert folder.run().status == status
    assert folder.run("--add-ignores").status == status
    assert folder.read() == after


@pytest.mark.parametrize(
    ("options", "is_commented"), [(("--add-ignores",), True), (("--fix", "--add-ignores"), False)]
)
def test_with_fixes_only_what_remains_gets_a_comment(
    folder: Folder, options: tuple[str, ...], is_commented: bool
) -> None:
    folder.write({"modeling_otter.py": reports.two(reports.SAFE, reports.UNSAFE)})
    assert folder.run(*options).status == 0
    text = folder.read()
    assert ("class OtterLayer(nn.Module):  # gclint: ignore[GC001]" in text) is is_commented
    assert "class SealLayer(nn.Module):  # gclint: ignore[GC001]" in text


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--diff", "--add-ignores"), "+class OtterLayer(nn.Module):  # gclint: ignore[GC001]"),
        (("--diff", "--fix", "--add-ignores"), "+class OtterLayer(GradientCheckpointingLayer):"),
    ],
)
def test_a_diff_shows_comments_instead_of_fixes_unless_both_are_asked_for(
    folder: Folder, options: tuple[str, ...], line: str
) -> None:
    folder.write({"modeling_otter.py": reports.SAFE})
    added = [each for each in folder.run(*options).out.splitlines() if each.startswith("+class")]
    assert added == [line]
    assert folder.read() == reports.SAFE


@pytest.mark.parametrize(
    ("second", "number"),
    [
        ("layer(hidden_states, past_key_values)", "2 findings"),
        ("layer(hidden_states, past_key_values=past_key_values)", "1 finding"),
    ],
)
def test_a_comment_for_two_findings_of_a_rule_in_one_statement_counts_for_both(
    folder: Folder, second: str, number: str
) -> None:
    call = "layer(hidden_states, past_key_values)"
    folder.write({"modeling_otter.py": reports.CACHE.replace(call, f"{call} + {second}")})
    assert f"for {number}.\n" in folder.run("--add-ignores").out
    assert folder.read().count("# gclint: ignore[GC002]") == 1
