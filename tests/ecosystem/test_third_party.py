"""What is said about other people's packages was looked at, and holds what "safe" promises."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.ecosystem.third_party import PACKAGES, Opinion, found_in, opinions
from tests.ecosystem.wheels import WheelUnavailable

_PRECISION = 0.95
_IN_CASE = "if that is right: python3 -m tests.ecosystem.regenerate, and review the difference"


@pytest.mark.releases
@pytest.mark.drawn(full=6)
@pytest.mark.parametrize("package", PACKAGES)
def test_findings_in_a_package_are_reviewed(package: str) -> None:
    try:
        found = found_in(package)
    except WheelUnavailable as error:
        pytest.skip(str(error))
    reviewed = {each.finding for each in opinions() if each.package == package}
    assert {each.line for each in found} == reviewed, _IN_CASE


def test_every_finding_has_an_opinion() -> None:
    assert [each.finding for each in opinions() if not each.is_reviewed] == []
    assert {each.package for each in opinions()} <= set(PACKAGES)


def test_each_rule_is_right_nearly_always() -> None:
    right, all_of_them = Counter[str](), Counter[str]()
    for each in opinions():
        all_of_them[each.code] += 1
        right[each.code] += each.is_right
    assert all_of_them["GC001"] + all_of_them["GC302"] > 20
    assert {
        code: right[code] for code, count in all_of_them.items() if right[code] < _PRECISION * count
    } == {}


def test_no_safe_fix_is_wrong() -> None:
    assert [each.finding for each in opinions() if _is_safe(each) and not each.is_right] == []


def _is_safe(opinion: Opinion) -> bool:
    return opinion.finding.endswith(": safe fix")
