"""The memory that large answers take until their clients have read them, bounded for all answers together."""

from __future__ import annotations

from lastword.serve.http.answers import Refused

# An answer from this size on is sent as the client reads it, and counted. A connection has at most one shorter answer.
LARGE_BYTES = 256 * 1024


class Unsent:
    """Used from one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held_bytes = 0

    def hold(self) -> Hold:
        return Hold(self)

    def take(self, size: int) -> None:
        """Refused when other answers leave too little room; a single answer may have any size."""
        if self._held_bytes and self._held_bytes + size > self._most_bytes:
            raise too_many_unsent()
        self._held_bytes += size

    def give_back(self, size: int) -> None:
        self._held_bytes -= size


class Hold:
    """The memory of one answer, from its making until `release`, once the client has read it."""

    def __init__(self, unsent: Unsent) -> None:
        self._unsent = unsent
        self._size = 0

    def resize(self, size: int) -> None:
        """Changes the size of the answer; Refused, and nothing is held, when there is too little room."""
        self.release()
        if size >= LARGE_BYTES:
            self._unsent.take(size)
            self._size = size

    def release(self) -> None:
        self._unsent.give_back(self._size)
        self._size = 0


def too_many_unsent() -> Refused:
    return Refused(
        "too_many_unsent",
        "too many large answers wait for their clients to read them",
        headers=[("retry-after", "1")],
    )
