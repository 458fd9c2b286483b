"""The messages between an editor and a session; all decisions are made by the session."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from gclint import __version__
from gclint.code.requirements import METADATA
from gclint.server import actions
from gclint.server.area import Area
from gclint.server.documents import Document, path_of
from gclint.server.messages import hover
from gclint.server.session import Load, Session, decides_for_others
from gclint.settings import FILES

_NAME = "gclint"
_CONTENT_MODIFIED = types.LSPErrorCodes.ContentModified.value
_WATCHED = (
    "**/*.py",
    *(f"**/{each}" for each in dict.fromkeys((*METADATA, *FILES)) if not each.endswith(".py")),
)
_TURNS_BETWEEN_COLLECTIONS = 50


class Server(LanguageServer):
    """Passes messages of an editor to a session, and its diagnostics to the editor."""

    def __init__(self, load: Load) -> None:
        """Wait for an editor; ``load`` returns the settings and rules for a path."""
        super().__init__(_NAME, __version__)
        self._load = load
        self._session: Session | None = None
        self._work: asyncio.Task[None] | None = None
        self._turns = 0
        self.was_shut_down = False

    @property
    def session(self) -> Session:
        """The session, which begins with the request ``initialize``."""
        if self._session is None:
            raise JsonRpcException(
                "initialize has not been called", types.ErrorCodes.ServerNotInitialized.value
            )
        return self._session

    def begin(self, params: types.InitializeParams) -> None:
        """Begin the session, with the capabilities of the editor and its folders."""
        uris = [folder.uri for folder in params.workspace_folders or ()]
        if not uris and params.root_uri:
            uris = [params.root_uri]
        folders = [Path(params.root_path)] if not uris and params.root_path else []
        folders += [path for path in map(path_of, uris) if path is not None]
        encoding = self.workspace.position_encoding or types.PositionEncodingKind.Utf16
        self._session = Session(self._load, encoding, folders)
        edits = params.capabilities.workspace and params.capabilities.workspace.workspace_edit
        self._session.documents.takes_versions = bool(edits and edits.document_changes)

    def watch_files(self) -> None:
        """Ask the editor to report changes of files on disk, if it supports that."""
        workspace = self.client_capabilities.workspace
        watched = workspace and workspace.did_change_watched_files
        if not (watched and watched.dynamic_registration):
            return
        watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        registration = types.Registration("watched", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        self.client_register_capability(types.RegistrationParams([registration]))

    def schedule_work(self) -> None:
        """Start to check what is not checked yet, in small steps between which messages are answered."""
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._run_work())

    async def _run_work(self) -> None:
        session = self.session
        with contextlib.suppress(OSError):  # The editor is gone; the end of the input ends the server.
            while True:
                # Let messages that have arrived meanwhile be handled first.
                await asyncio.sleep(0)
                try:
                    is_due = session.work()
                    news = list(session.news()) if is_due else []
                except Exception as error:
                    self._log(f"gclint crashed: {type(error).__name__}: {error}")
                    logging.getLogger(__name__).debug("crash", exc_info=True)
                    return
                for each in news:
                    self.text_document_publish_diagnostics(each)
                self.show_notices()
                if not session.is_busy:
                    break
        self._turns += 1
        if self._turns == 1:
            gc.freeze()
        elif self._turns % _TURNS_BETWEEN_COLLECTIONS == 0:
            gc.collect()

    async def ready(self, uri: str) -> tuple[Document | None, Area | None]:
        """Wait until a document has been checked, and return it with its area; fail if it has changed."""
        document = self.session.documents.get(uri)
        version = None if document is None else document.version
        while not self.session.is_ready(uri):
            self.schedule_work()
            await asyncio.sleep(0)
        document = self.session.documents.get(uri)
        if version is not None and (document is None or document.version != version):
            raise JsonRpcException("the document has changed meanwhile", _CONTENT_MODIFIED)
        return document, None if document is None else self.session.home(document.path)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error; a message window would interrupt typing."""
        self._log(str(error))

    def _log(self, message: str) -> None:
        with contextlib.suppress(OSError):
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    def show_notices(self) -> None:
        """Show the messages of the session to the user."""
        while self.session.notices:
            message = self.session.notices.pop()
            self._log(message)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, message))


def _add_lifecycle(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.begin(params)

    @server.feature(types.INITIALIZED)
    def initialized(_params: types.InitializedParams) -> None:
        server.watch_files()
        server.schedule_work()

    @server.feature(types.SHUTDOWN)
    def shutdown(_params: None) -> None:
        server.was_shut_down = True


def _add_documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        server.session.open(item.uri, str(item.language_id), item.version, item.text)
        server.schedule_work()

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        server.session.change(params.text_document.uri, params.text_document.version, params.content_changes)
        server.schedule_work()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None and decides_for_others(path):
            server.session.watched([(path, False)])
        server.schedule_work()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.session.close(params.text_document.uri)
        server.schedule_work()


def _add_workspace(server: Server) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        changes = ((path_of(each.uri), each.type) for each in params.changes)
        server.session.watched(
            (path, kind is not types.FileChangeType.Changed) for path, kind in changes if path is not None
        )
        server.schedule_work()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_workspace_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        added, removed = (
            [path for path in (path_of(each.uri) for each in folders) if path is not None]
            for folders in (params.event.added, params.event.removed)
        )
        server.session.change_folders(added, removed)
        server.schedule_work()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(_params: types.DidChangeConfigurationParams) -> None:
        server.session.reload()
        server.schedule_work()


def _add_requests(server: Server) -> None:
    kinds = types.CodeActionOptions(list(actions.KINDS))

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document, area = await server.ready(params.text_document.uri)
        if document is None or area is None:
            return []
        if not server.session.may_change(area):
            server.show_notices()
            return []
        only = params.context.only
        wanted = None if only is None else [getattr(each, "value", each) for each in only]
        return actions.actions(server.session.documents, document, area, params.range, wanted)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def show_documentation(params: types.HoverParams) -> types.Hover | None:
        document, area = await server.ready(params.text_document.uri)
        return None if document is None or area is None else hover(document, area, params.position)


def serve(load: Load) -> int:
    """Serve an editor on standard input and output until it disconnects; return the exit status."""
    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL)
    server = Server(load)
    for add in (_add_lifecycle, _add_documents, _add_workspace, _add_requests):
        add(server)
    # Anything printed by mistake would corrupt the messages, and pygls closes the stream that it writes to.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            server.start_io(stdout=os.fdopen(os.dup(1), "wb"))
        except (OSError, ValueError, MemoryError, OverflowError):
            return 1  # The input is truncated or malformed.
    return 0 if server.was_shut_down else 1
