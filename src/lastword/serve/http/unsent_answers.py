"""Large answers that their clients have not taken yet: what all of them together may keep in memory."""

from __future__ import annotations

from lastword.serve.http.answers import Refused

# What is longer is given to a client as it takes it, and counted. A connection has at most one answer that is shorter.
LARGE_BYTES = 256 * 1024


class Unsent:
    """Used from one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held_bytes = 0

    def hold(self) -> Hold:
        return Hold(self)

    def take(self, size: int) -> None:
        """Refused when others hold so much already; an answer beside which nothing is held may have any size."""
        if self._held_bytes and self._held_bytes + size > self._most_bytes:
            raise too_many_unsent()
        self._held_bytes += size

    def give_back(self, size: int) -> None:
        self._held_bytes -= size


class Hold:
    """What the answer to one request holds, from the moment it is made until it was taken; to be released."""

    def __init__(self, unsent: Unsent) -> None:
        self._unsent = unsent
        self._size = 0

    def resize(self, size: int) -> None:
        """Holds this much instead of what was held before; Refused, and nothing is held, when it is too much."""
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
