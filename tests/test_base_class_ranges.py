"""Ranges of releases: how they are written, and what the base class does in all of them."""

from __future__ import annotations

import pytest

from gclint.releases import NEWEST_KNOWN, Releases, releases


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("4.53", (4, 53, 0), (4, 54, 0)),
        ("4.57.6", (4, 57, 6), (4, 57, 7)),
        ("5", (5, 0, 0), (6, 0, 0)),
        ("4.57.*", (4, 57, 0), (4, 58, 0)),
        ("==4.57.*", (4, 57, 0), (4, 58, 0)),
        ("==4.57", (4, 57, 0), (4, 57, 1)),
        ("===4.57.0.post1", (4, 57, 0), (4, 57, 1)),
        (">=4.52,<5.17", (4, 52, 0), (5, 17, 0)),
        (" >= 4.52 , < 5 ", (4, 52, 0), (5, 0, 0)),
        (">=4.52 <5", (4, 52, 0), (5, 0, 0)),
        (">4.52", (4, 52, 1), None),
        ("<=4.52", (0, 0, 0), (4, 52, 1)),
        ("<=4.52.*", (0, 0, 0), (4, 53, 0)),
        ("~=4.57", (4, 57, 0), (5, 0, 0)),
        ("~=4.57.1", (4, 57, 1), (4, 58, 0)),
        ("^4.57", (4, 57, 0), (5, 0, 0)),
        ("~4.57.1", (4, 57, 1), (4, 58, 0)),
        ("~4", (4, 0, 0), (5, 0, 0)),
        (">=4.36,!=4.38.*", (4, 36, 0), None),
        (">=5.0.0rc1", (5, 0, 0), None),
        (">5.0.0rc1", (5, 0, 0), None),
        ("<5.0.0.dev0", (0, 0, 0), (5, 0, 0)),
        ("v4.57", (4, 57, 0), (4, 58, 0)),
        ("4.52.4 || ^5.0", (4, 52, 4), (6, 0, 0)),
        ("*", (0, 0, 0), None),
        ("", (0, 0, 0), None),
    ],
)
def test_a_range_is_read_as_requirements_have_it(
    text: str, start: tuple[int, int, int], end: tuple[int, int, int] | None
) -> None:
    assert releases(text) == Releases(start, end)


@pytest.mark.parametrize("text", ["new", ">=new", "4.57;x", "git+https://x", ">=", "rc" * 40])
def test_what_is_not_a_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        releases(text)


@pytest.mark.parametrize("text", [">=5,<4", "<4.52,>=4.52", "==4.57.1,==4.57.2"])
def test_a_range_that_holds_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no version satisfies"):
        releases(text)


@pytest.mark.parametrize(
    ("text", "name", "which"),
    [
        ("4.52", "past_key_values", "transformers 4.52"),
        ("4.52.4", "use_cache", "transformers 4.52.4"),
        ("4.49", "past_key_values", None),
        (">=4.53,<5.17", "past_key_value", None),
        ("5.16.4", "past_key_value", None),
        (">=4.53", "past_key_value", "transformers 5.17 and later"),
        (">=4.40", "past_key_value", "transformers 4.52 and transformers 5.17 and later"),
        (">=4.53,<6", "past_key_value", "transformers >=5.17,<6.0"),
        (">=4.53", "past_key_values", None),
        ("5.23", "anything", "transformers 5.23"),
    ],
)
def test_releases_are_named_that_leave_a_name_alone(text: str, name: str, which: str | None) -> None:
    assert releases(text).not_neutralising(name) == which


@pytest.mark.parametrize(
    ("text", "older", "have"),
    [
        ("4.49", "transformers 4.49", False),
        ("<4.52", "transformers before 4.52", False),
        (">=4.45", "transformers >=4.45,<4.52", True),
        ("<5", "transformers before 4.52", True),
        (">=4.52", None, True),
    ],
)
def test_releases_are_named_that_have_no_base_class(text: str, older: str | None, have: bool) -> None:
    found = releases(text).without_base_class
    assert (found and str(found)) == older
    assert releases(text).have_base_class is have


def test_the_newest_known_has_no_end() -> None:
    assert str(NEWEST_KNOWN) == "transformers 5.17 and later"
    assert str(Releases()) == "any transformers"
