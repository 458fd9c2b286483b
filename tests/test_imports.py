"""Imports are dropped when nothing uses them any more, and only then; what is added finds its place."""

from __future__ import annotations

import ast
from itertools import chain
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.edit.edits import edited
from gclint.edit.imports import drop_unused_imports, import_checkpointing_base, is_used
from gclint.finding import Edit
from gclint.settings.settings import Settings

_PATH = Path("modeling_x.py")
_ALONE = Project(Settings(), [])
_USE = "gone(checkpoint)\n"


def _dropped(text: str, *names: str) -> str:
    """Return a text without the first use, and without the imports that only that needs."""
    file = SourceFile(_PATH, f"{text}{_USE}".encode())
    start = file.text.index(_USE)
    use = Edit(_PATH, start, start + len(_USE), "")
    return edited(file.text, [use, *drop_unused_imports(_ALONE, file, set(names or ("checkpoint",)), [use])])


_IMPORT = "from a import checkpoint\n"
_USES = [
    "x = checkpoint\n",
    "def f(a=checkpoint): pass\n",
    "def f():\n    global checkpoint\n",
    "def f():\n    del checkpoint\n",
    "@checkpoint.b(1)\nclass A: pass\n",
    "class A(checkpoint): pass\n",
    "x: checkpoint = 1\n",
    "x: 'list[checkpoint]' = 1\n",
    "def f(a: 'checkpoint.A | None'): pass\n",
    "def f(a) -> 'Optional[\"checkpoint\"]': pass\n",
    "def f(a: List['b', 'checkpoint']): pass\n",
    "Alias = dict[str, 'checkpoint']\n",
    "x = cast('checkpoint', y)\n",
    "T = typing.TypeVar('T', bound='checkpoint')\n",
    "def f(a: 'no python but checkpoint'): pass\n",
    "x = f'{checkpoint}'\n",
    "x = f'{y:{checkpoint}}'\n",
    "x = rf'''{y:{f'{checkpoint.z}'}}'''\n",
    "x = [y for y in checkpoint]\n",
    "match x:\n    case checkpoint.A: pass\n",
    "match x:\n    case checkpoint(): pass\n",
    "__all__ = ['a', 'checkpoint']\n",
    "__all__ += ('checkpoint',)\n",
    "__all__.extend(['checkpoint'])\n",
    "if x:\n    def f():\n        class A:\n            y = checkpoint\n",
    "checkpoint = checkpoint\r\n",
]
_NEWER_USES = [
    "x = f'{y['a']}{checkpoint}'\n",
    "x = f'{f'{f'{checkpoint}'}'}'\n",
    'x = f"{\n    checkpoint  # }\n}"\n',
    "x = t'{checkpoint}'\n",
    "def f[T: checkpoint](a): pass\n",
    "class A[T: (int, 'checkpoint')]: pass\n",
    "type A = list[checkpoint]\n",
    "def f[T](a: 'checkpoint'): pass\n",
    "type A = int\n__all__ = ['checkpoint']\n",
    "type A = int\nx = cast('checkpoint', y)\n",
]
_NO_USES = [
    "",
    "# checkpoint\n",
    "'''checkpoint'''\n",
    "x = 'checkpoint'\n",
    "x = y['checkpoint']\n",
    "x = f'checkpoint {y} {{checkpoint}}'\n",
    "f(checkpoint=1)\n",
    "x = y.checkpoint\n",
    "x = checkpoints, my_checkpoint\n",
    "def f(checkpoint): pass\n",
    "def checkpoint(): pass\n",
    "import checkpoint.a\n",
    "def f():\n    '''Call checkpoint.'''\n    from b import c as checkpoints\n",
]
_NEWER_NO_USES = [
    "x = f'{y['checkpoint']}'  # checkpoint\n",
    "type A = int\nx = 'checkpoint'\nf(checkpoint=x.checkpoint)\n",
    "def checkpoint[T](checkpoint): '''checkpoint'''\n",
    "class checkpoint[T]:\n    import checkpoint\n",
]


