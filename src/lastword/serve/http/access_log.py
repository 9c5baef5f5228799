"""One line of JSON for each request, written aside: a pipe that nobody reads must not hold up an answer."""

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
    """Lines in the order of their requests, until it is closed; those that find no room are counted in the next one."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lines: queue.Queue[AccessLine | None] = queue.Queue(_WAITING)
        self._lost = 0
        # A daemon: whoever reads the lines may never do so.
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
            # Nobody reads them any more. Later ones find no room, and that is all.
            pass
