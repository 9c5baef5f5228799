"""A background loop: a named thread that works until it is stopped.

A thread that ends in another way is not one of these: at the end of its queue (`serve/http/access_log.py`,
`serve/tables/writes.py`), after one piece of work (`kafka/topics/topic_snapshot.py`,
`serve/cluster/topic_compactions.py`), or with its replica and its store (`replica/following.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class BackgroundLoop:
    """Runs `work` in a daemon thread; `work` returns soon after `is_stopping` is true.

    A daemon, because a cluster that hangs must not hold up the end of the process. An error that `work` does not catch
    ends the loop, and Python prints it with the name of the thread.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=work, name=name, daemon=True)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def is_started(self) -> bool:
        return self._thread.ident is not None

    def start(self) -> None:
        self._thread.start()

    def rest(self, seconds: float) -> None:
        """Called by `work`: waits that long; returns at once when the loop is stopped, and early after `wake`."""
        self._woken.wait(seconds)
        self._woken.clear()
        if self.is_stopping:
            # Every later rest returns at once, too.
            self._woken.set()

    def wake(self) -> None:
        """Ends the rest of the loop, or the next one."""
        self._woken.set()

    def ask_to_stop(self) -> None:
        """Does not wait for the end of the loop."""
        self._stopping.set()
        self._woken.set()

    def stop(self, timeout_s: float | None = None) -> None:
        """Asks the loop to stop, and waits for its end, at most `timeout_s`."""
        self.ask_to_stop()
        if self.is_started:
            self._thread.join(timeout_s)
