"""A change at the top of a file leaves alone which line declares the encoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.finding import Finding, Fix, Refusal
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.run.fix import damage, fix
from gclint.settings import Settings

_COMMENT = "# gclint: ignore[GC003]\n"
_CODE = "NAME = '\u00e4'\n"


def _findings(path: Path, text: str, encoding: str = "utf-8") -> tuple[Finding, ...]:
    path.write_bytes(text.encode(encoding))
    result = check(Project(Settings(), [path]), all_rules())
    assert result.problems == ()
    return result.findings


@pytest.mark.parametrize("declared", ["ascii", "latin-1", "cp1252", "no-such-encoding"])
def test_no_comment_goes_whose_line_another_encoding_would_take(declared: str, tmp_path: Path) -> None:
    path, cookie = tmp_path / "modeling_toy.py", f"# -*- coding: {declared} -*-\n"
    (finding,) = _findings(path, f"{_COMMENT}# another\n{cookie}{_CODE}")
    assert isinstance(finding.remedy, Refusal)
    assert "encoding" in finding.remedy.reason
    repaired = fix(Project(Settings(), [path]), all_rules(), unsafe=True)
    assert (repaired.problems, repaired.changed) == ((), {})


@pytest.mark.parametrize(
    "text",
    [
        f"{_COMMENT}# another\n# -*- coding: utf-8 -*-\n{_CODE}",
        f"{_COMMENT}# another\n# one more\n# -*- coding: latin-1 -*-\n{_CODE}",
        f"{_COMMENT}# another\n# -*- coding: latin-1 -*-\nNAME = 'a'\n",
        f"{_COMMENT}# -*- coding: utf-8 -*-\n{_CODE}",
        f"# another\n# one more\n{_COMMENT}# -*- coding: latin-1 -*-\n{_CODE}",
    ],
)
def test_a_comment_goes_if_the_file_is_read_alike(text: str, tmp_path: Path) -> None:
    (finding,) = _findings(tmp_path / "modeling_toy.py", text)
    assert isinstance(finding.remedy, Fix)


def test_a_comment_goes_behind_the_line_that_declares_the_encoding(tmp_path: Path) -> None:
    text = f"# -*- coding: latin-1 -*-\n{_COMMENT}{_CODE}"
    (finding,) = _findings(tmp_path / "modeling_toy.py", text, "latin-1")
    assert isinstance(finding.remedy, Fix)


def test_a_text_is_read_alike_if_the_same_line_declares_its_encoding() -> None:
    file = SourceFile(Path("x.py"), f"# one\n# -*- coding: latin-1 -*-\n{_CODE}".encode("latin-1"))
    assert not file.reads_back(f"import a\n{file.text}")
    assert file.reads_back(file.text.replace("# one\n", "# one, two\n"))
    assert file.reads_back(file.text.replace("# one\n", ""))


def test_two_changes_that_are_right_alone_are_not_made_together(tmp_path: Path) -> None:
    path = tmp_path / "modeling_toy.py"
    text = f"# gclint: ignore[GC003]\n# gclint: ignore[GC002]\n# another\n# -*- coding: latin-1 -*-\n{_CODE}"
    findings = _findings(path, text)
    assert all(isinstance(each.remedy, Fix) for each in findings)
    edits = [edit for each in findings for edit in each.edits]
    assert damage(Project(Settings(), [path]).file(path), edits) is not None
    repaired = fix(Project(Settings(), [path]), all_rules(), unsafe=True)
    assert repaired.problems == ()
    (_, after) = repaired.changed[path]
    assert after.startswith(("# gclint: ignore[GC003]\n# another\n", "# gclint: ignore[GC002]\n# another\n"))
