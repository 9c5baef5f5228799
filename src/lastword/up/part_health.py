"""The restarts of a part since its first start, and its last end."""

from __future__ import annotations

import signal
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lastword.core.durable import write_durably
from lastword.core.shapes.json_text import from_json_text, json_text
from lastword.kafka.broker.broker_log import last_lines, without_frames

# Enough for a traceback, and quick to read however long the log is.
_LAST_LINES = 40
# A user or a program ended the process: the last line of the log is not the reason.
_WISHED = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT)


class Exit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The end of a process; a signal is a negative code. The code is None if another supervisor started the process."""

    at_ms: int
    code: int | None
    said: str = ""

    def __str__(self) -> str:
        if self.code is None:
            how = "ended"
        elif self.code < 0:
            how = f"was ended by {_signal_name(-self.code)}"
        else:
            how = f"ended with exit code {self.code}"
        return f"{how}: {self.said}" if self.said else how


class Health(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`health.json` of a part: its restarts, and its last end."""

    restarts: int = 0
    # When a part that does not run will be restarted.
    next_start_ms: int | None = None
    # The size of the log at the last start: lines before it belong to an earlier run.
    log_from: int = 0
    last_exit: Exit | None

    def started(self, log_from: int) -> Health:
        again = 0 if self.last_exit is None else 1
        return replace(self, restarts=self.restarts + again, next_start_ms=None, log_from=log_from)


def load_health(path: Path) -> Health:
    """The saved health; a part without a readable file counts as never ended."""
    try:
        return from_json_text(path.read_bytes(), Health)
    except (OSError, ValueError):
        return Health(last_exit=None)


def save_health(path: Path, health: Health) -> None:
    write_durably(path, json_text(health).encode())


def last_words(log: Path, since: int, code: int | None) -> str:
    """The line of the log that says why a process ended; empty if a user or a program ended it."""
    if code in _WISHED or not log.exists():
        return ""
    lines = [line.strip() for line in without_frames(last_lines(log, _LAST_LINES, since))]
    ours = [line.removeprefix("lastword: ") for line in lines if line.startswith("lastword: ")]
    return (ours or lines or [""])[-1]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
