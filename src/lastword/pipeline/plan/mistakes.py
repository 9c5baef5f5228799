"""Mistakes in a pipeline file: the line, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from lastword.kafka.topics.topic_names import is_legal


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """`text` says what is wrong, where, and what to do; lines count from 1."""

    line: int
    text: str
    # The file may be fine: the cluster did not answer.
    is_unreachable: bool = False

    def as_line(self, path: str) -> str:
        return f"{path}:{self.line}: {self.text}"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A mistake in a text of the file, `after` this many lines of it; a `column` counts from 1."""

    text: str
    after: int = 0
    column: int | None = None


def label(kind: str, name: object, number: int) -> str:
    """`rule team-3`; by its number where the name is none."""
    return f"{kind} {name}" if isinstance(name, str) and is_legal(name) else f"{kind} no. {number + 1}"
