"""Which files around those of a run may import a word: none is missed, however it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.likely import likely_imported, possibly_imported
from gclint.code.neighbouring_files import files_importing, forget_mentions
from gclint.code.project import Project
from gclint.settings import Settings

_WRITINGS = (
    "import otter\n",
    "import a, otter as b\n",
    "import a; import otter\n",
    "import a.b.otter\r\nx = 1\r\n",
    "import a, \\\n    otter\n",
    "from otter import a\n",
    "from . import otter",
    "from.otter import *\n",
    "from .a \\\n    import otter\n",
    "from .a \\\r\n    import (b, otter)\r\n",
    "from .a import (  # all (or none)\n    b,  # :)\n    otter,\n)\n",
    "from .a import (b,\n\n\n otter",
    "if x: from .a import otter\n",
    "try:\n\tfrom .otter.b import c as d\nexcept ImportError: pass\n",
    "from .a import \uff4ftter\n",
    "from .ä import otter\n",
    '"""From the shop.""" ; from .a import otter\n',
    "class A:\n    def f(self):\n        import otter\n",
    '"""\nfrom {otter} import b\n"""\n',
)


@pytest.mark.parametrize("text", _WRITINGS)
def test_no_import_is_missed(text: str, tmp_path: Path) -> None:
    data = text.encode()
    assert "otter" in likely_imported(SourceFile(tmp_path / "x.py", data))
    found = possibly_imported(data)
    assert found is None or b"otter" in found


def test_the_files_around_are_found_by_what_they_import(tmp_path: Path) -> None:
    given, other, odd = (tmp_path / name for name in ("modeling_otter.py", "use.py", "odd.py"))
    given.write_text("from a import otter\n")
    other.write_text("otter = 1\n")
    odd.write_text("from .ä import b\n", encoding="utf-8")
    project = Project(Settings(), [given], within=[tmp_path])
    assert files_importing(project, ["otter"]) == (odd,)
    other.write_text("import otter\n")
    assert forget_mentions(project, other)
    assert files_importing(project, ["seal", "otter"]) == (odd, other)
    given.write_text("from a import seal\n")
    forget_mentions(project, given)
    other.write_text("import otter  # as before\n")
    assert not forget_mentions(project, other)
    assert files_importing(project, ["otter"]) == (odd, other)
    assert files_importing(project, ["seal"]) == (odd,)
