"""Free ports, on the machine's real sockets."""

import socket

from lastword.kafka.ports import PortPicker, is_free


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
