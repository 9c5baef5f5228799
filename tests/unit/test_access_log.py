"""The access log while nobody reads it: requests go on, and the next line counts the missing ones."""

from __future__ import annotations

import io
import json
import threading

from lastword.serve.http.access_log import AccessLine, AccessLog
from support.waiting import eventually


class Pipe(io.BytesIO):
    """Takes its first line only when it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = threading.Event()
        self.is_read = threading.Event()

    def write(self, content: bytes) -> int:  # type: ignore[override]
        self.is_full.set()
        self.is_read.wait(60)
        return super().write(content)


def line(number: int) -> AccessLine:
    return AccessLine(number, "127.0.0.1:1", "GET", "/users/a", 200, 10, 0.5)


def test_lines_that_nobody_reads_are_counted_in_the_next_one() -> None:
    pipe = Pipe()
    log = AccessLog(pipe)
    log.note(line(0))
    assert pipe.is_full.wait(60)
    # One line is being written, 10,000 wait, and five find no room.
    for number in range(1, 10_006):
        log.note(line(number))
    pipe.is_read.set()
    eventually(lambda: pipe.getvalue().count(b"\n") == 10_001)
    log.note(line(20_000))
    eventually(lambda: pipe.getvalue().count(b"\n") == 10_002)
    log.close()
    lines = [json.loads(text) for text in pipe.getvalue().splitlines()]
    assert [each["at_ms"] for each in lines] == [*range(10_001), 20_000]
    assert {each["at_ms"]: each["lost_lines"] for each in lines if "lost_lines" in each} == {1: 5}
    assert list(lines[0]) == ["at_ms", "client", "method", "path", "status", "bytes", "ms"]
