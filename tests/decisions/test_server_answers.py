"""What an editor is shown: which diagnostics, at which places, and which repairs it is offered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from gclint.rule import Rule, selected_rules
from gclint.server.actions import actions
from gclint.server.documents import Lines, changed, path_of, untitled_name
from gclint.server.server import Server
from gclint.server.session import Session
from gclint.settings import Settings
from tests.decisions import reports

_ALL = types.Range(types.Position(0, 0), types.Position(9999, 0))
_CLASS_ROW = reports.SAFE[: reports.SAFE.index("class OtterLayer")].count("\n")
_NAME = "modeling_otter.py"
_CALL = "            hidden_states = layer"
_WIDE = reports.CACHE.replace(_CALL, '            x = "\U0001f600"; hidden_states = layer')


def _load(root: Path) -> tuple[Settings, Sequence[Rule]]:
    settings = Settings(root=root)
    return settings, selected_rules(settings)


class Editor:
    """A session with one folder, whose work is always done."""

    def __init__(self, folder: Path, encoding: str = "utf-16") -> None:
        self.folder = folder
        self.session = Session(_load, encoding, [folder])
        self.published: list[types.PublishDiagnosticsParams] = []
        self.settle()

    def settle(self) -> list[types.PublishDiagnosticsParams]:
        """Do all work, and return what is published because of it."""
        while self.session.is_busy:
            self.session.work()
        news = list(self.session.news())
        self.published += news
        return news

    def uri(self, name: str = _NAME) -> str:
        return (self.folder / name).as_uri()

    def open(self, text: str, name: str = _NAME, version: int = 1) -> list[types.Diagnostic]:
        self.session.open(self.uri(name), "python", version, text)
        self.settle()
        return self.shown(name)

    def type(self, text: str, version: int, name: str = _NAME) -> None:
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.session.change(self.uri(name), version, [whole])

    def shown(self, name: str = _NAME) -> list[types.Diagnostic]:
        own = [each for each in self.published if each.uri == self.uri(name)]
        return list(own[-1].diagnostics) if own else []

    def actions(self, *kinds: str, at: types.Range = _ALL, name: str = _NAME) -> list[types.CodeAction]:
        document = self.session.documents.get(self.uri(name))
        assert document is not None
        area = self.session.home(document.path)
        assert area is not None
        return actions(self.session.documents, document, area, at, list(kinds) or None)


def _kinds(found: Sequence[types.CodeAction]) -> list[str]:
    return [
        str(each.kind.value if isinstance(each.kind, types.CodeActionKind) else each.kind) for each in found
    ]


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    return Editor(tmp_path)


@pytest.mark.parametrize(
    ("text", "kinds", "preferred"),
    [
        (reports.SAFE, ["quickfix", "quickfix", "source.fixAll.gclint"], 1),
        # What needs a review is no quick fix, and is not made with all others.
        (reports.UNSAFE, ["refactor.rewrite", "quickfix"], 0),
        (reports.two(reports.SAFE, reports.UNSAFE),
         ["quickfix", "quickfix", "refactor.rewrite", "quickfix", "source.fixAll.gclint"], 1),
        (reports.GOOD, [], 0),
        (reports.BROKEN, [], 0),
        # There is no fix, and no comment against what is said of a comment.
        (f"{reports.GOOD}# gclint: skip\n", [], 0),
    ],
)  # fmt: skip
def test_safe_fixes_are_quick_and_unsafe_ones_are_rewrites(
    editor: Editor, text: str, kinds: list[str], preferred: int
) -> None:
    editor.open(text)
    found = editor.actions()
    assert _kinds(found) == kinds
    assert sum(bool(each.is_preferred) for each in found) == preferred


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (("quickfix",), ["quickfix"] * 3),
        (("refactor",), ["refactor.rewrite"]),
        (("refactor.rewrite",), ["refactor.rewrite"]),
        (("refactor.rewrite.more",), []),
        (("refactor.inline",), []),
        (("source",), ["source.fixAll.gclint"]),
        (("source.fixAll",), ["source.fixAll.gclint"]),
        (("source.fixAll.gclint",), ["source.fixAll.gclint"]),
        (("source.fixAll.other",), []),
        (("sour",), []),
        (("refactor", "source"), ["refactor.rewrite", "source.fixAll.gclint"]),
    ],
)
def test_only_the_kinds_that_are_asked_for_are_offered(
    editor: Editor, wanted: tuple[str, ...], kinds: list[str]
) -> None:
    editor.open(reports.two(reports.SAFE, reports.UNSAFE))
    assert _kinds(editor.actions(*wanted)) == kinds


@pytest.mark.parametrize(
    ("start", "end", "is_offered"),
    [
        ((_CLASS_ROW, 0), (_CLASS_ROW, 0), True),
        ((_CLASS_ROW, 8), (_CLASS_ROW, 8), True),
        # Both ends of the finding count, as the cursor stands between characters.
        ((_CLASS_ROW, 16), (_CLASS_ROW, 16), True),
        ((_CLASS_ROW, 17), (_CLASS_ROW, 17), False),
        ((0, 0), (_CLASS_ROW, 0), True),
        ((0, 0), (_CLASS_ROW - 1, 0), False),
        ((_CLASS_ROW + 1, 0), (99, 0), False),
    ],
)
def test_repairs_are_offered_where_the_finding_is(
    editor: Editor, start: tuple[int, int], end: tuple[int, int], is_offered: bool
) -> None:
    editor.open(reports.SAFE)
    at = types.Range(types.Position(*start), types.Position(*end))
    assert bool(editor.actions("quickfix", at=at)) is is_offered
    # All fixes are those of the document, wherever the cursor is.
    assert _kinds(editor.actions("source", at=at)) == ["source.fixAll.gclint"]


def test_the_title_of_an_unsafe_fix_says_why(editor: Editor) -> None:
    editor.open(reports.UNSAFE)
    (action,) = editor.actions("refactor")
    assert action.title.endswith(
        "(unsafe: `OtterLayer` keeps running statistics, which recomputation updates again, "
        "so check that it may)"
    )
    editor.open(reports.SAFE)
    assert all("unsafe" not in each.title for each in editor.actions())


@pytest.mark.parametrize("takes_versions", [True, False])
def test_edits_are_for_the_version_that_was_checked_if_the_editor_takes_one(
    editor: Editor, takes_versions: bool
) -> None:
    editor.session.documents.takes_versions = takes_versions
    editor.open(reports.SAFE, version=7)
    (action,) = [each for each in editor.actions() if each.is_preferred]
    assert action.edit is not None
    assert bool(action.edit.changes) is not takes_versions
    if takes_versions:
        (change,) = action.edit.document_changes or ()
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.version == 7


@pytest.mark.parametrize(
    ("encoding", "columns"), [("utf-8", (61, 76)), ("utf-16", (59, 74)), ("utf-32", (58, 73))]
)
def test_ranges_count_the_units_that_were_agreed_on(
    tmp_path: Path, encoding: str, columns: tuple[int, int]
) -> None:
    (diagnostic,) = Editor(tmp_path, encoding).open(_WIDE)
    assert (diagnostic.range.start.character, diagnostic.range.end.character) == columns
    assert diagnostic.range.start.line == diagnostic.range.end.line == 23


@pytest.mark.parametrize(
    ("line", "units", "offset"),
    [
        ("ab", 0, 0),
        ("ab", 1, 1),
        ("ab", 2, 2),
        # Beyond the end is the end, and between two halves the character behind.
        ("ab", 3, 2),
        ("\U0001f600b", 2, 1),
        ("\U0001f600b", 1, 1),
        ("\u00e9b", 1, 1),
    ],
)
def test_a_column_is_a_number_of_units(line: str, units: int, offset: int) -> None:
    assert Lines(f"{line}\r\nnext", "utf-16").offset(types.Position(0, units)) == offset


@pytest.mark.parametrize(("line", "offset"), [(0, 0), (1, 2), (2, 4), (3, 5), (4, 5)])
def test_a_row_beyond_the_text_is_its_end(line: int, offset: int) -> None:
    assert Lines("a\rb\nc", "utf-16").offset(types.Position(line, 0)) == offset


def test_a_change_that_ends_before_it_begins_only_inserts() -> None:
    backwards = types.Range(types.Position(0, 3), types.Position(0, 1))
    change = types.TextDocumentContentChangePartial(backwards, "x")
    assert changed("abcd", [change], "utf-16") == "abcxd"


@pytest.mark.parametrize(
    ("text", "severity", "tags", "code"),
    [
        (reports.SAFE, types.DiagnosticSeverity.Warning, None, "GC001"),
        (reports.BROKEN, types.DiagnosticSeverity.Error, None, None),
        (
            f"{reports.GOOD}# gclint: ignore\n",
            types.DiagnosticSeverity.Information,
            [types.DiagnosticTag.Unnecessary],
            "GC000",
        ),
    ],
)
def test_a_diagnostic_has_the_level_of_its_finding_and_a_problem_is_an_error(
    editor: Editor, text: str, severity: object, tags: object, code: str | None
) -> None:
    (diagnostic,) = editor.open(text)
    assert (diagnostic.severity, diagnostic.tags, diagnostic.code) == (severity, tags, code)
    assert bool(diagnostic.related_information) is (code == "GC001")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (reports.SAFE, None),
        (reports.UNSAFE, "\nunsafe fix: "),
        (f"{reports.GOOD}# gclint: skip\n", "\nno fix: "),
    ],
)
def test_a_message_says_why_there_is_no_safe_fix(editor: Editor, text: str, words: str | None) -> None:
    (diagnostic,) = editor.open(text)
    assert ("\n" in diagnostic.message) is (words is not None)
    assert (words or "") in diagnostic.message


def test_only_what_has_changed_is_published(editor: Editor) -> None:
    assert len(editor.open(reports.SAFE)) == 1
    assert editor.settle() == []
    editor.type(reports.GOOD, 2)
    (news,) = editor.settle()
    assert (news.version, news.diagnostics) == (2, [])


@pytest.mark.parametrize(("on_disk", "codes"), [(reports.CACHE, ["GC002"]), (reports.GOOD, []), (None, [])])
def test_after_closing_the_file_on_disk_counts(tmp_path: Path, on_disk: str | None, codes: list[str]) -> None:
    if on_disk is not None:
        (tmp_path / _NAME).write_text(on_disk, encoding="utf-8")
    editor = Editor(tmp_path)
    assert [each.code for each in editor.open(reports.SAFE)] == ["GC001"]
    editor.session.close(editor.uri())
    editor.settle()
    assert [each.code for each in editor.shown()] == codes


def test_what_is_closed_cannot_be_changed_nor_closed_again(editor: Editor) -> None:
    editor.open(reports.SAFE)
    editor.session.close(editor.uri())
    editor.settle()
    editor.type(reports.SAFE, 2)
    editor.session.close(editor.uri())
    assert editor.settle() == []
    assert editor.session.is_ready(editor.uri())


@pytest.mark.parametrize(
    ("name", "language", "is_checked"),
    [
        (_NAME, "python", True),
        (_NAME, "", True),
        (_NAME, "markdown", False),
        ("otter.py", "python", True),
        ("test_modeling_otter.py", "python", False),
        ("site-packages/modeling_otter.py", "python", False),
        ("modeling_otter.txt", "python", False),
    ],
)
def test_documents_of_python_are_checked_unless_others_own_them(
    editor: Editor, name: str, language: str, is_checked: bool
) -> None:
    editor.session.open(editor.uri(name), language, 1, reports.SAFE)
    editor.settle()
    assert [each.code for each in editor.shown(name)] == (["GC001"] if is_checked else [])


def test_a_file_that_is_open_is_checked_as_the_editor_has_it(tmp_path: Path) -> None:
    path = tmp_path / _NAME
    path.write_text(reports.GOOD, encoding="utf-8")
    editor = Editor(tmp_path)
    editor.open(reports.SAFE)
    path.write_text(reports.CACHE, encoding="utf-8")
    editor.session.watched([(path, False)])
    editor.settle()
    assert [each.code for each in editor.shown()] == ["GC001"]


@pytest.mark.parametrize("change", ["none", "typed", "closed"])
def test_a_request_fails_if_its_document_has_changed_meanwhile(tmp_path: Path, change: str) -> None:
    server = Server(_load)
    server._session = Session(_load, "utf-16", [tmp_path])
    uri = (tmp_path / _NAME).as_uri()
    server.session.open(uri, "python", 1, reports.SAFE)

    async def waiting() -> None:
        request = asyncio.ensure_future(server.ready(uri))
        await asyncio.sleep(0)
        if change == "typed":
            server.session.change(uri, 2, [types.TextDocumentContentChangeWholeDocument(reports.GOOD)])
        elif change == "closed":
            server.session.close(uri)
        await request

    if change == "none":
        asyncio.run(waiting())
    else:
        with pytest.raises(JsonRpcException) as failed:
            asyncio.run(waiting())
        assert failed.value.code == types.LSPErrorCodes.ContentModified.value


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.py", "/a/b.py"),
        ("FILE:///a/b.py", "/a/b.py"),
        ("file://localhost/a/b.py", "/a/b.py"),
        ("file:///a/../b%20c.py", "/b c.py"),
        ("file://host/a/b.py", None),
        ("untitled:a", None),
        ("file:", None),
    ],
)
def test_an_address_is_a_path_only_on_this_machine(uri: str, path: str | None) -> None:
    assert path_of(uri) == (None if path is None else Path(path))


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("untitled:Untitled-1", "Untitled-1"),
        ("untitled:a/b c", "a-b-c"),
        ("untitled:", "untitled"),
        ("file:///a", None),
    ],
)
def test_a_document_that_was_never_saved_has_a_name(uri: str, name: str | None) -> None:
    assert untitled_name(uri) == name
