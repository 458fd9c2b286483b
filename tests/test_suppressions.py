"""Ignore comments: what they keep back, and what is told about those that keep nothing back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.suppressions import Suppressions
from gclint.finding import Finding
from gclint.rule import codes_by_word
from gclint.rules.gc000_unused_ignore import UnusedIgnore
from tests.toys import NO_FIX

_PATH = Path("modeling_x.py")
_RULES = {"GC001", "GC002", "GC003", "GC302"}
_CODES = {
    "gc001": "GC001",
    "missing-checkpointing-layer": "GC001",
    "gc002": "GC002",
    "positional-cache": "GC002",
    "gc003": "GC003",
    "keyword-activation": "GC003",
    **codes_by_word([UnusedIgnore()]),
}


def _finding(text: str, marked: str, code: str) -> Finding:
    start = text.index(marked)
    return Finding(code, "some-rule", "", _PATH, start, start + len(marked), "", NO_FIX)


def _is_suppressed(text: str, marked: str, code: str = "GC001") -> bool:
    file = SourceFile(_PATH, text.encode())
    return Suppressions(file, _CODES).covers(_finding(file.text, marked, code))


def _unused(text: str, *found: tuple[str, str], ran: set[str] | None = None) -> list[tuple[str, str | None]]:
    """Return the messages about ``text``'s comments, each with the text after its fix."""
    file = SourceFile(_PATH, text.encode())
    findings = [_finding(file.text, *each) for each in found]
    result = []
    rule = UnusedIgnore()
    comments = Suppressions(file, _CODES)
    for finding in rule.check_comments(comments, findings, {*(_RULES if ran is None else ran), rule.code}):
        assert (finding.code, finding.name, finding.path) == ("GC000", "unused-ignore", _PATH)
        assert text[finding.start : finding.end].startswith(("# gclint:", "# gclint ignore", "# noqa:"))
        repaired = None
        if finding.fix is not None:
            (edit,) = finding.fix.edits
            repaired = text[: edit.start] + edit.content + text[edit.end :]
        result.append((finding.message, repaired))
    return result


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("# gclint: ignore[GC001]", {"GC001"}),
        ("# gclint: ignore[GC001, GC003]", {"GC001", "GC003"}),
        ("# gclint: ignore[ GC001,GC003 ]", {"GC001", "GC003"}),
        ("#gclint: ignore [ GC002 , KEYWORD-activation ] for now", {"GC002", "GC003"}),
        ("# gclint: ignore[GC]", set()),
        ("# gclint: ignore[positional_cache]", set()),
        ("# gclint: ignore because of its cache", _RULES),
        ("# gclint: ignore[GC001] because of its cache", {"GC001"}),
        ("# noqa: E501  # gclint: ignore[GC001]", {"GC001"}),
        ("# gclint: ignore[GC001]  # noqa: E501", {"GC001"}),
        ("# gclint: ignore[GC001] # gclint: ignore[GC002]", {"GC001", "GC002"}),
        ("# noqa: GC001", {"GC001"}),
        ("#NoQa:gc001,Gc002", {"GC001", "GC002"}),
        ("# noqa : GC001 GC003", {"GC001", "GC003"}),
        ("# noqa: F401,E501 , GC001: it has statistics", {"GC001"}),
        ("# noqa: GC001, GC002 since it has GC003", {"GC001", "GC002"}),
        ("# noqa: E501 # noqa: GC001", {"GC001"}),
        ("# noqa: GC001  # gclint: ignore[GC002]", {"GC001", "GC002"}),
        ("# noqa", set()),
        ("# noqa:", set()),
        ("# noqa GC001", set()),
        ("# noqa: GC", set()),
        ("# noqa: GC001x", set()),
        ("# noqa: XGC001", set()),
        ("# noqa: positional-cache", set()),
        ("# noqa: all but GC001", set()),
        ("# ruff: noqa: GC001", set()),
        ("# see noqa: GC001", set()),
        ("# gclint: ignore [GC001", set()),
        ("# gclint: ignore-files", set()),
        ("# gclint ignore[GC001]", set()),
        ("# see gclint: ignore[GC001]", set()),
    ],
)
def test_comment_names_what_it_ignores(comment: str, codes: set[str]) -> None:
    text = f"x = 1\nclass A(nn.Module):  {comment}\n    pass\n"
    assert {code for code in _RULES if _is_suppressed(text, "A", code)} == codes
    above = f"x = 1\n{comment}\nclass A(nn.Module):\n    pass\n"
    assert {code for code in _RULES if _is_suppressed(above, "A", code)} == codes


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_endings_make_no_difference(line_end: str) -> None:
    text = "x = 1\n# gclint: ignore\ny = 1\nz = 1  # gclint: ignore\nend = 1\n".replace("\n", line_end)
    assert [_is_suppressed(text, name) for name in ("x", "y", "z", "end")] == [False, True, True, False]


