"""A process with many readers of one table's changes: how late each change comes, and whether every reader gets all.

    python -m benchmarks.http.change_readers HOST:PORT TOPIC HTTP_PORT SERVER_PID PER_SECOND SECONDS KEYS

The writer is another process (`paced_writer`). Its values have their number and the moment they were handed over. While
they read, the readers only keep the bytes and their times; the bytes are parsed at the end. Both processes read the
monotonic clock of the machine.
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
# After so long without a change, no more changes are expected.
_QUIET_SECONDS = 2
_PUT = re.compile(rb'event: put\ndata: [^\n]*"number":(\d+),"handed_over":([0-9.]+)[^\n]*\n\n')
# The first event of a stream: the position it begins at.
_BEGUN = re.compile(rb"\r\n\r\n(.*\n)?id: [^\n]*\n", re.DOTALL)


class Reader:
    """One stream: its parts, and the time of each part."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        # HTTP/1.0: the stream has no chunks, which would be extra work for the readers.
        self.socket.sendall(b"GET /tables/users/changes HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        self.parts: list[bytes] = []
        self.moments: list[float] = []

    def take(self) -> None:
        part = self.socket.recv(1 << 20)
        if not part:
            sys.exit(f"the server ended a stream: {self.text[-300:].decode(errors='replace')}")
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
        """For each change: its number, when it was handed over, and when its last byte came."""
        ends = list(accumulate(map(len, self.parts)))
        return [
            (int(put[1]), float(put[2]), self.moments[bisect_left(ends, put.end())]) for put in _PUT.finditer(self.text)
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
    """How late the changes came, and the CPU time of the server and of this process; exits if a change is missing."""
    readers = [Reader(port) for _ in range(READERS)]
    for reader in readers:
        reader.await_begin()
    prefix, cpu, own_cpu = f"sample-{uuid.uuid4().hex[:8]}-", cpu_seconds(pid), time.process_time()
    # Into a file: nobody reads meanwhile, and a pipe could fill up.
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
        printed = output.read()
    own_cpu, cpu_after = time.process_time() - own_cpu, cpu_seconds(pid)
    if writer.returncode:
        sys.exit("the writer failed")
    received = [reader.changes() for reader in readers]
    for changes in received:
        refuse_incomplete([number for number, _, _ in changes], pace.records)
    acknowledged = {key: moments[1] for key, moments in json.loads(printed).items()}
    from_write = [(came - handed_over) * 1000 for changes in received for _, handed_over, came in changes]
    from_acknowledgement = [
        max(0.0, came - acknowledged[f"{prefix}{number // pace.sampled_every}"]) * 1000
        for changes in received
        for number, _, came in changes
        if number % pace.sampled_every == 0
    ]
    return {
        **_percentiles("", from_acknowledgement),
        **_percentiles(" from the write", from_write),
        "delivered": len(from_write),
        "seconds": pace.seconds,
        "server_cpu_s": None if cpu is None or cpu_after is None else cpu_after - cpu,
        "readers_cpu_s": own_cpu,
    }


def refuse_incomplete(numbers: list[int], written: int) -> None:
    """Exits unless each of the written numbers came exactly once."""
    if sorted(numbers) != list(range(written)):
        sys.exit(f"a reader has {len(numbers)} changes, {len(set(numbers))} of them different; {written} were written")


def _percentiles(suffix: str, times: list[float]) -> dict[str, float]:
    cuts = quantiles(times, n=100, method="inclusive")
    return {f"p50{suffix}": cuts[49], f"p99{suffix}": cuts[98]}


if __name__ == "__main__":
    _, servers, topic, port, pid, per_second, seconds, keys = sys.argv
    pace = Pace(per_second=int(per_second), seconds=int(seconds), keys=int(keys))
    print(json.dumps(delivered(servers, topic, int(port), int(pid), pace)))
