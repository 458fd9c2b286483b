"""The server as editors see it: a process that messages go to and come from."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import PIPE

import pytest
import pytest_asyncio
from lsprotocol import types
from pytest_lsp import LanguageClient, make_test_lsp_client

from gclint.write.journal import FileChange, Journal, new_temporary
from tests.server.models import BAD, BASE, BROKEN, GOOD, HEIR, UNSAFE

_ALL = types.Range(types.Position(0, 0), types.Position(999, 0))


class Editor:
    """A client that has a folder open."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self._versions: dict[str, int] = {}

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    async def begin(self, capabilities: types.ClientCapabilities | None = None) -> types.InitializeResult:
        folders = [types.WorkspaceFolder(self.folder.as_uri(), "models")]
        edits = types.WorkspaceEditClientCapabilities(document_changes=True)
        usual = types.ClientCapabilities(
            workspace=types.WorkspaceClientCapabilities(
                workspace_edit=edits,
                did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                    dynamic_registration=True
                ),
            )
        )
        params = types.InitializeParams(capabilities or usual, workspace_folders=folders)
        return await self.client.initialize_session(params)

    def open(self, name: str, text: str) -> None:
        self.open_uri(self.uri(name), text)

    def open_uri(self, uri: str, text: str) -> None:
        self._versions[uri] = 1
        item = types.TextDocumentItem(uri, "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def type(self, name: str, *changes: types.TextDocumentContentChangeEvent | str) -> None:
        uri = self.uri(name)
        self._versions[uri] += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self._versions[uri], uri),
                [
                    types.TextDocumentContentChangeWholeDocument(each) if isinstance(each, str) else each
                    for each in changes
                ],
            )
        )

    async def codes(self, name: str, *expected: object) -> list[types.Diagnostic]:
        """Wait until a file has these findings, by their codes, and return them; None is a syntax error."""
        return await self.codes_at(self.uri(name), *expected)

    async def codes_at(self, uri: str, *expected: object) -> list[types.Diagnostic]:
        while True:
            found = self.client.diagnostics.get(uri)
            if found is not None and [each.code for each in found] == list(expected):
                return list(found)
            await self.client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)

    async def actions(self, name: str, *only: str, at: types.Range = _ALL) -> list[types.CodeAction]:
        context = types.CodeActionContext([], only=list(only) or None)
        params = types.CodeActionParams(types.TextDocumentIdentifier(self.uri(name)), at, context)
        found = await self.client.text_document_code_action_async(params)
        return [each for each in found or [] if isinstance(each, types.CodeAction)]

    async def hover(self, name: str, line: int, character: int) -> str | None:
        params = types.HoverParams(
            types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)
        )
        found = await self.client.text_document_hover_async(params)
        return None if found is None else found.contents.value  # type: ignore[union-attr]


@pytest_asyncio.fixture
async def editor(tmp_path: Path) -> AsyncIterator[Editor]:
    """Start a server, and an editor that shows ``tmp_path``."""
    client = make_test_lsp_client()
    await client.start_io(sys.executable, "-m", "gclint", "server")
    yield Editor(client, tmp_path)
    await client.shutdown_session()
    await client.stop()  # type: ignore[no-untyped-call]


@pytest.mark.asyncio
async def test_beside_an_unfinished_write_there_are_findings_but_no_fixes(
    editor: Editor,
) -> None:
    target = editor.folder.resolve() / "modeling_seal.py"
    journal = Journal([[FileChange(target, b"", b"", new_temporary(target))]], [])
    journal.begin()
    try:
        await editor.begin()
        editor.open("modeling_otter.py", BAD)
        await editor.codes("modeling_otter.py", "GC001")
        for _ in range(2):
            assert await editor.actions("modeling_otter.py") == []
        (message,) = editor.client.messages
        assert "gclint offers no fixes: another run of gclint is writing " in message.message
    finally:
        journal.end()
    assert await editor.actions("modeling_otter.py") != []


@pytest.mark.asyncio
async def test_findings_follow_the_text(editor: Editor) -> None:
    await editor.begin()
    editor.open("modeling_otter.py", BAD)
    (found,) = await editor.codes("modeling_otter.py", "GC001")
    assert found.range == types.Range(types.Position(4, 0), types.Position(4, 16))
    assert found.source == "gclint"
    editor.type("modeling_otter.py", GOOD)
    await editor.codes("modeling_otter.py")
    editor.type("modeling_otter.py", BROKEN)
    (problem,) = await editor.codes("modeling_otter.py", None)
    assert problem.severity is types.DiagnosticSeverity.Error
    editor.type("modeling_otter.py", BAD)
    await editor.codes("modeling_otter.py", "GC001")


