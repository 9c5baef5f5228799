"""Ivy as our child, without a network: it meets a proxy on loopback that is silent, or wants a password."""

from __future__ import annotations

import base64
import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword.core.errors import ExtraMissing, JarsUnavailable
from lastword.jvm.ivy import FetchOutcome, fetch_module, find_ivy
from lastword.jvm.java import find_java

PLUM = """\
<ivy-module version="2.0">
  <info organisation="lastword" module="fruit"/>
  <dependencies><dependency org="org.fruit" name="plum" rev="1.0" transitive="false"/></dependencies>
</ivy-module>
"""


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A listening socket that is everybody's proxy; what it answers is up to the test."""
    for name in ("https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{listening.getsockname()[1]}")
        yield listening


def accept(proxy: socket.socket) -> socket.socket:
    client, _ = proxy.accept()
    client.settimeout(30)
    return client


def test_without_pyspark_there_is_no_ivy_and_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)

    with pytest.raises(ExtraMissing, match=r"^pyspark \(its Ivy fetches.*pip install 'lastword\[spark\]'"):
        find_ivy()


def test_ivy_is_found_without_importing_pyspark() -> None:
    find = "import sys; from lastword.jvm.ivy import find_ivy; print(find_ivy().name, 'pyspark' in sys.modules)"

    found = subprocess.run([sys.executable, "-c", find], capture_output=True, text=True, check=True)

    assert found.stdout.startswith("ivy-")
    assert found.stdout.endswith(" False\n")


def test_a_network_that_falls_silent_ends_in_an_error_and_no_ivy(tmp_path: Path, proxy: socket.socket) -> None:
    # On a busy machine Java may need longer than that to connect.
    for patience in (2, 4, 8, 16, 32, 64):
        with pytest.raises(JarsUnavailable, match=rf"stopped: nothing came from the network for {patience} s"):
            fetch_module(PLUM, tmp_path, find_java(), stall_seconds=patience)
        if select.select([proxy], [], [], 0)[0]:
            break

    with accept(proxy) as ivy:
        assert_hung_up(ivy)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ivy_ends_with_us_whatever_ends_us(tmp_path: Path, proxy: socket.socket, end: signal.Signals) -> None:
    fetch = textwrap.dedent(f"""
        from pathlib import Path
        from lastword.jvm.jars import ensure_jars, parse_lock
        from lastword.jvm.java import find_java
        ensure_jars(parse_lock("broker", "org.fruit:plum:1.0 ab 8"), Path({str(tmp_path)!r}), find_java(), print)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", fetch], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as fetching:
        with accept(proxy) as ivy:
            os.killpg(fetching.pid, end)  # the whole group, as a terminal does with a Ctrl-C
            assert_hung_up(ivy)
        fetching.communicate(timeout=120)

    assert fetching.returncode == -end
    if end == signal.SIGINT:
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def assert_hung_up(ivy: socket.socket) -> None:
    """Ivy's end of the connection is closed: the kernel does that when the process is gone."""
    while ivy.recv(4096):
        pass


def test_a_proxy_gets_its_password_and_the_error_does_not_show_it(
    tmp_path: Path, proxy: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://ann:se%20c%22r%5Cet@127.0.0.1:{proxy.getsockname()[1]}")
    outcomes: list[FetchOutcome] = []
    fetching = threading.Thread(target=lambda: outcomes.append(fetch_module(PLUM, tmp_path, find_java())))
    fetching.start()
    sent = password_sent_to(proxy)
    proxy.close()
    fetching.join(timeout=120)

    assert sent == 'ann:se c"r\\et'
    assert [outcome.succeeded for outcome in outcomes] == [False]
    assert 'c"r' not in str(outcomes)


def password_sent_to(proxy: socket.socket) -> str:
    """Ask each comer for a password, as a proxy does, until one sends it."""
    while True:
        with accept(proxy) as client, client.makefile("rwb") as stream:
            headers = list(iter(lambda: stream.readline().strip(), b""))
            for header in headers:
                if header.lower().startswith(b"proxy-authorization: basic "):
                    return base64.b64decode(header.split()[-1]).decode()
            stream.write(b'HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm="r"\r\nContent-Length: 0\r\n')
            stream.write(b"Connection: close\r\n\r\n")