def test_comment_above_covers_a_whole_call() -> None:
    text = "# gclint: ignore\nhidden_states = layer(\n    hidden_states,\n    past,\n)\nafter = 1\n"
    assert _is_suppressed(text, "past")
    assert not _is_suppressed(text, "after")


def test_finding_that_ends_on_the_line_is_covered() -> None:
    text = "f(\n    a,\n    b,  # gclint: ignore\n    c,\n)\n"
    assert _is_suppressed(text, "a,\n    b")
    assert not _is_suppressed(text, "a,\n    b,  # gclint: ignore\n    c")
    assert not _is_suppressed(text, "    a,\n")


def test_ignore_file_behind_code_is_refused() -> None:
    text = "x = 1  # gclint: ignore-file[GC001]\n"
    assert not _is_suppressed(text, "x")
    ((message, repaired),) = _unused(text)
    assert "must be on a line of its own" in message
    assert repaired is None


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("x = 1  # gclint: ignore[GC001]\ny = 1\n", "x = 1\ny = 1\n"),
        ("x = 1  # gclint: ignore[GC001] for now\n", "x = 1\n"),
        ("x = 1  # gclint: ignore[GC001]", "x = 1"),
        ("x = 1\t# gclint: ignore[GC001]\r\ny = 1\r\n", "x = 1\r\ny = 1\r\n"),
        ("if x:\n    # gclint: ignore[GC001]\n    y\n", "if x:\n    y\n"),
        ("x = 1\r\n# gclint: ignore[GC001]\r\n", "x = 1\r\n"),
        ("x = 1\n# gclint: ignore[GC001]", "x = 1\n"),
        ("x = 1  # noqa: F821  # gclint: ignore[GC001]\n", "x = 1  # noqa: F821\n"),
        ("x = 1  # gclint: ignore[GC001]  # noqa: F821\n", "x = 1  # noqa: F821\n"),
        ("# why  # gclint: ignore[GC001]\nx = 1\n", "# why\nx = 1\n"),
        ("# gclint: ignore-file[GC001]\nx = 1\n", "x = 1\n"),
        ("x = é  # gclint: ignore[GC001]\n", "x = é\n"),
    ],
)
def test_unused_comment_is_removed_and_nothing_else(text: str, repaired: str) -> None:
    assert _unused(text) == [("this comment suppresses nothing: GC001 reports nothing here", repaired)]


def test_unused_code_is_removed_from_the_others() -> None:
    text = "x = 1  # gclint: ignore[GC001,GC002, GC003] for now\n"
    assert _unused(text, ("x", "GC001"), ("x", "GC003")) == [
        (
            "part of this comment suppresses nothing: GC002 reports nothing here",
            "x = 1  # gclint: ignore[GC001, GC003] for now\n",
        )
    ]


def test_unknown_code_is_told_and_removed() -> None:
    text = "x = 1  # gclint: ignore[GC001, GC999]\n"
    assert _unused(text, ("x", "GC001")) == [
        (
            "part of this comment suppresses nothing: there is no rule GC999",
            "x = 1  # gclint: ignore[GC001]\n",
        )
    ]


