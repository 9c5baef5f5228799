"""An instance of `lastword serve` as a process: started, asked, stopped, killed and started again."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from support.command_line import CommandLine


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Instance:
    """Serves tables (`users=topic`) from a given folder until the end of the `with` block."""

    def __init__(
        self,
        lastword: CommandLine,
        folder: Path,
        *tables: str,
        port: int = 0,
        board: bool = False,
        options: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.port = port
        self._lastword = lastword
        self._tables = tables
        self._options = (*(("--board",) if board else ()), *options)
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when every table is ready."""
        tables = [word for table in self._tables for word in ("--table", table)]
        words = ("serve", *tables, "--port", str(self.port), "--data", str(self.folder), *self._options)
        self._process = self._lastword.start(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert self._process.stdout is not None
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            if line.startswith("ready: "):
                # The next start takes the same port, as a service does.
                self.port = int(line.rsplit(":", 1)[1])
                return
        raise AssertionError("".join(lines))

    def stop(self) -> None:
        """Stops the instance as a service manager does: by SIGTERM."""
        assert self._process is not None
        self._process.terminate()
        assert self._ended() == 0

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._ended()

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> Answer:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            client.request(method, path, body)
            answer = client.getresponse()
            return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
        finally:
            client.close()

    def _ended(self) -> int:
        assert self._process is not None
        self._process.communicate(timeout=60)
        code, self._process = self._process.returncode, None
        return code

    def __enter__(self) -> Instance:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._process is not None:
            self.kill()
