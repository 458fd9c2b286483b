"""Which findings an ignore comment suppresses, by its place and its words, and which comments are unused."""

from __future__ import annotations

import pytest

from tests.decisions import reports
from tests.decisions.reports import Folder

_CLASS = "class OtterLayer(nn.Module):"
_CALL = "            hidden_states = layer(hidden_states, past_key_values)"


def _found(folder: Folder, text: str, *options: str) -> list[str]:
    folder.write({"modeling_otter.py": text})
    return folder.found(*options)


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
