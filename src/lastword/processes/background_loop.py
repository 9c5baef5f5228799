"""A background loop: a named thread that works until it is stopped.

Threads that end in another way don't use this: at the end of a queue (`serve/http/access_log.py`,
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
        # Both are changed and waited for under one lock: no stop falls between a check and a wait.
        self._changed = threading.Condition()
        self._is_stopping = False
        self._is_woken = False
        self._thread = threading.Thread(target=work, name=name, daemon=True)

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    @property
    def is_started(self) -> bool:
        return self._thread.ident is not None

    def start(self) -> None:
        self._thread.start()

    def rest(self, seconds: float) -> None:
        """Called by `work`: waits that long; returns at once when the loop is stopped, and early after `wake`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_woken or self._is_stopping, seconds)
            self._is_woken = False

    def wake(self) -> None:
        """Ends the rest of the loop, or the next one."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def ask_to_stop(self) -> None:
        """Does not wait for the end of the loop."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def stop(self, timeout_s: float | None = None) -> None:
        """Asks the loop to stop, and waits for its end, at most `timeout_s`."""
        self.ask_to_stop()
        if self.is_started:
            self._thread.join(timeout_s)