def test_names_are_judged_like_codes() -> None:
    text = "x = 1  # gclint: ignore[Positional-Cache, gc001, GC003]\n"
    assert _unused(text, ("x", "GC002"), ("x", "GC001"), ("x", "GC003")) == []
    assert _unused(text, ("x", "GC002")) == [
        (
            "part of this comment suppresses nothing: gc001 reports nothing here; GC003 reports nothing here",
            "x = 1  # gclint: ignore[Positional-Cache]\n",
        )
    ]
    assert _unused(text, ("x", "GC001"), ("x", "GC003")) == [
        (
            "part of this comment suppresses nothing: Positional-Cache reports nothing here",
            "x = 1  # gclint: ignore[gc001, GC003]\n",
        )
    ]
    assert _unused(text, ran={"GC999"}) == []


def test_a_misspelled_name_is_told_and_left() -> None:
    told = "there is no rule positional_cash (did you mean positional-cache?)"
    assert _unused("x = 1  # gclint: ignore[positional_cash]\n", ("x", "GC002")) == [
        (f"this comment suppresses nothing: {told}", None)
    ]
    text = "x = 1  # gclint: ignore[GC001, positional_cash, GC003, nonsense]\n"
    assert _unused(text, ("x", "GC001")) == [
        (
            "part of this comment suppresses nothing: GC003 reports nothing here; "
            f"{told}; there is no rule nonsense",
            "x = 1  # gclint: ignore[GC001, positional_cash]\n",
        )
    ]
    assert _unused("x = 1  # gclint: ignore[GC003, positional_cash]\n") == [
        (
            f"this comment suppresses nothing: GC003 reports nothing here; {told}",
            "x = 1  # gclint: ignore[positional_cash]\n",
        )
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # gclint: ignore[GC001, GC000]\n",
        "x = 1  # gclint: ignore[GC001, unused-ignore]\n",
        "# gclint: ignore[GC000, GC001]\nx = 1\n",
        "x = 1  # gclint: ignore[GC001]  # gclint: ignore[GC000]\n",
        "# gclint: ignore[GC000]\n# gclint: ignore[GC001]\nx = 1\n",
        "# gclint: ignore[GC000]\nx = 1  # gclint: ignore[GC001]\n",
        "x = 1  # gclint: ignore[GC001]\n\n# gclint: ignore-file[GC000]",
        "# gclint: ignore-file[GC000]\nx = 1  # gclint: ingore[GC001]\n",
        "x = 1\n# gclint: ignore[GC001, GC000]",
    ],
)
def test_comment_that_names_the_rule_about_comments_keeps_them(text: str) -> None:
    assert _unused(text) == []


def test_comment_that_keeps_no_other_comment_is_unused() -> None:
    text = "x = 1  # gclint: ignore[GC001, GC000]\ny = 1  # gclint: ignore[GC003, GC000]\n"
    expected = (
        "part of this comment suppresses nothing: GC000 reports nothing here",
        "x = 1  # gclint: ignore[GC001]\ny = 1  # gclint: ignore[GC003, GC000]\n",
    )
    assert _unused(text, ("x", "GC001")) == [expected]
    assert _unused(text, ("x", "GC001"), ran={"GC001", "GC302"}) == []
    assert _unused("x = 1  # gclint: ignore[unused-ignore]\n") == [
        ("this comment suppresses nothing: unused-ignore reports nothing here", "x = 1\n")
    ]


def test_comment_for_all_rules_does_not_keep_itself() -> None:
    text = "# gclint: ignore-file\nx = 1  # gclint: ignore[GC001]\n"
    assert len(_unused(text)) == 2


def test_comment_in_the_wrong_place_keeps_nothing() -> None:
    assert len(_unused("x = 1  # gclint: ignore-file[GC000]\n")) == 1


def test_comment_without_a_code_between_its_brackets_is_told() -> None:
    assert _unused("x = 1  # gclint: ignore[]\n") == [
        ("this comment suppresses nothing: it names no rule", "x = 1\n")
    ]


def test_code_of_a_rule_that_did_not_run_may_be_needed() -> None:
    text = "x = 1  # gclint: ignore[GC001, GC002]\ny = 1  # gclint: ignore\n"
    assert _unused(text, ("x", "GC002"), ran={"GC002"}) == []
    assert [message for message, _ in _unused(text, ("x", "GC002"))] == [
        "part of this comment suppresses nothing: GC001 reports nothing here",
        "this comment suppresses nothing: no rule reports anything here",
    ]


