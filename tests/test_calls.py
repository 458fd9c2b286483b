"""Whether edits change nothing of a class but its header."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.engine.calls import changes_header_only
from gclint.finding import Edit
from gclint.source.file import SourceFile
from gclint.source.twins import definition_region, header_region


@pytest.mark.parametrize(
    "header",
    [
        "class A(@):",
        "class A(x[1:2], @):",
        "class A(key=':', other=@):",
        "class A(  # :\n    @\n):",
        "class A[T: int](B, key=lambda x: x, other=@):",
    ],
)
def test_a_header_ends_with_its_own_colon(header: str) -> None:
    file = SourceFile(Path("a.py"), f"x = 1\n{header}\n    y: int = 2\n".encode())
    (definition,) = file.outline.definitions
    region = definition_region(file, definition)
    offset, body = file.text.index("@"), file.text.index("2\n", definition.header)
    inside = Edit(file.path, offset, offset + 1, "C")
    assert changes_header_only(region, [inside])
    assert not changes_header_only(region, [inside, Edit(file.path, body, body + 1, "3")])
    assert header_region(file, definition).text == f"{header}\n"
