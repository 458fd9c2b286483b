"""What a session makes of what an editor tells it, without messages."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from lsprotocol import types

from gclint.rule import Rule, all_rules, selected_rules
from gclint.server.actions import FIX_ALL, actions
from gclint.server.documents import Lines, changed, path_of
from gclint.server.messages import hover
from gclint.server.session import Session, UnusableSettings
from gclint.settings import Settings
from tests.server.models import BAD, BASE, BROKEN, GOOD, HEIR, LAYER, MODEL

_EVERYTHING = types.Range(types.Position(0, 0), types.Position(9999, 0))


class _Editor:
    """Drives a session that has a folder open, and holds what it shows."""

    def __init__(self, folder: Path, encoding: str = "utf-16") -> None:
        self.folder = folder
        self.refused = ""
        self.session = Session(self._load, encoding, [folder])
        self.shown: dict[str, Sequence[types.Diagnostic]] = {}
        self.settle()

    def _load(self, root: Path) -> tuple[Settings, Sequence[Rule]]:
        if self.refused:
            raise UnusableSettings(self.refused)
        settings = Settings(root=root)
        return settings, selected_rules(settings)

    def settle(self) -> None:
        while self.session.is_busy:
            self.session.work()
        for each in self.session.news():
            self.shown[each.uri] = each.diagnostics

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, uri: str, text: str) -> None:
        self.session.open(uri, "python", 1, text)
        self.settle()

    def codes(self, uri: str) -> list[object]:
        return [each.code for each in self.shown.get(uri, ())]

    def actions(self, uri: str, *only: str) -> list[types.CodeAction]:
        document = self.session.documents.get(uri)
        assert document is not None
        area = self.session.home(document.path)
        assert area is not None
        return actions(self.session.documents, document, area, _EVERYTHING, list(only) or None)

    def after(self, action: types.CodeAction) -> dict[str, str]:
        """Return the texts of the documents that an action changes, as an editor makes its edits."""
        assert action.edit is not None
        texts = {}
        for change in action.edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            uri = change.text_document.uri
            document = self.session.documents.get(uri)
            path = path_of(uri)
            assert path is not None
            text = path.read_text(encoding="utf-8") if document is None else document.text
            encoding = self.session.documents.encoding
            for edit in sorted(change.edits, key=lambda each: each.range.start, reverse=True):
                assert isinstance(edit, types.TextEdit)
                partial = types.TextDocumentContentChangePartial(edit.range, edit.new_text)
                text = changed(text, [partial], encoding)
            texts[uri] = text
        return texts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("head", ["", "\ufeff", "# \U0001f600 caf\u00e9\f\u2028 \n"])
def test_a_repair_hits_its_place(encoding: str, newline: str, head: str, tmp_path: Path) -> None:
    def written(text: str) -> str:
        commented = text.replace("class OtterLayer", '"""\U0001f600"""; class_ = 1\nclass OtterLayer')
        return (head + commented).replace("\n", newline)

    editor = _Editor(tmp_path, encoding)
    uri = editor.uri("modeling_otter.py")
    editor.open(uri, written(BAD))
    assert editor.codes(uri) == ["GC001"]
    (action,) = [each for each in editor.actions(uri, "quickfix") if each.is_preferred]
    assert editor.after(action) == {uri: written(GOOD)}
    (every,) = editor.actions(uri, FIX_ALL)
    assert editor.after(every) == {uri: written(GOOD)}
    assert editor.codes(uri) == ["GC001"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_positions_lead_there_and_back(encoding: str) -> None:
    text = "a\tb\r\n\U0001f600\u00e9\x0cx\rlast\u2028line\n"
    lines = Lines(text, encoding)
    for offset in (each for each in range(len(text) + 1) if text[each - 1 : each + 1] != "\r\n"):
        assert lines.offset(lines.position(offset)) == offset
    assert lines.position(len(text)).line == 4 - 1
    assert lines.offset(types.Position(99, 99)) == len(text)
    assert lines.offset(types.Position(0, 99)) == 3


def test_typing_is_taken_over_piece_by_piece() -> None:
    def at(line: int, start: int, end: int, text: str) -> types.TextDocumentContentChangePartial:
        where = types.Range(types.Position(line, start), types.Position(line, end))
        return types.TextDocumentContentChangePartial(where, text)

    changes = [at(1, 2, 3, "y"), at(0, 0, 0, "# \U0001f600\r\n"), at(2, 2, 3, "")]
    assert changed("x\n\U0001f600x = 1\n", changes, "utf-16") == "# \U0001f600\r\nx\n\U0001f600 = 1\n"


def test_a_repair_of_several_files_is_one_edit_with_versions(tmp_path: Path) -> None:
    for name, text in {"seal": BASE, "otter": HEIR}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"modeling_{name}.py").write_text(text, encoding="utf-8")
    editor = _Editor(tmp_path)
    heir, base = editor.uri("otter/modeling_otter.py"), editor.uri("seal/modeling_seal.py")
    assert editor.codes(heir) == ["GC001"]
    editor.open(heir, HEIR)
    for action in editor.actions(heir):
        if action.kind in ("refactor.rewrite", "source.fixAll.gclint") or action.is_preferred:
            assert action.edit is not None
            for change in action.edit.document_changes or ():
                assert isinstance(change, types.TextDocumentEdit)
                is_open = change.text_document.uri == heir
                assert change.text_document.version == (1 if is_open else None)
    editor.open(base, BROKEN)
    assert editor.codes(base) == [None]
    assert all(base not in editor.after(each) for each in editor.actions(heir) if each.edit)


def test_an_ignore_comment_suppresses_the_finding_and_is_explained(tmp_path: Path) -> None:
    editor = _Editor(tmp_path)
    uri = editor.uri("modeling_otter.py")
    editor.open(uri, BAD)
    (ignore,) = [each for each in editor.actions(uri, "quickfix") if each.title.startswith("Ignore")]
    (text,) = editor.after(ignore).values()
    assert "class OtterLayer(nn.Module):  # gclint: ignore[GC001]\n" in text
    editor.session.change(uri, 2, [types.TextDocumentContentChangeWholeDocument(text)])
    editor.settle()
    assert editor.codes(uri) == []
    document = editor.session.documents.get(uri)
    assert document is not None
    area = editor.session.home(document.path)
    assert area is not None
    shown = hover(document, area, document.lines.position(text.index("GC001]") + 2))
    assert shown is not None
    assert isinstance(shown.contents, types.MarkupContent)
    assert shown.contents.value.startswith("# GC001 ")


@pytest.mark.parametrize(
    ("uri", "language", "is_checked"),
    [
        ("untitled:Untitled-1", "python", True),
        ("git:/modeling_otter.py?HEAD", "python", False),
        ("vscode-notebook-cell:/a.ipynb#1", "python", False),
        ("file:///nowhere/site-packages/modeling_otter.py", "python", False),
        ("file:///nowhere/modeling_otter.py", "python", True),
        ("file:///nowhere/modeling%20%28otter%29.py", "python", True),
        ("file:///nowhere/pyproject.toml", "toml", False),
        ("file:///nowhere/test_modeling_otter.py", "python", False),
        ("not an address", "python", False),
        ("file://[", "python", False),
    ],
)
def test_documents_of_all_kinds(uri: str, language: str, is_checked: bool, tmp_path: Path) -> None:
    editor = _Editor(tmp_path)
    editor.session.open(uri, language, 1, BAD)
    editor.settle()
    assert editor.codes(uri) == (["GC001"] if is_checked else [])
    editor.session.change(uri, 2, [types.TextDocumentContentChangeWholeDocument(GOOD)])
    editor.session.close(uri)
    editor.settle()
    assert editor.codes(uri) == []


def test_addresses_are_read_as_paths() -> None:
    assert path_of("http://example.org/x.py") is None
    assert path_of("file:///a%00b") is None
    path = Path(__file__).with_name("mod\u00e9 [1] #2 %41.py")
    assert path_of(path.as_uri()) == path


def test_a_file_that_is_deleted_while_it_is_open_is_checked_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "modeling_otter.py"
    path.write_text(BAD, encoding="utf-8")
    editor = _Editor(tmp_path)
    uri = path.as_uri()
    editor.open(uri, BAD)
    path.unlink()
    editor.session.watched([(path, True)])
    editor.settle()
    assert editor.codes(uri) == ["GC001"]
    editor.session.close(uri)
    editor.settle()
    assert editor.codes(uri) == []


def test_a_folder_that_is_deleted_has_no_findings(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("modeling_otter.py", "modeling_seal.py"):
        (folder / name).write_text(BAD, encoding="utf-8")
    editor = _Editor(folder)
    opened, other = (editor.uri(name) for name in ("modeling_otter.py", "modeling_seal.py"))
    editor.open(opened, BAD)
    shutil.rmtree(folder)
    editor.session.watched([(folder / "modeling_otter.py", True), (folder, True)])
    editor.settle()
    assert {uri: editor.codes(uri) for uri in editor.shown} == {opened: ["GC001"], other: []}
    editor.session.close(opened)
    editor.settle()
    assert editor.codes(opened) == []


def test_files_and_settings_on_the_disk_are_followed(tmp_path: Path) -> None:
    editor = _Editor(tmp_path)
    path = tmp_path / "modeling_otter.py"
    for text, codes in ((BAD, ["GC001"]), (GOOD, []), ("def (", [None]), (BAD, ["GC001"])):
        comes = not path.exists()
        path.write_text(text, encoding="utf-8")
        editor.session.watched([(path, comes)])
        editor.settle()
        assert editor.codes(path.as_uri()) == codes
    editor.refused = "pyproject.toml:1: nonsense"
    editor.session.watched([(tmp_path / "pyproject.toml", False)])
    editor.settle()
    assert editor.session.notices == ["pyproject.toml:1: nonsense"]
    assert editor.codes(path.as_uri()) == ["GC001"]
    path.unlink()
    editor.session.watched([(path, True)])
    editor.settle()
    assert editor.codes(path.as_uri()) == []


@pytest.mark.parametrize("name", ["requirements.txt", "requirements/dev.txt", "setup.py"])
def test_another_release_that_the_project_requires_is_followed(tmp_path: Path, name: str) -> None:
    metadata = tmp_path / name
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text("'transformers==4.40'" if name == "setup.py" else "transformers==4.40\n")
    editor = _Editor(tmp_path)
    uri = editor.uri("modeling_otter.py")
    editor.open(uri, BAD)
    assert not any(each.is_preferred for each in editor.actions(uri))
    metadata.write_text(metadata.read_text().replace("4.40", "5.0"))
    editor.session.watched([(metadata, False)])
    editor.settle()
    assert any(each.is_preferred for each in editor.actions(uri))


def test_unusable_settings_are_told_once_until_they_are_mended(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    editor = _Editor(folder)
    told: list[str] = []
    for refused in ("1: nonsense", "1: nonsense", "2: nonsense", "", "2: nonsense"):
        editor.refused = refused
        editor.session.watched([(folder / "pyproject.toml", False)])
        editor.settle()
        editor.open((tmp_path / f"outside{len(told)}.py").as_uri(), GOOD)
        told += editor.session.notices
        editor.session.notices.clear()
    assert told == ["1: nonsense", "2: nonsense", "2: nonsense"]


def test_folders_come_and_go(tmp_path: Path) -> None:
    other = tmp_path / "other"
    for folder in (tmp_path / "one", other):
        folder.mkdir()
        (folder / "modeling_otter.py").write_text(BAD, encoding="utf-8")
    editor = _Editor(tmp_path / "one")
    uri = (other / "modeling_otter.py").as_uri()
    assert editor.codes(uri) == []
    editor.session.change_folders([other], [])
    editor.settle()
    assert editor.codes(uri) == ["GC001"]
    editor.session.change_folders([], [other])
    editor.settle()
    assert editor.codes(uri) == []


def test_a_rule_that_crashes_is_a_problem_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_arguments: object) -> None:
        raise RuntimeError("no")

    editor = _Editor(tmp_path)
    rule = next(each for each in all_rules() if each.code == "GC001")
    monkeypatch.setattr(type(rule), "check", crash)
    uri = editor.uri("modeling_otter.py")
    editor.open(uri, HEIR.replace("from ..seal.modeling_seal import SealLayer\n", LAYER) + MODEL)
    (problem,) = [each for each in editor.shown[uri] if each.code is None]
    assert problem.message.startswith("GC001 crashed on this file")