@pytest.mark.parametrize(
    "comment",
    ["# gclint: ingore[GC001]", "# gclint ignore[GC001]", "# gclint ignore", "# gclint ignore-file"],
)
def test_comment_that_is_not_understood_is_told_and_left(comment: str) -> None:
    ((message, repaired),) = _unused(f"x = 1  {comment}\n", ("x", "GC001"))
    assert "not of the form `# gclint: ignore[GC001]`" in message
    assert repaired is None


def test_comment_may_speak_of_gclint() -> None:
    assert _unused("x = 1  # gclint ignores this, and gclint ignore comments are rare\n") == []


_SINCE_3_12 = pytest.mark.skipif(sys.version_info < (3, 12), reason="newer syntax")
_SINCE_3_14 = pytest.mark.skipif(sys.version_info < (3, 14), reason="newer syntax")


@pytest.mark.parametrize(
    "newer",
    [
        "x = f'''{y:{\n1\n}}'''",
        pytest.param('x = f"{"""a"""}"', marks=_SINCE_3_12),
        pytest.param("x = f'{f'''{'#'}'''}'", marks=_SINCE_3_12),
        pytest.param("type A = int", marks=_SINCE_3_12),
        pytest.param("x = f'{\n1\n}'", marks=_SINCE_3_12),
        pytest.param("x = t'{f'''{'#'}'''}'", marks=_SINCE_3_14),
    ],
)
def test_comments_behind_newer_syntax_count(newer: str) -> None:
    text = f"{newer}\nbad = (\n    1\n)  # gclint: ignore[GC001]\n# gclint: ignore[GC001]\nworse = 2\n"
    assert _is_suppressed(text, "bad")
    assert _is_suppressed(text, "worse")


@pytest.mark.parametrize(
    "string",
    [
        "'''# gclint: ignore'''",
        "f'''\n# gclint: ignore\n'''",
        pytest.param("f'{'''\n# gclint: ignore\n'''}'", marks=_SINCE_3_12),
    ],
)
def test_what_stands_in_a_string_is_no_comment(string: str) -> None:
    assert not _is_suppressed(f"bad, {string}\n", "bad")


@pytest.mark.parametrize(
    ("comment", "complaint", "repaired"),
    [
        ("  # noqa: GC001", "this comment suppresses nothing: GC001 reports nothing here", ""),
        ("  # noqa: GC001 as it is", "this comment suppresses nothing: GC001 reports nothing here", ""),
        (
            "  # noqa: F401, GC001",
            "part of this comment suppresses nothing: GC001 reports nothing here",
            "  # noqa: F401",
        ),
        (
            "  # noqa: GC001,F401 # fmt: skip",
            "part of this comment suppresses nothing: GC001 reports nothing here",
            "  # noqa: F401 # fmt: skip",
        ),
        (
            "  # noqa: GC001, E501, GC002",
            "part of this comment suppresses nothing: GC001 reports nothing here",
            "  # noqa: E501, GC002",
        ),
        ("  # noqa: GC999", "this comment suppresses nothing: there is no rule GC999", ""),
        ("  # noqa: F401, E501", None, None),
        ("  # noqa", None, None),
    ],
)
def test_noqa_is_judged_like_any_ignore_comment_and_leaves_the_others(
    comment: str, complaint: str | None, repaired: str | None
) -> None:
    found = [("x = 1", "GC002")] if "GC002" in comment else []
    expected = [] if complaint is None else [(complaint, f"x = 1{repaired}\n")]
    assert _unused(f"x = 1{comment}\n", *found) == expected


def test_a_long_line_of_noqa_takes_no_time() -> None:
    for part in ("# noqa: ", "# noqa:GC001,", "#\t" * 50, "# noqa: a1 "):
        assert not _is_suppressed(f"x = 1  {part * (200_000 // len(part))}\n", "x = 1", "GC003")