def _readable(texts: list[str]) -> list[str]:
    """Return the texts that the running Python can parse."""
    return [text for text in texts if SourceFile(_PATH, text.encode()).tree is not None]


@pytest.mark.parametrize("text", [*_USES, *_readable(_NEWER_USES)])
def test_an_import_that_is_used_stays(text: str) -> None:
    assert _dropped(_IMPORT + text) == _IMPORT + text


@pytest.mark.parametrize("text", [*_NO_USES, *_readable(_NEWER_NO_USES)])
def test_an_import_that_is_only_mentioned_goes(text: str) -> None:
    assert _dropped(_IMPORT + text) == text


def test_brackets_at_the_beginning_of_a_line_are_no_obstacle() -> None:
    text = "def f():\n    g(\n1, {})\n"
    assert is_used(text.format("checkpoint"), "checkpoint")
    assert not is_used(text.format("'checkpoint'"), "checkpoint")


def test_of_what_no_parser_reads_everything_is_used() -> None:
    assert is_used("def f(:\n    checkpoint\n", "checkpoint")
    assert not is_used("def f(:\n    checkpoint\n", "other")


@pytest.mark.parametrize(
    "use", ["torch.utils.checkpoint.f()", "torch.utils.checkpoint", "f(torch.utils.checkpoint)"]
)
def test_a_dotted_import_is_used_in_full(use: str) -> None:
    text = f"import torch\nimport torch.utils.checkpoint\nx = {use}\n"
    assert _dropped(text, "torch.utils.checkpoint", "torch") == text


def test_a_dotted_import_goes_where_another_gives_the_package() -> None:
    text = "import torch.nn\nimport torch.utils.checkpoint\nx = torch.nn, torch.utils.data\n"
    expected = "import torch.nn\nx = torch.nn, torch.utils.data\n"
    assert _dropped(text, "torch.utils.checkpoint") == expected


def test_what_is_left_of_an_import_still_gives_the_package() -> None:
    text = "import torch.checkpoint, torch.nn\nimport torch.utils.checkpoint\nx = torch.nn\n"
    names = ("torch.checkpoint", "torch.utils.checkpoint")
    assert _dropped(text, *names) == "import torch.nn\nx = torch.nn\n"


@pytest.mark.parametrize("other", ["", "def f():\n    import torch\n", "import torch.utils.checkpoint\n"])
def test_a_dotted_import_stays_where_no_other_gives_the_package(other: str) -> None:
    text = f"import torch.utils.checkpoint\n{other}x = torch.nn\n"
    assert "import torch.utils.checkpoint\n" in _dropped(text, "torch.utils.checkpoint")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import checkpoint", ""),
        ("import checkpoint  # why", ""),
        ("import checkpoint; x = 1", "x = 1\n"),
        ("import checkpoint;  # why", ""),
        ("import a as checkpoint", ""),
        ("from a import b as checkpoint", ""),
        ("from a import checkpoint as b", "from a import checkpoint as b\n"),
        ("from a import b, checkpoint", "from a import b\n"),
        ("from a import b, checkpoint, c  # why", "from a import b, c  # why\n"),
        ("from a import b, checkpoint; x = 1", "from a import b; x = 1\n"),
        ("from checkpoint import b, checkpoint", "from checkpoint import b\n"),
        ("from a import checkpoint as b, c as checkpoint", "from a import checkpoint as b\n"),
        ("from a import b, \\\n    checkpoint", "from a import b\n"),
        ("from a import checkpoint, \\\n    b", "from a import b\n"),
        ("from a import (b, checkpoint)", "from a import (b)\n"),
        ("from a import (b, checkpoint,)", "from a import (b,)\n"),
        ("from a import (\n    checkpoint,\n    b,\n)", "from a import (\n    b,\n)\n"),
        ("from a import (\n    b,\n    checkpoint,\n)", "from a import (\n    b,\n)\n"),
        ("from a import (\n    b,\n    checkpoint\n)", "from a import (\n    b,\n)\n"),
        ("from a import (\r\n    checkpoint,\r\n    b,\r\n)", "from a import (\r\n    b,\r\n)\n"),
        (
            "from a import (\n    checkpoint,  # goes\n    b,  # stays\n)",
            "from a import (\n    b,  # stays\n)\n",
        ),
        (
            "from a import (  # checkpoint\n    b as checkpoint,\n    c)",
            "from a import (  # checkpoint\n    c)\n",
        ),
        (
            "from a import (\n    # b\n    b, checkpoint,\n    c)",
            "from a import (\n    # b\n    b,\n    c)\n",
        ),
        ("from a import (b,  # b\n    checkpoint)", "from a import (b,  # b\n    )\n"),
        ("from a import (b,  # b\n    checkpoint,)", "from a import (b,  # b\n    )\n"),
        ("from a import (b,  # b\n    checkpoint, c)", "from a import (b,  # b\n    c)\n"),
        ("from a import (b, checkpoint,  # both\n    c)", "from a import (b,  # both\n    c)\n"),
        ("if x:\n    y = 1\n    import checkpoint", "if x:\n    y = 1\n"),
        ("if x:\n    import checkpoint", "if x:\n    import checkpoint\n"),
        ("try:\n    import checkpoint\nexcept A: x = 1", "try:\n    import checkpoint\nexcept A: x = 1\n"),
        ("import checkpoint as checkpoint", "import checkpoint as checkpoint\n"),
        ("from a import checkpoint  # noqa", "from a import checkpoint  # noqa\n"),
        ("from a import checkpoint  # NOQA: E1,F401", "from a import checkpoint  # NOQA: E1,F401\n"),
        (
            "from a import (\n    checkpoint,  # noqa: F401\n)",
            "from a import (\n    checkpoint,  # noqa: F401\n)\n",
        ),
        ("from a import *", "from a import *\n"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "z = 1\n{}", "def f():\n    return b, c\n\n\n{}"])
