"""The program `lastword`, and its end by a signal: at any instant one line at most, and the exit code 128 + its number.

Python would raise KeyboardInterrupt wherever it happens to be: inside an import, where a library makes another error
of it, or where nobody catches it. So the first signal is raised as soon as no import is under way, and everything
that comes up after it is its doing. A second one ends the program at once. Until the command line is loaded, and from
its end on, there is nothing to put in order: then the first one ends it at once, too.
"""

import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_RETRY_S = 0.01


class _Received:
    """The signal that is to end the program, once there is one."""

    number: int | None = None
    # Not raised yet.
    is_pending = False


def _leave(number: int, _frame: FrameType | None = None) -> NoReturn:
    # What was printed stays printed: nothing more is flushed, for a pipe that is full would keep us here.
    os._exit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, as soon as no import is under way; leaves at once when it was raised before."""
    if _Received.number is not None:
        _leave(number)
    _Received.number = number
    _raise_when_possible(frame)


def _like_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Does what Ctrl-C does now: a Spark session, for one, has its own way."""
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


def _on_unraisable(lost: Any) -> None:
    """Python drops what is raised in a destructor or a callback, and prints it: a signal is raised once more."""
    if _Received.number is None:
        sys.__unraisablehook__(lost)
    elif isinstance(lost.exc_value, KeyboardInterrupt):
        _Received.is_pending = True
        signal.setitimer(signal.ITIMER_REAL, _RETRY_S)


def _on_thread_failure(failure: Any) -> None:
    import threading

    if _Received.number is None:
        threading.__excepthook__(failure)


def _heed(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        # What nohup ignores stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def run() -> NoReturn:
    """Runs the command line to its end, and ends the process."""
    try:
        code = _run()
    except BaseException:
        if _Received.number is None:
            raise
        code = 128 + _Received.number
    if _Received.number is not None:
        # Whatever Python would still do, a signal has ended it: nobody waits for threads and destructors.
        os._exit(code)
    sys.exit(code)


def _run() -> int:
    import threading

    from lastword.cli import flush_output, main

    sys.unraisablehook = _on_unraisable
    threading.excepthook = _on_thread_failure
    signal.signal(signal.SIGALRM, _retry)
    try:
        _heed({signal.SIGINT: _interrupt, signal.SIGTERM: _like_ctrl_c, signal.SIGHUP: _like_ctrl_c})
        code = main()
    finally:
        _heed(dict.fromkeys(_SIGNALS, _leave))
        flush_output()
    return code if _Received.number is None else 128 + _Received.number


_heed(dict.fromkeys(_SIGNALS, _leave))
