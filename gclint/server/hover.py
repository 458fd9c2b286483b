"""Shows the documentation of a rule over its findings and over ignore comments that name it."""

from __future__ import annotations

from lsprotocol import types

from gclint.code.suppressions import Suppressions
from gclint.report.rules import documentation
from gclint.rule import all_rules, codes_by_word
from gclint.server.area import Area
from gclint.server.documents import Document


def hover(document: Document, area: Area, at: types.Position) -> types.Hover | None:
    """Return the documentation to show at a position; None if there is none."""
    path = area.identify(document.path)
    if path in area.live.broken:
        return None
    offset = document.lines.offset(at) - document.shift
    codes: dict[str, tuple[int, int]] = {}
    for finding in area.findings_in(path):
        if finding.start <= offset <= finding.end:
            codes.setdefault(finding.code, (finding.start, finding.end))
    codes = codes or _in_comment(area, document, offset)
    rules = [rule for rule in all_rules() if rule.code in codes]
    if not rules:
        return None
    start, end = codes[rules[0].code]
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(map(documentation, rules))),
        document.lines.range(start + document.shift, end + document.shift),
    )


def _in_comment(area: Area, document: Document, offset: int) -> dict[str, tuple[int, int]]:
    """Return the codes that the ignore comment at an offset names, with their spans.

    If the offset is on one of the names, only that one is returned.
    """
    file = area.live.project.file(area.identify(document.path))
    for ignore in Suppressions(file, codes_by_word(all_rules())).ignores:
        if ignore.start <= offset <= ignore.end:
            found = {}
            for word in ignore.words or ():
                start = file.text.find(word.text, *ignore.words_span)
                if word.code is not None and start != -1:
                    found[word.code] = (start, start + len(word.text))
            here = {code: span for code, span in found.items() if span[0] <= offset <= span[1]}
            return here or dict.fromkeys(found, (ignore.start, ignore.end))
    return {}
