"""A worker process of a build, started by `worker_pool`.

    python -m lastword.replica.building.worker OWNER_PID

Each line of JSON on standard input is a task (never an argument: a task may hold a password); lines of JSON on
standard output report progress and results. However the owner ends, the worker ends, too.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import threading
import time

import msgspec

from lastword.core.errors import LastwordError
from lastword.replica.building.fold import folded
from lastword.replica.building.merge import SplitKey, merged
from lastword.replica.building.tasks import (
    ERRORS,
    Failed,
    FoldTask,
    MergeTask,
    Passed,
    PassedRows,
    Split,
    Task,
    WorkerMessage,
)
from lastword.replica.store.column_family import explained

_REPORT_EVERY_S = 0.1


def main() -> None:
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    # Millions of objects and not one cycle: scanning them would cost a third of the time.
    gc.disable()
    for line in sys.stdin.buffer:
        if not line.endswith(b"\n"):
            # The owner died before it had sent the task.
            os._exit(1)
        _send(_result(msgspec.json.decode(line, type=Task)))
    # At once: giving back the memory would take time.
    os._exit(1)


def _result(task: Task) -> WorkerMessage:
    try:
        match task:
            case FoldTask():
                return folded(task, _Reports(Passed))
            case MergeTask():
                return merged(task, _Reports(PassedRows))
    except SplitKey:
        return Split()
    except LastwordError as failure:
        kind = next(each.__name__ for each in type(failure).__mro__ if each.__name__ in ERRORS)
        return Failed(kind, str(failure))
    except Exception as failure:  # for example a full disk: rocksdict has no narrower exception
        work = f"reading {task.topic}" if isinstance(task, FoldTask) else "merging sorted rows"
        error = explained(failure, work)
        return Failed(type(error).__name__, str(error))


def _end_with(owner: int) -> None:
    # Not by the pipe alone: a process that the owner forked keeps our input open while it lives.
    pipe = select.poll()
    # Nothing but the end of the pipe: tasks are read elsewhere. (macOS tells nothing that it was not asked for.)
    pipe.register(0, select.POLLHUP)
    while os.getppid() == owner and not pipe.poll(200):
        pass
    os._exit(1)


class _Reports:
    """Reports progress to the owner now and then."""

    def __init__(self, shape: type[Passed] | type[PassedRows]) -> None:
        self._shape = shape
        self._report_at = 0.0

    def __call__(self, *counts: int) -> None:
        if time.monotonic() >= self._report_at:
            _send(self._shape(*counts))
            self._report_at = time.monotonic() + _REPORT_EVERY_S


def _send(message: WorkerMessage) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The owner is gone: nobody reads the message.
        os._exit(1)


if __name__ == "__main__":
    main()
