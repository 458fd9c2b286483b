"""Questions to all files of a run, or around them, such as which of them import a module.

A verdict depends not only on the files that were consulted, but also on the fact that no others had to be.
So each question is remembered with its answer, and can be asked again about a single file that has changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gclint.trace import current


class Question(NamedTuple):
    """A question: for which files something holds."""

    topic: str
    """The name of a :class:`Topic`."""
    key: str


Asked: TypeAlias = tuple[Path, Question, tuple[Path, ...]]
"""The file whose verdict depends on a question, the question, and its answer."""


class Questions:
    """The questions that were asked, and on behalf of which files."""

    def __init__(self) -> None:
        self.of: defaultdict[Path, set[Question]] = defaultdict(set)
        self.answers: dict[Question, frozenset[Path]] = {}
        self.still_valid: dict[Question, frozenset[Path]] = {}
        """Answers of an earlier run that are still valid."""
        self._news: list[Asked] = []

    def ask(self, user: Path, topic: Topic, key: str, found: Iterable[Path]) -> None:
        """Remember that the verdict on ``user`` depends on a question, if runs are traced."""
        if current() is None:
            return
        question = Question(topic.name, key)
        if question not in self.of[user]:
            asked = (user, question, tuple(found))
            self.learn((asked,))
            self._news.append(asked)

    def news(self) -> tuple[Asked, ...]:
        """Return the questions since the last call."""
        found, self._news = tuple(self._news), []
        return found

    def learn(self, asked: Iterable[Asked]) -> None:
        """Add the questions of another process or an earlier run."""
        for user, question, found in asked:
            self.of[user].add(question)
            self.answers[question] = frozenset(found)


@dataclass(frozen=True)
class Topic:
    """A kind of question."""

    name: str
    holds: Callable[..., bool]
    """Tells whether a :class:`~gclint.code.file.SourceFile` belongs to the answer for a key."""
    is_about_given: bool = True
    """Whether only the given files are asked; otherwise those around them, or both."""
    is_about_others: bool = False
