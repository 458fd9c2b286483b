"""The data: a text file for each sample, with a checksum for each place and kind of fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.verdicts.facts import FILE, Fact, Place, Taken
from tests.verdicts.words import digest, is_code, occurrences

DATA = Path(__file__).parent / "data"
_WORDS = "words.txt"
_NOTHING = "."
_SHORT = ("finding", "fix", "reason")
"""What is written down as it is; of everything else there is a checksum."""
_OF_FINDINGS = (*_SHORT, "names", "edits", "story", "explain", "baseline", "fingerprint", "JSON")
_OF_FILES = ("diff", "unsafe diff", "ignores", "problems")
_OF_SILENCE = ("silence", "names in silence")


@dataclass
class Frozen:
    """What is written down of a sample."""

    trees: dict[str, str] = field(default_factory=dict)
    """Checksums of their code."""
    facts: dict[tuple[str, Place], dict[str, str]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    """The words that are said, with checksums of their places."""


def kinds_at(place: str) -> tuple[str, ...]:
    """Return the kinds of facts that there are about a place."""
    if place == FILE:
        return _OF_FILES
    return _OF_FINDINGS if ":" in place else _OF_SILENCE


def frozen(found: Iterable[Taken], renamed: Mapping[str, str] | None = None) -> Frozen:
    """Return what is to be written down, with words by their old names."""
    result, said = Frozen(), []
    for each in sorted(found, key=lambda each: each.tree):
        result.trees[each.tree] = each.code
        for place, facts in sorted(each.facts.items(), key=lambda item: _in_order(item[0])):
            values = {kind: _value(kind, fact, renamed or {}) for kind, fact in facts.items()}
            result.facts[each.tree, place] = values
            said += [(f"{each.tree} {place} {kind}", fact.words) for kind, fact in facts.items()]
    result.words = occurrences(said)
    return result


def _value(kind: str, fact: Fact, renamed: Mapping[str, str]) -> str:
    words = sorted(
        (renamed.get(word, word) for word in fact.words), key=lambda word: (not is_code(word), word)
    )
    return (
        "+".join(filter(None, (fact.structure, *words))) if kind in _SHORT else digest(fact.structure, *words)
    )


def _in_order(place: Place) -> tuple[str, int, str]:
    row = place[1].partition(":")[0]
    return place[0], int(row) if row.isdecimal() else 0, place[1]


def text_of(result: Frozen) -> str:
    """Return the text of a sample's file."""
    words = [f"{word}:{where}" for word, where in result.words.items()]
    lines = [f"words {' '.join(words[at : at + 9])}" for at in range(0, len(words), 9)]
    by_tree: dict[str, list[str]] = {tree: [f"= {code} {tree}"] for tree, code in result.trees.items()}
    last: tuple[str, str] | None = None
    for (tree, (file, place)), values in result.facts.items():
        if (tree, file) != last:
            by_tree[tree].append(file)
            last = tree, file
        cells = (values.get(kind, _NOTHING) for kind in kinds_at(place))
        by_tree[tree].append(f" {place} {' '.join(cells)}")
    return "\n".join([*lines, *(line for own in by_tree.values() for line in own), ""])


def parsed(text: str) -> Frozen:
    """Return what a sample's file holds."""
    result = Frozen()
    tree = file = ""
    for line in text.splitlines():
        if line.startswith("words "):
            pairs = (each.partition(":") for each in line.split()[1:])
            result.words |= {word: where for word, _, where in pairs}
        elif line.startswith("= "):
            _, code, tree = line.split(" ", 2)
            result.trees[tree] = code
        elif not line.startswith(" "):
            file = line
        else:
            place, *cells = line.split()
            values = zip(kinds_at(place), cells, strict=True)
            result.facts[tree, (file, place)] = {kind: cell for kind, cell in values if cell != _NOTHING}
    return result


def path_of(sample: str, folder: Path) -> Path:
    """Return the file of a sample."""
    return folder / f"{sample.replace(' ', '-')}.txt"


def read_sample(sample: str, folder: Path) -> Frozen:
    """Return what is written down of a sample.

    Raises:
        FileNotFoundError: nothing is.
    """
    return parsed(path_of(sample, folder).read_text(encoding="utf-8"))


def read_templates(folder: Path) -> dict[str, str]:
    """Return the wordings that are written down, by their words."""
    path = folder / _WORDS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {word: text for word, _, text in (line.partition(" ") for line in lines)}


def write(found: Mapping[str, Frozen], templates: Mapping[str, str], folder: Path) -> None:
    """Write samples down, with the wordings that they and the other samples need."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {**read_templates(folder), **templates}
    for sample, result in found.items():
        path_of(sample, folder).write_text(text_of(result), encoding="utf-8", newline="\n")
    texts = (path for path in folder.glob("*.txt") if path.name != _WORDS)
    needed = {word for path in texts for word in parsed(path.read_text(encoding="utf-8")).words}
    lines = sorted(f"{word} {known[word]}\n" for word in needed)
    (folder / _WORDS).write_text("".join(lines), encoding="utf-8", newline="\n")
