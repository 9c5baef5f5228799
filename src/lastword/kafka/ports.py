"""Ports on loopback: whether one is free, and free ones to take."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection
from contextlib import ExitStack

from lastword.core.errors import BrokerFailed

# Below the ports that the kernel gives to outgoing connections (Linux from 32768, macOS from 49152): else a client
# that knocks while its broker is down may be given that very port, connect to itself, and keep the broker out.
_FREE_PORTS = range(20_000, 32_768)


def check_port(port: int) -> None:
    if not is_free(port):
        raise BrokerFailed(
            f"port {port} is taken by another process: choose another with --port, or --port 0 for a free one"
        )


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Kafka does it: a port in TIME_WAIT is free for a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class PortPicker:
    """Free ports, each given once and none of `but_not`: they stay taken until all are chosen."""

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
            # Bound alone it could still be bound by others who reuse addresses, as we do.
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
