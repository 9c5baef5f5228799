"""Many readers of one table's changes, as one process: how late each change comes, and whether all came to everyone.

    python -m benchmarks.http.change_readers HOST:PORT TOPIC HTTP_PORT SERVER_PID PER_SECOND SECONDS KEYS

The writer is another process (`paced_writer`), whose values carry their number and when they were handed over. While
they read, the readers do no more than keep what came and when: what is in it is looked at in the end. Both processes
read the machine's monotonic clock.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from bisect import bisect_left
from itertools import accumulate
from statistics import quantiles
from typing import Any

from benchmarks.input.paced_writer import Pace
from benchmarks.measuring.cpu_time import cpu_seconds

READERS = 100

_PATIENCE_SECONDS = 30
# When nothing has come for so long, nothing more will.
_QUIET_SECONDS = 2
_PUT = re.compile(rb'event: put\ndata: [^\n]*"number":(\d+),"handed_over":([0-9.]+)[^\n]*\n\n')
# The first event of a stream: where it begins.
_BEGUN = re.compile(rb"\r\n\r\n(.*\n)?id: [^\n]*\n", re.DOTALL)


class Reader:
    """One stream, as it came: parts of it and when each was there."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        # In the older version of HTTP a stream is not cut into chunks, which would be work for the readers only.
        self.socket.sendall(b"GET /tables/users/changes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        self.parts: list[bytes] = []
        self.moments: list[float] = []

    def take(self) -> None:
        part = self.socket.recv(1 << 20)
        if not part:
            sys.exit(f"the server has ended a stream: {self.text[-300:].decode(errors='replace')}")
        self.parts.append(part)
        self.moments.append(time.monotonic())

    @property
    def text(self) -> bytes:
        return b"".join(self.parts)

    def await_begin(self) -> None:
        while not _BEGUN.search(self.text):
            self.take()
        if not self.text.startswith((b"HTTP/1.0 200", b"HTTP/1.1 200")):
            sys.exit(f"no stream of changes: {self.text.splitlines()[0].decode(errors='replace')}")

    def changes(self) -> list[tuple[int, float, float]]:
        """Of each change its number, when it was handed over, and when the last byte of it was here."""
        ends = list(accumulate(map(len, self.parts)))
        return [
            (int(found[1]), float(found[2]), self.moments[bisect_left(ends, found.end())])
            for found in _PUT.finditer(self.text)
        ]


def read_all(readers: list[Reader], writer: subprocess.Popen[bytes]) -> None:
    """Reads until the writer has ended and nothing more comes."""
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.socket, selectors.EVENT_READ, reader)
        ended_at: float | None = None
        last = time.monotonic()
        while ended_at is None or time.monotonic() - max(ended_at, last) < _QUIET_SECONDS:
            for key, _ in selector.select(timeout=0.1):
                key.data.take()
                last = time.monotonic()
            if ended_at is None and writer.poll() is not None:
                ended_at = time.monotonic()


def delivered(servers: str, topic: str, port: int, pid: int, pace: Pace) -> dict[str, Any]:
    """How late the changes were, and what that took of the server and of this process; ends where one is missing."""
    readers = [Reader(port) for _ in range(READERS)]
    for reader in readers:
        reader.await_begin()
    prefix, cpu, own_cpu = f"sample-{uuid.uuid4().hex[:8]}-", cpu_seconds(pid), time.process_time()
    # Into a file: a pipe that nobody reads meanwhile could fill up.
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(pace.writer(servers, topic, prefix), stdout=output) as writer,
    ):
        try:
            read_all(readers, writer)
        except BaseException:
            writer.kill()
            raise
        output.seek(0)
        told = output.read()
    own_cpu, cpu_after = time.process_time() - own_cpu, cpu_seconds(pid)
    if writer.returncode:
        sys.exit("the writer failed")
    found = [reader.changes() for reader in readers]
    for changes in found:
        refuse_incomplete([number for number, _, _ in changes], pace.records)
    acknowledged = {key: moments[1] for key, moments in json.loads(told).items()}
    from_write = [(here - handed_over) * 1000 for changes in found for _, handed_over, here in changes]
    from_acknowledgement = [
        max(0.0, here - acknowledged[f"{prefix}{number // pace.sampled_every}"]) * 1000
        for changes in found
        for number, _, here in changes
        if number % pace.sampled_every == 0
    ]
    return {
        **_cuts("", from_acknowledgement),
        **_cuts(" from the write", from_write),
        "delivered": len(from_write),
        "seconds": pace.seconds,
        "server_cpu_s": None if cpu is None or cpu_after is None else cpu_after - cpu,
        "readers_cpu_s": own_cpu,
    }


def refuse_incomplete(numbers: list[int], written: int) -> None:
    """Ends the process unless each of the written numbers came, and came once."""
    if sorted(numbers) != list(range(written)):
        sys.exit(f"a reader has {len(numbers)} changes, {len(set(numbers))} of them different; {written} were written")


def _cuts(what: str, times: list[float]) -> dict[str, float]:
    cuts = quantiles(times, n=100, method="inclusive")
    return {f"p50{what}": cuts[49], f"p99{what}": cuts[98]}


if __name__ == "__main__":
    _, servers, topic, port, pid, per_second, seconds, keys = sys.argv
    pace = Pace(per_second=int(per_second), seconds=int(seconds), keys=int(keys))
    print(json.dumps(delivered(servers, topic, int(port), int(pid), pace)))
