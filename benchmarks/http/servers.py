"""The HTTP servers: lastword and the alternatives, each a process with the same rows at the same paths."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.alternatives.environment import alternative_in
from benchmarks.input.rows import profile
from benchmarks.input.topics import FilledTopic
from benchmarks.measuring.background import end, last_line, started
from benchmarks.measuring.commands import lastword
from benchmarks.measuring.plan import LeftOut
from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.processes.ports import PortPicker

ROWS = "/tables/users/rows/"

_START_S = 120.0
# So many that not always the same few files are read, and few enough for any file system.
_FILES = 4000

_NGINX = """\
daemon off;
# One process that stays the user who started it: no other user may read the folder of the files.
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    default_type application/json;
    sendfile on;
    open_file_cache max=10000 inactive=1h;
    open_file_cache_valid 1h;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; root {folder}/files; }}
}}
"""


@dataclass(frozen=True, kw_only=True)
class HttpProcess:
    """A running server, and the numbers N of its keys user-N."""

    who: str
    pid: int
    port: int
    numbers: range

    @property
    def last_key(self) -> str:
        return f"user-{self.numbers[-1]}"

    def get(self, path: str) -> tuple[int, bytes]:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            client.request("GET", path)
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()


@contextmanager
def lastword_serving(filled: FilledTopic, home: Path) -> Iterator[HttpProcess]:
    """`lastword serve` with a replica of the topic as the table users."""
    with table_serving(filled.connection, "users", filled.topic, home, range(filled.rows)) as server:
        _refuse_other_row(server)
        yield server


@contextmanager
def table_serving(
    connection: Connection, name: str, topic: str, home: Path, numbers: range = range(0)
) -> Iterator[HttpProcess]:
    """`lastword serve` with a replica of any topic, ready to answer."""
    port = _free_port()
    command = lastword(
        *("serve", "--table", f"{name}={topic}", "--port", str(port), "--data", str(home / "served")),
        *("--bootstrap-servers", connection.bootstrap_servers),
    )
    with _answering("lastword", command, home, port, numbers, ready="/ready") as server:
        yield server


@contextmanager
def fastapi_serving(filled: FilledTopic, home: Path, interpreter: Path) -> Iterator[HttpProcess]:
    pairs, port = home / "rows.tsv", _free_port()
    with pairs.open("w", encoding="ascii") as file:
        file.writelines(f"user-{number}\t{profile(number, number)}\n" for number in range(filled.rows))
    command = alternative_in(interpreter, "fastapi_dict", str(port), str(pairs))
    with _answering("FastAPI", command, home, port, range(filled.rows)) as server:
        _refuse_other_row(server)
        yield server


@contextmanager
def nginx_serving(filled: FilledTopic, home: Path) -> Iterator[HttpProcess]:
    """A file for each of some thousand rows, spread over all keys; a file is as long as an answer of the others."""
    folder, port = home / "nginx", _free_port()
    numbers = range(0, filled.rows, max(1, filled.rows // _FILES))
    files = folder / "files" / ROWS.strip("/")
    files.mkdir(parents=True)
    for number in numbers:
        (files / f"user-{number}").write_text(_row(number, filled.rows))
    settings = folder / "nginx.conf"
    settings.write_text(_NGINX.format(folder=folder, port=port))
    command = [nginx_program(), "-p", str(folder), "-c", str(settings)]
    with _answering("nginx", command, home, port, numbers) as server:
        _refuse_other_row(server)
        yield server


def nginx_program() -> str:
    """LeftOut if nginx is not installed."""
    # Systems keep nginx in folders that the PATH of a plain user often lacks.
    program = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))
    if program is None:
        raise LeftOut("nginx, because it is not installed (apt-get install nginx)")
    return program


def _row(number: int, rows: int) -> str:
    place = f'"partition":{number % 4},"offset":{rows // 4},"timestamp":1700000000000'
    return f'{{"key":"user-{number}","value":{profile(number, number)},{place}}}'


@contextmanager
def _answering(
    who: str, command: list[str], home: Path, port: int, numbers: range, *, ready: str | None = None
) -> Iterator[HttpProcess]:
    """The process from its first answer at `ready` (or of its last row) to the end of the `with` block."""
    output = home / f"{who}.log"
    process = started(command, home, output)
    try:
        server = HttpProcess(who=who, pid=process.pid, port=port, numbers=numbers)
        _await(server, ready or ROWS + server.last_key, process, output)
        yield server
    finally:
        end(process)


def _refuse_other_row(server: HttpProcess) -> None:
    _, body = server.get(ROWS + server.last_key)
    if json.loads(body)["value"]["userId"] != server.last_key:
        raise LastwordError(f"benchmark: {server.who} answered with another row than {server.last_key}")


def _await(server: HttpProcess, path: str, process: subprocess.Popen[bytes], output: Path) -> None:
    give_up_at = time.monotonic() + _START_S
    while True:
        with suppress(OSError, http.client.HTTPException):
            if server.get(path)[0] == 200:
                return
        if process.poll() is not None or time.monotonic() > give_up_at:
            raise LastwordError(f"benchmark: {server.who} does not answer: {last_line(output)}")
        time.sleep(0.05)


def _free_port() -> int:
    with PortPicker() as picker:
        return picker.free()
