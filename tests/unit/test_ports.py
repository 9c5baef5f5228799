"""Free ports, on the machine's real sockets."""

import socket
import sys
from dataclasses import dataclass

import pytest

from lastword.core.errors import BrokerFailed
from lastword.processes.ports import PortPicker, await_free, check_port, is_free


def test_free_ports_are_distinct_and_outside_the_range_of_outgoing_connections() -> None:
    with PortPicker() as ports:
        chosen = [ports.free() for _ in range(50)]
    assert len(set(chosen)) == 50
    assert all(20_000 <= port < 32_768 for port in chosen)


def test_a_port_is_held_until_all_are_chosen_and_free_again_afterwards() -> None:
    with PortPicker() as ports:
        port = ports.free()
        assert not is_free(port)
    assert is_free(port)


def test_ports_that_are_spoken_for_are_never_given() -> None:
    with PortPicker(but_not=range(20_000, 32_766)) as ports:
        assert {ports.free(), ports.free()} == {32_766, 32_767}


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert not is_free(listener.getsockname()[1])


# Of the client: where no other process of a busy machine takes a port meanwhile. Only Linux has more than one.
_PEER_HOST = "127.77.0.1" if sys.platform == "linux" else "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A connection that its listener's side closed first, so that its port is in TIME_WAIT for a minute."""

    port: int
    peer: int

    @classmethod
    def on_a_port(cls, *, reuses_addresses: bool) -> "Ended":
        with PortPicker() as ports:
            # One that no outgoing connection gets.
            port = ports.free()
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuses_addresses)
            listener.bind(("127.0.0.1", port))
            listener.listen()
            with socket.create_connection(("127.0.0.1", port), source_address=(_PEER_HOST, 0)) as client:
                listener.accept()[0].close()
                assert client.recv(1) == b""
                return cls(port=port, peer=client.getsockname()[1])

    def forget(self) -> None:
        """Ends TIME_WAIT: Linux drops it when its peer, which knows nothing of the connection, refuses what is left."""
        with socket.socket() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            peer.bind((_PEER_HOST, self.peer))
            with pytest.raises(ConnectionRefusedError):
                peer.connect(("127.0.0.1", self.port))


def test_a_port_in_time_wait_of_one_who_reuses_addresses_is_free_at_once() -> None:
    ended, told = Ended.on_a_port(reuses_addresses=True), list[str]()
    check_port(ended.port, told.append)
    assert told == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it keeps no listener out")
def test_a_port_in_time_wait_that_keeps_listeners_out_is_waited_for() -> None:
    ended, told = Ended.on_a_port(reuses_addresses=False), list[str]()

    def tell(line: str) -> None:
        told.append(line)
        ended.forget()

    assert not is_free(ended.port)
    check_port(ended.port, tell)
    assert is_free(ended.port)
    assert told == [
        f"port {ended.port} is still held by a connection that has ended (TIME_WAIT): waiting, a minute at most"
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it keeps no listener out")
def test_a_port_in_time_wait_is_waited_for_no_longer_than_it_takes() -> None:
    ended, told = Ended.on_a_port(reuses_addresses=False), list[str]()
    assert not await_free(ended.port, told.append, within_s=0.05)
    assert len(told) == 1
    ended.forget()


def test_a_port_with_a_listener_is_refused_at_once_whatever_else_ended_on_it() -> None:
    ended, told = Ended.on_a_port(reuses_addresses=True), list[str]()
    with socket.create_server(("127.0.0.1", ended.port)), pytest.raises(BrokerFailed, match="taken by another process"):
        check_port(ended.port, told.append)
    assert told == []