@pytest.mark.asyncio
async def test_findings_in_files_that_are_not_open_are_published(editor: Editor) -> None:
    for name, text in {"seal/modeling_seal.py": GOOD, "otter/modeling_otter.py": HEIR}.items():
        path = editor.folder / "models" / name
        path.parent.mkdir(parents=True)
        path.write_text(text.replace("OtterLayer", "SealLayer") if "seal" in name else text, encoding="utf-8")
    await editor.begin()
    editor.open("models/seal/modeling_seal.py", GOOD.replace("OtterLayer", "SealLayer"))
    await editor.codes("models/seal/modeling_seal.py")
    editor.type("models/seal/modeling_seal.py", BASE)
    await editor.codes("models/otter/modeling_otter.py", "GC001")
    editor.type("models/seal/modeling_seal.py", GOOD.replace("OtterLayer", "SealLayer"))
    await editor.codes("models/otter/modeling_otter.py")


@pytest.mark.asyncio
async def test_repairs_are_offered(editor: Editor) -> None:
    await editor.begin()
    editor.open("modeling_otter.py", BAD)
    editor.type("modeling_otter.py", BAD)
    fix, ignore, fix_all = await editor.actions("modeling_otter.py")
    assert (fix.kind, fix.is_preferred) == (types.CodeActionKind.QuickFix, True)
    assert (ignore.title, ignore.is_preferred) == ("Ignore GC001 here", None)
    assert fix_all.kind == "source.fixAll.gclint"
    assert fix_all.edit is not None
    assert fix_all.edit.document_changes is not None
    (change,) = fix_all.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.version == 2


@pytest.mark.asyncio
async def test_an_unsafe_repair_is_a_refactoring_with_a_reason(editor: Editor) -> None:
    await editor.begin()
    editor.open("modeling_otter.py", UNSAFE)
    (action,) = await editor.actions("modeling_otter.py", "refactor.rewrite")
    assert action.is_preferred is None
    assert "(unsafe: " in action.title
    assert [each.title for each in await editor.actions("modeling_otter.py", "quickfix")] == [
        "Ignore GC001 here"
    ]


@pytest.mark.asyncio
async def test_rules_are_explained(editor: Editor) -> None:
    await editor.begin()
    editor.open("modeling_otter.py", BAD)
    text = await editor.hover("modeling_otter.py", 4, 8)
    assert text is not None
    assert text.startswith("# GC001 missing-checkpointing-layer\n")
    assert await editor.hover("modeling_otter.py", 0, 0) is None


def _message(content: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **content}).encode()  # type: ignore[dict-item]
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


_INITIALIZE = _message(
    {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}
) + _message({"method": "initialized", "params": {}})
_OPEN = _message(
    {
        "method": "textDocument/didOpen",
        "params": {
            "textDocument": {
                "uri": "file:///nowhere/modeling_x.py",
                "languageId": "python",
                "version": 1,
                "text": "(",
            }
        },
    }
)
_SHUTDOWN = _message({"id": 2, "method": "shutdown"})
_EXIT = _message({"method": "exit"})


def _served(data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "gclint", "server"], input=data, capture_output=True, check=False, timeout=100
    )


@pytest.mark.drawn(first=2)
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 1),
        (b"Content-Len", 1),
        (_INITIALIZE + b'Content-Length: 500\r\n\r\n{"jsonrpc"', 1),
        (_INITIALIZE + b"Content-Length: 99999999999999999999\r\n\r\nabc", 1),
        (_INITIALIZE + _OPEN + _OPEN[:60], 1),
        (_EXIT, 1),
        (_INITIALIZE + _OPEN + _SHUTDOWN + _EXIT, 0),
    ],
    ids=["nothing", "header", "body", "huge", "change", "exit", "proper"],
)
def test_an_editor_that_hangs_up_ends_the_server_quietly(data: bytes, status: int) -> None:
    run = _served(data)
    assert (run.returncode, run.stderr) == (status, b"")


@pytest.mark.drawn(first=2)
@pytest.mark.parametrize(
    "nonsense",
    [
        b"Content-Length: 5\r\n\r\nabcde",
        b"Content-Length: 2\r\n\r\n[]",
        _message({"id": 4, "method": "foo/bar", "params": {}}),
        _message({"method": "textDocument/didOpen", "params": {"textDocument": {}}}),
        _message(
            {
                "method": "textDocument/didChange",
                "params": {
                    "textDocument": {"uri": "file:///x", "version": 1},
                    "contentChanges": [{"text": ""}],
                },
            }
        ),
        _message({"method": "textDocument/didClose", "params": {"textDocument": {"uri": "?"}}}),
    ],
)
def test_nonsense_does_not_end_the_server(nonsense: bytes) -> None:
    run = _served(_INITIALIZE + nonsense + _OPEN)
    assert b"textDocument/publishDiagnostics" in run.stdout
    assert b"Traceback" not in run.stderr


def test_an_editor_that_reads_no_longer_ends_the_server_quietly() -> None:
    command = [sys.executable, "-m", "gclint", "server"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate(_INITIALIZE + _OPEN, timeout=100)
    assert (process.returncode, errors) == (1, b"")


def test_without_pygls_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['pygls'] = None; from gclint.cli.main import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", program, "server"], capture_output=True, check=False, input=b"", timeout=100
    )
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.startswith(b"Error: the server needs pygls")
    assert b'pip install "gclint[lsp]"' in run.stderr
