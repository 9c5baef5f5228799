"""The program `lastword`, and its end by a signal: at most one line of output, and exit code 128 + the signal's number.

Python would raise KeyboardInterrupt at any line: inside an import, where a library turns it into another error, or
where nobody catches it. So the first signal is raised as soon as no import is running, and every error after it counts
as caused by the signal. A second signal ends the program at once. Before the command line is loaded, and after it has
ended, nothing needs a clean stop: then the first signal, too, ends the program at once.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_RETRY_S = 0.01


class _Received:
    """The signal that ends the program, after it has arrived."""

    number: int | None = None
    # Received, and not raised yet.
    is_pending = False


def _leave(number: int, _frame: FrameType | None = None) -> NoReturn:
    # Nothing more is flushed: a full pipe would block.
    os._exit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt as soon as no import is running; ends the program at the second signal."""
    if _Received.number is not None:
        _leave(number)
    _Received.number = number
    _raise_when_possible(frame)


def _like_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Does what Ctrl-C does at this moment: a Spark session, for example, has its own handler."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else _interrupt)(number, frame)


def _raise_when_possible(frame: FrameType | None) -> None:
    _Received.is_pending = True
    if _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, _RETRY_S)
        return
    _Received.is_pending = False
    raise KeyboardInterrupt


def _retry(_number: int, frame: FrameType | None) -> None:
    if _Received.is_pending:
        _raise_when_possible(frame)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _on_unraisable(dropped: Any) -> None:
    """Python prints and drops an error of a destructor or a callback. A dropped signal is raised again."""
    if _Received.number is None:
        sys.__unraisablehook__(dropped)
    elif isinstance(dropped.exc_value, KeyboardInterrupt):
        _Received.is_pending = True
        signal.setitimer(signal.ITIMER_REAL, _RETRY_S)


def _on_thread_failure(failure: Any) -> None:
    import threading

    if _Received.number is None:
        threading.__excepthook__(failure)


def _install(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        # A signal that nohup ignores stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def run(command: Callable[[], int] | None = None) -> NoReturn:
    """Runs the command line, or another command, and ends the process with its exit code."""
    try:
        code = _run(command)
    except BaseException:
        if _Received.number is None:
            raise
        code = 128 + _Received.number
    if _Received.number is not None:
        # After a signal nobody waits for threads and destructors.
        os._exit(code)
    sys.exit(code)


def _run(command: Callable[[], int] | None) -> int:
    import threading

    from lastword.cli import flush_output, main

    sys.unraisablehook = _on_unraisable
    threading.excepthook = _on_thread_failure
    signal.signal(signal.SIGALRM, _retry)
    try:
        _install({signal.SIGINT: _interrupt, signal.SIGTERM: _like_ctrl_c, signal.SIGHUP: _like_ctrl_c})
        code = (command or main)()
    finally:
        _install(dict.fromkeys(_SIGNALS, _leave))
        flush_output()
    return code if _Received.number is None else 128 + _Received.number


_install(dict.fromkeys(_SIGNALS, _leave))
