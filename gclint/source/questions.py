"""Questions to all files of a run, or around it: which of them are such that somebody has to know.

What a verdict hangs on is not only the files that were consulted, but also that no further ones had to be.
So each such question is remembered with its answer; and for any file that has changed, a question can be
asked anew without an index of all the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gclint.trace import current


class Question(NamedTuple):
    """Which files are such and such."""

    topic: str
    """The name of a :class:`Topic`."""
    key: str


Asked: TypeAlias = tuple[Path, Question, tuple[Path, ...]]
"""Whose verdict hangs on a question, and the answer."""


class Questions:
    """What was asked on behalf of which files."""

    def __init__(self) -> None:
        self.of: defaultdict[Path, set[Question]] = defaultdict(set)
        self.answers: dict[Question, frozenset[Path]] = {}
        self.standing: dict[Question, frozenset[Path]] = {}
        """Answers of an earlier run that still hold, so that nobody has to look for them."""
        self._news: list[Asked] = []

    def ask(self, user: Path, topic: Topic, key: str, found: Iterable[Path]) -> None:
        """Remember that the verdict on ``user`` hangs on a question, where runs are traced."""
        if current() is None:
            return
        question = Question(topic.name, key)
        if question not in self.of[user]:
            asked = (user, question, tuple(found))
            self.learn((asked,))
            self._news.append(asked)

    def standing_answer(self, topic: Topic, key: str) -> frozenset[Path] | None:
        """Return the answer that an earlier run has found, if it still holds."""
        return self.standing.get(Question(topic.name, key))

    def news(self) -> tuple[Asked, ...]:
        """Return what was asked since this was last looked at."""
        found, self._news = tuple(self._news), []
        return found

    def learn(self, asked: Iterable[Asked]) -> None:
        """Take up what another process, or an earlier run, has asked."""
        for user, question, found in asked:
            self.of[user].add(question)
            self.answers[question] = frozenset(found)


@dataclass(frozen=True)
class Topic:
    """A kind of question."""

    name: str
    holds: Callable[..., bool]
    """Tells whether a :class:`~gclint.source.file.SourceFile` belongs to the answer for a key."""
    is_about_given: bool = True
    """Whether only the given files are asked; else only those around them, or both."""
    is_about_others: bool = False