def test_a_statement_keeps_the_rest_of_it(before: str, after: str, around: str) -> None:
    result = _dropped(around.format(f"{before}\n"))
    assert result == around.format(after)
    ast.parse(result)


def test_an_import_that_is_used_is_replaced_by_itself() -> None:
    """So two repairs that both take a use away are not made at once."""
    file = SourceFile(_PATH, b"import checkpoint\ncheckpoint.a\ncheckpoint.b\n")
    first = Edit(_PATH, 18, 31, "")
    assert drop_unused_imports(_ALONE, file, {"checkpoint"}, [first]) == (
        Edit(_PATH, 0, 17, "import checkpoint"),
    )
    both = [first, Edit(_PATH, 31, 44, "")]
    assert drop_unused_imports(_ALONE, file, {"checkpoint"}, both) == (Edit(_PATH, 0, 18, ""),)


_BASE = "GradientCheckpointingLayer"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from .modeling_layers import A as b", f"from .modeling_layers import A as b, {_BASE}"),
        (
            "from .modeling_layers import (  # a\n    a as A,  # a\n)",
            f"from .modeling_layers import (  # a\n    {_BASE},\n    a as A,  # a\n)",
        ),
        (
            f"from .modeling_layers import {_BASE} as A",
            f"from .modeling_layers import {_BASE} as A, {_BASE}",
        ),
        ("from .a import b; x = 1", f"from .a import b; x = 1\nfrom .modeling_layers import {_BASE}"),
    ],
)
def test_the_base_class_is_added_where_it_belongs(before: str, after: str) -> None:
    file = SourceFile(_PATH, f"{before}\n".encode())
    edits = list(chain(import_checkpointing_base(file, ".modeling_layers", ())))
    assert edited(file.text, edits) == f"{after}\n"


@pytest.mark.parametrize("before", ["x = 1; ", "if x: ", "try: "])
def test_an_import_behind_something_on_its_line_is_left_alone(before: str) -> None:
    text = f"{before}from a import checkpoint\n"
    text += "except ValueError: pass\n" if before == "try: " else ""
    assert _dropped(text) == text
    file = SourceFile(_PATH, text.encode())
    added = import_checkpointing_base(file, "a", [Edit(_PATH, len(text), len(text), "")])
    assert edited(text, added) == f"from a import GradientCheckpointingLayer\n{text}"
