"""The JVM's standard error: held back while it starts, so that a mistake is one line and not a stack."""

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
        """The JVM has inherited the writing end, or never will: ours is closed."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def release(self) -> None:
        """The start succeeded: passes on the lines so far, and all later ones."""
        with self._lock:
            for line in self._held or ():
                sys.stderr.write(line)
            self._held = None

    def ended(self) -> list[str]:
        """To be called when the JVM is gone: the lines that were held to the end."""
        self.launched()
        # With a time limit: a process that the JVM left behind may hold the writing end too.
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
    """The exception of Java that stopped the start of a session, as Java shows it."""


@contextmanager
def java_text() -> Iterator[None]:
    """Turns an exception of Java into text now: `str` of it asks the JVM, which is gone after a failed start."""
    try:
        yield
    except Py4JJavaError as failure:
        # "An error occurred while calling ...", and then the exception.
        raise StartRefused(str(failure).partition("\n: ")[2]) from None


def reason_of(failure: Exception, jvm_lines: list[str]) -> str:
    """Why Spark did not start, in one line: from the exception, or else the first line of its JVM."""
    of_exception = [line for line in str(failure).splitlines() if line.strip()]
    of_jvm = [line for line in jvm_lines if line.strip()]
    # If a context stopped itself while it was made, only the log has the reason.
    knows = isinstance(failure, StartRefused) and of_exception and "stopped SparkContext" not in of_exception[0]
    lines = of_exception if knows else of_jvm or of_exception
    first = lines[0].strip() if lines else type(failure).__name__
    return _without_class(_LOG.sub("", first.removeprefix('Exception in thread "main" ')))


def _without_class(line: str) -> str:
    name, mark, message = line.partition(": ")
    is_class = "." in name and " " not in name
    return message if mark and message and is_class else line
