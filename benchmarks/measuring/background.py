"""A process that runs beside a measurement, until the measurement ends it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from benchmarks.measuring.commands import environment, name_of
from lastword.core.errors import LastwordError

_STOP_S = 30.0


def started(
    command: list[str], home: Path, output: Path, extra: Mapping[str, str] = MappingProxyType({})
) -> subprocess.Popen[bytes]:
    """Its output and errors go to the file; `extra` is added to its environment."""
    with output.open("wb") as file:
        return subprocess.Popen(
            command,
            env={**environment(home), **extra},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its children can be ended with it
        )


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


@contextmanager
def running(
    command: list[str], home: Path, output: Path, extra: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs until the end of the `with` block; LastwordError if it ends earlier, or with an error."""
    process = started(command, home, output, extra)
    try:
        yield process
        if process.poll() is not None:
            raise LastwordError(f"benchmark: {name_of(command)} ended too early: {last_line(output)}")
    finally:
        end(process)
    if process.returncode != 0:
        raise LastwordError(f"benchmark: {name_of(command)} ended with {process.returncode}: {last_line(output)}")


def last_line(output: Path) -> str:
    lines = output.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"
