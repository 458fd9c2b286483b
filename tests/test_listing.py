"""How a list between brackets stands in a text, whatever its strings hold."""

from __future__ import annotations

import pytest

from gclint.codemod.listing import Item, Layout, layout_of, render


def _layout(inner: str, before: str = "  x = f") -> Layout:
    text = f"{before}({inner})"
    return layout_of(text, len(before), len(text) - 1, "\n")


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("a, b", Layout(False, "      ", "\n  ", False, "\n", "", ())),
        ("a, '# b,'", Layout(False, "      ", "\n  ", False, "\n", "", ())),
        ("a, '#',", Layout(False, "      ", "\n  ", True, "\n", "", ())),
        ("\n        a,\n        b  # c,\n  ", Layout(True, "        ", "\n  ", False, "\n", "", ())),
        ("\n    a,  # b\n    # c\n  ", Layout(True, "    ", "\n  ", True, "\n", "", ("# c",))),
        (
            "  # a\n    # b\n    c\n    # d\n\n    # e\n",
            Layout(True, "    ", "\n", False, "\n", "  # a", ("# d", "# e")),
        ),
        ("'''\n# a\n'''", Layout(False, "      ", "\n  ", False, "\n", "", ())),
        ("'''\n# a'''", Layout(False, "      ", "\n  ", False, "\n", "", ())),
        ("'''\na,''',", Layout(False, "      ", "\n  ", True, "\n", "", ())),
        ("\r    a\r  ", Layout(True, "    ", "\n  ", False, "\n", "", ())),
        ("", Layout(False, "      ", "\n  ", False, "\n", "", ())),
    ],
)
def test_a_list_is_described_as_it_stands(inner: str, expected: Layout) -> None:
    assert _layout(inner) == expected


def test_a_comment_on_one_item_alone_gives_each_a_line() -> None:
    items = [Item("a", (), "# first"), Item("b")]
    assert render(items, _layout("a, b"), 7) == "\n      a,  # first\n      b,\n  "
