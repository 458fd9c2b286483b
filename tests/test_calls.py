"""Whether edits change nothing of a class but its header."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.copies.pairs import definition_region, header_region
from gclint.finding import Edit
from gclint.run.carry import changes_header_only

_NEWER = pytest.mark.skipif(sys.version_info < (3, 12), reason="no type parameters")


@pytest.mark.parametrize(
    "header",
    [
        "class A(@):",
        "class A(x[1:2], (@)):",
        "class A(key=':', other=@):",
        "class A(  # :\n    @,  # :\n):",
        pytest.param("class A[T: int](B, key=lambda x: x, other=@):", marks=_NEWER),
        pytest.param("class A[@]:", marks=_NEWER),
    ],
)
def test_a_header_ends_with_its_own_colon(header: str) -> None:
    header = header.replace("@", "Changed")
    file = SourceFile(Path("a.py"), f"def f(): pass\n{header}\n    y: int = 2\n    class D: pass\n".encode())
    _, definition, _ = file.outline.definitions
    region = definition_region(file, definition)
    offset, body = file.text.index("Changed"), file.text.index("2\n", definition.header_end)
    inside = Edit(file.path, offset, offset + len("Changed"), "C")
    assert changes_header_only(region, [inside])
    assert not changes_header_only(region, [inside, Edit(file.path, body, body + 1, "3")])
    assert header_region(file, definition).text == f"{header}\n"


def test_a_function_has_no_header_of_a_class() -> None:
    file = SourceFile(Path("a.py"), b"class A:\n    def f(self):\n        pass\n")
    region = definition_region(file, file.outline.definitions[1])
    assert not changes_header_only(region, [Edit(file.path, region.spans[0][0], region.spans[0][0] + 1, "")])
