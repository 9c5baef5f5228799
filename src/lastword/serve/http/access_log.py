"""One line of JSON for each request, written by a thread: a pipe that nobody reads must not hold up an answer."""

from __future__ import annotations

import queue
import threading
from typing import BinaryIO

import msgspec
from msgspec import UNSET, UnsetType

_WAITING = 10_000

_text = msgspec.json.Encoder()


class AccessLine(msgspec.Struct):
    """A request and its answer, as a line of JSON."""

    at_ms: int
    client: str
    method: str
    path: str
    status: int
    bytes: int
    ms: float
    # How many lines before this one found no room.
    lost_lines: int | UnsetType = UNSET


class AccessLog:
    """Writes lines in the order of their requests. A line that finds no room is counted in the next one."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lines: queue.Queue[AccessLine | None] = queue.Queue(_WAITING)
        self._lost = 0
        # A daemon, because the reader of the pipe may never read.
        self._thread = threading.Thread(target=self._run, name="access log", daemon=True)
        self._thread.start()

    def note(self, access: AccessLine) -> None:
        try:
            self._lines.put_nowait(access)
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Returns when all lines are written, or a second later."""
        try:
            self._lines.put(None, timeout=1)
        except queue.Full:
            return
        self._thread.join(1)

    def _run(self) -> None:
        try:
            while (access := self._lines.get()) is not None:
                lost, self._lost = self._lost, 0
                access.lost_lines = lost or UNSET
                self._out.write(_text.encode(access) + b"\n")
                self._out.flush()
        except OSError:
            # The reader is gone: all later lines are dropped.
            pass
