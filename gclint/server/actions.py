"""Code actions for findings: repair one, make all safe fixes in a document, or ignore one."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lsprotocol import types

from gclint.edit.edits import by_file
from gclint.edit.ignoring import ignoring
from gclint.finding import Applicability, Edit, Finding
from gclint.rule import all_rules, codes_by_word
from gclint.run.fix import fix
from gclint.server.area import Area
from gclint.server.documents import Document, Documents
from gclint.server.messages import diagnostics_of, places

QUICK_FIX = types.CodeActionKind.QuickFix
REWRITE = types.CodeActionKind.RefactorRewrite
FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.gclint"
KINDS = (QUICK_FIX, REWRITE, FIX_ALL)


def actions(
    documents: Documents, document: Document, area: Area, at: types.Range, wanted: Sequence[str] | None
) -> list[types.CodeAction]:
    """Return the code actions of the ``wanted`` kinds, None for all, for the findings in a range."""
    path = area.identify(document.path)
    if path in area.broken:
        return []
    start = document.lines.offset(at.start) - document.shift
    end = document.lines.offset(at.end) - document.shift
    found: list[types.CodeAction] = []
    for finding in area.findings_in(path):
        if finding.start <= end and start <= finding.end:
            found += _about(documents, area, finding, wanted)
    if _is_wanted(FIX_ALL, wanted):
        found += _fix_all(documents, area, path)
    return found


def _is_wanted(kind: str, wanted: Sequence[str] | None) -> bool:
    return wanted is None or any(not each or kind == each or kind.startswith(f"{each}.") for each in wanted)


def _about(
    documents: Documents, area: Area, finding: Finding, wanted: Sequence[str] | None
) -> Iterator[types.CodeAction]:
    fix, shown = finding.fix, diagnostics_of(documents, area, [finding])
    if fix is not None:
        is_safe = fix.applicability is Applicability.SAFE
        kind = QUICK_FIX if is_safe else REWRITE
        edits = _together(area, finding)
        edit = None if edits is None else workspace_edit(documents, area, edits)
        if edit is not None and _is_wanted(kind, wanted):
            title = f"{finding.code}: {fix.message}"
            if not is_safe:
                is_provable = fix.applicability is Applicability.PROVABLE
                caveat = "safe only if a run proves it" if is_provable else "unsafe"
                title += f" ({caveat}: {fix.reason})"
            yield types.CodeAction(title, kind, shown, is_preferred=is_safe or None, edit=edit)
    if _is_wanted(QUICK_FIX, wanted):
        comment = ignoring(area.project.file(finding.path), finding, codes_by_word(all_rules()))
        edit = None if comment is None else workspace_edit(documents, area, [comment])
        if edit is not None:
            yield types.CodeAction(f"Ignore {finding.code} here", QUICK_FIX, shown, edit=edit)


def _together(area: Area, finding: Finding) -> list[Edit] | None:
    """Return the edits of a fix and of those made with it; None if they overlap or one is missing."""
    group = next((each for each in area.result.groups if finding in each), frozenset((finding,)))
    if any(each.fix is None for each in group):
        return None
    edits = list(dict.fromkeys(edit for each in (finding, *group) for edit in each.edits))
    for own in by_file(edits).values():
        ordered = sorted(own, key=lambda each: (each.start, each.end))
        if any(one.end > other.start for one, other in itertools.pairwise(ordered)):
            return None
    return edits


def _fix_all(documents: Documents, area: Area, path: Path) -> Iterator[types.CodeAction]:
    """Yield the action that makes all safe fixes of a document, until none is left."""
    if not any(each.fix and each.fix.applicability is Applicability.SAFE for each in area.findings_in(path)):
        return
    result = area.result
    known = area.repairs.get(path)
    # Editors ask again whenever the cursor moves.
    if known is None or known[0] is not result:
        known = area.repairs[path] = result, tuple(_all_repairs(area, path))
    edit = workspace_edit(documents, area, known[1]) if known[1] else None
    if edit is not None:
        yield types.CodeAction("gclint: make all safe fixes", FIX_ALL, edit=edit)


def _all_repairs(area: Area, path: Path) -> list[Edit]:
    """Return the edits that make all safe fixes of a file; the project stays unchanged."""
    project = area.project
    broken = area.broken.keys()

    def wanted(findings: Sequence[Finding]) -> Sequence[Finding]:
        return [
            each
            for each in findings
            if each.path == path and broken.isdisjoint(edit.path for edit in each.edits)
        ]

    try:
        made = fix(project, area.rules, unsafe=False, wanted=wanted, known=area.result)
    except Exception:
        area.is_stale = True  # Its texts may have been changed halfway.
        raise
    for changed, (before, _) in made.changed.items():
        project.replace(changed, before)
    return [edit for changed, texts in made.changed.items() for edit in _differences(changed, *texts)]


def _differences(path: Path, before: str, after: str) -> Iterator[Edit]:
    """Yield edits of whole lines that turn one text into another."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    # A line that fills the file is no anchor: its pairs with itself would be too many.
    matcher = difflib.SequenceMatcher(None, old, new)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for kind, first, last, other_first, other_last in matcher.get_opcodes():
        if kind != "equal":
            yield Edit(path, starts[first], starts[last], "".join(new[other_first:other_last]))


def workspace_edit(documents: Documents, area: Area, edits: Iterable[Edit]) -> types.WorkspaceEdit | None:
    """Return one edit of the workspace for all edits; None if a text in the editor has changed meanwhile."""
    own = by_file(edits)
    if not own or not _are_current(documents, area, own):
        return None
    changes: dict[str, list[types.TextEdit]] = {}
    for path, each in own.items():
        lines, shift = places(documents, area, path)
        changes[documents.uri_of(path)] = [
            types.TextEdit(lines.range(edit.start + shift, edit.end + shift), edit.content)
            for edit in sorted(each, key=lambda edit: (edit.start, edit.end))
        ]
    if not documents.takes_versions:
        return types.WorkspaceEdit(changes=changes)
    versions = {each.uri: each.version for each in documents}
    versioned = [
        types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, versions.get(uri)), each)
        for uri, each in changes.items()
    ]
    return types.WorkspaceEdit(document_changes=versioned)


def _are_current(documents: Documents, area: Area, edits: Mapping[Path, Collection[Edit]]) -> bool:
    """Return whether offsets in the texts of the project are valid in the editor's texts."""
    for path in edits:
        document = documents.at(path)
        if path in area.broken:
            return False
        if document is not None and document.body != area.project.file(path).text:
            return False
    return True
