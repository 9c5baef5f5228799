"""The end of a session, and of its JVM: PySpark lets the JVM run until Python has ended, and does not wait for it.

The JVM ends itself, its context first, when its standard input ends. So no JVM is left even if Python is killed; here
the end is also waited for.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lastword.jvm.class_archive import ClassArchive
from lastword.spark.session import pyspark_private
from lastword.spark.session.jvm_errors import JvmErrors

# The JVM takes well under a second to end; the first one on a machine also writes its class archive.
_PATIENCE_S = 15.0
_ARCHIVE_PATIENCE_S = 120.0
# After Ctrl-C the end must be quick.
_INTERRUPTED_PATIENCE_S = 2.0

_Handler = Callable[[int, FrameType | None], Any] | int | None


@dataclass(kw_only=True)
class _Life:
    """What must be cleaned up when the JVM of this process ends."""

    archive: ClassArchive
    errors: JvmErrors
    report: Callable[[str], None]
    scratch: Path | None  # a folder for files of the JVM, which goes with it
    before: _Handler  # the handler of Ctrl-C before the session
    owner: int
    process: subprocess.Popen[bytes] | None = None
    interrupted: bool = False

    def launched(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process


_life: _Life | None = None


def stop(spark: SparkSession) -> None:
    """Ends the session and its JVM, and returns when the JVM is gone; another session may be made afterwards."""
    gateway = pyspark_private.gateway()
    # A dead JVM can't stop anything, and PySpark would print a warning.
    try:
        if gateway is not None and gateway.proc.poll() is None:
            with suppress(Py4JError, OSError):
                spark.stop()
    finally:
        end_jvm()


@contextmanager
def watched(
    archive: ClassArchive, errors: JvmErrors, report: Callable[[str], None], scratch: Path | None
) -> Iterator[None]:
    """The JVM that is started in the block ends with Python at the latest, soon after Ctrl-C, or if the block fails."""
    global _life  # noqa: PLW0603 - PySpark has one JVM in a process
    before = signal.getsignal(signal.SIGINT)
    _life = _Life(archive=archive, errors=errors, report=report, scratch=scratch, before=before, owner=os.getpid())
    handle_interrupts()
    try:
        with pyspark_private.launched_process(_life.launched):
            yield
    except BaseException:
        _life.interrupted = True
        end_jvm()
        raise


def handle_interrupts() -> None:
    """From now on Ctrl-C ends the jobs of the session. A new SparkContext sets its own handler, which can hang."""
    if _life is not None:
        _on_ctrl_c(_on_interrupt if callable(_life.before) else _life.before)


def jvm_has_ended() -> bool:
    """Whether the JVM of this process has ended; for use after a call has failed."""
    gateway = pyspark_private.gateway()
    if gateway is None:
        return False
    with suppress(subprocess.TimeoutExpired):
        # Its connections end a moment before it does.
        gateway.proc.wait(1)
    return gateway.proc.poll() is not None


def end_jvm() -> None:
    """Ends the JVM and returns when it is gone; nothing when there is none."""
    global _life  # noqa: PLW0603
    life, gateway = _life, pyspark_private.gateway()
    # A forked child has a copy of these, and must not end its parent's JVM.
    if life is not None and life.owner != os.getpid():
        return
    _life = None
    status = None
    process = gateway.proc if gateway is not None else life.process if life is not None else None
    try:
        if gateway is not None:
            _stop_listening(pyspark_private.active_context())
            pyspark_private.ignore_garbage(gateway)
        if process is not None:
            _report_archive(life, process)
            status = _ended(process, _patience(life))
    finally:
        if gateway is not None:
            pyspark_private.forget_jvm()
            # After the JVM, because a connection that was interrupted would wait for an answer of it.
            gateway.shutdown()
        if life is not None:
            _put_in_order(life, status)


atexit.register(end_jvm)


def _ignore(*_: object) -> None:
    pass


def _put_in_order(life: _Life, status: int | None) -> None:
    life.errors.ended()
    if life.scratch is not None:
        shutil.rmtree(life.scratch, ignore_errors=True)
    # A failed start has loaded other classes than the next one needs.
    life.archive.finish(whole=status == 0 and not life.interrupted)
    if signal.getsignal(signal.SIGINT) is _on_interrupt:
        _on_ctrl_c(life.before)


def _report_archive(life: _Life | None, process: subprocess.Popen[bytes]) -> None:
    if life is None or life.interrupted or life.archive.unfinished is None or process.poll() is not None:
        return
    # The receiver of the line may be gone by now, and the JVM must end all the same.
    with suppress(Exception):
        life.report("keeping Spark's classes for its next start, once")


def _patience(life: _Life | None) -> float:
    if life is None:
        return _PATIENCE_S
    if life.interrupted:
        return _INTERRUPTED_PATIENCE_S
    return _PATIENCE_S if life.archive.unfinished is None else _ARCHIVE_PATIENCE_S


def _ended(process: subprocess.Popen[bytes], patience_s: float) -> int:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    try:
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
    except BaseException:
        # Ctrl-C during the wait: the signal is raised again, and still no JVM is left.
        process.kill()
        process.wait()
        raise


def _stop_listening(context: SparkContext | None) -> None:
    """Stops the server that gets the counters of tasks: it would print a stack if the JVM ended first."""
    server = pyspark_private.counters_server(context)
    if server is not None:
        server.shutdown()


def _on_ctrl_c(handler: _Handler) -> None:
    # Only the main thread may set a handler, and only it is interrupted. None: a handler that is not Python's.
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    """Cancels the jobs, then calls the handler of before.

    PySpark's own handler cancels in this thread, on the connection that waits for the job: so it waits for the job.
    """
    context, life = pyspark_private.active_context(), _life
    if context is not None and pyspark_private.has_jobs(context):
        threading.Thread(target=_cancel_jobs, args=(context,), daemon=True).start()
    if life is None:
        raise KeyboardInterrupt
    life.interrupted = True
    hush_lost_jvm()
    if callable(life.before):
        life.before(number, frame)


def hush_lost_jvm() -> None:
    """Silences what PySpark logs about a lost JVM or an interrupted call: the caller reports the error itself."""
    # PySpark logs it with its stack twice: once as py4j, once without a name.
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_not_py4j)
    server = pyspark_private.counters_server(pyspark_private.active_context())
    if server is not None:
        # The server prints a stack when its connection ends.
        server.handle_error = _ignore


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _cancel_jobs(context: SparkContext) -> None:
    with suppress(Py4JError, OSError):
        context.cancelAllJobs()
