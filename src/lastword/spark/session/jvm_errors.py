"""What the JVM says on its standard error: held back while it starts, so that a mistake is one line and not a stack."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from py4j.protocol import Py4JJavaError

_END_S = 2.0
# As log4j2.properties lays a line out.
_LOG = re.compile(r"^\S+ \S+ ERROR \w+: ")


class JvmErrors:
    """The reading end of the JVM's standard error; `writer` is for the JVM."""

    def __init__(self) -> None:
        reader, self.writer = os.pipe()
        self._lock = threading.Lock()
        self._held: list[str] | None = []
        self._thread = threading.Thread(target=self._read, args=(os.fdopen(reader, errors="replace"),), daemon=True)
        self._thread.start()

    def launched(self) -> None:
        """The JVM has an end of its own, or will never have one."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def release(self) -> None:
        """The start went well: what was said is passed on, and whatever comes from now on."""
        with self._lock:
            for line in self._held or ():
                sys.stderr.write(line)
            self._held = None

    def ended(self) -> list[str]:
        """To be called when the JVM is gone: the lines that were held to the end."""
        self.launched()
        # A process that the JVM left behind may have its end too, and is not waited for.
        self._thread.join(_END_S)
        with self._lock:
            return list(self._held or ())

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                with self._lock:
                    if self._held is None:
                        sys.stderr.write(line)
                    else:
                        self._held.append(line)


class StartRefused(Exception):
    """What Java threw while a session was made, as Java shows it."""


@contextmanager
def java_text() -> Iterator[None]:
    """An exception of Java's as text: its own `str` asks the JVM, which is gone when the start has failed."""
    try:
        yield
    except Py4JJavaError as failure:
        # "An error occurred while calling ...", and then the exception.
        raise StartRefused(str(failure).partition("\n: ")[2]) from None


def reason_of(failure: Exception, said: list[str]) -> str:
    """Why Spark did not start, in one line: as its exception says, or else the first that its JVM said."""
    told = [line for line in str(failure).splitlines() if line.strip()]
    heard = [line for line in said if line.strip()]
    # A context that stopped itself while it was made says only in the log why.
    knows = isinstance(failure, StartRefused) and told and "stopped SparkContext" not in told[0]
    lines = told if knows else heard or told
    first = lines[0].strip() if lines else type(failure).__name__
    return _without_class(_LOG.sub("", first.removeprefix('Exception in thread "main" ')))


def _without_class(line: str) -> str:
    name, mark, message = line.partition(": ")
    is_class = "." in name and " " not in name
    return message if mark and message and is_class else line
