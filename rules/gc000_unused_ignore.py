"""GC000: an ignore comment that suppresses nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from gclint.code.suppressions import Ignore, Suppressions, Word, has_ignores
from gclint.finding import Applicability, Finding, Fix, Refusal, is_own_code
from gclint.level import Level
from gclint.network.explaining.places import CodeToExplain
from gclint.network.model import Network
from gclint.rule import CommentRule, has_decided
from gclint.wording import closest

_UNCLEAR = "only its author knows what it was meant to suppress"


class UnusedIgnore(CommentRule):
    """An ignore comment suppresses nothing.

    ## What it does

    Finds `# gclint: ignore`, `# gclint: ignore-file` and `# noqa: GC001` comments that suppress nothing,
    in whole or in part: the rules that they name report nothing there, there is no such rule, or the
    comment is malformed. A code or a name is judged only if its rule ran, and a comment that names no
    rule only if all rules ran. A code such as `ACM001`, of somebody's own rules that this run knows
    nothing of, is left alone. A comment also counts as needed for what its rules reported in gclint 0.2.0
    and another one reports now, or another fix repairs. This rule runs whatever `--select` says;
    `--ignore GC000` disables it, and `GC000` among the codes of a comment keeps that comment from being
    reported.

    ## Why is this bad?

    The comment claims a defect that is not there. It would also hide the defect if it came back.

    ## Example

    ```python
    class OtterLayer(GradientCheckpointingLayer):  # gclint: ignore[GC001]
    ```

    Use instead:

    ```python
    class OtterLayer(GradientCheckpointingLayer):
    ```

    ## Fix safety

    Safe: only the comment changes. The fix removes the comment, or its unused codes and names.
    There is no fix for a malformed comment or a misspelled name, since only the author knows what it
    was meant to suppress.
    """

    code = "GC000"
    name = "unused-ignore"
    level = Level.NOTE
    precision = "very-high"
    fixes = (Applicability.SAFE,)

    def check_comments(
        self, comments: Suppressions, findings: Collection[Finding], ran: Collection[str]
    ) -> Iterable[Finding]:
        """Yield a finding for each comment that suppresses nothing, in whole or in part."""
        used: defaultdict[Ignore, set[str]] = defaultdict(set)
        for finding in findings:
            for ignore in comments.suppressing(finding):
                used[ignore].update(finding.codes)
        found = [
            each
            for ignore in comments.ignores
            for each in self._check_one(ignore, comments, used[ignore], ran)
        ]
        keepers = [ignore for ignore in comments.ignores if ignore.names(self.code) and not ignore.mistake]
        yield from (each for each in found if not any(_keeps(ignore, each) for ignore in keepers))
        for keeper in keepers:
            if _all_ran(comments, ran) and not any(_keeps(keeper, each) for each in found):
                own = [word for word in keeper.words or () if word.code == self.code]
                yield self._words_finding(keeper, own, {})

    def silence(self, network: Network, explained: CodeToExplain) -> Iterable[str]:
        """Yield that there are no comments, or that all are used."""
        if has_ignores(network.file):
            yield "each ignore comment here suppresses something, or the rules that it names did not run"
        else:
            yield "this file has no ignore comments"

    def _check_one(
        self, ignore: Ignore, comments: Suppressions, used: Collection[str], ran: Collection[str]
    ) -> Iterable[Finding]:
        if ignore.mistake is not None:
            yield self._finding(ignore, ignore.mistake, Refusal(_UNCLEAR))
        elif ignore.words is None:
            if not used and _all_ran(comments, ran):
                yield self._finding(ignore, "no rule reports anything here", _removal(ignore))
        elif not ignore.words:
            yield self._finding(ignore, "it names no rule", _removal(ignore))
        else:
            names = [word for word, code in comments.codes.items() if word != code.lower()]
            needed = (*used, self.code)
            judged = (word for word in ignore.words if word.code and has_decided(word.code, ran))
            unused = [word for word in judged if word.code not in needed]
            unknown = {
                word: closest(word.text, names)
                for word in ignore.words
                if word.code is None and not _may_be_of_others(word.text, comments.codes.values())
            }
            if unused or unknown:
                yield self._words_finding(ignore, unused, unknown)

    def _words_finding(
        self, ignore: Ignore, unused: Collection[Word], unknown: Mapping[Word, str | None]
    ) -> Finding:
        """Return the finding about unused words, and unknown ones, each with a similar known word or None."""
        complaints = [f"{word.text} reports nothing here" for word in unused]
        complaints += [
            f"there is no rule {word.text}" + (f" (did you mean {guess}?)" if guess else "")
            for word, guess in unknown.items()
        ]
        words = ignore.words or ()
        misspelled = [word for word, guess in unknown.items() if guess]
        needed = [word for word in words if word not in unused and word not in unknown]
        kept = [word for word in words if word in needed or word in misspelled]
        remedy: Fix | Refusal = Refusal(_UNCLEAR)
        if not kept:
            remedy = _removal(ignore)
        elif len(kept) < len(words):
            remedy = Fix("Remove the unused codes from the comment", (ignore.reduced_to(kept),))
        return self._finding(ignore, "; ".join(complaints), remedy, in_part=bool(needed or ignore.others))

    def _finding(
        self, ignore: Ignore, complaint: str, remedy: Fix | Refusal, *, in_part: bool = False
    ) -> Finding:
        message = f"{'part of this' if in_part else 'this'} comment suppresses nothing: {complaint}"
        symbol = ignore.text.lstrip("# \t")
        # It has no story: there is nothing to see but the comment itself.
        return self.finding(message, ignore.path, (ignore.start, ignore.end), symbol, remedy)


def _removal(ignore: Ignore) -> Fix:
    what = "the unused codes from the comment" if ignore.others else "the comment"
    return Fix(f"Remove {what}", (ignore.removed(),))


def _all_ran(comments: Suppressions, ran: Collection[str]) -> bool:
    return set(comments.codes.values()) <= set(ran)


def _may_be_of_others(word: str, codes: Collection[str]) -> bool:
    """Return whether a word may be the code of a rule that is not loaded, since it is somebody else's own."""
    code = word.upper()
    return is_own_code(code) and not any(each.startswith(code.rstrip("0123456789")) for each in codes)


def _keeps(ignore: Ignore, finding: Finding) -> bool:
    """Return whether a comment that names this rule covers a finding, which may be about itself."""
    return min(ignore.start, ignore.covered[0]) <= finding.start < ignore.covered[1]
