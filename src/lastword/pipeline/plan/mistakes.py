"""What is wrong with a pipeline file: a line of it, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from lastword.kafka.topics.topic_names import is_legal


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """`text` says what is wrong, with what, and what next; lines count from 1."""

    line: int
    text: str
    # The file may be fine: whoever could tell did not answer.
    is_unreachable: bool = False

    def told(self, path: str) -> str:
        return f"{path}:{self.line}: {self.text}"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is wrong with a text of the file, `after` so many lines of it; a `column` counts from 1."""

    text: str
    after: int = 0
    column: int | None = None


def label(kind: str, name: object, number: int) -> str:
    """`rule team-3`; by its number where the name is none."""
    return f"{kind} {name}" if isinstance(name, str) and is_legal(name) else f"{kind} no. {number + 1}"
