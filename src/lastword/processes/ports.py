"""Ports on loopback: whether a port is free, and choosing free ports."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path

from lastword.core.errors import BrokerFailed

# Below the ports that the kernel gives to outgoing connections (Linux from 32768, macOS from 49152): else a client
# that connects while its broker is down may get that very port, connect to itself, and keep the broker out.
_FREE_PORTS = range(20_000, 32_768)

# Linux keeps the end of a connection for 60 seconds. The socket's maker decides whether a listener must wait.
_TIME_WAIT_S = 75.0
_TIME_WAIT = "06"


def check_port(port: int, report: Callable[[str], None]) -> None:
    """BrokerFailed for a port that another process holds; `report` gets a line when there is a wait."""
    if not await_free(port, report):
        raise BrokerFailed(
            f"port {port} is taken by another process: choose another with --port, or --port 0 for a free one"
        )


def await_free(port: int, report: Callable[[str], None], within_s: float = _TIME_WAIT_S) -> bool:
    """Whether the port is free, or becomes free: waits while only connections that have ended hold it."""
    give_up_at = time.monotonic() + within_s
    has_reported = False
    while not is_free(port):
        if not is_ending(port):
            # The last connection may have ended between the two checks.
            return is_free(port)
        if not has_reported:
            report(f"port {port} is still held by a connection that has ended (TIME_WAIT): waiting, a minute at most")
            has_reported = True
        if time.monotonic() > give_up_at:
            return is_free(port)
        time.sleep(0.1)
    return True


def is_ending(port: int) -> bool:
    """Whether nothing but connections that have ended (TIME_WAIT) holds the port; they free it within a minute."""
    states = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        # On systems without these files such connections keep no listener out.
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            _, local, _, state = line.split()[:4]
            if int(local.rpartition(":")[2], 16) == port:
                states.add(state)
    return states == {_TIME_WAIT}


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Kafka does: a port in TIME_WAIT is free for a listener if its last user set the same option.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class PortPicker:
    """Free ports, each given once and none of `but_not`: a picker holds its ports until all are chosen."""

    def __init__(self, but_not: Collection[int] = ()) -> None:
        self._held = ExitStack()
        self._but_not = but_not

    def free(self) -> int:
        for port in random.sample(_FREE_PORTS, len(_FREE_PORTS)):
            if port not in self._but_not and self._hold(port):
                return port
        raise BrokerFailed(
            f"no port from {_FREE_PORTS.start} to {_FREE_PORTS.stop - 1} is free: choose one with --port"
        )

    def _hold(self, port: int) -> bool:
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind(("127.0.0.1", port))
            # A port that is only bound could still be bound by others who reuse addresses, as we do.
            held.listen()
        except OSError:
            held.close()
            return False
        self._held.enter_context(held)
        return True

    def __enter__(self) -> PortPicker:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
