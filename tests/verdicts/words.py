"""Sentences by their kind: what is said, without the names that it is said of.

A kind has no name of its own in gclint. So it is known by its wording and, where that has changed, by its
places: a wording that is new stands for one that is gone if it is said at the same places.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

_NAME = re.compile(
    r"`[^`]*`"  # code
    r"|<cache>[^\s,;:)\]]*|(?:\.{0,2}/)?(?:[\w.+<>-]+/)*[\w<>-]+\.(?:py|toml)\b(?::\d+)*|/[\w./+-]+"  # a path
    r"|[<>=~]*\b\d+(?:\.\d+)*\b|\b\w+(?:\.\w+)+\b"  # a release or a number, a dotted name
)
_LIST = re.compile(r"…(?:, ?…)*,? (?:and|or) …|…(?:, ?…)+")
_CODE = re.compile(r"GC\d{3}")

Occurrences = Mapping[str, Mapping[str, str]]
"""By sample and word, a checksum of the places at which it is said."""


def names_in(*texts: str) -> list[str]:
    """Return the names in some texts."""
    return [name for text in texts for name in _NAME.findall(text)]


def digest(*parts: str, length: int = 8) -> str:
    """Return a short checksum of texts."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:length]


class Words:
    """The wordings that were met, by what stands for them in the data."""

    def __init__(self) -> None:
        self.templates: dict[str, str] = {}

    def word(self, template: str) -> str:
        """Return what stands for a wording: a code itself, and else a checksum."""
        word = template if is_code(template) else digest(template, length=6)
        self.templates[word] = template
        return word

    def kinds(self, text: str) -> list[str]:
        """Return what stands for the kind of a sentence, and for the rules that it names."""
        template = _LIST.sub("…", _NAME.sub("…", _CODE.sub("…", text)))
        return [*map(self.word, _CODE.findall(text)), self.word(" ".join(template.split()))]


def is_code(word: str) -> bool:
    """Return whether a word is the code of a rule."""
    return _CODE.fullmatch(word) is not None


def occurrences(said: Iterable[tuple[str, Iterable[str]]]) -> dict[str, str]:
    """Return the checksums of the places of each word; their order makes no difference.

    Args:
        said: places, each with the words that are said there.
    """
    sums: defaultdict[str, int] = defaultdict(int)
    for place, words in said:
        for word in words:
            sums[word] += zlib.crc32(place.encode(errors="surrogatepass"))
    return {word: f"{total & 0xFFFF:04x}" for word, total in sorted(sums.items())}


def reworded(before: Occurrences, after: Occurrences) -> dict[str, str]:
    """Return which new words stand for which old ones, since they are said at the same places."""
    old, new = _by_word(before), _by_word(after)
    gone = {word: places for word, places in old.items() if word not in new}
    found = {}
    for word in sorted(new.keys() - old.keys()):
        alike = (each for each in gone if is_code(each) == is_code(word))
        shared = {each: len(new[word] & gone[each]) for each in alike}
        best = max(shared, key=lambda each: shared[each], default=None)
        # What else has changed in a sample must not hide that it is the same in most of the others.
        if best is not None and 2 * shared[best] >= max(len(new[word]), len(gone[best])):
            found[word] = best
            del gone[best]
    return found


def _by_word(said: Occurrences) -> dict[str, set[tuple[str, str]]]:
    places: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for sample, words in said.items():
        for word, where in words.items():
            places[word].add((sample, where))
    return dict(places)
